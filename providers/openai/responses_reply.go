package openai

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/wire"
)

// The events of the Responses API that say something; the others repeat it or tell of tools that run with the vendor. A blocking reply is a [responseBody] by itself.
type (
	responseEvent struct {
		Type    string         `json:"type"`
		Object  string         `json:"object"`
		Index   int            `json:"output_index"`
		Delta   string         `json:"delta"`
		Item    jsontext.Value `json:"item"`
		Body    jsontext.Value `json:"response"`
		Error   jsontext.Value `json:"error"`
		Code    string         `json:"code"`
		Message string         `json:"message"`
	}
	responseBody struct {
		ID         string           `json:"id"`
		Model      string           `json:"model"`
		Status     string           `json:"status"`
		Output     []jsontext.Value `json:"output"`
		Error      jsontext.Value   `json:"error"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Usage *struct {
			Input        int `json:"input_tokens"`
			Output       int `json:"output_tokens"`
			InputDetails struct {
				Cached     int `json:"cached_tokens"`
				CacheWrite int `json:"cache_write_tokens"`
			} `json:"input_tokens_details"`
			OutputDetails struct {
				Reasoning int `json:"reasoning_tokens"`
			} `json:"output_tokens_details"`
		} `json:"usage"`
	}
	responseItem struct {
		Type      string         `json:"type"`
		ID        string         `json:"id"`
		CallID    string         `json:"call_id"`
		Name      string         `json:"name"`
		Arguments arguments      `json:"arguments"`
		Content   []itemPart     `json:"content"`
		Summary   []itemPart     `json:"summary"`
		Encrypted jsontext.Value `json:"encrypted_content"`
	}
	itemPart struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
)

// outputItem is an item of the reply that is under way.
type outputItem struct {
	call    int  // of a function_call: its place among the calls
	started bool // of a function_call
	said    bool // some of it came in pieces, so that the whole says nothing new
}

// responsesReply turns events of the Responses API into ours.
type responsesReply struct {
	reply
	items     map[int]*outputItem // by output_index
	reasoning []string            // items, since the last part of another kind
	ended     bool
	status    string
	why       string // of an incomplete reply
	made      int    // calls
}

// add takes the next event, or the whole of a blocking reply.
func (r *responsesReply) add(data []byte) error {
	var e responseEvent
	if err := json.Unmarshal(data, &e, lenient); err != nil {
		if a, ok := readAnswer(data); ok {
			return &answerError{a}
		}
		return wire.Unreadable("an event of the reply", data, err)
	}
	switch e.Type {
	case "":
		if e.Object == "response" {
			return r.whole(data)
		}
		return asError(data)
	case "error":
		if k := e.Error.Kind(); k == '{' {
			return asError(e.Error)
		}
		return asError(data)
	case "response.created", "response.in_progress":
		return r.head(e.Body)
	case "response.output_item.added":
		return r.begin(e.Index, e.Item)
	case "response.output_text.delta":
		r.item(e.Index).said = true
		return r.text(e.Delta)
	case "response.refusal.delta":
		r.item(e.Index).said = true
		return r.refusal(e.Delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		r.item(e.Index).said = true
		return r.thought(e.Delta)
	case "response.reasoning_summary_part.added":
		if r.item(e.Index).said {
			return r.thought("\n\n")
		}
	case "response.function_call_arguments.delta":
		item := r.item(e.Index)
		if item.started && e.Delta != "" {
			item.said = true
			return r.emit(llm.CallDelta{Index: item.call, Arguments: e.Delta})
		}
	case "response.output_item.done":
		return r.done(e.Index, e.Item)
	case "response.completed", "response.incomplete", "response.failed":
		return r.last(e.Body)
	}
	return nil
}

func (r *responsesReply) item(index int) *outputItem {
	if r.items[index] == nil {
		r.items[index] = &outputItem{}
	}
	return r.items[index]
}

// head takes id and model.
func (r *responsesReply) head(body jsontext.Value) error {
	var b responseBody
	if err := json.Unmarshal(body, &b, lenient); err != nil {
		return wire.Unreadable("an event of the reply", body, err)
	}
	r.id, r.model, r.seen = b.ID, b.Model, true
	return nil
}

// begin starts an item. Only calls say something at their beginning.
func (r *responsesReply) begin(index int, data jsontext.Value) error {
	var item responseItem
	if err := json.Unmarshal(data, &item, lenient); err != nil {
		return wire.Unreadable("an item of the reply", data, err)
	}
	if item.Type != "function_call" {
		return nil
	}
	return r.startCall(index, &item)
}

func (r *responsesReply) startCall(index int, item *responseItem) error {
	out := r.item(index)
	out.started, out.call = true, r.made
	r.made++
	r.calls = append(r.calls, startedCall{id: item.CallID})
	r.reasoning = nil
	return r.start(out.call, item.Name)
}

// done takes a whole item: what did not come in pieces, and what reasoning must go back as.
func (r *responsesReply) done(index int, data jsontext.Value) error {
	var item responseItem
	if err := json.Unmarshal(data, &item, lenient); err != nil {
		return wire.Unreadable("an item of the reply", data, err)
	}
	out := r.item(index)
	switch item.Type {
	case "function_call":
		if !out.started {
			if err := r.startCall(index, &item); err != nil {
				return err
			}
		}
		if out.said || item.Arguments == "" {
			return nil
		}
		return r.emit(llm.CallDelta{Index: out.call, Arguments: string(item.Arguments)})
	case "message":
		r.reasoning = nil
		for _, p := range item.Content {
			if out.said {
				break
			}
			err := r.text(p.Text)
			if err == nil {
				err = r.refusal(p.Refusal)
			}
			if err != nil {
				return err
			}
		}
		return nil
	case "reasoning":
		return r.thoughts(&item, data, out.said)
	}
	if err := r.warn("content-opaque", fmt.Sprintf("an item of type %q is kept unread", wire.Excerpt(item.Type))); err != nil {
		return err
	}
	extras, err := r.keep(data)
	if err != nil {
		return err
	}
	return r.emit(llm.ReasoningDelta{Extras: extras})
}

// keep adds an item to those that go back as they came, since the last part of another kind.
func (r *responsesReply) keep(data jsontext.Value) (conversation.Extras, error) {
	kept := data.Clone()
	if err := kept.Compact(); err != nil {
		return nil, wire.Unreadable("an item of the reply", data, err)
	}
	r.reasoning = append(r.reasoning, string(kept))
	return conversation.Extras{{Vendor: reasoningExtra, Data: conversation.JSON("[" + strings.Join(r.reasoning, ",") + "]")}}, nil
}

// thoughts takes a whole item of reasoning. It goes back as it came, or not at all where the vendor did not encrypt it.
func (r *responsesReply) thoughts(item *responseItem, data jsontext.Value, said bool) error {
	event := llm.ReasoningDelta{}
	if !said {
		var texts []string
		for _, p := range append(item.Summary, item.Content...) {
			texts = append(texts, p.Text)
		}
		event.Text = join(texts, "\n\n")
	}
	if item.Encrypted.Kind() == '"' {
		var err error
		if event.Extras, err = r.keep(data); err != nil {
			return err
		}
	}
	if event.Text == "" && event.Extras == nil {
		return nil
	}
	return r.emit(event)
}

// whole takes a blocking reply.
func (r *responsesReply) whole(data []byte) error {
	var b responseBody
	if err := json.Unmarshal(data, &b, lenient); err != nil {
		return wire.Unreadable("the reply", data, err)
	}
	for i, item := range b.Output {
		if err := r.done(i, item); err != nil {
			return err
		}
	}
	return r.last(data)
}

// last takes the end of a reply.
func (r *responsesReply) last(data jsontext.Value) error {
	var b responseBody
	if err := json.Unmarshal(data, &b, lenient); err != nil {
		return wire.Unreadable("the end of the reply", data, err)
	}
	if k := b.Error.Kind(); k == '{' {
		return asError(b.Error)
	}
	if b.Status == "failed" || b.Status == "cancelled" {
		return &answerError{answer{Message: "the reply is " + b.Status}}
	}
	r.id, r.model, r.seen, r.ended = b.ID, b.Model, true, true
	r.status, r.why = b.Status, b.Incomplete.Reason
	if u := b.Usage; u != nil {
		r.usage = &usage{Prompt: u.Input, Completion: u.Output, Total: u.Input + u.Output}
		r.usage.PromptDetails.Cached, r.usage.PromptDetails.CacheWrite = u.InputDetails.Cached, u.InputDetails.CacheWrite
		r.usage.CompletionDetails.Reasoning = u.OutputDetails.Reasoning
	}
	switch {
	case r.status == "completed":
		r.stop = "stop"
	case r.why == "max_output_tokens":
		r.stop = "length"
	case r.why == "content_filter":
		r.stop = "content_filter"
	default:
		r.stop = r.why
	}
	return nil
}

// end emits the finish.
func (r *responsesReply) end() error {
	if !r.ended {
		return wire.Cut("the reply has no end")
	}
	return r.reply.end()
}
