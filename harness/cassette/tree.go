package cassette

import (
	"iter"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// tree is a JSON value together with its place in the text it was read from.
type tree struct {
	kind       jsontext.Kind // of the first token
	text       string        // what a string means; other values as they are written
	names      []string      // of members, beside kids
	kids       []tree
	start, end int
}

// parse reads JSON. Of a member that comes twice both are kept.
func parse(text string) (*tree, bool) {
	d := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var t tree
	if !t.read(d, text) {
		return nil, false
	}
	return &t, strings.TrimSpace(text[t.end:]) == ""
}

func (t *tree) read(d *jsontext.Decoder, text string) bool {
	t.kind = d.PeekKind()
	token, err := d.ReadToken()
	if err != nil {
		return false
	}
	t.end = int(d.InputOffset())
	switch t.kind {
	case '{', '[':
		t.start = t.end - 1
		for d.PeekKind() != '}' && d.PeekKind() != ']' {
			if t.kind == '{' {
				name, err := d.ReadToken()
				if err != nil {
					return false
				}
				t.names = append(t.names, name.String())
			}
			var kid tree
			if !kid.read(d, text) {
				return false
			}
			t.kids = append(t.kids, kid)
		}
		if _, err := d.ReadToken(); err != nil {
			return false
		}
		t.end = int(d.InputOffset())
		t.text = text[t.start:t.end]
	case '"':
		t.text = token.String()
		t.start = openQuote(text, t.end)
	default:
		t.text = token.String()
		t.start = t.end - len(t.text)
	}
	return true
}

// openQuote finds the beginning of the JSON string that ends at end.
func openQuote(s string, end int) int {
	for i := end - 2; i >= 0; i-- {
		if s[i] != '"' {
			continue
		}
		slashes := 0
		for i-1-slashes >= 0 && s[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
	return 0
}

// member returns the member of an object, nil where there is none.
func (t *tree) member(name string) *tree {
	for i, n := range t.names {
		if n == name {
			return &t.kids[i]
		}
	}
	return nil
}

// role says who speaks in a message, "" where t is none. What begins with the result of a tool is a tool's, whoever the vendor lets say it; an item without a speaker is told by its type.
func (t *tree) role() string {
	r := t.member("role")
	if r == nil {
		if kind := t.member("type"); kind != nil && (kind.text == "function_call" || kind.text == "function_call_output") {
			return kind.text
		}
		return ""
	}
	if parts := t.member("parts"); parts != nil && len(parts.kids) > 0 && parts.kids[0].member("functionResponse") != nil {
		return "function"
	}
	if content := t.member("content"); r.text == "user" && content != nil && content.kind == '[' && len(content.kids) > 0 {
		if content.kids[0].member("toolResult") != nil {
			return "tool"
		}
		if kind := content.kids[0].member("type"); kind != nil && kind.text == "tool_result" {
			return "tool"
		}
	}
	return r.text
}

// leaves yields every string below t with its path.
func (t *tree) leaves(path string) iter.Seq2[string, *tree] {
	return func(yield func(string, *tree) bool) { t.walk(path, yield) }
}

func (t *tree) walk(path string, yield func(string, *tree) bool) bool {
	if t.kind == '"' {
		return yield(path, t)
	}
	for i := range t.kids {
		next := ""
		if t.kind == '{' {
			next = join(path, t.names[i])
		} else {
			next = index(path, i)
		}
		if !t.kids[i].walk(next, yield) {
			return false
		}
	}
	return true
}

// join and index spell paths as messages show them: messages[3].content, and headers["content-type"] where a name is no word.
func join(path, name string) string {
	word := name != ""
	for i := range len(name) {
		c := name[i]
		word = word && (letter(c) || c == '_' || i > 0 && ('0' <= c && c <= '9' || c == '-' || c == '$'))
	}
	switch {
	case !word:
		return path + "[" + strconv.Quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// event is the payload of one data line of a stream that is JSON.
type event struct {
	at   int // offset of the payload in the body
	json *tree
}

// events finds the payloads of a body of server-sent events. Those of a binary stream are found in its readable form, see [Readable].
func events(body string) iter.Seq[event] {
	body = Readable(body)
	return func(yield func(event) bool) {
		at := 0
		for line := range strings.Lines(body) {
			payload, is := strings.CutPrefix(line, "data:")
			if is {
				if t, ok := parse(payload); ok && !yield(event{at + len(line) - len(payload), t}) {
					return
				}
			}
			at += len(line)
		}
	}
}

// fragment is a string of one event; those of one path are one text that the model wrote piece by piece.
type fragment struct {
	start, end int // of the JSON string in the body
	text       string
}

// fragments groups the strings of a stream by path, in order of their first occurrence.
func fragments(body string) (paths []string, by map[string][]fragment) {
	by = map[string][]fragment{}
	for e := range events(body) {
		for path, leaf := range e.json.leaves("") {
			if by[path] == nil {
				paths = append(paths, path)
			}
			by[path] = append(by[path], fragment{e.at + leaf.start, e.at + leaf.end, leaf.text})
		}
	}
	return paths, by
}

func joined(pieces []fragment) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.text)
	}
	return b.String()
}
