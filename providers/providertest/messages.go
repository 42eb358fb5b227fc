package providertest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
)

// MessagesBrokenStream is a [Suite.BrokenStream] of Anthropic's messages.
const MessagesBrokenStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}

event: error
data: {"type":"error","error":{"type":"overloaded_error","message":"broken in the middle"}}

`

// MessagesUnknownBlock is a [Suite.UnknownBlock] of Anthropic's messages.
const MessagesUnknownBlock = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"hologram","depth":3}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hello."}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":3}}

event: message_stop
data: {"type":"message_stop"}

`

type messagesBlock struct {
	Type, Text, ID, Name, Thinking, Signature, Data string
	Input                                           jsontext.Value
	ToolUseID                                       string `json:"tool_use_id"`
	Content                                         []messagesBlock
	Source                                          struct {
		Type, Data, URL string
		MediaType       string `json:"media_type"`
	}
}

// MessagesAsked reads a request of Anthropic's messages, for [Suite.Asked]. It shares no code with the provider.
func MessagesAsked(body []byte) (Asked, error) {
	var w struct {
		System   []messagesBlock
		Messages []struct {
			Role    conversation.Role
			Content []messagesBlock
		}
		Tools []struct {
			Name   string
			Schema jsontext.Value `json:"input_schema"`
		}
	}
	if err := json.Unmarshal(body, &w, json.MatchCaseInsensitiveNames(true)); err != nil {
		return Asked{}, err
	}
	var a Asked
	for _, t := range w.Tools {
		a.Tools = append(a.Tools, t.Name)
		a.Schemas = append(a.Schemas, string(t.Schema))
	}
	for _, b := range w.System {
		a.System += b.Text
	}
	for _, m := range w.Messages {
		out := AskedMessage{Role: m.Role}
		for _, b := range m.Content {
			if b.Type == "tool_result" {
				result, err := messagesResult(b)
				if err != nil {
					return a, err
				}
				a.Messages = append(a.Messages, result)
				continue
			}
			part, err := messagesPart(b)
			if err != nil {
				return a, err
			}
			out.Parts = append(out.Parts, part)
			if b.Type == "tool_use" {
				out.IDs = append(out.IDs, b.ID)
			}
		}
		if out.Parts != nil {
			a.Messages = append(a.Messages, out)
		}
	}
	return a, nil
}

func messagesResult(b messagesBlock) (AskedMessage, error) {
	out := AskedMessage{Role: conversation.RoleTool, IDs: []string{b.ToolUseID}}
	for _, c := range b.Content {
		part, err := messagesPart(c)
		if err != nil {
			return out, err
		}
		if text, ok := strings.CutPrefix(part, "text:"); ok {
			part = "result:" + text
		}
		out.Parts = append(out.Parts, part)
	}
	return out, nil
}

func messagesPart(b messagesBlock) (string, error) {
	switch b.Type {
	case "text":
		return "text:" + b.Text, nil
	case "tool_use":
		return "call:" + b.Name + ":" + string(b.Input), nil
	case "thinking":
		if b.Signature == "" {
			return "", errors.New("reasoning without its signature")
		}
		return "reasoning:" + b.Thinking, nil
	case "image", "document":
		switch {
		case b.Source.Type == "url":
			return b.Type + ":" + b.Source.URL, nil
		case b.Type == "document":
			return "document:" + b.Source.Data, nil
		}
		return "image:" + b.Source.MediaType + ":" + b.Source.Data, nil
	}
	return "", fmt.Errorf("a block of type %q", b.Type)
}
