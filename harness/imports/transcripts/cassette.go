package transcripts

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/harness/cassette"
)

// asked is a request to a model, as far as a transcript needs it.
type asked struct {
	messages []conversation.Message
	tools    []tool.Spec
	known    bool // the tools are
	reply    *conversation.Message
	id       string // of the reply, in the Responses API
	place    int    // in the cassette, from 1
	host     string // that was asked
	before   *asked // the request that this one goes on with
	goesOn   bool   // another one goes on with it
}

// Cassette reads the conversations of a cassette. A request that goes on with an earlier one belongs to the same. Of a reply that no later request repeats and that came as a stream, only a text is read: where it calls tools, the transcript ends before it.
func Cassette(name string, f *cassette.File) []Transcript {
	var all []*asked
	for i := range f.Interactions {
		x := &f.Interactions[i]
		if x.Extra.Judge != "" || x.Request.Method == cassette.Method || x.Response.Code >= 400 {
			continue
		}
		a := request(x, all)
		if a == nil {
			continue
		}
		a.place = i + 1
		if address, err := url.Parse(x.Request.URL); err == nil {
			a.host = address.Host
		}
		for j := len(all) - 1; j >= 0 && a.before == nil; j-- {
			if before := all[j]; before.host == a.host && len(before.messages) < len(a.messages) && begins(a.messages, before.messages) {
				a.before = before
			}
		}
		if a.before != nil {
			a.before.goesOn = true
		}
		all = append(all, a)
	}
	var out []Transcript
	for _, a := range all {
		if a.goesOn {
			continue
		}
		messages := a.messages
		if a.reply != nil {
			messages = append(messages[:len(messages):len(messages)], *a.reply)
		}
		shown := func(index int) ([]tool.Spec, bool) {
			for b := a; b != nil; b = b.before {
				if len(b.messages) <= index {
					return b.tools, b.known
				}
			}
			return nil, false
		}
		out = append(out, Transcript{Name: fmt.Sprintf("request %d", a.place), Trace: narrate(messages, shown)})
		out[len(out)-1].Pos.File = name
	}
	return out
}

func begins(messages, prefix []conversation.Message) bool {
	for i := range prefix {
		if !messages[i].Equal(prefix[i]) {
			return false
		}
	}
	return true
}

// request reads a request with its reply; nil where it is none to a model.
func request(x *cassette.Interaction, earlier []*asked) *asked {
	body, err := strict.ParseJSON("", 1, []byte(x.Request.Body))
	if err != nil || body.Kind() != strict.Mapping {
		return nil
	}
	list := strict.Node{}
	for _, key := range []string{"messages", "contents", "input"} {
		if v := body.Get(key); v.Kind() == strict.Sequence && v.Len() > 0 {
			list = v
			break
		}
	}
	if input := body.Get("input"); input.Kind() == strict.String && !body.Get("model").IsZero() && strings.HasSuffix(strings.SplitN(x.Request.URL, "?", 2)[0], "/responses") {
		said := input.NewMapping([]strict.Field{{Key: input.NewKey("role"), Value: input.WithText("user")}, {Key: input.NewKey("content"), Value: input}})
		list = input.NewSequence([]strict.Node{said})
	}
	if list.IsZero() || !isMessage(list.Index(0)) && list.Index(0).Get("parts").IsZero() {
		return nil
	}
	a := &asked{}
	if a.messages, err = messagesOf(list); err != nil || len(a.messages) == 0 {
		return nil
	}
	if system := systemOf(body); system != "" {
		a.messages = append([]conversation.Message{conversation.NewMessage(conversation.RoleSystem, "system", conversation.Text{Text: system})}, a.messages...)
	}
	if previous := body.Get("previous_response_id").Text(); previous != "" {
		for _, b := range earlier {
			if b.id == previous && b.reply != nil {
				a.before = b
				a.messages = append(append(b.messages[:len(b.messages):len(b.messages)], *b.reply), a.messages...)
			}
		}
		if a.before == nil {
			return nil // the conversation that it goes on with is not here
		}
	}
	a.tools, a.known = toolsOf(body)
	a.answer(x)
	return a
}

// answer reads the reply.
func (a *asked) answer(x *cassette.Interaction) {
	text := x.Response.Body
	const done = `data: {"type":"response.completed"` // the last event of a stream of the Responses API holds all of it
	if i := strings.LastIndex(text, done); i >= 0 {
		line, _, _ := strings.Cut(text[i+len("data: "):], "\n")
		if n, err := strict.ParseJSON("", 1, []byte(strings.TrimSpace(line))); err == nil {
			text = n.Get("response").JSON()
		}
	}
	if n, err := strict.ParseJSON("", 1, []byte(text)); err == nil && n.Kind() == strict.Mapping {
		a.id = n.Get("id").Text()
		a.whole(n)
		return
	}
	if reply, ok := x.Reply(); ok && len(reply.Calls) == 0 && reply.Text != "" {
		m := conversation.Assistant("reply", conversation.Text{Text: reply.Text})
		a.reply = &m
	}
}

// whole reads a reply that is one JSON value.
func (a *asked) whole(n strict.Node) {
	list := n.Get("output") // of the Responses API
	if list.Kind() != strict.Sequence {
		one := n
		for _, path := range [][]string{{"choices", "message"}, {"candidates", "content"}} {
			if v := n.Get(path[0]); v.Kind() == strict.Sequence && v.Len() > 0 {
				one = v.Index(0).Get(path[1])
			}
		}
		if v := n.Get("output").Get("message"); v.Kind() == strict.Mapping {
			one = v
		}
		if one.Kind() != strict.Mapping || one.Get("role").IsZero() {
			return
		}
		list = one.NewSequence([]strict.Node{one})
	}
	if messages, err := messagesOf(list); err == nil && len(messages) > 0 && messages[0].Role() == conversation.RoleAssistant && messages[0].Len() > 0 {
		a.reply = &messages[0]
	}
}
