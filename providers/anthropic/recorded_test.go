package anthropic_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"reflect"
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
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/providers/anthropic"
	"github.com/echoeval/echoeval/providers/providertest"
)

// formats are the folders of recordings that are read: all YAML formats that hold messages.
var formats = []string{"go-vcr-v1", "go-vcr-v2", "vcrpy-v1", "ruby-vcr"}

func recordings(format string) []providertest.Recording {
	GinkgoHelper()
	return providertest.Recordings(format, "/v1/messages")
}

// plain is what a reply says, read from its bytes by other means than those under test.
type plain struct {
	text, reasoning            string
	calls                      []conversation.ToolCall
	input, output, read, wrote int
	stop, model, id            string
	kept                       []string // types of the other blocks
}

// read walks generic trees: no type of the package and none of the SDK takes part.
func read(r providertest.Recording) plain {
	GinkgoHelper()
	var p plain
	usage := func(v any) {
		u, _ := v.(object)
		for key, to := range map[string]*int{"input_tokens": &p.input, "output_tokens": &p.output, "cache_read_input_tokens": &p.read, "cache_creation_input_tokens": &p.wrote} {
			if n, ok := u[key].(float64); ok {
				*to = int(n)
			}
		}
	}
	message := func(m object) {
		p.model, _ = m["model"].(string)
		p.id, _ = m["id"].(string)
		usage(m["usage"])
	}
	block := func(b object) {
		switch kind := b["type"].(string); kind {
		case "text":
			p.text += b["text"].(string)
		case "thinking":
			p.reasoning += b["thinking"].(string)
			p.kept = append(p.kept, kind)
		case "tool_use":
			p.calls = append(p.calls, conversation.ToolCall{ID: b["id"].(string), Name: b["name"].(string)})
		default:
			p.kept = append(p.kept, kind)
		}
	}
	if !r.SSE {
		m := tree(string(r.Body)).(object)
		message(m)
		p.stop, _ = m["stop_reason"].(string)
		for i, c := range m["content"].(list) {
			block(c.(object))
			if c.(object)["type"] == "tool_use" {
				var raw struct {
					Content []struct{ Input jsontext.Value }
				}
				Expect(json.Unmarshal(r.Body, &raw, json.MatchCaseInsensitiveNames(true))).To(Succeed())
				p.calls[len(p.calls)-1].Input = conversation.JSON(raw.Content[i].Input)
			}
		}
	}
	for line := range strings.Lines(string(r.Body)) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data:")
		if !ok || !r.SSE {
			continue
		}
		e := tree(data).(object)
		delta, _ := e["delta"].(object)
		switch e["type"] {
		case "message_start":
			message(e["message"].(object))
		case "content_block_start":
			block(e["content_block"].(object))
		case "content_block_delta":
			switch delta["type"] {
			case "text_delta":
				p.text += delta["text"].(string)
			case "thinking_delta":
				p.reasoning += delta["thinking"].(string)
			case "input_json_delta":
				p.calls[len(p.calls)-1].Input += conversation.JSON(delta["partial_json"].(string))
			}
		case "message_delta":
			p.stop = delta["stop_reason"].(string)
			usage(e["usage"])
		}
	}
	p.input += p.read + p.wrote
	return p
}

var words = map[llm.StopReason]string{llm.StopEnd: "end_turn", llm.StopToolCalls: "tool_use", llm.StopLength: "max_tokens"}

// summary brings a reply into the same form.
func summary(r llm.Reply) plain {
	GinkgoHelper()
	u := r.Finish.Usage
	p := plain{input: u.InputTokens, output: u.OutputTokens, read: u.CacheReadTokens, wrote: u.CacheWriteTokens, stop: words[r.Finish.Stop], model: r.Finish.Model, id: r.Finish.ID}
	for _, part := range r.Parts {
		switch part := part.(type) {
		case conversation.Text:
			p.text += part.Text
		case conversation.Reasoning:
			p.reasoning += part.Text
			for _, b := range tree(string(part.Extras.Get(anthropic.Name))).(list) {
				p.kept = append(p.kept, b.(object)["type"].(string))
			}
		case conversation.ToolCall:
			p.calls = append(p.calls, part)
		}
	}
	return p
}

