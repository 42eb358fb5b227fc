package openai_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/olekukonko/tablewriter"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v4"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/openai"
)

// formats are the folders of recordings that are read: all YAML formats that hold chat completions.
var formats = []string{"go-vcr-v1", "go-vcr-v2", "vcrpy-v1", "ruby-vcr"}

// recording is one recorded exchange with an endpoint.
type recording struct {
	format, file string
	url          string
	status       int
	header       http.Header
	body         []byte // as it came, without Content-Encoding
	sse          bool
}

// node finds a key in a YAML mapping; the zero value where it is absent.
func node(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		next := &yaml.Node{}
		if n.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == key {
					next = n.Content[i+1]
				}
			}
		}
		n = next
	}
	return n
}

// text returns a scalar's bytes; !!binary is base64.
func text(n *yaml.Node) []byte {
	if strings.HasSuffix(n.Tag, "binary") {
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		Expect(err).NotTo(HaveOccurred())
		return data
	}
	return []byte(n.Value)
}

// asJSON writes a YAML node as JSON: one recorder keeps bodies parsed.
func asJSON(n *yaml.Node) []byte {
	var v any
	Expect(n.Decode(&v)).To(Succeed())
	data, err := json.Marshal(v)
	Expect(err).NotTo(HaveOccurred())
	return data
}

// exchange reads one interaction, and reports false where it is none with the endpoint.
func exchange(format, file, endpoint string, n *yaml.Node) (recording, bool) {
	request, response := node(n, "request"), node(n, "response")
	r := recording{format: format, file: file, header: http.Header{}, url: node(request, "url").Value + node(request, "uri").Value}
	u, err := url.Parse(r.url)
	if err != nil || !strings.EqualFold(node(request, "method").Value, "post") || !strings.HasSuffix(u.Path, endpoint) {
		return r, false
	}
	for _, place := range [][]string{{"code"}, {"status", "code"}} {
		if code, err := strconv.Atoi(node(response, place...).Value); err == nil {
			r.status = code
		}
	}
	headers := node(response, "headers")
	for i := 0; i+1 < len(headers.Content); i += 2 {
		for _, v := range headers.Content[i+1].Content {
			r.header.Add(headers.Content[i].Value, v.Value)
		}
	}
	body := node(response, "body")
	switch {
	case node(response, "parsed_body").Kind != 0:
		r.body = asJSON(node(response, "parsed_body"))
	case body.Kind == yaml.MappingNode:
		r.body = text(node(body, "string"))
	default:
		r.body = text(body)
	}
	if bytes.HasPrefix(r.body, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(r.body))
		Expect(err).NotTo(HaveOccurred())
		r.body, err = io.ReadAll(z)
		Expect(err).NotTo(HaveOccurred())
	}
	r.header.Del("Content-Encoding")
	r.sse = !bytes.HasPrefix(bytes.TrimSpace(r.body), []byte("{"))
	return r, true
}

// recordings reads all chat completions of a format.
func recordings(format string) []recording {
	GinkgoHelper()
	return recordingsOf(format, "/chat/completions")
}

// recordingsOf reads all of a format that have an endpoint.
func recordingsOf(format, endpoint string) []recording {
	GinkgoHelper()
	root := suite.SharedData("cassettes", format)
	var found []recording
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" && filepath.Ext(path) != ".yml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(data, &doc); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		list := node(doc.Content[0], "interactions")
		if list.Kind == 0 {
			list = node(doc.Content[0], "http_interactions")
		}
		for _, n := range list.Content {
			if r, ok := exchange(format, filepath.Base(path), endpoint, n); ok {
				found = append(found, r)
			}
		}
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
	return found
}

// plain is what a reply says, read from its bytes by other means than those under test.
type plain struct {
	isError         bool
	text, reasoning string
	calls           []conversation.ToolCall
	input, output   int
	cached, thought int
	finish, model   string
}

// read walks generic trees: no type of the package and none of the SDK takes part.
func read(r recording) plain {
	GinkgoHelper()
	var frames []string
	if r.sse {
		for line := range strings.Lines(string(r.body)) {
			if data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:"); ok && strings.TrimSpace(data) != "[DONE]" {
				frames = append(frames, data)
			}
		}
	} else {
		frames = []string{string(r.body)}
	}
	p := plain{}
	calls := map[float64]int{}
	for _, f := range frames {
		var tree map[string]any
		Expect(json.Unmarshal([]byte(f), &tree, jsontext.AllowDuplicateNames(true))).To(Succeed(), "%s", r.file)
		if tree["error"] != nil {
			p.isError = true
			continue
		}
		p.model, _ = tree["model"].(string)
		if u, ok := tree["usage"].(map[string]any); ok {
			p.input, p.output = int(u["prompt_tokens"].(float64)), int(u["completion_tokens"].(float64))
			details := func(of, key string) int {
				d, _ := u[of].(map[string]any)
				n, _ := d[key].(float64)
				return int(n)
			}
			p.cached = details("prompt_tokens_details", "cached_tokens")
			p.thought = details("completion_tokens_details", "reasoning_tokens")
			if total := int(u["total_tokens"].(float64)); p.thought > 0 && total == p.input+p.output+p.thought {
				p.output += p.thought
			}
		}
		choices, _ := tree["choices"].([]any)
		for _, c := range choices {
			choice := c.(map[string]any)
			if choice["index"] != nil && choice["index"].(float64) != 0 {
				continue
			}
			if reason, ok := choice["finish_reason"].(string); ok {
				p.finish = reason
			}
			m, _ := choice["delta"].(map[string]any)
			if m == nil {
				m, _ = choice["message"].(map[string]any)
			}
			switch content := m["content"].(type) {
			case string:
				p.text += content
			case []any:
				for _, part := range content {
					part := part.(map[string]any)
					if part["type"] == "text" {
						p.text += part["text"].(string)
					} else {
						for _, thought := range part["thinking"].([]any) {
							p.reasoning += thought.(map[string]any)["text"].(string)
						}
					}
				}
			}
			if thought, ok := m["reasoning"].(string); ok {
				p.reasoning += thought
			} else if thought, ok := m["reasoning_content"].(string); ok {
				p.reasoning += thought
			}
			list, _ := m["tool_calls"].([]any)
			for i, c := range list {
				call := c.(map[string]any)
				index, ok := call["index"].(float64)
				if !ok {
					index = float64(i)
				}
				at, known := calls[index]
				if !known {
					at = len(p.calls)
					calls[index] = at
					p.calls = append(p.calls, conversation.ToolCall{})
				}
				f := call["function"].(map[string]any)
				if id, ok := call["id"].(string); ok && p.calls[at].ID == "" {
					p.calls[at].ID = id
				}
				if name, ok := f["name"].(string); ok && p.calls[at].Name == "" {
					p.calls[at].Name = name
				}
				if arguments, ok := f["arguments"].(string); ok {
					p.calls[at].Input += conversation.JSON(arguments)
				}
			}
		}
	}
	return p
}

