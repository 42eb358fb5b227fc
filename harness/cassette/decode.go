package cassette

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/echoeval/echoeval/core/failure"
)

// Load reads the cassette at path. display is the path as messages show it, relative to the project's root. Every error has the code [failure.Cassette] and the file as its place; one for a file that is not there satisfies errors.Is(err, fs.ErrNotExist).
func Load(path, display string) (*File, error) {
	data, err := read(path)
	if err != nil {
		var at *os.PathError
		if errors.As(err, &at) {
			err = at.Err // the path in it may be absolute
		}
		return nil, failure.At(failure.Position{File: display}, failure.Cassette, "%w", err)
	}
	return Decode(data, display)
}

func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("is a folder")
	case !info.Mode().IsRegular():
		return nil, errors.New("is no regular file") // opening a pipe would wait for its writer
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if info.Size() > maxSize {
		return nil, fmt.Errorf("%d MiB are more than a cassette may have (%d)", info.Size()>>20, maxSize>>20)
	}
	data := make([]byte, info.Size()+1) // one more byte, so that the end of the file needs no second buffer
	n := 0
	for {
		m, err := f.Read(data[n:])
		n += m
		if err != nil || m == 0 {
			break
		}
		if n == len(data) {
			return nil, errors.New("the file grew while it was read")
		}
	}
	return data[:n], nil
}

// Decode reads the text of a cassette, see [Load]. It never runs or builds anything that the text names: tags other than !!binary, anchors and aliases are refused.
func Decode(data []byte, display string) (*File, error) {
	if err := sniff(data, display); err != nil {
		return nil, err
	}
	text := string(data)
	f, entries, ok := fast(text)
	if !ok || !clean(text) {
		var err error
		if f, entries, err = slow(data, display); err != nil {
			return nil, err
		}
	}
	if err := check(f, entries, display); err != nil {
		return nil, err
	}
	return f, nil
}

// ElsewhereError says that a file is a cassette that cannot be read here and now, but elsewhere: where Git LFS has fetched it, or by a later release. Nothing may replace it.
type ElsewhereError struct{ text string }

// Error says what the file is.
func (e *ElsewhereError) Error() string { return e.text }

const lfs = "version https://git-lfs.github.com/spec/"

// sniff finds what is no YAML at all.
func sniff(data []byte, display string) error {
	at := func(line, column int) failure.Position {
		return failure.Position{File: display, Line: line, Column: column}
	}
	switch {
	case len(strings.TrimSpace(string(data[:min(len(data), 64)]))) == 0 && len(strings.TrimSpace(string(data))) == 0:
		return failure.At(at(0, 0), failure.Cassette, "the file is empty")
	case len(data) > maxSize:
		return failure.At(at(0, 0), failure.Cassette, "%d MiB are more than a cassette may have (%d)", len(data)>>20, maxSize>>20)
	case strings.HasPrefix(string(data[:min(len(data), len(lfs))]), lfs):
		return failure.WithHint(failure.At(at(0, 0), failure.Cassette, "%w", &ElsewhereError{"this is a Git LFS pointer, not the cassette itself"}), "git lfs pull")
	case !utf8.Valid(data):
		line, column := 1, 1
		for len(data) > 0 {
			r, width := utf8.DecodeRune(data)
			if r == utf8.RuneError && width == 1 {
				break
			}
			column++
			if r == '\n' {
				line, column = line+1, 1
			}
			data = data[width:]
		}
		return failure.At(at(line, column), failure.Cassette, "not UTF-8: byte 0x%02x", data[0])
	case data[len(data)-1] != '\n':
		return failure.At(at(0, 0), failure.Cassette, "the file is truncated: its last line has no end")
	}
	return nil
}

