package cassette

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	vcr "github.com/dnaeon/go-vcr/v2/cassette"
)

// typical is a cassette of about 12 KB: three streamed steps of a model and the two tool calls between them.
func typical(n int) *File {
	f := sample()
	f.Header.Item = fmt.Sprintf("item-%d", n)
	f.Interactions = nil
	messages := []string{`{"role":"system","content":"You answer questions about the files of a small practice. ` + strings.Repeat("Read before you write; say what you did. ", 8) + `"}`, fmt.Sprintf(`{"role":"user","content":"What does note %d say?"}`, n)}
	for step := range 3 {
		body := fmt.Sprintf(`{"model":"gpt-4o-mini","stream":true,"stream_options":{"include_usage":true},"messages":[%s],"tools":[{"type":"function","function":{"name":"read_file","description":"Reads a file","parameters":{"type":"object","properties":{"path":{"type":"string","description":"path in the workspace"},"offset":{"type":"integer"}},"required":["path"]}}}]}`, strings.Join(messages, ","))
		request, _ := Canonical("POST", "https://api.openai.com/v1/chat/completions", http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}, []byte(body), nil)
		var stream strings.Builder
		for chunk := range 10 {
			fmt.Fprintf(&stream, "data: {\"id\":\"chatcmpl-%d\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"gpt-4o-mini\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word %d of it\"},\"finish_reason\":null}]}\n\n", step, chunk)
		}
		stream.WriteString("data: [DONE]\n\n")
		f.Interactions = append(f.Interactions, Interaction{
			Request:  request,
			Response: Response{Body: stream.String(), Headers: http.Header{"Content-Type": {"text/event-stream"}}, Status: "200 OK", Code: 200, Duration: 400 * time.Millisecond},
			Extra:    Extra{TTFT: 90 * time.Millisecond},
		})
		if step == 2 {
			break
		}
		args := fmt.Sprintf(`{"path":"notes/%d.txt"}`, step)
		tool, _ := Canonical(Method, ToolURL("read_file"), nil, []byte(args), nil)
		f.Interactions = append(f.Interactions, Interaction{
			Request:  tool,
			Response: Response{Body: `{"output":"` + strings.Repeat("the text of a note, ", 10) + `"}`, Status: "200 OK", Code: 200},
			Extra:    Extra{Seq: step + 1, Effect: "read", Scope: "workspace", Occurrence: 1},
		})
		messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"read_file","arguments":%q}}]}`, step, args), fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":"%s"}`, step, strings.Repeat("the text of a note, ", 10)))
	}
	return f
}

func typicalFiles(b *testing.B, count int) []string {
	b.Helper()
	dir := b.TempDir()
	paths := make([]string, count)
	size := 0
	for n := range paths {
		data, err := Encode(typical(n))
		if err != nil {
			b.Fatal(err)
		}
		size += len(data)
		paths[n] = filepath.Join(dir, fmt.Sprintf("%d", n))
		if err := os.WriteFile(paths[n]+".yaml", data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%d files of %d bytes", count, size/count)
	return paths
}

// BenchmarkLoad reads 1,000 cassettes on all cores: with our fast reader, with go-vcr's Load, and with the YAML parser that the fast reader falls back to.
func BenchmarkLoad(b *testing.B) {
	paths := typicalFiles(b, 1000)
	readers := []struct {
		name string
		load func(path string) (int, error)
	}{
		{"ours", func(path string) (int, error) {
			f, err := Load(path+".yaml", path)
			if err != nil {
				return 0, err
			}
			return len(f.Interactions), nil
		}},
		{"go-vcr", func(path string) (int, error) {
			c, err := vcr.Load(path)
			if err != nil {
				return 0, err
			}
			return len(c.Interactions), nil
		}},
		{"yaml-v4", func(path string) (int, error) {
			data, err := read(path + ".yaml")
			if err != nil {
				return 0, err
			}
			f, _, err := slow(data, path)
			if err != nil {
				return 0, err
			}
			return len(f.Interactions), nil
		}},
		{"file-only", func(path string) (int, error) {
			_, err := read(path + ".yaml")
			return 5, err
		}},
	}
	for _, r := range readers {
		b.Run(r.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var group sync.WaitGroup
				workers := runtime.GOMAXPROCS(0)
				for w := range workers {
					group.Go(func() {
						for i := w; i < len(paths); i += workers {
							if n, err := r.load(paths[i]); err != nil || n != 5 {
								b.Error(n, err)
							}
						}
					})
				}
				group.Wait()
			}
		})
	}
}

func BenchmarkCanonical(b *testing.B) {
	f := typical(1)
	body := []byte(f.Interactions[4].Request.Body)
	big := []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat(`a line of text\n`, 1300) + `"}],"model":"m"}`)
	hidden, err := NewRules([]Redaction{{"a", "tenant-7f3a91"}, {"b", "token-93ab12cd"}})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		body  []byte
		rules *Rules
	}{{"3KB", body, nil}, {"20KB", big, nil}, {"20KB-hidden", big, hidden}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			for b.Loop() {
				r, _ := Canonical("POST", "https://api.openai.com/v1/chat/completions", f.Interactions[0].Request.Headers, c.body, c.rules)
				KeyOf(r)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	f := typical(1)
	for b.Loop() {
		if _, err := Encode(f); err != nil {
			b.Fatal(err)
		}
	}
}
