package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/clock"
)

// manyCassettes makes a project of n items that all ask the same and have the same recording: two requests of 4 KB and a call of a tool that runs again.
func manyCassettes(b *testing.B, n int) *State {
	b.Helper()
	dir := b.TempDir()
	write := func(name string, data []byte) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "datasets"), os.DirFS(filepath.Join(suite.Root(), "datasets"))); err != nil {
		b.Fatal(err)
	}
	recording, err := os.ReadFile(filepath.Join(suite.Root(), "fixtures", "cassettes", "quickstart", "openai_gpt-4o-mini", "total-copies.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	recording = bytes.Replace(recording, []byte("dataset: quickstart"), []byte("dataset: many"), 1)
	write("echoeval.yaml", []byte("version: 1\n"))
	var text strings.Builder
	text.WriteString("version: 1\nname: many\nagent: agents/clerk.yaml\nproviders: [openai:gpt-4o-mini]\ndefaults: {workspace: workspaces/bookshop, tool_context: {shop_id: shop-7f3a91}}\nitems:\n")
	for i := range n {
		fmt.Fprintf(&text, "  - {id: i%d, input: How many books are on the shelves in all? Answer with the number alone., checks: [{contains: \"27\"}]}\n", i)
		write(fmt.Sprintf("fixtures/cassettes/many/openai_gpt-4o-mini/i%d.yaml", i), bytes.Replace(recording, []byte("item: total-copies"), fmt.Appendf(nil, "item: i%d", i), 1))
	}
	write("datasets/many.yaml", []byte(text.String()))
	return &State{Dir: dir, Clock: clock.Wall{}, Environ: []string{"TMPDIR=" + b.TempDir()}}
}

// BenchmarkVerify tells which of 1,000 cassettes still fit, as the command does but for the start of its process.
func BenchmarkVerify(b *testing.B) {
	const items = 1000
	s := manyCassettes(b, items)
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		s.Args, s.Stdout, s.Stderr = []string{"cassette", "verify", "datasets/many.yaml"}, &out, &out
		if code := Main(s); code != 0 {
			b.Fatal(code, out.String())
		}
	}
	if want := fmt.Sprintf("many: %d fresh, 0 stale, 0 missing, 0 orphaned\n", items); out.String() != want {
		b.Fatal(out.String())
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*items), "µs/cassette")
}
