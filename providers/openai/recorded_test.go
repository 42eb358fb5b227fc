package openai_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/olekukonko/tablewriter"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/openai"
	"github.com/echoeval/echoeval/providers/providertest"
)

// formats are the folders of recordings that are read: all YAML formats that hold chat completions.
var formats = []string{"go-vcr-v1", "go-vcr-v2", "vcrpy-v1", "ruby-vcr"}

// recordings reads all of a format.
func recordings(format string) []providertest.Recording {
	GinkgoHelper()
	return providertest.Recordings(format, "/chat/completions")
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
func read(r providertest.Recording) plain {
	GinkgoHelper()
	var frames []string
	if r.SSE {
		for line := range strings.Lines(string(r.Body)) {
			if data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:"); ok && strings.TrimSpace(data) != "[DONE]" {
				frames = append(frames, data)
			}
		}
	} else {
		frames = []string{string(r.Body)}
	}
	p := plain{}
	calls := map[float64]int{}
	for _, f := range frames {
		var tree map[string]any
		Expect(json.Unmarshal([]byte(f), &tree, jsontext.AllowDuplicateNames(true))).To(Succeed(), "%s", r.File)
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
func serve(r providertest.Recording) *server {
	return &server{status: r.Status, header: r.Header.Clone(), body: string(r.Body)}
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
				if r.SSE {
					kind = kinds[1]
				}
				want := read(r)
				rt := serve(r)
				req := llm.Request{Messages: []conversation.Message{conversation.User("1", conversation.Text{Text: "x"})}, Blocking: !r.SSE}
				reply, err := llm.Generate(context.Background(), newModel(openai.Config{BaseURL: strings.TrimSuffix(strings.Split(r.URL, "?")[0], "/chat/completions")}, rt), req)
				Expect(rt.last.URL.Path).To(HaveSuffix("/chat/completions"))
				where := r.Format + "/" + r.File
				if want.isError || r.Status >= 400 {
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
			if !r.SSE || len(r.Body) > 6000 {
				continue
			}
			seen++
			generate := func(body []byte) (llm.Reply, error) {
				return llm.Generate(context.Background(), newModel(openai.Config{}, &server{body: string(body)}), hello())
			}
			want, err := generate(r.Body)
			Expect(err).NotTo(HaveOccurred())
			frames := bytes.SplitAfter(r.Body, []byte("\n\n"))
			cut := 0
			for _, f := range frames[:len(frames)-1] {
				got, err := generate(r.Body[:cut])
				if err == nil {
					Expect(got.Parts).To(Equal(want.Parts))
					Expect(got.Finish.Stop).To(Equal(want.Finish.Stop))
				} else {
					Expect(err).To(MatchError(io.ErrUnexpectedEOF), "%s at %d", r.File, cut)
				}
				cut += len(f)
			}
		}
		Expect(seen).To(BeNumerically(">", 10))
	})
})
