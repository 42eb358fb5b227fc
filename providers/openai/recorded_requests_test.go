package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/olekukonko/tablewriter"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/providers/openai"
	"github.com/echoeval/echoeval/providers/providertest"
)

// keeper keeps the body of a request and answers it.
type keeper struct{ body []byte }

func (k *keeper) RoundTrip(req *http.Request) (*http.Response, error) {
	var err error
	if k.body, err = io.ReadAll(req.Body); err != nil {
		return nil, err
	}
	text := `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`
	header := http.Header{"Content-Type": {"application/json"}}
	if strings.Contains(string(k.body), `"stream":true`) {
		text = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"
		header.Set("Content-Type", "text/event-stream")
	}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(text)), Request: req}, nil
}

// asked is a recorded request on its way into ours. found counts what is known to differ.
type asked struct {
	found map[string]int
	body  map[string]any
}

// differs notes a difference.
func (a *asked) differs(name string) { a.found[name]++ }

func texts(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []any:
		var all []string
		for _, p := range v {
			part, _ := p.(map[string]any)
			text, isText := part["text"].(string)
			if !isText || part["type"] != "text" {
				return "", false
			}
			all = append(all, text)
		}
		return strings.Join(all, " "), true
	}
	return "", v == nil
}

// request is ours, false where the recorded one cannot be said in our words. What differs is changed in the body on the way.
func (a *asked) request() (req llm.Request, reasoning string, ok bool) {
	GinkgoHelper()
	body := a.body
	req.Blocking = body["stream"] != true
	if body["stream"] == nil {
		body["stream"] = false
		a.differs("stream: absent")
	}
	if _, there := body["stream_options"]; !there && !req.Blocking {
		a.differs("stream_options: absent")
	}
	delete(body, "stream_options")
	if n, there := body["n"]; there {
		if n != json.Number("1") {
			a.differs("n: several answers")
			return req, "", false
		}
		a.differs("n: 1")
		delete(body, "n")
	}
	if _, there := body["usage"]; there {
		a.differs("usage: of OpenRouter")
		delete(body, "usage")
	}
	s := &req.Settings
	for key, to := range map[string]**float64{"temperature": &s.Temperature, "top_p": &s.TopP} {
		if v, there := body[key].(json.Number); there {
			f, err := v.Float64()
			Expect(err).NotTo(HaveOccurred())
			*to = &f
		}
	}
	if v, there := body["max_tokens"].(json.Number); there {
		n, err := strconv.Atoi(string(v))
		Expect(err).NotTo(HaveOccurred())
		s.MaxTokens = &n
	}
	if v, there := body["seed"].(json.Number); there {
		n, err := v.Int64()
		Expect(err).NotTo(HaveOccurred())
		s.Seed = &n
	}
	switch stop := body["stop"].(type) {
	case string:
		s.Stop = []string{stop}
		body["stop"] = []any{stop}
		a.differs("stop: a text")
	case []any:
		for _, v := range stop {
			s.Stop = append(s.Stop, v.(string))
		}
		if len(stop) == 0 {
			delete(body, "stop")
			a.differs("stop: none")
		}
	}
	switch choice := body["tool_choice"].(type) {
	case string:
		s.ToolChoice = choice
	case map[string]any:
		s.ToolChoice = choice["function"].(map[string]any)["name"].(string)
	}
	if format, there := body["response_format"].(map[string]any); there {
		schema, isSchema := format["json_schema"].(map[string]any)
		if !isSchema {
			a.differs("response_format: without a schema")
			return req, "", false
		}
		text, err := json.Marshal(schema["schema"])
		Expect(err).NotTo(HaveOccurred())
		s.ResponseSchema = conversation.JSON(text)
		if schema["name"] != "answer" || schema["strict"] != true || len(schema) != 3 {
			a.differs("response_format: the schema's name, description and strictness")
			format["json_schema"] = map[string]any{"name": "answer", "schema": schema["schema"], "strict": true}
		}
	}
	list, _ := body["tools"].([]any)
	for _, t := range list {
		f, isFunction := t.(map[string]any)["function"].(map[string]any)
		if !isFunction {
			a.differs("a tool of the vendor")
			return req, "", false
		}
		text, err := json.Marshal(f["parameters"])
		Expect(err).NotTo(HaveOccurred())
		description, _ := f["description"].(string)
		if f["parameters"] == nil {
			text = nil
		}
		if _, there := f["strict"]; there {
			a.differs("tools: strict")
			delete(f, "strict")
		}
		req.Tools = append(req.Tools, tool.Spec{Name: f["name"].(string), Description: description, Parameters: conversation.JSON(text)})
	}
	body["messages"] = a.hoisted(body["messages"].([]any))
	for _, m := range body["messages"].([]any) {
		message, field, ok := a.message(m.(map[string]any))
		if !ok {
			return req, "", false
		}
		if field != "" {
			reasoning = field
		}
		req.Messages = append(req.Messages, message)
	}
	return req, reasoning, true
}

// hoisted puts what the system says into one message at the beginning.
func (a *asked) hoisted(list []any) []any {
	var system []string
	var others []any
	between := false
	for i, m := range list {
		m := m.(map[string]any)
		if m["role"] != "system" {
			others = append(others, m)
			continue
		}
		between = between || i > 0
		text, _ := texts(m["content"])
		system = append(system, text)
	}
	if system == nil {
		return list
	}
	if between {
		a.differs("messages of the system behind others")
	}
	return append([]any{map[string]any{"role": "system", "content": strings.Join(system, "\n\n")}}, others...)
}

