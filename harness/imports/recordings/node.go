package recordings

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/harness/imports"
)

// kind is what a node is.
type kind byte

const (
	null kind = iota
	text      // a string, or bytes
	word      // a number or a truth value, as it is written
	list
	mapping
)

// node is a value of a YAML or JSON file. The methods that look into one take nil for a value that is not there.
type node struct {
	kind      kind
	text      string
	keys      []*node // of a mapping, beside kids
	kids      []*node
	line, col int
}

// get returns the value of a key, nil where there is none.
func (n *node) get(key string) *node {
	if n == nil || n.kind != mapping {
		return nil
	}
	for i, k := range n.keys {
		if k.text == key {
			return n.kids[i]
		}
	}
	return nil
}

// first returns the first element of a list, nil where there is none.
func (n *node) first() *node {
	if n == nil || n.kind != list || len(n.kids) == 0 {
		return nil
	}
	return n.kids[0]
}

// has says that all of these keys are there.
func (n *node) has(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return n.get(key) == nil })
}

// is says that a value is of a kind.
func (n *node) is(k kind) bool { return n != nil && n.kind == k }

// empty says that a value says nothing: it is absent, null, "", an empty list or mapping, false, or a number that programs write for one they do not know.
func (n *node) empty() bool {
	switch {
	case n == nil || n.kind == null:
		return true
	case n.kind == text:
		return n.text == ""
	case n.kind == word:
		return n.text == "false" || n.text == "0" || n.text == "-1"
	}
	return len(n.kids) == 0
}

// json appends the value as JSON without spaces: keys in their order, numbers as they are written.
func (n *node) json(b []byte) []byte {
	switch n.kind {
	case null:
		return append(b, "null"...)
	case word:
		lower := strings.ToLower(n.text)
		if v := jsontext.Value(lower); v.IsValid() {
			if v.Kind() == '0' {
				return append(b, n.text...)
			}
			return append(b, lower...)
		}
		return quote(b, n.text)
	case text:
		return quote(b, n.text)
	case list:
		b = append(b, '[')
		for i, kid := range n.kids {
			if i > 0 {
				b = append(b, ',')
			}
			b = kid.json(b)
		}
		return append(b, ']')
	}
	b = append(b, '{')
	for i, kid := range n.kids {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(quote(b, n.keys[i].text), ':')
		b = kid.json(b)
	}
	return append(b, '}')
}

// quote writes a string of JSON with those escapes alone that JSON asks for.
func quote(b []byte, s string) []byte {
	out, _ := jsontext.AppendQuote(b, s) // the error says that bytes were no UTF-8, which it has replaced
	return out
}

// parse makes a tree of YAML or JSON.
func (r *reader) parse(data []byte) *node {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		at := 0
		for at < len(data) {
			c, width := utf8.DecodeRune(data[at:])
			if c == utf8.RuneError && width == 1 {
				break
			}
			at += width
		}
		p := places{data: data}
		p.to(at)
		r.failAt(p.line+1, p.col+1, "byte 0x%02x is no UTF-8: no recording that is known", data[at])
		return nil
	}
	if start := bytes.TrimLeft(data, " \t\r\n"); start[0] == '{' || start[0] == '[' {
		return r.parseJSON(data)
	}
	return r.parseYAML(data)
}

// places turns growing offsets into lines and columns, counted from 0, the columns in code points.
type places struct {
	data      []byte
	at        int
	line, col int
}

func (p *places) to(offset int) {
	for p.at < offset && p.at < len(p.data) {
		_, width := utf8.DecodeRune(p.data[p.at:])
		p.col++
		if p.data[p.at] == '\n' {
			p.line, p.col = p.line+1, 0
		}
		p.at += width
	}
}

type jsonReader struct {
	*reader
	places
	d     *jsontext.Decoder
	nodes int
}

func (r *reader) parseJSON(data []byte) *node {
	j := &jsonReader{reader: r, places: places{data: data}, d: jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))}
	n := j.value(0)
	if r.err == nil {
		if _, err := j.d.ReadToken(); !errors.Is(err, io.EOF) {
			j.here()
			r.failAt(j.line+1, j.col+1, "more follows the end of the JSON value")
		}
	}
	return n
}

// here goes to the beginning of the next token.
func (j *jsonReader) here() {
	at := int(j.d.InputOffset())
	for at < len(j.data) && bytes.IndexByte([]byte(" \t\r\n,:"), j.data[at]) >= 0 {
		at++
	}
	j.to(at)
}

func (j *jsonReader) value(depth int) *node {
	j.here()
	n := &node{line: j.line + 1, col: j.col + 1}
	if j.nodes++; j.nodes > maxNodes || depth > maxDepth {
		j.fail(n, "more than %d values, or nested more than %d deep", maxNodes, maxDepth)
		return n
	}
	token, err := j.d.ReadToken()
	if err != nil {
		j.broken(err)
		return n
	}
	switch token.Kind() {
	case '"':
		n.kind, n.text = text, token.String()
	case '0', 't', 'f':
		n.kind, n.text = word, token.String()
	case '[', '{':
		n.kind = list
		if token.Kind() == '{' {
			n.kind = mapping
		}
		for j.err == nil && j.d.PeekKind() != ']' && j.d.PeekKind() != '}' {
			if n.kind == mapping {
				n.keys = append(n.keys, j.value(depth+1))
				if j.err != nil {
					return n
				}
			}
			n.kids = append(n.kids, j.value(depth+1))
		}
		if j.err != nil {
			return n
		}
		if _, err := j.d.ReadToken(); err != nil {
			j.broken(err)
		}
	}
	return n
}

