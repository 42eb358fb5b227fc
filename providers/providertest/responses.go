package providertest

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
)

// ResponsesBrokenStream is a [Suite.BrokenStream] of the Responses API.
const ResponsesBrokenStream = `event: response.created
data: {"type":"response.created","response":{"id":"resp_1","model":"m","status":"in_progress"}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","output_index":0,"delta":"Hel"}

event: error
data: {"type":"error","code":"server_error","message":"broken in the middle","param":null}

`

// ResponsesUnknownBlock is a [Suite.UnknownBlock] of the Responses API.
const ResponsesUnknownBlock = `event: response.created
data: {"type":"response.created","response":{"id":"resp_1","model":"m","status":"in_progress"}}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"type":"hologram","id":"h1","depth":3}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","output_index":1,"delta":"Hello."}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","model":"m","status":"completed","usage":{"input_tokens":1,"output_tokens":1}}}

`

// ResponsesAsked reads a request of the Responses API, for [Suite.Asked]. It shares no code with the providers.
func ResponsesAsked(body []byte) (Asked, error) {
	type part struct {
		Type, Text string
		ImageURL   string `json:"image_url"`
		FileData   string `json:"file_data"`
	}
	var w struct {
		Instructions string
		Input        []struct {
			Type, Role, Name, Arguments, Output string
			Content                             jsontext.Value
			CallID                              string `json:"call_id"`
		}
		Tools []struct {
			Name       string
			Parameters jsontext.Value
		}
	}
	if err := json.Unmarshal(body, &w, json.MatchCaseInsensitiveNames(true)); err != nil {
		return Asked{}, err
	}
	a := Asked{System: w.Instructions}
	for _, t := range w.Tools {
		a.Tools = append(a.Tools, t.Name)
		a.Schemas = append(a.Schemas, string(t.Parameters))
	}
	// reply returns the message of the model that the next item belongs to.
	reply := func() *AskedMessage {
		if n := len(a.Messages); n == 0 || a.Messages[n-1].Role != conversation.RoleAssistant {
			a.Messages = append(a.Messages, AskedMessage{Role: conversation.RoleAssistant})
		}
		return &a.Messages[len(a.Messages)-1]
	}
	for _, item := range w.Input {
		switch item.Type {
		case "function_call":
			m := reply()
			m.Parts = append(m.Parts, "call:"+item.Name+":"+item.Arguments)
			m.IDs = append(m.IDs, item.CallID)
			continue
		case "function_call_output":
			a.Messages = append(a.Messages, AskedMessage{Role: conversation.RoleTool, Parts: []string{"result:" + item.Output}, IDs: []string{item.CallID}})
			continue
		case "reasoning":
			continue
		case "", "message":
		default:
			return a, fmt.Errorf("an item of type %q", item.Type)
		}
		if item.Role == "assistant" {
			var text string
			if err := json.Unmarshal(item.Content, &text); err != nil {
				return a, err
			}
			m := reply()
			m.Parts = append(m.Parts, "text:"+text)
			continue
		}
		var parts []part
		if err := json.Unmarshal(item.Content, &parts, json.MatchCaseInsensitiveNames(true)); err != nil {
			return a, err
		}
		m := AskedMessage{Role: conversation.Role(item.Role)}
		for _, p := range parts {
			switch p.Type {
			case "input_text":
				m.Parts = append(m.Parts, "text:"+p.Text)
			case "input_image":
				url := p.ImageURL
				if data, ok := strings.CutPrefix(url, "data:"); ok {
					url = strings.Replace(data, ";base64,", ":", 1)
				}
				m.Parts = append(m.Parts, "image:"+url)
			case "input_file":
				m.Parts = append(m.Parts, "document:"+strings.TrimPrefix(p.FileData, "data:application/pdf;base64,"))
			default:
				return a, fmt.Errorf("a part of type %q", p.Type)
			}
		}
		a.Messages = append(a.Messages, m)
	}
	return a, nil
}