func (a *asked) message(m map[string]any) (message conversation.Message, reasoning string, ok bool) {
	GinkgoHelper()
	if _, there := m["prefix"]; there {
		a.differs("prefix: an answer to go on with")
		return message, "", false
	}
	text, plain := texts(m["content"])
	if _, isList := m["content"].([]any); isList && plain {
		a.differs("content: a list of texts")
		m["content"] = text
	}
	switch m["role"] {
	case "system", "developer":
		return conversation.NewMessage(conversation.RoleSystem, "m", conversation.Text{Text: text}), "", plain
	case "tool":
		return conversation.ToolResults("m", conversation.ToolResult{ID: m["tool_call_id"].(string), Result: conversation.String(text)}), "", plain
	case "user":
		if plain {
			return conversation.User("m", conversation.Text{Text: text}), "", true
		}
		var parts []conversation.Content
		for _, p := range m["content"].([]any) {
			part := p.(map[string]any)
			image, _ := part["image_url"].(map[string]any)
			url, isImage := image["url"].(string)
			switch {
			case part["type"] == "text":
				parts = append(parts, conversation.Text{Text: part["text"].(string)})
			case isImage && strings.HasPrefix(url, "http"):
				parts = append(parts, conversation.Image{MediaType: "image/jpeg", Source: conversation.Source{Type: conversation.SourceURL, URL: url}})
			case isImage:
				head, data, _ := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
				parts = append(parts, conversation.Image{MediaType: head, Source: conversation.Source{Type: conversation.SourceBase64, Data: data}})
			default:
				a.differs(fmt.Sprintf("a part of type %v", part["type"]))
				return message, "", false
			}
		}
		return conversation.User("m", parts...), "", true
	}
	var parts []conversation.Content
	for _, field := range []string{"reasoning_content", "reasoning"} {
		thought, there := m[field].(string)
		switch {
		case !there:
		case reasoning == "":
			reasoning = field
			parts = append(parts, conversation.Reasoning{Text: thought})
		default:
			a.differs("reasoning under two names")
			delete(m, field)
		}
	}
	if text == "" {
		if _, there := m["content"]; there {
			a.differs("content of a reply: empty")
			delete(m, "content")
		}
	}
	if !plain {
		a.differs("thoughts as a part of the content")
		return message, "", false
	}
	if text != "" {
		parts = append(parts, conversation.Text{Text: text})
	}
	list, _ := m["tool_calls"].([]any)
	for _, c := range list {
		call := c.(map[string]any)
		f := call["function"].(map[string]any)
		parts = append(parts, conversation.ToolCall{ID: call["id"].(string), Name: f["name"].(string), Input: conversation.JSON(f["arguments"].(string))})
		if _, there := call["index"]; there {
			delete(call, "index")
			a.differs("tool_calls: index")
		}
	}
	return conversation.Assistant("m", parts...), reasoning, true
}

var _ = Describe("recorded requests of chat completions", func() {
	It("are built the same again from our conversation, but for what is listed", func() {
		why := map[string]string{
			"stream: absent":         "the same as stream: false",
			"stream_options: absent": "a stream is asked for its usage, without which its cost is unknown",
			"n: 1":                   "the same as leaving it out",
			"n: several answers":     "a reply has one answer: the request cannot be said",
			"usage: of OpenRouter":   "a member of one server: the quirk Extra says it",
			"stop: none":             "an empty list is the same as leaving it out",
			"response_format: the schema's name, description and strictness": "the format has one name here, and is strict",
			"tools: strict":                        "whether a schema binds is not said of tools",
			"prefix: an answer to go on with":      "the last message is the user's: the request cannot be said",
			"content: a list of texts":             "texts alone are sent as one text",
			"content of a reply: empty":            "an empty text is left out",
			"reasoning under two names":            "is sent under one, which the quirk ReasoningField names",
			"messages of the system behind others": "what the system says is one message at the beginning",
		}
		found := map[string]int{}
		same, seen := 0, 0
		var wrong []string
		for _, format := range formats {
			for _, r := range recordings(format) {
				seen++
				a := asked{found: found, body: providertest.Object(r.Request)}
				req, reasoning, ok := a.request()
				if !ok {
					continue
				}
				k := &keeper{}
				m, err := openai.New(openai.Config{Model: a.body["model"].(string), API: openai.Chat, Quirks: &openai.Quirks{Rules: []openai.Rule{{MaxTokens: "max_tokens"}}, ReasoningField: reasoning}}, k)
				Expect(err).NotTo(HaveOccurred())
				_, err = llm.Generate(context.Background(), m, req)
				Expect(err).NotTo(HaveOccurred(), r.File)
				got := providertest.Object(k.body)
				delete(got, "stream_options")
				for _, m := range got["messages"].([]any) {
					if m := m.(map[string]any); m["role"] == "assistant" && m["content"] == "" {
						delete(m, "content")
					}
				}
				for _, place := range providertest.Unlike(got, a.body) {
					wrong = append(wrong, r.Format+"/"+r.File+": "+place)
				}
				same++
			}
		}
		Expect(strings.Join(wrong[:min(len(wrong), 8)], "\n")).To(BeEmpty(), "%d", len(wrong))
		var b strings.Builder
		table := tablewriter.NewWriter(&b)
		table.Header("difference", "requests", "why")
		Expect(slices.Sorted(maps.Keys(found))).To(Equal(slices.Sorted(maps.Keys(why))), "each difference has a reason, and no reason is left over")
		for _, name := range slices.Sorted(maps.Keys(found)) {
			Expect(table.Append(name, strconv.Itoa(found[name]), why[name])).To(Succeed())
		}
		Expect(table.Render()).To(Succeed())
		AddReportEntry("recorded requests", ReportEntryVisibilityAlways, fmt.Sprintf("\n%d of %d requests built the same again\n%s", same, seen, b.String()))
		Expect([]int{same, seen}).To(Equal([]int{52, 54}))
	})
})
