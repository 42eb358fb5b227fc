package cassette

import (
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/harness/eventstream"
)

// Reply is what a recorded response of a model says, read from its bytes by the table of shapes. Whatever the vendor, it is enough to show how a conversation went and what it cost; it is no replacement for a provider's own reader.
type Reply struct {
	Text  string
	Calls []string // names of the tools that the model called, in order
	// Usage is nil where the response says nothing of tokens.
	Usage *Usage
}

// Usage counts the tokens of a response, those that were read from a cache (Cached) or written to one (Written) and those of reasoning included in the sums.
type Usage struct{ Input, Output, Cached, Written, Reasoning int }

// Reply reads the response of an interaction; false where it is no reply of a model, or an error.
func (i *Interaction) Reply() (Reply, bool) {
	s := shapeOf(i.Request.URL)
	if s == nil || i.Response.Code >= 400 {
		return Reply{}, false
	}
	var r replyReader
	if strings.HasPrefix(i.Response.Headers.Get("Content-Type"), eventstream.MediaType) || isStream(i.Response.Headers) {
		r.text, r.call = s.reply.pieces, s.reply.callPiece
		for e := range events(i.Response.Body) {
			r.read(s, e.json)
		}
	} else {
		t, ok := parse(i.Response.Body)
		if !ok {
			return Reply{}, false
		}
		r.text, r.call = s.reply.text, s.reply.call
		if t.kind == '[' { // a stream of another form
			r.text, r.call = s.reply.pieces, s.reply.callPiece
			for n := range t.kids {
				r.read(s, &t.kids[n])
			}
		} else {
			r.read(s, t)
		}
	}
	r.reply.Text = r.said.String()
	return r.reply, true
}

// Model is the model that a recorded request names, "" where it is no request to a model or names none.
func (i *Interaction) Model() string {
	if shapeOf(i.Request.URL) == nil {
		return ""
	}
	t, ok := parse(i.Request.Body)
	if !ok {
		return ""
	}
	if m := t.member("model"); m != nil && m.kind == '"' {
		return m.text
	}
	return ""
}

type replyReader struct {
	text, call string // patterns
	said       strings.Builder
	reply      Reply
}

// read takes one response, or one event of a stream, in. Of tokens that several events count the last counts.
func (r *replyReader) read(s *shape, t *tree) {
	if s.reply.unsaid != "" {
		t.prune(s.reply.unsaid)
	}
	for path, leaf := range t.leaves("") {
		switch {
		case r.text != "" && fits(r.text, path, ""):
			r.said.WriteString(leaf.text)
		case r.call != "" && fits(r.call, path, ""):
			r.reply.Calls = append(r.reply.Calls, leaf.text)
		}
	}
	if s.reply.within != "" {
		if whole := t.member(s.reply.within); whole != nil {
			t = whole
		}
	}
	input, ok := t.number(s.reply.input)
	if !ok {
		// A later event may count the output alone.
		if output, ok := t.number(s.reply.output); ok && r.reply.Usage != nil {
			r.reply.Usage.Output = output
		}
		return
	}
	u := Usage{Input: input}
	u.Output, _ = t.number(s.reply.output)
	u.Cached, _ = t.number(s.reply.cached)
	u.Reasoning, _ = t.number(s.reply.reasoning)
	u.Written, _ = t.number(s.reply.written)
	if s.reply.unsummed {
		u.Input += u.Cached + u.Written
	}
	if s.reply.beside {
		u.Output += u.Reasoning
	}
	r.reply.Usage = &u
}

// prune empties the objects below t whose member of the name is true.
func (t *tree) prune(name string) {
	if m := t.member(name); m != nil && m.text == "true" {
		t.names, t.kids = nil, nil
	}
	for i := range t.kids {
		t.kids[i].prune(name)
	}
}

// number returns the whole number at a path of members, false where there is none that makes sense.
func (t *tree) number(path string) (int, bool) {
	if path == "" {
		return 0, false
	}
	for name := range strings.SplitSeq(path, ".") {
		if t = t.member(name); t == nil {
			return 0, false
		}
	}
	n, err := strconv.Atoi(t.text)
	return n, err == nil && t.kind == '0' && n >= 0
}

// Calls returns the names of the tools that the agent called, in the order of the calls: those recorded as calls, or where there are none, those that the model's replies name.
func (f *File) Calls() []string {
	var own, asked []string
	for n := range f.Interactions {
		i := &f.Interactions[n]
		if !i.agents() {
			continue
		}
		if i.Request.Method == Method {
			if name := toolName(i.Request.URL); !strings.HasPrefix(name, "-/") {
				own = append(own, name)
			}
			continue
		}
		if r, ok := i.Reply(); ok {
			asked = append(asked, r.Calls...)
		}
	}
	if len(own) > 0 {
		return own
	}
	return asked
}

// agents reports that an interaction is part of what the agent did and said: it is no check's, and no request for embeddings, which have no text.
func (i *Interaction) agents() bool {
	s := shapeOf(i.Request.URL)
	return i.Extra.Judge == "" && (s == nil || s.reply.text != "")
}

func toolName(rawURL string) string { return strings.TrimPrefix(rawURL, "tool:///") }

// Answer returns what the last reply of the agent's model says, "" where none has a text.
func (f *File) Answer() string {
	for n := len(f.Interactions) - 1; n >= 0; n-- {
		if !f.Interactions[n].agents() {
			continue
		}
		if r, ok := f.Interactions[n].Reply(); ok {
			return r.Text
		}
	}
	return ""
}
