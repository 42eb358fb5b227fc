package target

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/strict"
)

// Version is the version of what a program is told and of what it answers.
const Version = 1

// Question is what a program is told of one turn.
type Question struct {
	// Session names the item, provider and repeat: item/provider/repeat.
	Session string
	// Turn counts from 1.
	Turn int
	// Messages are the conversation up to and with what the user says now.
	Messages []conversation.Message
	// Vars is a mapping or the zero node, Hidden the tool_context.
	Vars   strict.Node
	Hidden conversation.Hidden
	// Workspace is the absolute path of the item's own folder, "" where it has none.
	Workspace string
	// Provider, Vendor and Model are the column's.
	Provider, Vendor, Model string
	// Now is the time of the item's clock when the turn begins, RFC 3339, Seed the run's.
	Now  string
	Seed uint64
}

// AppendJSON appends the question as one JSON object on one line.
func (q *Question) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"v":`...)
	dst = strconv.AppendInt(dst, Version, 10)
	dst = append(dst, `,"session":`...)
	dst = conversation.AppendString(dst, q.Session)
	dst = append(dst, `,"turn":`...)
	dst = strconv.AppendInt(dst, int64(q.Turn), 10)
	dst = append(dst, `,"input":`...)
	input := ""
	if n := len(q.Messages); n > 0 {
		input = q.Messages[n-1].Text()
	}
	dst = conversation.AppendString(dst, input)
	dst = append(dst, `,"messages":[`...)
	for i, m := range q.Messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendChat(dst, m)
	}
	dst = append(dst, `],"vars":`...)
	if q.Vars.Kind() == strict.Mapping {
		dst = q.Vars.AppendJSON(dst)
	} else {
		dst = append(dst, "{}"...)
	}
	dst = append(dst, `,"tool_context":`...)
	dst = q.Hidden.AppendJSON(dst)
	dst = append(dst, `,"workspace":`...)
	dst = conversation.AppendString(dst, q.Workspace)
	for _, x := range []struct{ before, text string }{{`,"provider":{"id":`, q.Provider}, {`,"vendor":`, q.Vendor}, {`,"model":`, q.Model}, {`},"now":`, q.Now}} {
		dst = append(dst, x.before...)
		dst = conversation.AppendString(dst, x.text)
	}
	dst = append(dst, `,"seed":`...)
	dst = strconv.AppendUint(dst, q.Seed, 10)
	return append(dst, '}')
}

// Answer is what a program said of one turn.
type Answer struct {
	Output string
	// Error is what the program says went wrong; where it is set there is no output.
	Error string
	// Messages, from the first of the assistant on, and Usage tell what the recorder did not see; both may be absent.
	Messages []conversation.Message
	Usage    *conversation.Usage
}

// DecodeAnswer reads what a program wrote: {"output": "..."} or {"error": "..."}, with the former "messages" in OpenAI's form and "usage", and nothing else. An error says why that is no answer.
func DecodeAnswer(data []byte, messageID string) (Answer, error) {
	if len(strings.TrimSpace(string(data))) == 0 {
		return Answer{}, errors.New("answered nothing")
	}
	const wrong = `wrote something else than {"output": "..."} or {"error": "..."}`
	n, err := strict.ParseJSON("answer", 1, data)
	if err != nil {
		return Answer{}, fmt.Errorf("%s: %w", wrong, err)
	}
	var in struct {
		Output   *string     `yaml:"output"`
		Error    *string     `yaml:"error"`
		Messages strict.Node `yaml:"messages"`
		Usage    strict.Node `yaml:"usage"`
	}
	var p strict.Problems
	strict.Decode(n, &in, &p)
	if err := p.Err(); err != nil {
		return Answer{}, fmt.Errorf("%s: %w", wrong, err)
	}
	switch {
	case in.Output != nil && in.Error != nil:
		return Answer{}, errors.New("answered with an output and an error")
	case in.Error != nil && strings.TrimSpace(*in.Error) == "":
		return Answer{}, errors.New("answered with an error that says nothing")
	case in.Error != nil:
		return Answer{Error: *in.Error}, nil
	case in.Output == nil:
		return Answer{}, errors.New(wrong + `: it holds neither "output" nor "error"`)
	}
	a := Answer{Output: *in.Output}
	if !in.Messages.IsZero() && !in.Messages.IsNull() {
		if a.Messages, err = chatMessages(in.Messages.JSON(), messageID); err != nil {
			return Answer{}, fmt.Errorf("answered with messages that cannot be read: %w", err)
		}
		for len(a.Messages) > 0 && a.Messages[0].Role() != conversation.RoleAssistant {
			a.Messages = a.Messages[1:]
		}
	}
	if !in.Usage.IsZero() && !in.Usage.IsNull() {
		usage, err := chatUsageOf(in.Usage.JSON())
		if err != nil {
			return Answer{}, fmt.Errorf("answered with a usage that cannot be read: %w", err)
		}
		a.Usage = &usage
	}
	return a, nil
}
