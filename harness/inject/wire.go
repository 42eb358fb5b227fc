package inject

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/eventstream"
)

// framing is how the JSON values of a reply stand in its body.
type framing int

const (
	whole  framing = iota // the body is one value
	events                // server-sent events, each with a value as its data
	binary                // frames of the binary event stream, with lengths and checksums
	list                  // a stream that is one JSON array, a value after the other
)

// frame is one piece of a body. A frame that nobody changes keeps its bytes.
type frame struct {
	raw string
	// before and after are what stands around the value: of an event its lines before the data and its end.
	before, after string
	head          string // of a binary frame, its headers
	value         any    // nil where the frame holds no JSON, such as [DONE] or a comment
	changed       bool
}

// object is the value of a frame where it is an object, and else nil.
func (f *frame) object() map[string]any {
	m, _ := f.value.(map[string]any)
	return m
}

// wire is a body taken apart.
type wire struct {
	framing framing
	frames  []*frame
	rest    string // what follows the last whole frame, as in a recording that was cut
}

// lenient takes what servers send although RFC 8259 advises against it. Numbers keep their text.
var lenient = json.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *any) error {
		if d.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		v, err := d.ReadValue()
		*to = jsontext.Value(bytes.Clone(v))
		return err
	})),
)

// written makes the same bytes of the same value.
var written = json.JoinOptions(json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

func parseValue(text string) (any, bool) {
	var v any
	err := json.Unmarshal([]byte(text), &v, lenient)
	return v, err == nil
}

func writeValue(v any) string {
	data, err := json.Marshal(v, written)
	if err != nil {
		return "null" // a value that was read can be written
	}
	return string(data)
}

// parse takes a recorded response apart.
func parse(r *cassette.Response) *wire {
	mediaType := r.Headers.Get("Content-Type")
	switch {
	case strings.HasPrefix(mediaType, eventstream.MediaType):
		return parseBinary(r.Body)
	case strings.HasPrefix(mediaType, "text/event-stream"):
		return parseEvents(r.Body)
	case strings.HasPrefix(strings.TrimSpace(r.Body), "["):
		return parseList(r.Body)
	}
	v, ok := parseValue(r.Body)
	if !ok {
		return &wire{rest: r.Body}
	}
	return &wire{frames: []*frame{{raw: r.Body, value: v}}}
}

func parseBinary(body string) *wire {
	w := &wire{framing: binary}
	for {
		f, rest, ok := eventstream.Cut(body)
		if !ok {
			w.rest = body
			return w
		}
		v, _ := parseValue(f.Payload)
		w.frames = append(w.frames, &frame{raw: body[:len(body)-len(rest)], head: f.Head, value: v})
		body = rest
	}
}

func parseEvents(body string) *wire {
	w := &wire{framing: events}
	for body != "" {
		end := len(body)
		for _, blank := range []string{"\n\n", "\r\n\r\n"} {
			if i := strings.Index(body[:end], blank); i >= 0 {
				end = i + len(blank)
			}
		}
		w.frames = append(w.frames, parseEvent(body[:end]))
		body = body[end:]
	}
	return w
}

// parseEvent reads one event. Its value is that of its only data line.
func parseEvent(raw string) *frame {
	f := &frame{raw: raw}
	at := 0
	for line := range strings.Lines(raw) {
		if data, is := strings.CutPrefix(line, "data:"); is {
			if f.value != nil {
				return &frame{raw: raw} // a value over several lines: nobody sends one
			}
			text := strings.TrimSpace(data)
			v, ok := parseValue(text)
			if !ok {
				return f
			}
			f.value, f.before, f.after = v, raw[:at]+"data: ", line[len(strings.TrimRight(line, "\r\n")):]+raw[at+len(line):]
		}
		at += len(line)
	}
	return f
}

func parseList(body string) *wire {
	w := &wire{framing: list}
	var values []jsontext.Value
	if json.Unmarshal([]byte(body), &values, lenient) != nil {
		w.rest = body
		return w
	}
	for _, raw := range values {
		v, _ := parseValue(string(raw))
		w.frames = append(w.frames, &frame{raw: string(raw), value: v})
	}
	return w
}

// text is the frame's bytes as they now are.
func (w *wire) text(f *frame) string {
	switch {
	case !f.changed:
		return f.raw
	case w.framing == binary:
		return string(eventstream.Append(nil, eventstream.Frame{Head: f.head, Payload: writeValue(f.value)}))
	}
	return f.before + writeValue(f.value) + f.after
}

// body puts the first n frames together, all of them for a negative n.
func (w *wire) body(n int) string {
	frames := w.frames
	if n >= 0 {
		frames = frames[:min(n, len(frames))]
	}
	var b strings.Builder
	for i, f := range frames {
		if w.framing == list {
			b.WriteString([]string{"[", ",\r\n"}[min(i, 1)])
		}
		b.WriteString(w.text(f))
	}
	if n >= 0 {
		return b.String()
	}
	if w.framing == list && len(frames) > 0 {
		b.WriteString("]\n")
	}
	return b.String() + w.rest
}

// clone copies a frame, so that a change of the copy leaves the original as it is.
func (f *frame) clone() *frame {
	c := *f
	c.value, c.changed = copyValue(f.value), true
	return &c
}

func copyValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, member := range v {
			m[key] = copyValue(member)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i := range v {
			l[i] = copyValue(v[i])
		}
		return l
	}
	return v
}

// insert puts frames behind the frame at a place.
func (w *wire) insert(at int, frames ...*frame) {
	w.frames = slices.Insert(w.frames, at+1, frames...)
}

// member returns what stands at a path of names, nil where nothing does.
func member(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// object returns the object at a path of names, nil where there is none.
func object(v any, path ...string) map[string]any {
	m, _ := member(v, path...).(map[string]any)
	return m
}

// each yields the objects of the list at a path of names.
func each(v any, path ...string) []map[string]any {
	all, _ := member(v, path...).([]any)
	out := make([]map[string]any, 0, len(all))
	for i := range all {
		if m, ok := all[i].(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// text returns the text of a member, "" where it is none.
func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

// number returns the whole number of a member, or what else there is said where it is none.
func number(m map[string]any, name string, otherwise int) int {
	v, _ := m[name].(jsontext.Value)
	var n int
	if v == nil || json.Unmarshal(v, &n) != nil {
		return otherwise
	}
	return n
}
