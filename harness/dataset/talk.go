package dataset

import (
	"fmt"
	"slices"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// turns decodes turns but for their input, which is looked at when it is rendered.
func (d *Dataset) turns(n strict.Node, data bool, p *strict.Problems) []turn {
	if n.Kind() != strict.Sequence {
		p.WrongType(n, "a list of turns such as {input: ..., checks: [...]}")
		return nil
	}
	if n.Len() == 0 {
		p.Add(n.Pos(), "write one: [{input: ...}]", "the list of turns is empty")
	}
	list := make([]turn, 0, n.Len())
	for i, entry := range n.Items() {
		at := p.At(i)
		var keys turnKeys
		strict.Decode(entry, &keys, at)
		t := turn{node: entry, input: keys.Input}
		if !keys.Checks.IsZero() {
			t.checks = d.checks(keys.Checks, data, at.Key("checks"))
		}
		list = append(list, t)
	}
	return list
}

// user decodes a simulated user. One that is whole has a goal.
func user(n strict.Node, whole bool, p *strict.Problems) *User {
	var keys userKeys
	strict.Decode(n, &keys, p)
	if n.Kind() != strict.Mapping {
		return nil
	}
	u := &User{Persona: value(keys.Persona), Goal: value(keys.Goal), MaxTurns: 8, Stop: value(keys.Stop), Provider: value(keys.Provider), Pos: n.Pos()}
	if k := keys.Knows; !k.IsNull() && !k.IsZero() {
		u.Knows = mapping(k, p.Key("knows"))
	}
	if keys.MaxTurns != nil {
		u.MaxTurns = *keys.MaxTurns
		if u.MaxTurns < 1 || u.MaxTurns > maxTurns {
			p.Key("max_turns").Add(n.Get("max_turns").Pos(), "", "want a whole number from 1 to %d", maxTurns)
		}
	}
	if whole && u.Goal == "" {
		p.Add(n.Pos(), "add it: goal: what the user wants", "key \"goal\" is missing")
	}
	return u
}

const maxTurns = 1000

var (
	messageRoles    = []string{string(conversation.RoleSystem), string(conversation.RoleUser), string(conversation.RoleAssistant), string(conversation.RoleTool)}
	contentTypes    = []string{string(conversation.KindText), string(conversation.KindReasoning), string(conversation.KindImage), string(conversation.KindDocument), string(conversation.KindToolCall), string(conversation.KindToolResult)}
	messageHint     = "write messages as they are stored: {role: user, content: ...}"
	messagesExample = "a list of messages such as {role: user, content: ...}"
)

// messages decodes a conversation so far, in the conversation codec. A content that is a text stands for one part of it, and a message without msg_id gets one of its place.
func messages(n strict.Node, p *strict.Problems) []conversation.Message {
	if n.Kind() != strict.Sequence {
		p.WrongType(n, messagesExample)
		return nil
	}
	if n.Len() == 0 {
		p.Add(n.Pos(), "write one, or leave the key out", "the list of messages is empty")
	}
	found := p.Len()
	list := make([]conversation.Message, 0, n.Len())
	ids := map[string]failure.Position{}
	for i, entry := range n.Items() {
		at := p.At(i)
		m, ok := message(entry, i, at)
		if !ok {
			continue
		}
		if first, twice := ids[m.ID()]; twice {
			at.Key("msg_id").Add(entry.Pos(), "give each message its own", "message %q stands here a second time, first at %s", m.ID(), first)
		}
		ids[m.ID()] = entry.Pos()
		if err := m.Validate(); err != nil {
			at.Add(entry.Pos(), messageHint, "%s", err)
		}
		list = append(list, m)
	}
	if p.Len() != found {
		return list
	}
	for _, problem := range conversation.CheckPairing(slices.All(list)) {
		p.Add(n.Pos(), "every call has one result, in the message after it", "%s", problem)
	}
	return list
}

func message(n strict.Node, i int, p *strict.Problems) (conversation.Message, bool) {
	var none conversation.Message
	if n.Kind() != strict.Mapping {
		p.WrongType(n, "a message such as {role: user, content: ...}")
		return none, false
	}
	found := p.Len()
	var fields []strict.Field
	var keys messageKeys
	strict.Decode(n, &keys, p)
	for key, v := range n.Fields() {
		at := p.Key(key.Name)
		switch key.Name {
		case "role":
			if v.Kind() != strict.String {
				at.WrongType(v, "a string")
			} else if !slices.Contains(messageRoles, v.Text()) {
				at.Add(v.Pos(), strict.Suggest(v.Text(), messageRoles), "unknown role %q", v.Text())
			}
		case "content":
			v = parts(v, at)
		}
		fields = append(fields, strict.Field{Key: key, Value: v})
	}
	if p.Len() != found {
		return none, false
	}
	if n.Get("msg_id").IsZero() {
		fields = append(fields, strict.Field{Key: n.NewKey("msg_id"), Value: n.WithText(fmt.Sprintf("m%d", i+1))})
	}
	m, err := conversation.DecodeMessage(n.NewMapping(fields).AppendJSON(nil))
	if err != nil {
		p.Add(n.Pos(), messageHint, "%s", err)
		return none, false
	}
	return m, true
}

// parts gives the content of a message as the codec takes it.
func parts(n strict.Node, p *strict.Problems) strict.Node {
	if n.Kind() == strict.String {
		part := n.NewMapping([]strict.Field{{Key: n.NewKey("type"), Value: n.WithText(string(conversation.KindText))}, {Key: n.NewKey("text"), Value: n}})
		return n.NewSequence([]strict.Node{part})
	}
	if n.Kind() != strict.Sequence {
		p.WrongType(n, "a string or a list of parts")
		return n
	}
	for i, part := range n.Items() {
		at := p.At(i)
		if part.Kind() != strict.Mapping {
			at.WrongType(part, "a part such as {type: text, text: ...}")
			continue
		}
		var keys storedPartKeys
		strict.Decode(part, &keys, at)
		switch t := keys.Type; {
		case t.IsZero(): // said
		case t.Kind() != strict.String:
			at.Key("type").WrongType(t, "a string")
		case !slices.Contains(contentTypes, t.Text()):
			at.Key("type").Add(t.Pos(), strict.Suggest(t.Text(), contentTypes), "unknown type %q", t.Text())
		}
	}
	return n
}
