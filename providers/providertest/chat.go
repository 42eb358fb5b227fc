package providertest

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
)

// ChatBrokenStream is a [Suite.BrokenStream] of chat completions.
const ChatBrokenStream = `data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}

data: {"error":{"message":"broken in the middle","type":"server_error"}}

data: [DONE]

`

// ChatUnknownBlock is a [Suite.UnknownBlock] of chat completions.
const ChatUnknownBlock = `data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":[{"type":"hologram","data":{"depth":3}},{"type":"text","text":"Hello."}]}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}

data: [DONE]

`

// ChatAsked reads a request of chat completions, for [Suite.Asked]. It shares no code with the providers.
func ChatAsked(body []byte) (Asked, error) {
	var w struct {
		Messages []struct {
			Role      conversation.Role
			Content   jsontext.Value
			ToolCalls []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
			ToolCallID string `json:"tool_call_id"`
		}
		Tools []struct {
			Function struct {
				Name       string
				Parameters jsontext.Value
			}
		}
	}
	if err := json.Unmarshal(body, &w, json.MatchCaseInsensitiveNames(true)); err != nil {
		return Asked{}, err
	}
	var a Asked
	for _, t := range w.Tools {
		a.Tools = append(a.Tools, t.Function.Name)
		a.Schemas = append(a.Schemas, string(t.Function.Parameters))
	}
	for i, m := range w.Messages {
		out := AskedMessage{Role: m.Role}
		parts, err := chatParts(m.Content)
		if err != nil {
			return a, err
		}
		switch {
		case m.Role == conversation.RoleSystem && i == 0:
			a.System = strings.TrimPrefix(parts[0], "text:")
			continue
		case m.Role == conversation.RoleTool:
			out.Parts = []string{"result:" + strings.TrimPrefix(parts[0], "text:")}
			out.IDs = []string{m.ToolCallID}
		default:
			out.Parts = parts
		}
		for _, c := range m.ToolCalls {
			out.Parts = append(out.Parts, "call:"+c.Function.Name+":"+c.Function.Arguments)
			out.IDs = append(out.IDs, c.ID)
		}
		a.Messages = append(a.Messages, out)
	}
	return a, nil
}

func chatParts(content jsontext.Value) ([]string, error) {
	switch content.Kind() {
	case 'n':
		return nil, nil
	case '"':
		var s string
		err := json.Unmarshal(content, &s)
		return []string{"text:" + s}, err
	}
	var list []struct {
		Type, Text string
		ImageURL   struct{ URL string } `json:"image_url"`
		File       struct {
			FileData string `json:"file_data"`
		}
	}
	if err := json.Unmarshal(content, &list, json.MatchCaseInsensitiveNames(true)); err != nil {
		return nil, err
	}
	var parts []string
	for _, p := range list {
		switch p.Type {
		case "text":
			parts = append(parts, "text:"+p.Text)
		case "image_url":
			url := p.ImageURL.URL
			if data, ok := strings.CutPrefix(url, "data:"); ok {
				url = strings.Replace(data, ";base64,", ":", 1)
			}
			parts = append(parts, "image:"+url)
		case "file":
			parts = append(parts, "document:"+strings.TrimPrefix(p.File.FileData, "data:application/pdf;base64,"))
		default:
			return nil, fmt.Errorf("a part of type %q", p.Type)
		}
	}
	return parts, nil
}
