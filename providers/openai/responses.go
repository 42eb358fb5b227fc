package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
)

// API is one of the two ways in which OpenAI's models are asked.
type API string

// The ways. By default the model's [Rule] says which it is.
const (
	ByRule    API = ""
	Chat      API = "chat"
	Responses API = "responses"
)

// asks says whether a request goes to the Responses API.
func (m *model) asksResponses(req llm.Request) bool {
	switch m.api {
	case Chat:
		return false
	case Responses:
		return true
	}
	return m.rule.Responses || m.rule.ResponsesWithTools && len(req.Tools) > 0
}

// streamResponses asks the Responses API. Nothing is stored with the vendor: the whole conversation is sent each time, and reasoning goes back in its encrypted form.
func (m *model) streamResponses(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		b, err := m.buildResponses(req)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, w := range b.warnings {
			if !yield(w, nil) {
				return
			}
		}
		stream, err := m.client.CreateResponseStream(context.WithValue(ctx, callKey{}, &b.call), sdk.CreateResponseRequest{Input: ""})
		if err != nil {
			yield(nil, m.failed(ctx, err, &b.call))
			return
		}
		defer func() { _ = stream.Close() }()
		r := responsesReply{reply: reply{yield: yield, position: len(req.Messages), wantUsage: true}, items: map[int]*outputItem{}}
		for {
			frame, err := stream.RecvRaw()
			switch {
			case ctx.Err() != nil:
				err = ctx.Err()
			case err == nil:
				err = r.add(frame)
			case errors.Is(err, io.EOF), errors.Is(err, errNoMarker):
				// The protocol has no end marker but its last event.
				if r.ended {
					if err = r.end(); err == nil {
						return
					}
				} else if !errors.Is(err, io.ErrUnexpectedEOF) {
					err = errNoMarker
				}
			}
			if errors.Is(err, errStopped) {
				return
			}
			if err != nil {
				_ = stream.Close()
				yield(nil, m.failed(ctx, err, &b.call))
				return
			}
		}
	}
}

// responsesBuilder writes the request's members. The SDK's types for it drop what is 0 and know nothing of newer parts, so that all of them pass it by.
type responsesBuilder struct {
	*builder
	input []byte // the list, without its end
}

func (m *model) buildResponses(req llm.Request) (*builder, error) {
	b := &responsesBuilder{builder: &builder{model: m, strict: req.Settings.Strict}, input: []byte{'['}}
	b.call.blocking = req.Blocking
	b.conversation(req)
	b.settings(req)
	return b.builder, b.err
}

func (b *responsesBuilder) settings(req llm.Request) {
	s := req.Settings
	b.set("model", string(conversation.String(b.name)))
	b.set("input", string(append(b.input, ']')))
	b.set("stream", strconv.FormatBool(!req.Blocking))
	b.set("store", "false")
	if b.rule.Effort {
		b.set("include", `["reasoning.encrypted_content"]`)
	}
	if s.MaxTokens != nil {
		b.set("max_output_tokens", strconv.Itoa(*s.MaxTokens))
	}
	b.sampling(s)
	b.cache(s)
	if s.Seed != nil {
		b.leftOut("seed-left-out", "%s: the Responses API takes no seed", b.name)
	}
	if len(s.Stop) > 0 {
		b.leftOut("stop-left-out", "%s: the Responses API takes no stop sequences", b.name)
	}
	// The limit of effort together with tools is one of chat completions.
	rule := b.rule
	rule.EffortWithTools = ""
	if sent := b.effortBy(rule, s.ReasoningEffort, len(req.Tools) > 0); sent != "" {
		b.set("reasoning", `{"effort":`+string(conversation.String(sent))+`,"summary":"auto"}`)
	}
	if s.ResponseSchema != "" {
		b.set("text", `{"format":{"type":"json_schema","name":"answer","schema":`+string(s.ResponseSchema)+`,"strict":true}}`)
	}
	b.offerResponses(req)
	b.addExtra()
}

func (b *responsesBuilder) offerResponses(req llm.Request) {
	if len(req.Tools) == 0 {
		return
	}
	text := []byte{'['}
	for i, spec := range req.Tools {
		if i > 0 {
			text = append(text, ',')
		}
		one, err := tool.OpenAIResponsesSchema(spec)
		if err != nil {
			if b.err == nil {
				b.err = failure.WithCode(fmt.Errorf("%s: %w", b.vendor, err), failure.Input)
			}
			return
		}
		text = append(text, one...)
	}
	b.set("tools", string(append(text, ']')))
	switch choice := req.Settings.ToolChoice; choice {
	case "":
	case "auto", "none", "required":
		b.set("tool_choice", string(conversation.String(choice)))
	default:
		b.set("tool_choice", `{"type":"function","name":`+string(conversation.String(choice))+"}")
	}
	if parallel := req.Settings.ParallelToolCalls; parallel != nil {
		b.set("parallel_tool_calls", strconv.FormatBool(*parallel))
	}
}