func (j *jsonReader) broken(err error) {
	var at *jsontext.SyntacticError
	if errors.As(err, &at) {
		j.to(int(at.ByteOffset))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			j.failAt(j.line+1, j.col+1, "no JSON: %s", at.Err)
			return
		}
	}
	j.to(len(j.data))
	j.failAt(j.line+1, j.col+1, "the file is cut short: it ends within a JSON value")
	j.hint("take the file anew from where it comes from")
}

// yamlReader makes a tree of the nodes of YAML. Aliases are followed and what they repeat is counted, and bounded, as if it were written out.
type yamlReader struct {
	*reader
	nodes, bytes int
	tagged       bool
}

// begins counts what may begin a value: every value of YAML but the outermost stands behind one of these, so that a file has at most a few times as many values. The library builds all of them before anybody can count, at some 200 bytes each.
func begins(data []byte) (n int) {
	for i, c := range data {
		switch c {
		case ',', '[', '{', ':':
			n++
		case '-', '?':
			if i+1 == len(data) || bytes.IndexByte([]byte(" \t\r\n"), data[i+1]) >= 0 || data[i+1] >= utf8.RuneSelf {
				n++
			}
		}
	}
	return n
}

func (r *reader) parseYAML(data []byte) *node {
	if n := begins(data); n > maxBegins {
		r.fail(nil, "%d commas, colons, dashes and brackets, which may begin a value each; a recording in YAML may have %d", n, maxBegins)
		return nil
	}
	var doc yaml.Node
	if err := yaml.Load(data, &doc, yaml.WithUniqueKeys(false), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth)))); err != nil {
		var at *yaml.LoadError
		control := bytes.IndexFunc(data, func(c rune) bool {
			return c < ' ' && c != '\n' && c != '\r' && c != '\t' || c >= 0x7F && c < 0xA0 && c != 0x85
		})
		switch {
		case errors.As(err, &at) && at.Mark.Line > 0:
			r.failAt(at.Mark.Line, at.Mark.Column, "no YAML, or cut short: %s", short(at.Message))
		case control >= 0:
			p := places{data: data}
			p.to(control)
			r.failAt(p.line+1, p.col+1, "a control character: no recording that is known")
		default:
			r.fail(nil, "no YAML, or cut short: %s", short(err.Error()))
		}
		r.hint("known are recordings of go-vcr, VCR.py, VCR of Ruby and R, Polly, nock and httprr, HAR files, and JSON with a request and a response")
		return nil
	}
	if len(doc.Content) != 1 {
		r.fail(nil, "no recording that is known")
		return nil
	}
	if data[len(data)-1] != '\n' {
		r.note(imports.Changed, nil, "compare it with where it comes from", "the last line has no end: the file may be cut short")
	}
	y := yamlReader{reader: r}
	return y.value(doc.Content[0], 0)
}

func (y *yamlReader) value(in *yaml.Node, depth int) *node {
	n := &node{line: in.Line, col: in.Column}
	if y.err != nil {
		return n
	}
	y.bytes += len(in.Value)
	if y.nodes++; y.nodes > maxNodes || depth > maxDepth || y.bytes > 2*MaxFile {
		y.fail(n, "what it holds, written out, is more than %d values or %d MiB, or nested more than %d deep", maxNodes, 2*MaxFile>>20, maxDepth)
		return n
	}
	if in.Style&yaml.TaggedStyle != 0 && in.Kind != yaml.AliasNode && !slices.Contains(plainTags, in.Tag) && !y.tagged {
		y.tagged = true
		y.note(imports.Changed, n, "", "tags such as %s construct nothing: what they mark is read as it stands", short(in.Tag))
	}
	switch in.Kind {
	case yaml.AliasNode:
		return y.value(in.Alias, depth+1)
	case yaml.ScalarNode:
		y.scalar(in, n)
	case yaml.SequenceNode:
		n.kind = list
		for _, kid := range in.Content {
			n.kids = append(n.kids, y.value(kid, depth+1))
		}
	case yaml.MappingNode:
		n.kind = mapping
		for i := 0; i+1 < len(in.Content); i += 2 {
			key := y.value(in.Content[i], depth+1)
			for key.kind == list && len(key.kids) > 0 { // what a tag would make a key of: its first argument
				key = key.kids[0]
			}
			if key.kind == list || key.kind == mapping {
				y.fail(key, "a key that is no text")
				return n
			}
			n.keys = append(n.keys, key)
			n.kids = append(n.kids, y.value(in.Content[i+1], depth+1))
		}
	}
	return n
}

// plainTags are those that say what a value is and nothing more.
var plainTags = []string{"!", "!binary", "!!binary", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq"}

func (y *yamlReader) scalar(in *yaml.Node, n *node) {
	n.kind, n.text = text, in.Value
	switch in.Tag {
	case "!!null":
		n.kind = null
	case "!!int", "!!float", "!!bool":
		n.kind = word
	case "!!binary", "!binary":
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(in.Value), ""))
		if err != nil {
			y.fail(n, "%s that is no base64", in.Tag)
			return
		}
		n.text = string(data)
	}
}

// short makes a text of the file fit for a message: what looks like a key is no part of it.
func short(s string) string {
	const most = 60
	var keys secret.Detector
	s = keys.Redact(s[:min(len(s), 4<<10)])
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return string(quote(nil, s))
}
