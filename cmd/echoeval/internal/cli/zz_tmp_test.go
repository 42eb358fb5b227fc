package cli

import (
	"bytes"
	"testing"
)

func BenchmarkTmpVerify(b *testing.B) {
	for b.Loop() {
		s := System()
		s.Args = []string{"cassette", "verify", "datasets/big.yaml"}
		s.Dir = "/tmp/v/p"
		var out bytes.Buffer
		s.Stdout, s.Stderr = &out, &out
		if c := Main(s); c != 0 {
			b.Fatal(c, out.String())
		}
	}
}
