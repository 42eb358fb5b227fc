package providertest

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
)

// GeminiBrokenStream is a [Suite.BrokenStream] of the Gemini API.
const GeminiBrokenStream = "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"Hel\"}],\"role\": \"model\"},\"index\": 0}]}\r\n\r\n" +
	"data: {\"error\": {\"code\": 500,\"message\": \"broken in the middle\",\"status\": \"INTERNAL\"}}\r\n\r\n"

// GeminiUnknownBlock is a [Suite.UnknownBlock] of the Gemini API.
const GeminiUnknownBlock = "data: {\"candidates\": [{\"content\": {\"parts\": [{\"hologram\": {\"depth\": 3}},{\"text\": \"Hello.\"}],\"role\": \"model\"},\"finishReason\": \"STOP\",\"index\": 0}],\"usageMetadata\": {\"promptTokenCount\": 1,\"candidatesTokenCount\": 1}}\r\n\r\n"

// GeminiAsked reads a request of the Gemini API, for [Suite.Asked]. It shares no code with the providers.
func GeminiAsked(body []byte) (Asked, error) {
	type part struct {
		Text       *string
		InlineData struct{ MimeType, Data string }
		FileData   struct{ MimeType, FileURI string }

		FunctionCall *struct {
			ID, Name string
			Args     jsontext.Value
		}
		FunctionResponse *struct {
			ID, Name string
			Response map[string]string
		}
	}
	type content struct {
		Role  string
		Parts []part
	}
	var w struct {
		SystemInstruction *content
		Contents          []content
		Tools             []struct {
			FunctionDeclarations []struct {
				Name       string
				Parameters jsontext.Value
			}
		}
	}
	if err := json.Unmarshal(body, &w, json.MatchCaseInsensitiveNames(true)); err != nil {
		return Asked{}, err
	}
	var a Asked
	if w.SystemInstruction != nil {
		a.System = *w.SystemInstruction.Parts[0].Text
	}
	for _, t := range w.Tools {
		for _, f := range t.FunctionDeclarations {
			a.Tools = append(a.Tools, f.Name)
			a.Schemas = append(a.Schemas, string(f.Parameters))
		}
	}
	names := map[string]string{}
	for _, c := range w.Contents {
		m := AskedMessage{Role: conversation.RoleUser}
		if c.Role == "model" {
			m.Role = conversation.RoleAssistant
		}
		for _, p := range c.Parts {
			switch {
			case p.FunctionResponse != nil:
				r := p.FunctionResponse
				if names[r.ID] != r.Name {
					return a, fmt.Errorf("a response of %q to call %q of %q", r.Name, r.ID, names[r.ID])
				}
				for _, text := range r.Response {
					a.Messages = append(a.Messages, AskedMessage{Role: conversation.RoleTool, Parts: []string{"result:" + text}, IDs: []string{r.ID}})
				}
				continue
			case p.FunctionCall != nil:
				f := p.FunctionCall
				names[f.ID] = f.Name
				m.Parts = append(m.Parts, "call:"+f.Name+":"+string(f.Args))
				m.IDs = append(m.IDs, f.ID)
			case p.InlineData.Data != "" && p.InlineData.MimeType == "application/pdf":
				m.Parts = append(m.Parts, "document:"+p.InlineData.Data)
			case p.InlineData.Data != "":
				m.Parts = append(m.Parts, "image:"+p.InlineData.MimeType+":"+p.InlineData.Data)
			case p.FileData.FileURI != "" && strings.HasPrefix(p.FileData.MimeType, "image/"):
				m.Parts = append(m.Parts, "image:"+p.FileData.FileURI)
			case p.Text != nil:
				m.Parts = append(m.Parts, "text:"+*p.Text)
			default:
				return a, fmt.Errorf("a part of another kind")
			}
		}
		if m.Parts != nil {
			a.Messages = append(a.Messages, m)
		}
	}
	return a, nil
}
