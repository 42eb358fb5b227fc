package cassette

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	vcr "github.com/dnaeon/go-vcr/v2/cassette"

	"github.com/echoeval/echoeval/core/failure"
)

// sample has one of everything that the format can hold.
func sample() *File {
	return &File{
		Header: Header{
			Format: 1, Canon: 1, Dataset: "quick-start", Item: "chest-pain", Repeat: 1, Provider: "openai:gpt-4o-mini", Vendor: "openai", Model: "gpt-4o-mini",
			RecordedAt: time.Date(2027, 1, 4, 8, 15, 0, 0, time.UTC), Seed: 1, Upstream: "emulator 51c0b8a2e97d4f06", Imported: "VCR.py",
			Hashes: map[string]string{"agent": "c2d95e71aa038b64", "tools": "0123456789012345", "workspace": ""}, Rules: []string{"header-allow-list", "json-keys"},
		},
		Interactions: []Interaction{
			{
				Request:  Request{Body: "{\n \"messages\":[\n  {\"content\":\"two\\nlines\",\"role\":\"user\"}\n ],\n \"model\":\"gpt-4o-mini\"\n}", Headers: http.Header{"Accept": {"text/event-stream"}, "Content-Type": {"application/json"}}, URL: "https://api.openai.com/v1/chat/completions", Method: "POST"},
				Response: Response{Body: "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", Headers: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}, "Retry-After": {"1", ""}}, Status: "200 OK", Code: 200, Duration: 412 * time.Millisecond},
				Extra:    Extra{TTFT: 90 * time.Millisecond, Partial: true, Encoding: "gzip, br"},
			},
			{
				Request:  Request{Body: `{"path":"a.txt"}`, URL: "tool:///read_file", Method: Method},
				Response: Response{Body: "\xff\x00binary" + strings.Repeat("\xfe", 100), Status: "200 OK", Code: 200},
				Extra:    Extra{Seq: 1, Effect: "read", Scope: "workspace", Occurrence: 1, Judge: "strict judge"},
			},
			{
				Request:  Request{Body: "", URL: "https://example.com/?a=b&c=%20", Method: "GET"},
				Response: Response{Body: "\ttab\r\nline \u2028 \u00a0 \ufeff é 😀 \x01 \\ \"q\"", Status: "", Code: 0, Duration: 1500 * time.Nanosecond},
			},
		},
	}
}

// same holds a file against what the three readers make of its text.
func same(t *testing.T, f *File, data []byte) {
	t.Helper()
	if !clean(string(data)) {
		t.Fatalf("the encoder wrote characters that YAML does not take:\n%q", data)
	}
	quick, entries, ok := fast(string(data))
	if !ok {
		t.Fatalf("the fast reader does not know what the encoder wrote:\n%s", data)
	}
	if err := check(quick, entries, "f"); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(quick, f) {
		t.Fatalf("read back differently:\n%#v\n%#v", f, quick)
	}
	path := filepath.Join(t.TempDir(), "c")
	if err := os.WriteFile(path+".yaml", data, 0o600); err != nil {
		t.Fatal(err)
	}
	theirs, err := vcr.Load(path)
	if err != nil {
		t.Fatalf("go-vcr: %v\n%s", err, data)
	}
	if len(theirs.Interactions) != len(f.Interactions) {
		t.Fatalf("go-vcr found %d interactions", len(theirs.Interactions))
	}
	for n, i := range theirs.Interactions {
		q, p := f.Interactions[n].Request, f.Interactions[n].Response
		if i.Request.Body != q.Body || i.Request.URL != q.URL || i.Request.Method != q.Method || !sameLists(i.Request.Headers, q.Headers) ||
			i.Response.Body != p.Body || i.Response.Status != p.Status || i.Response.Code != p.Code || i.Response.Duration != p.Duration || !sameLists(i.Response.Headers, p.Headers) {
			t.Fatalf("go-vcr read interaction %d differently:\n%#v\n%#v\n%s", n, f.Interactions[n], i, data)
		}
	}
}

func sameLists(a, b map[string][]string) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