// check holds of every file, whichever reader has read it.
func check(f *File, entries int, display string) error {
	pos := failure.Position{File: display}
	h := &f.Header
	for _, version := range []struct {
		what       string
		found, max int
	}{{"format", h.Format, Format}, {"canonical form", h.Canon, Canon}} {
		if version.found > version.max {
			return failure.WithHint(failure.At(pos, failure.Cassette, "%w", &ElsewhereError{fmt.Sprintf("version %d of the %s; this release reads up to %d", version.found, version.what, version.max)}), "update echoeval")
		}
		if version.found < 1 {
			return failure.At(pos, failure.Cassette, "version %d of the %s; versions count from 1", version.found, version.what)
		}
	}
	if entries != len(f.Interactions) {
		return failure.At(pos, failure.Cassette, "the header says %d interactions and the file holds %d: it is truncated, or was edited by hand", entries, len(f.Interactions))
	}
	return nil
}

// slow reads any YAML that holds a cassette.
func slow(data []byte, display string) (*File, int, error) {
	w := &walker{display: display}
	f, entries := w.file(data)
	if w.err != nil {
		return nil, 0, w.err
	}
	return f, entries, nil
}

// walker turns YAML nodes into a cassette and keeps the first error.
type walker struct {
	display string
	err     error
}

func (w *walker) fail(n *yaml.Node, format string, args ...any) {
	if w.err == nil {
		pos := failure.Position{File: w.display}
		if n != nil {
			pos.Line, pos.Column = n.Line, n.Column
		}
		w.err = failure.At(pos, failure.Cassette, format, args...)
	}
}

func (w *walker) hint(format string, args ...any) { w.err = failure.WithHint(w.err, format, args...) }

// field is one key of a mapping: where its value goes.
type field struct {
	name     string
	required bool
	read     func(*yaml.Node)
}

func (w *walker) file(data []byte) (f *File, entries int) {
	var doc yaml.Node
	if err := yaml.Load(data, &doc, yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth)))); err != nil {
		w.syntax(err)
		return nil, 0
	}
	f = &File{}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		w.fail(&doc, "a cassette is a mapping with the keys version, echoeval and interactions")
		return nil, 0
	}
	root := doc.Content[0]
	// The version first: of another format no other complaint makes sense.
	version, ours := lookup(root, "version"), lookup(root, "echoeval")
	var n int
	switch {
	case version == nil:
		w.fail(root, "no key version: not a cassette")
	case ours == nil && lookup(root, "interactions") != nil && version.Value == "1":
		w.fail(root, "the echoeval block is missing: another program has written or saved this file, and nothing tells what it was recorded for")
		w.hint("restore it from version control, or record it again")
	default:
		if w.int(version, &n); w.err != nil || n != vcrVersion {
			w.err = nil
			w.fail(version, "version %s of the cassette format; this release reads version %d", quoteShort(version.Value), vcrVersion)
			w.hint("record it again")
		}
	}
	if w.err != nil {
		return nil, 0
	}
	w.mapping(root, "a cassette",
		field{"version", true, func(*yaml.Node) {}},
		field{"echoeval", true, func(v *yaml.Node) { entries = w.header(v, &f.Header) }},
		field{"interactions", true, func(v *yaml.Node) {
			for i, item := range w.sequence(v) {
				f.Interactions = append(f.Interactions, Interaction{})
				w.interaction(item, &f.Interactions[i])
			}
		}},
	)
	return f, entries
}

func (w *walker) syntax(err error) {
	var at *yaml.LoadError
	pos := failure.Position{File: w.display}
	if errors.As(err, &at) {
		pos.Line, pos.Column = at.Mark.Line, at.Mark.Column
		w.err = failure.At(pos, failure.Cassette, "not a cassette, or a truncated one: %s", at.Message)
		return
	}
	w.err = failure.At(pos, failure.Cassette, "not a cassette: %w", err)
}

