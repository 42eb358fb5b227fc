package recordings_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/imports/recordings"
)

// whatever is read is refused as input, or becomes a cassette that is read as it was written and holds every response to the byte.
func whatever(t *testing.T, data []byte) {
	if len(data) > 64<<10 {
		return
	}
	r, err := recordings.Read("a", data)
	if err != nil {
		if failure.CodeOf(err) != failure.Input {
			t.Fatalf("code %d: %v", failure.CodeOf(err), err)
		}
		return
	}
	file, err := r.Cassette(cassette.Header{}, &secret.Detector{}, nil)
	if err != nil {
		if failure.CodeOf(err) != failure.Cassette {
			t.Fatalf("code %d: %v", failure.CodeOf(err), err)
		}
		return
	}
	first, err := cassette.Encode(file)
	if err != nil {
		t.Fatal(err)
	}
	again, err := cassette.Decode(first, "a")
	if err != nil {
		t.Fatalf("%v\n%s", err, first)
	}
	if second, err := cassette.Encode(again); err != nil || !bytes.Equal(first, second) {
		t.Fatalf("%v\n%s\n%s", err, first, second)
	}
	rules, err := cassette.NewRules(nil)
	if err != nil {
		t.Fatal(err)
	}
	scrubbed := bytes.Contains(first, []byte("{{echoeval:scrubbed-"))
	for i, x := range r.Exchanges {
		if got := rules.Open(again.Interactions[i].Response.Body); got != string(x.Response.Body) && !scrubbed {
			t.Fatalf("%q became %q", x.Response.Body, got)
		}
	}
}

func fuzz(f *testing.F, seeds ...string) {
	for _, name := range seeds {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(whatever)
}

func FuzzGoVCR(f *testing.F)       { fuzz(f, "govcr1.yaml", "govcr2.yaml") }
func FuzzVCRPy(f *testing.F)       { fuzz(f, "vcrpy.yaml", "vcrpy.json", "lists.yaml.gz") }
func FuzzRubyVCR(f *testing.F)     { fuzz(f, "ruby.yml", "r.yml") }
func FuzzHAR(f *testing.F)         { fuzz(f, "polly.har", "browser.har") }
func FuzzNock(f *testing.F)        { fuzz(f, "nock.json") }
func FuzzOneExchange(f *testing.F) { fuzz(f, "exchange.json") }
func FuzzHTTPRR(f *testing.F)      { fuzz(f, "trace.httprr") }

// FuzzBody decodes bodies that are called what they may not be.
func FuzzBody(f *testing.F) {
	for _, coding := range []string{"gzip", "deflate", "br", "zstd", "gzip, br"} {
		f.Add(coding, []byte("plain"))
		f.Add(coding, []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"))
		f.Add(coding, []byte("\x0b\x02\x80hello\x03"))
	}
	f.Fuzz(func(t *testing.T, coding string, body []byte) { whatever(t, answered("'"+coding+"'", body)) })
}
