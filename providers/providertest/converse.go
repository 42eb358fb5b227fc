package providertest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
)

// ConverseFrame is a frame of the binary event stream. Its headers are pairs of a name and a text.
func ConverseFrame(payload string, headers ...string) string {
	var head []byte
	for i := 0; i < len(headers); i += 2 {
		head = append(append(head, byte(len(headers[i]))), headers[i]...)
		head = binary.BigEndian.AppendUint16(append(head, 7), uint16(len(headers[i+1])))
		head = append(head, headers[i+1]...)
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(16+len(head)+len(payload)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(head)))
	frame = binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
	frame = append(append(frame, head...), payload...)
	return string(binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame)))
}

// ConverseEvent is a frame that holds an event of Converse.
func ConverseEvent(kind, payload string) string {
	return ConverseFrame(payload, ":event-type", kind, ":content-type", "application/json", ":message-type", "event")
}

// ConverseFrames counts the whole frames of a binary event stream, for [Suite.Frames].
func ConverseFrames(body []byte) int {
	n := 0
	for ; len(body) >= 4; n++ {
		size := int(binary.BigEndian.Uint32(body))
		if size > len(body) {
			break
		}
		body = body[size:]
	}
	return n
}

// ConverseBrokenStream is a [Suite.BrokenStream] of Converse.
var ConverseBrokenStream = ConverseEvent("messageStart", `{"role":"assistant"}`) +
	ConverseEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Hel"}}`) +
	ConverseFrame(`{"message":"broken in the middle","originalStatusCode":500}`, ":exception-type", "modelStreamErrorException", ":content-type", "application/json", ":message-type", "exception")

// ConverseUnknownBlock is a [Suite.UnknownBlock] of Converse.
var ConverseUnknownBlock = ConverseEvent("messageStart", `{"role":"assistant"}`) +
	ConverseEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"hologram":{"depth":3}}}`) +
	ConverseEvent("contentBlockStop", `{"contentBlockIndex":0}`) +
	ConverseEvent("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"text":"Hello."}}`) +
	ConverseEvent("contentBlockStop", `{"contentBlockIndex":1}`) +
	ConverseEvent("messageStop", `{"stopReason":"end_turn"}`) +
	ConverseEvent("metadata", `{"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2},"metrics":{"latencyMs":1}}`)

// ConverseStretch is a [Suite.Stretch] of Converse. The text must need no escape in JSON.
func ConverseStretch(text string) (head, piece []byte) {
	return []byte(ConverseEvent("messageStart", `{"role":"assistant"}`)), []byte(ConverseEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"`+text+`"}}`))
}

type converseSource struct {
	Format string
	Source struct {
		Bytes      string
		S3Location struct{ URI string }
	}
}

type converseBlock struct {
	Text            *string
	Image, Document *converseSource
	ToolUse         *struct {
		ToolUseID, Name string
		Input           jsontext.Value
	}
	ToolResult *struct {
		ToolUseID string
		Content   []converseBlock
	}
	ReasoningContent *struct {
		ReasoningText *struct{ Text, Signature string }
	}
	CachePoint *struct{ Type string }
}

// ConverseAsked reads a request of Converse, for [Suite.Asked]. It shares no code with the provider.
func ConverseAsked(body []byte) (Asked, error) {
	var w struct {
		System   []struct{ Text string }
		Messages []struct {
			Role    conversation.Role
			Content []converseBlock
		}
		ToolConfig struct {
			Tools []struct {
				ToolSpec struct {
					Name        string
					InputSchema struct{ JSON jsontext.Value }
				}
			}
		}
	}
	if err := json.Unmarshal(body, &w, json.MatchCaseInsensitiveNames(true)); err != nil {
		return Asked{}, err
	}
	var a Asked
	for _, t := range w.ToolConfig.Tools {
		a.Tools = append(a.Tools, t.ToolSpec.Name)
		a.Schemas = append(a.Schemas, string(t.ToolSpec.InputSchema.JSON))
	}
	for _, b := range w.System {
		a.System += b.Text
	}
	for _, m := range w.Messages {
		out := AskedMessage{Role: m.Role}
		for _, b := range m.Content {
			if r := b.ToolResult; r != nil {
				result := AskedMessage{Role: conversation.RoleTool, IDs: []string{r.ToolUseID}}
				for _, c := range r.Content {
					part, err := conversePart(c)
					if err != nil {
						return a, err
					}
					if text, ok := strings.CutPrefix(part, "text:"); ok {
						part = "result:" + text
					}
					result.Parts = append(result.Parts, part)
				}
				a.Messages = append(a.Messages, result)
				continue
			}
			if b.CachePoint != nil {
				continue // says nothing to the model
			}
			part, err := conversePart(b)
			if err != nil {
				return a, err
			}
			out.Parts = append(out.Parts, part)
			if b.ToolUse != nil {
				out.IDs = append(out.IDs, b.ToolUse.ToolUseID)
			}
		}
		if out.Parts != nil {
			a.Messages = append(a.Messages, out)
		}
	}
	return a, nil
}

func conversePart(b converseBlock) (string, error) {
	switch {
	case b.Text != nil:
		return "text:" + *b.Text, nil
	case b.ToolUse != nil:
		return "call:" + b.ToolUse.Name + ":" + string(b.ToolUse.Input), nil
	case b.ReasoningContent != nil && b.ReasoningContent.ReasoningText != nil:
		if b.ReasoningContent.ReasoningText.Signature == "" {
			return "", errors.New("reasoning without its signature")
		}
		return "reasoning:" + b.ReasoningContent.ReasoningText.Text, nil
	case b.Image != nil && b.Image.Source.Bytes == "":
		return "image:" + b.Image.Source.S3Location.URI, nil
	case b.Image != nil:
		return "image:image/" + b.Image.Format + ":" + b.Image.Source.Bytes, nil
	case b.Document != nil:
		return "document:" + b.Document.Source.Bytes, nil
	}
	return "", fmt.Errorf("a block of another kind")
}