func lookup(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// known refuses what could stand for something that is not written in the place itself.
func (w *walker) known(n *yaml.Node) bool {
	switch {
	case w.err != nil:
		return false
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		w.fail(n, "anchors and aliases have no place in a cassette")
		return false
	case n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!binary" && n.Tag != "!!str":
		w.fail(n, "the tag %s has no place in a cassette", quoteShort(n.Tag))
		return false
	}
	return true
}

func (w *walker) mapping(n *yaml.Node, what string, fields ...field) {
	if !w.known(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		w.fail(n, "%s is a mapping", what)
		return
	}
	seen := make(map[string]bool, len(fields))
	for key, value := range w.pairs(n, seen) {
		found := false
		for _, f := range fields {
			if f.name == key.Value {
				f.read(value)
				found = true
			}
		}
		if !found {
			w.fail(key, "unknown key %s of %s", quoteShort(key.Value), what)
			w.hint("a later release of echoeval may know it")
			return
		}
	}
	for _, f := range fields {
		if f.required && !seen[f.name] {
			w.fail(n, "%s without the key %s: the file is truncated, or was edited by hand", what, f.name)
		}
	}
}

// pairs yields keys and values and refuses a key that comes twice.
func (w *walker) pairs(n *yaml.Node, seen map[string]bool) func(func(k, v *yaml.Node) bool) {
	return func(yield func(k, v *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if !w.known(key) {
				return
			}
			if key.Kind != yaml.ScalarNode {
				w.fail(key, "a key must be a text")
				return
			}
			if seen[key.Value] {
				w.fail(key, "the key %s comes twice", quoteShort(key.Value))
				return
			}
			seen[key.Value] = true
			if !yield(key, value) || w.err != nil {
				return
			}
		}
	}
}

func (w *walker) sequence(n *yaml.Node) []*yaml.Node {
	if !w.known(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		w.fail(n, "must be a list")
		return nil
	}
	return n.Content
}

func (w *walker) header(n *yaml.Node, h *Header) (entries int) {
	text := func(v *string) func(*yaml.Node) { return func(n *yaml.Node) { w.text(n, v) } }
	number := func(v *int) func(*yaml.Node) { return func(n *yaml.Node) { w.int(n, v) } }
	w.mapping(n, "the echoeval block",
		field{"format", true, number(&h.Format)},
		field{"canon", true, number(&h.Canon)},
		field{"entries", true, number(&entries)},
		field{"dataset", true, text(&h.Dataset)},
		field{"item", true, text(&h.Item)},
		field{"repeat", true, number(&h.Repeat)},
		field{"provider", true, text(&h.Provider)},
		field{"vendor", true, text(&h.Vendor)},
		field{"model", true, text(&h.Model)},
		field{"recorded_at", true, func(n *yaml.Node) {
			var s string
			w.text(n, &s)
			t, err := parseTime(s)
			if err != nil {
				w.fail(n, "%s is no time of RFC 3339", quoteShort(s))
			}
			h.RecordedAt = t
		}},
		field{"seed", true, func(n *yaml.Node) { w.seed(n, &h.Seed) }},
		field{"upstream", false, text(&h.Upstream)},
		field{"imported", false, text(&h.Imported)},
		field{"hashes", true, func(n *yaml.Node) {
			if !w.known(n) {
				return
			}
			if n.Kind != yaml.MappingNode {
				w.fail(n, "hashes is a mapping")
				return
			}
			seen := map[string]bool{}
			for key, value := range w.pairs(n, seen) {
				if h.Hashes == nil {
					h.Hashes = map[string]string{}
				}
				if !hashName(key.Value) {
					w.fail(key, "the name of a hash is made of 1 to 64 small letters, digits and -._")
				}
				var v string
				w.text(value, &v)
				h.Hashes[key.Value] = v
			}
		}},
		field{"rules", true, func(n *yaml.Node) { w.texts(n, &h.Rules) }},
	)
	return entries
}

func (w *walker) interaction(n *yaml.Node, i *Interaction) {
	text := func(v *string) func(*yaml.Node) { return func(n *yaml.Node) { w.text(n, v) } }
	duration := func(v *time.Duration) func(*yaml.Node) {
		return func(n *yaml.Node) {
			var s string
			w.text(n, &s)
			d, ok := parseDuration(s)
			if !ok {
				w.fail(n, "%s is no duration, such as 412ms", quoteShort(s))
			}
			*v = d
		}
	}
	number := func(v *int) func(*yaml.Node) { return func(n *yaml.Node) { w.int(n, v) } }
	w.mapping(n, "an interaction",
		field{"echoeval", false, func(n *yaml.Node) {
			w.mapping(n, "the echoeval block of an interaction",
				field{"ttft", false, duration(&i.Extra.TTFT)},
				field{"partial", false, func(n *yaml.Node) {
					if w.known(n) && (n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false") {
						w.fail(n, "must be true or false")
					}
					i.Extra.Partial = n.Value == "true"
				}},
				field{"encoding", false, text(&i.Extra.Encoding)},
				field{"seq", false, number(&i.Extra.Seq)},
				field{"effect", false, text(&i.Extra.Effect)},
				field{"scope", false, text(&i.Extra.Scope)},
				field{"occurrence", false, number(&i.Extra.Occurrence)},
				field{"judge", false, text(&i.Extra.Judge)},
			)
		}},
		field{"request", true, func(n *yaml.Node) {
			w.mapping(n, "a request",
				field{"body", true, text(&i.Request.Body)},
				field{"form", false, func(n *yaml.Node) { w.lists(n, (*map[string][]string)(&i.Request.Form)) }},
				field{"headers", true, func(n *yaml.Node) { w.lists(n, (*map[string][]string)(&i.Request.Headers)) }},
				field{"url", true, text(&i.Request.URL)},
				field{"method", true, text(&i.Request.Method)},
			)
		}},
		field{"response", true, func(n *yaml.Node) {
			w.mapping(n, "a response",
				field{"body", true, text(&i.Response.Body)},
				field{"headers", true, func(n *yaml.Node) { w.lists(n, (*map[string][]string)(&i.Response.Headers)) }},
				field{"status", true, text(&i.Response.Status)},
				field{"code", true, number(&i.Response.Code)},
				field{"duration", true, duration(&i.Response.Duration)},
			)
		}},
	)
}

// lists reads the shape of HTTP headers and forms. An empty one is nil.
func (w *walker) lists(n *yaml.Node, m *map[string][]string) {
	if !w.known(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		w.fail(n, "must be a mapping of lists")
		return
	}
	seen := map[string]bool{}
	for key, value := range w.pairs(n, seen) {
		if *m == nil {
			*m = map[string][]string{}
		}
		if !listName(key.Value) {
			w.fail(key, "the name %s cannot stand in a cassette", quoteShort(key.Value))
		}
		var values []string
		w.texts(value, &values)
		(*m)[key.Value] = values
	}
}

func (w *walker) texts(n *yaml.Node, values *[]string) {
	for _, item := range w.sequence(n) {
		var v string
		w.text(item, &v)
		*values = append(*values, v)
	}
}

func (w *walker) text(n *yaml.Node, v *string) {
	switch {
	case !w.known(n):
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		w.fail(n, "must be a text")
	case n.Tag == "!!binary":
		data, err := base64.StdEncoding.DecodeString(n.Value)
		if err != nil {
			w.fail(n, "not base64: %w", err)
		}
		*v = string(data)
	default:
		*v = n.Value
	}
}

func (w *walker) int(n *yaml.Node, v *int) {
	if !w.known(n) {
		return
	}
	i, ok := parseInt(n.Value)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || !ok {
		w.fail(n, "must be a whole number")
	}
	*v = i
}

func (w *walker) seed(n *yaml.Node, v *uint64) {
	if !w.known(n) {
		return
	}
	i, ok := parseUint(n.Value)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || !ok {
		w.fail(n, "must be a whole number")
	}
	*v = i
}

// quoteShort makes a text of the file fit for a message.
func quoteShort(s string) string {
	const most = 40
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