func FuzzEncode(f *testing.F) {
	for _, i := range sample().Interactions {
		f.Add(i.Request.Body, i.Response.Body, i.Request.URL, i.Response.Status, int64(i.Response.Duration), "agent")
	}
	for _, s := range []string{"", " ", "\n", "\n\n", "a\n", "a\n\n\n", " a\nb", "a\n b\n  \n", "a\n\n \n", "---", "--- a\n", "...\n", "a: b", "a #b", "# a\nb", "yes", "No", "null", "~", "1", "1.0", "0x1", "2001-01-01", "- a", "? a", "<<", "a:", ":a", "\"", "'", "|", "> ", "%YAML", "@a", "`", "a\rb", "\u0085", "x\ty\n", "\x7f", "{{a}}", "\ufffd", "\ufffe", "\U0001fffe", "a  b", strings.Repeat("a", 2000), "{\"a\":1}", "\\"} {
		f.Add(s, s, s, s, int64(0), s)
	}
	f.Fuzz(func(t *testing.T, request, response, url, status string, duration int64, name string) {
		file := sample()
		file.Header.Item, file.Header.Upstream, file.Header.Imported, file.Header.Rules = url, status, name, []string{request, name}
		file.Header.Hashes = map[string]string{"agent": request, name: response}
		file.Interactions = append(file.Interactions, Interaction{
			Request:  Request{Body: request, URL: url, Method: status, Headers: http.Header{"Accept": {request, url}, name: {response}}},
			Response: Response{Body: response, Status: status, Code: len(response), Duration: time.Duration(duration)},
		})
		data, err := Encode(file)
		if err != nil {
			if failure.CodeOf(err) != failure.Cassette || duration >= 0 && hashName(name) {
				t.Fatal(err)
			}
			return
		}
		same(t, file, data)
	})
}

func FuzzDecode(f *testing.F) {
	whole, err := Encode(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(bytes.ReplaceAll(whole, []byte("\n"), []byte("\r\n")))
	f.Add(append([]byte("\ufeff"), whole...))
	f.Add([]byte("---\nversion: 1\nechoeval:\n  format: 1\n  canon: 1\n  entries: 0\n  dataset: a\n  item: b\n  repeat: 1\n  provider: c\n  vendor: d\n  model: e\n  recorded_at: \"2027-01-04T08:15:00Z\"\n  seed: 1\n  hashes: {}\n  rules: []\ninteractions: []\n"))
	for line := range strings.Lines(string(whole)) {
		f.Add(bytes.Replace(whole, []byte(line), nil, 1))
		f.Add(bytes.Replace(whole, []byte(line), []byte(line+line), 1))
		f.Add(bytes.Replace(whole, []byte(line), []byte(strings.TrimRight(line, "\n")+" # c\n"), 1))
		f.Add(bytes.Replace(whole, []byte(line), []byte(" "+line), 1))
		f.Add(bytes.Replace(whole, []byte(line), []byte("\n"+line), 1))
		f.Add(bytes.Replace(whole, []byte(line), []byte(strings.Replace(line, ":", ": \\", 1)), 1))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Decode(data, "f.yaml")
		if quick, n, ok := fast(string(data)); ok && clean(string(data)) {
			thorough, m, err := slow(data, "f.yaml")
			if err != nil {
				t.Fatalf("only the fast reader takes it: %v\n%s", err, data)
			}
			if n != m || !reflect.DeepEqual(quick, thorough) {
				t.Fatalf("the readers differ:\n%#v\n%#v\n%s", quick, thorough, data)
			}
		}
		if err != nil {
			if pos, ok := failure.PositionOf(err); failure.CodeOf(err) != failure.Cassette || !ok || pos.File != "f.yaml" {
				t.Fatalf("an error without code or place: %v", err)
			}
			if file != nil {
				t.Fatal("a file and an error")
			}
			return
		}
		once, err := Encode(file)
		if err != nil {
			return // YAML can say more than the encoder, such as a name with a space
		}
		again, err := Decode(once, "f.yaml")
		if err != nil {
			t.Fatalf("%v\n%s", err, once)
		}
		if !reflect.DeepEqual(file, again) {
			t.Fatalf("changed by writing and reading:\n%#v\n%#v", file, again)
		}
		twice, err := Encode(again)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("written twice, differently: %v\n%s\n%s", err, once, twice)
		}
	})
}