// summary brings a reply into the same form.
func summary(r llm.Reply) plain {
	u := r.Finish.Usage
	p := plain{input: u.InputTokens, output: u.OutputTokens, cached: u.CacheReadTokens, thought: u.ReasoningTokens, model: r.Finish.Model}
	for _, part := range r.Parts {
		switch part := part.(type) {
		case conversation.Text:
			p.text += part.Text
		case conversation.Reasoning:
			p.reasoning += part.Text
		case conversation.ToolCall:
			p.calls = append(p.calls, part)
		}
	}
	return p
}

// serve answers with a recording.
func serve(r recording) *server {
	return &server{status: r.status, header: r.header.Clone(), body: string(r.body)}
}

var _ = Describe("recorded traffic", func() {
	It("decodes to the same text, calls and usage", func() {
		type count struct{ reply, failed int }
		counts := map[string]*count{}
		kinds := []string{"blocking", "SSE"}
		for _, format := range formats {
			for _, kind := range kinds {
				counts[format+kind] = &count{}
			}
			for _, r := range recordings(format) {
				kind := kinds[0]
				if r.sse {
					kind = kinds[1]
				}
				want := read(r)
				rt := serve(r)
				req := llm.Request{Messages: []conversation.Message{conversation.User("1", conversation.Text{Text: "x"})}, Blocking: !r.sse}
				reply, err := llm.Generate(context.Background(), newModel(openai.Config{BaseURL: strings.TrimSuffix(strings.Split(r.url, "?")[0], "/chat/completions")}, rt), req)
				Expect(rt.last.URL.Path).To(HaveSuffix("/chat/completions"))
				where := r.format + "/" + r.file
				if want.isError || r.status >= 400 {
					var e *llm.Error
					Expect(errors.As(err, &e)).To(BeTrue(), "%s: %v", where, err)
					Expect(e.Code+e.Type+e.Message).NotTo(BeEmpty(), where)
					counts[format+kind].failed++
					continue
				}
				Expect(err).NotTo(HaveOccurred(), where)
				got := summary(reply)
				got.finish = want.finish
				Expect(got).To(Equal(want), where)
				Expect(want.text != "" || len(want.calls) > 0).To(BeTrue(), "%s says something", where)
				counts[format+kind].reply++
			}
		}
		var b strings.Builder
		table := tablewriter.NewWriter(&b)
		table.Header("format", "kind", "reply", "error")
		total := count{}
		for _, format := range formats {
			for _, kind := range kinds {
				c := counts[format+kind]
				total.reply += c.reply
				total.failed += c.failed
				Expect(table.Append(format, kind, strconv.Itoa(c.reply), strconv.Itoa(c.failed))).To(Succeed())
			}
		}
		Expect(table.Append("all", "", strconv.Itoa(total.reply), strconv.Itoa(total.failed))).To(Succeed())
		Expect(table.Render()).To(Succeed())
		AddReportEntry("recorded chat completions", ReportEntryVisibilityAlways, "\n"+b.String())
		for _, needed := range []string{"go-vcr-v2SSE", "vcrpy-v1blocking", "vcrpy-v1SSE"} {
			Expect(counts[needed].reply).To(BeNumerically(">", 0), needed)
		}
		Expect(total).To(Equal(count{reply: 53, failed: 1}))
	})

	It("is the same whatever the reads, and never a shorter reply where it is cut", func() {
		seen := 0
		for _, r := range slices.Concat(recordings("go-vcr-v2"), recordings("vcrpy-v1")) {
			if !r.sse || len(r.body) > 6000 {
				continue
			}
			seen++
			generate := func(body []byte) (llm.Reply, error) {
				return llm.Generate(context.Background(), newModel(openai.Config{}, &server{body: string(body)}), hello())
			}
			want, err := generate(r.body)
			Expect(err).NotTo(HaveOccurred())
			frames := bytes.SplitAfter(r.body, []byte("\n\n"))
			cut := 0
			for _, f := range frames[:len(frames)-1] {
				got, err := generate(r.body[:cut])
				if err == nil {
					Expect(got.Parts).To(Equal(want.Parts))
					Expect(got.Finish.Stop).To(Equal(want.Finish.Stop))
				} else {
					Expect(err).To(MatchError(io.ErrUnexpectedEOF), "%s at %d", r.file, cut)
				}
				cut += len(f)
			}
		}
		Expect(seen).To(BeNumerically(">", 10))
	})
})
