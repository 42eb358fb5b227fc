package experiment

import (
	"context"
	"fmt"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/harness/dataset"
)

// before is the conversation that the item begins with.
func (r *itemRun) before() []conversation.Message { return r.item.Messages }

// talk gives what the user says, turn by turn: the item's input or turns, then what the simulated user says, where there is one.
func (r *itemRun) talk() func(context.Context, int, string) ([]conversation.Message, bool, error) {
	item := r.item
	var fixed [][]conversation.Content
	switch {
	case len(item.Turns) > 0:
		for _, t := range item.Turns {
			fixed = append(fixed, t.Input)
		}
	case len(item.Input) > 0:
		fixed = [][]conversation.Content{item.Input}
	case item.User == nil:
		fixed = [][]conversation.Content{nil} // the messages end with the user's
	}
	user := &simulator{run: r}
	return func(ctx context.Context, turn int, answer string) ([]conversation.Message, bool, error) {
		if turn > 1 || len(fixed) == 0 {
			user.heard(answer)
		}
		if turn <= len(fixed) {
			if parts := fixed[turn-1]; parts != nil {
				user.said(textOf(parts))
				return []conversation.Message{conversation.User(r.ids().ID(turn-1, "input", 1), parts...)}, true, nil
			}
			return nil, true, nil
		}
		if item.User == nil || turn > item.User.MaxTurns {
			return nil, false, nil
		}
		text, more, err := user.speak(ctx)
		if err != nil || !more {
			return nil, false, err
		}
		return []conversation.Message{conversation.User(r.ids().ID(turn-1, "input", 1), conversation.Text{Text: text})}, true, nil
	}
}

func textOf(parts []conversation.Content) string {
	var b strings.Builder
	for _, p := range parts {
		if t, ok := p.(conversation.Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// stopWord is what a simulated user says when the conversation is over.
const stopWord = "<over>"

// simulator plays the user of one item. To its model the roles are turned: what the agent says is its user, what it says itself is its assistant. Its requests are recorded with those of the agent.
type simulator struct {
	run   *itemRun
	lines []conversation.Message
}

func (s *simulator) heard(answer string) {
	if answer != "" && s.run.item.User != nil {
		s.lines = append(s.lines, conversation.User(s.id(), conversation.Text{Text: answer}))
	}
}

func (s *simulator) said(text string) {
	if s.run.item.User == nil {
		return // nobody will speak
	}
	s.lines = append(s.lines, conversation.Assistant(s.id(), conversation.Text{Text: text}))
}

func (s *simulator) id() string { return s.run.ids().ID(len(s.lines), "simulated user", 1) }

// speak asks the model for the user's next line; more is false when it says that the conversation is over.
func (s *simulator) speak(ctx context.Context) (text string, more bool, err error) {
	r := s.run
	column, err := r.user(r.item)
	if err != nil {
		return "", false, err
	}
	model, err := r.modelOf(column, r.transport(column), r.session.Live)
	if err != nil {
		return "", false, err
	}
	messages := s.lines
	if len(messages) == 0 {
		messages = []conversation.Message{conversation.User(s.id(), conversation.Text{Text: "(The conversation begins. Say your first line.)"})}
	}
	reply, err := llm.Generate(ctx, model, llm.Request{System: prompt(r.item.User), Messages: messages, Settings: column.Settings})
	if cost, ok := column.Cost(llm.Response{Usage: reply.Finish.Usage}); ok {
		r.overhead += cost
	}
	if err != nil {
		return "", false, fmt.Errorf("the simulated user: %w", err)
	}
	text = strings.TrimSpace(textOf(reply.Parts))
	before, _, over := strings.Cut(text, stopWord)
	if over || text == "" {
		return strings.TrimSpace(before), false, nil
	}
	s.said(text)
	return text, true, nil
}

// prompt tells the model whom it plays.
func prompt(u *dataset.User) string {
	var b strings.Builder
	b.WriteString("You play a person who talks to an assistant. Write only what this person says next, in their own words, one message at a time. Never play the assistant, and never say that you are playing.\n")
	if u.Persona != "" {
		fmt.Fprintf(&b, "\nThe person: %s\n", u.Persona)
	}
	fmt.Fprintf(&b, "\nWhat the person wants: %s\n", u.Goal)
	if u.Knows.Len() > 0 {
		b.WriteString("\nWhat the person knows, and tells only when asked:\n")
		for key, value := range u.Knows.Fields() {
			text := value.Text()
			if text == "" {
				text = value.JSON()
			}
			fmt.Fprintf(&b, "- %s: %s\n", key.Name, text)
		}
	}
	stop := u.Stop
	if stop == "" {
		stop = "the person has what they want, or it is clear that they will not get it"
	}
	fmt.Fprintf(&b, "\nWhen the conversation is over (%s), answer with %s alone.\n", stop, stopWord)
	return b.String()
}