var _ = Describe("recorded traffic", func() {
	It("decodes to the same text, calls, usage and stop reason", func() {
		counts := map[string]int{}
		kinds := []string{"blocking", "SSE"}
		total, reasoned := 0, 0
		for _, format := range formats {
			for _, r := range recordings(format) {
				kind := kinds[0]
				if r.SSE {
					kind = kinds[1]
				}
				where := r.Format + "/" + r.File
				Expect(r.Status).To(Equal(200), where)
				want := read(r)
				req := hello()
				req.Blocking = !r.SSE
				reply, err := llm.Generate(context.Background(), newModel(anthropic.Config{}, &server{status: r.Status, header: r.Header.Clone(), body: string(r.Body)}), req)
				Expect(err).NotTo(HaveOccurred(), where)
				Expect(summary(reply)).To(Equal(want), where)
				Expect(want.text != "" || len(want.calls) > 0).To(BeTrue(), "%s says something", where)
				Expect(want.input).To(BeNumerically(">", 0), where)
				if len(want.kept) > 0 {
					reasoned++
				}
				counts[format+kind]++
				total++
			}
		}
		var b strings.Builder
		table := tablewriter.NewWriter(&b)
		table.Header("format", "kind", "replies")
		for _, format := range formats {
			for _, kind := range kinds {
				Expect(table.Append(format, kind, strconv.Itoa(counts[format+kind]))).To(Succeed())
			}
		}
		Expect(table.Append("all", "", strconv.Itoa(total))).To(Succeed())
		Expect(table.Render()).To(Succeed())
		AddReportEntry("recorded messages", ReportEntryVisibilityAlways, "\n"+b.String())
		for _, needed := range []string{"go-vcr-v1blocking", "go-vcr-v1SSE", "go-vcr-v2SSE", "vcrpy-v1blocking", "vcrpy-v1SSE", "ruby-vcrblocking"} {
			Expect(counts[needed]).To(BeNumerically(">", 0), needed)
		}
		Expect(total).To(Equal(20))
		Expect(reasoned).To(Equal(2), "replies with reasoning and with blocks that are not known")
	})

	It("is never a shorter reply where it is cut", func() {
		seen := 0
		for _, r := range slices.Concat(recordings("go-vcr-v1"), recordings("go-vcr-v2")) {
			if !r.SSE || len(r.Body) > 6000 {
				continue
			}
			seen++
			end := bytes.LastIndex(r.Body, []byte("event: message_stop"))
			for cut := 0; cut < end; cut += 7 {
				_, err := generate(&server{body: string(r.Body[:cut])})
				Expect(err).To(MatchError(io.ErrUnexpectedEOF), "%s at %d", r.File, cut)
			}
		}
		Expect(seen).To(BeNumerically(">", 3))
	})

	It("has requests that are built the same again from our conversation", func() {
		why := map[string]string{
			"cache_control":                    "this version sets no marks for the cache of prompts",
			"content: a text":                  "a text stands for a list of one text block",
			"is_error: false":                  "what is no error needs no mark",
			"stream: false":                    "the same as no stream",
			"disable_parallel_tool_use: false": "the same as leaving it out; with it the choice auto goes too, which is the default",
			"a tool of the vendor":             "tools that run at the vendor, or whose schema it knows, are no tools of ours: the request cannot be said",
			"a block of the vendor":            "a block that no message of ours can hold: the request cannot be said",
			"tool_choice: auto":                "is sent where the settings say so; nothing else asks for it",
		}
		found := map[string]int{}
		same := 0
		for _, format := range formats {
			for _, r := range recordings(format) {
				p := parser{found: found}
				body := tree(string(r.Request)).(object)
				req, ok := p.request(body)
				if !ok {
					continue
				}
				s := &server{body: emptyReply}
				_, err := llm.Generate(context.Background(), newModel(anthropic.Config{Model: body["model"].(string), APIVersion: anthropic.Version2023}, s), req)
				Expect(err).NotTo(HaveOccurred(), r.File)
				got := tree(s.bodies[0])
				Expect(reflect.DeepEqual(got, p.plain)).To(BeTrue(), "%s:\n%s\n%v", r.File, s.bodies[0], p.plain)
				same++
			}
		}
		var b strings.Builder
		table := tablewriter.NewWriter(&b)
		table.Header("difference", "requests", "why")
		for _, name := range slices.Sorted(maps.Keys(found)) {
			Expect(why).To(HaveKey(name))
			Expect(table.Append(name, strconv.Itoa(found[name]), why[name])).To(Succeed())
		}
		Expect(table.Render()).To(Succeed())
		AddReportEntry("recorded requests", ReportEntryVisibilityAlways, fmt.Sprintf("\n%d requests built the same again\n%s", same, b.String()))
		Expect(same).To(BeNumerically(">=", 14))
	})
})

