package recordings

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/imports"
)

// reader reads one file and keeps the first error.
type reader struct {
	Recording
	err     error
	total   int  // bytes of all bodies
	decoded bool // the format keeps bodies decoded and the headers as they came
}

func (r *reader) pos(n *node) failure.Position {
	pos := failure.Position{File: r.File}
	if n != nil {
		pos.Line, pos.Column = n.line, n.col
	}
	return pos
}

func (r *reader) fail(n *node, format string, args ...any) {
	if r.err == nil {
		r.err = failure.At(r.pos(n), failure.Input, format, args...)
	}
}

func (r *reader) failAt(line, col int, format string, args ...any) {
	r.fail(&node{line: line, col: col}, format, args...)
}

func (r *reader) hint(text string) { r.err = failure.WithHint(r.err, "%s", text) }

func (r *reader) note(class imports.Class, n *node, hint, format string, args ...any) {
	r.Report.Add(class, r.pos(n), hint, format, args...)
}

// gunzip undoes the compression of a whole file.
func (r *reader) gunzip(data []byte) []byte {
	if !bytes.HasPrefix(data, gzipMagic) {
		return data
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(z, MaxFile+1))
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		r.fail(nil, "the file is cut short: it ends within its gzip stream")
		r.hint("take the file anew from where it comes from")
	case err != nil:
		r.fail(nil, "its gzip stream is damaged: %w", err)
	}
	return data
}

// object is a mapping being read. What of it nobody asks for is lost, and is named at the end.
type object struct {
	r    *reader
	n    *node
	what string // as messages name it, such as "request"
	seen map[string]bool
}

// object takes a mapping. Where it is none it fails and gives an object without members.
func (r *reader) object(n *node, what string) *object {
	o := &object{r: r, n: n, what: what, seen: map[string]bool{}}
	if !n.is(mapping) {
		r.fail(n, "%s: must be a mapping", what)
		o.n = &node{}
		return o
	}
	twice := map[string]bool{}
	for _, key := range n.keys {
		if twice[key.text] {
			r.fail(key, "%s: the key %s comes twice", what, short(key.text))
		}
		twice[key.text] = true
	}
	return o
}

// get returns the value of a key, nil for none.
func (o *object) get(key string) *node {
	o.seen[key] = true
	return o.n.get(key)
}

// need returns the value of a key that must be there.
func (o *object) need(key string) *node {
	n := o.get(key)
	if n == nil {
		o.r.fail(o.n, "%s without %s: the file is cut short, or was edited by hand", o.what, key)
	}
	return n
}

// skip names keys that repeat what other keys say.
func (o *object) skip(keys ...string) {
	for _, key := range keys {
		o.seen[key] = true
	}
}

// done names what was not asked for and says something.
func (o *object) done() {
	for i, key := range o.n.keys {
		if !o.seen[key.text] && !o.n.kids[i].empty() {
			o.r.note(imports.Lost, key, "", "%s.%s is not kept", o.what, key.text)
		}
	}
}

// list returns the elements of a list.
func (r *reader) list(n *node, what string) []*node {
	if n == nil || n.kind == null {
		return nil
	}
	if n.kind != list {
		r.fail(n, "%s: must be a list", what)
		return nil
	}
	return n.kids
}

// text returns a scalar as it is written; "" for null and what is not there.
func (r *reader) text(n *node, what string) string {
	switch {
	case n == nil || n.kind == null:
	case n.kind == text || n.kind == word:
		return n.text
	default:
		r.fail(n, "%s: must be a text", what)
	}
	return ""
}

// bytes is text as a body.
func (r *reader) bytes(n *node, what string) []byte { return []byte(r.text(n, what)) }

// needText is a text that must not be empty.
func (o *object) needText(key string) string {
	n := o.need(key)
	s := o.r.text(n, o.what+"."+key)
	if s == "" {
		o.r.fail(n, "%s.%s is empty", o.what, key)
	}
	return s
}

// status takes a code of HTTP.
func (r *reader) status(n *node, what string) int {
	code, err := strconv.Atoi(r.text(n, what))
	if (err != nil || code < 100 || code > 599) && r.err == nil {
		r.fail(n, "%s: %s is no status of HTTP", what, short(r.text(n, what)))
	}
	return code
}

// statusLine makes "200 OK" of a code and the reason that was recorded.
func statusLine(code int, reason string) string {
	number := strconv.Itoa(code)
	reason = strings.TrimSpace(strings.TrimPrefix(reason, number))
	if reason == "" {
		reason = http.StatusText(code)
	}
	return strings.TrimSpace(number + " " + reason)
}

// headers reads a mapping of names to a text or a list of texts.
func (r *reader) headers(n *node, what string) http.Header {
	h := http.Header{}
	if n == nil || n.kind == null {
		return h
	}
	if n.kind != mapping {
		r.fail(n, "%s: must be a mapping", what)
		return h
	}
	for i, key := range n.keys {
		values := []*node{n.kids[i]}
		if n.kids[i].is(list) {
			values = n.kids[i].kids
		}
		for _, v := range values {
			r.header(h, key, v, what)
		}
	}
	return h
}

// header adds one line of a header.
func (r *reader) header(h http.Header, name, value *node, what string) {
	if name.text == "" || strings.ContainsFunc(name.text, func(c rune) bool { return c <= ' ' || c >= 0x7F || c == ':' }) {
		r.note(imports.Lost, name, "", "%s: %s is no name of a header", what, short(name.text))
		return
	}
	h.Add(name.text, r.text(value, what+"."+name.text))
}

// rendered makes JSON of a body that the recorder kept as data. Its spaces are not known any more; where the length that was recorded agrees, nothing is lost.
func (r *reader) rendered(n *node, what string, header http.Header) []byte {
	body := n.json(nil)
	if length := header.Get("Content-Length"); length != strconv.Itoa(len(body)) {
		r.note(imports.Changed, n, "", "%s is data without its text: it is written anew, as JSON without spaces", what)
	}
	return body
}

// date reads a time in one of the layouts that recorders use.
func date(s string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, time.RFC1123, time.RFC1123Z, time.DateTime} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// finish does what is the same for all formats.
func (r *reader) finish(x *Exchange) {
	x.Method = strings.ToUpper(x.Method)
	at := &node{line: x.Pos.Line, col: x.Pos.Column}
	r.decode(at, "request", &x.Request)
	r.decode(at, "response", &x.Response)
	if x.At.IsZero() {
		x.At = date(x.Response.Header.Get("Date"))
	}
	if x.Status == "" {
		x.Status = statusLine(x.Code, "")
	}
	if r.total += len(x.Request.Body) + len(x.Response.Body); r.total > maxBodies {
		r.fail(at, "its bodies have more than %d MiB together", maxBodies>>20)
	}
	if len(x.URL) > 64<<10 {
		r.fail(at, "an address of %d KiB", len(x.URL)>>10)
	}
	if x.Method == "" || strings.ContainsFunc(x.Method, func(c rune) bool { return c <= ' ' || c >= 0x7F }) {
		r.fail(at, "%s is no method of HTTP", short(x.Method))
	}
	if x.Duration < 0 {
		r.note(imports.Lost, at, "", "a duration of %s", x.Duration)
		x.Duration = 0
	}
}

// item names an element of a list in messages.
func item(i int) string { return fmt.Sprintf("exchange %d", i+1) }

// version says once that the version of HTTP is not kept.
func (r *reader) version(n *node) {
	if !n.empty() {
		r.note(imports.Lost, nil, "", "the version of HTTP is not kept")
	}
}