// item begins an item of the input.
func (b *responsesBuilder) item(start string) {
	if len(b.input) > 1 {
		b.input = append(b.input, ',')
	}
	b.input = append(b.input, start...)
}

func (b *responsesBuilder) quoted(s string) { b.input = conversation.AppendString(b.input, s) }

func (b *responsesBuilder) raw(s string) { b.input = append(b.input, s...) }

func (b *responsesBuilder) conversation(req llm.Request) {
	system := []string{req.System}
	for _, m := range req.Messages {
		if m.Role() == conversation.RoleSystem {
			system = append(system, m.Text())
		}
	}
	if text := join(system, "\n\n"); text != "" {
		b.set("instructions", string(conversation.String(text)))
	}
	for _, m := range req.Messages {
		switch m.Role() {
		case conversation.RoleUser:
			b.message(m)
		case conversation.RoleAssistant:
			b.answered(m)
		case conversation.RoleTool:
			b.outputs(m)
		}
	}
	if b.reasoning {
		b.warn("reasoning-left-out", "reasoning that the vendor did not sign is not sent back")
	}
}

// message writes a message of the user, its parts in their order.
func (b *responsesBuilder) message(m conversation.Message) {
	if parts := b.parts(m); len(parts) > 0 {
		b.item(`{"role":"user","content":[`)
		b.raw(strings.Join(parts, ",") + "]}")
	}
}

func (b *responsesBuilder) parts(m conversation.Message) []string {
	var parts []string
	for _, p := range m.Parts() {
		switch p := p.(type) {
		case conversation.Text:
			if p.Text != "" {
				parts = append(parts, `{"type":"input_text","text":`+string(conversation.String(p.Text))+"}")
			}
		case conversation.Image:
			if b.quirks.NoImages {
				b.leftOut("image-left-out", "an image was left out: %s is not known to take images", b.vendor)
				continue
			}
			parts = append(parts, `{"type":"input_image","image_url":`+string(conversation.String(address(p.MediaType, p.Source)))+`,"detail":"auto"}`)
		case conversation.Document:
			name := p.Name
			if name == "" {
				name = "document.pdf"
			}
			switch {
			case b.quirks.NoDocuments:
				b.leftOut("document-left-out", "document %q was left out: %s is not known to take documents", name, b.vendor)
			case p.Source.Type == conversation.SourceURL:
				parts = append(parts, `{"type":"input_file","file_url":`+string(conversation.String(p.Source.URL))+"}")
			default:
				parts = append(parts, `{"type":"input_file","filename":`+string(conversation.String(name))+`,"file_data":`+string(conversation.String(address(p.MediaType, p.Source)))+"}")
			}
		}
	}
	return parts
}

// reasoningExtra names what a part of reasoning keeps of the vendor's: a list of its items, each as it came.
const reasoningExtra = Name

// answered writes a reply of the model: its items in their order.
func (b *responsesBuilder) answered(m conversation.Message) {
	for _, p := range m.Parts() {
		switch p := p.(type) {
		case conversation.Text:
			if p.Text != "" {
				b.item(`{"role":"assistant","content":`)
				b.quoted(p.Text)
				b.raw("}")
			}
		case conversation.Reasoning:
			items := strings.Trim(string(p.Extras.Get(reasoningExtra)), "[]")
			if items == "" {
				b.reasoning = true
				continue
			}
			b.item(items)
		case conversation.ToolCall:
			arguments := string(p.Input)
			if strings.TrimSpace(arguments) == "" {
				arguments = "{}"
			}
			b.item(`{"type":"function_call","call_id":`)
			b.quoted(p.ID)
			b.raw(`,"name":`)
			b.quoted(p.Name)
			b.raw(`,"arguments":`)
			b.quoted(arguments)
			b.raw("}")
		case conversation.Image:
			b.leftOut("image-left-out", "an image was left out: a reply takes text and calls alone")
		case conversation.Document:
			b.leftOut("document-left-out", "document %q was left out: a reply takes text and calls alone", p.Name)
		}
	}
}

// outputs writes the results of tools. Images and documents of a tool message follow in a message of the user.
func (b *responsesBuilder) outputs(m conversation.Message) {
	for _, p := range m.Parts() {
		if r, ok := p.(conversation.ToolResult); ok {
			b.item(`{"type":"function_call_output","call_id":`)
			b.quoted(r.ID)
			b.raw(`,"output":`)
			b.quoted(r.ResultText())
			b.raw("}")
		}
	}
	if parts := b.parts(m); len(parts) > 0 {
		b.warn("tool-media-moved", "images or documents of a tool message are sent in a user message after it")
		b.item(`{"role":"user","content":[`)
		b.raw(strings.Join(parts, ",") + "]}")
	}
}