// parser reads a recorded request into ours. plain is the request without what is known to differ, which is counted in found.
type parser struct {
	found map[string]int
	plain object
}

func (p *parser) request(body object) (llm.Request, bool) {
	GinkgoHelper()
	req := llm.Request{Blocking: body["stream"] != true}
	for _, b := range contentOf(body["system"]) {
		req.System += b["text"].(string)
	}
	if f, ok := body["temperature"].(float64); ok {
		req.Settings.Temperature = &f
	}
	for _, s := range listOf(body["stop_sequences"]) {
		req.Settings.Stop = append(req.Settings.Stop, s.(string))
	}
	req.Settings.MaxTokens = ptr(int(body["max_tokens"].(float64)))
	for _, t := range listOf(body["tools"]) {
		t := t.(object)
		if t["input_schema"] == nil || t["defer_loading"] != nil {
			p.found["a tool of the vendor"]++
			return req, false
		}
		schema, err := json.Marshal(t["input_schema"])
		Expect(err).NotTo(HaveOccurred())
		description, _ := t["description"].(string)
		req.Tools = append(req.Tools, tool.Spec{Name: t["name"].(string), Description: description, Parameters: conversation.JSON(schema)})
	}
	for _, m := range body["messages"].(list) {
		messages, ok := readMessage(m.(object))
		if !ok {
			p.found["a block of the vendor"]++
			return req, false
		}
		req.Messages = append(req.Messages, messages...)
	}
	p.plain = p.strip(body).(object)
	if choice, ok := p.plain["tool_choice"].(object); ok && choice["type"] == "auto" {
		if len(choice) == 1 {
			p.found["tool_choice: auto"]++
		}
		delete(p.plain, "tool_choice")
	}
	return req, true
}

func listOf(v any) list { l, _ := v.(list); return l }

// contentOf are the blocks of a content.
func contentOf(v any) []object {
	if s, ok := v.(string); ok {
		return []object{{"type": "text", "text": s}}
	}
	var out []object
	for _, b := range listOf(v) {
		out = append(out, b.(object))
	}
	return out
}

// strip takes out what is known to differ.
func (p *parser) strip(v any) any {
	switch v := v.(type) {
	case list:
		out := make(list, len(v))
		for i := range v {
			out[i] = p.strip(v[i])
		}
		return out
	case object:
		out := object{}
		for key, member := range v {
			_, isText := member.(string)
			switch {
			case key == "cache_control":
				p.found[key]++
			case key == "is_error" && member == false, key == "stream" && member == false, key == "disable_parallel_tool_use" && member == false:
				p.found[key+": false"]++
			case isText && (key == "content" || key == "system"):
				p.found["content: a text"]++
				out[key] = list{object{"type": "text", "text": member}}
			default:
				out[key] = p.strip(member)
			}
		}
		return out
	}
	return v
}

func readMessage(m object) ([]conversation.Message, bool) {
	var results, others []conversation.Content
	for _, b := range contentOf(m["content"]) {
		if b["type"] != "tool_result" {
			part, ok := readBlock(b)
			if !ok {
				return nil, false
			}
			others = append(others, part)
			continue
		}
		result := conversation.ToolResult{ID: b["tool_use_id"].(string), Result: `""`, IsError: b["is_error"] == true}
		var media []conversation.Content
		for _, c := range contentOf(b["content"]) {
			part, ok := readBlock(c)
			if !ok {
				return nil, false
			}
			if t, isText := part.(conversation.Text); isText {
				result.Result = conversation.String(t.Text)
			} else {
				media = append(media, part)
			}
		}
		results = append(append(results, result), media...)
	}
	var out []conversation.Message
	if results != nil {
		out = append(out, conversation.ToolResults("m", results...))
	}
	if others != nil {
		out = append(out, conversation.NewMessage(conversation.Role(m["role"].(string)), "m", others...))
	}
	return out, true
}

func readBlock(b object) (conversation.Content, bool) {
	source, _ := b["source"].(object)
	field := func(key string) string { s, _ := source[key].(string); return s }
	switch b["type"] {
	case "text":
		return text(b["text"].(string)), true
	case "image":
		media := field("media_type")
		if media == "" {
			media = "image/jpeg"
		}
		return conversation.Image{MediaType: media, Source: conversation.Source{Type: conversation.SourceType(field("type")), Data: field("data"), URL: field("url")}}, true
	case "tool_use":
		input, err := json.Marshal(b["input"])
		return conversation.ToolCall{ID: b["id"].(string), Name: b["name"].(string), Input: conversation.JSON(input)}, err == nil
	}
	return nil, false
}
