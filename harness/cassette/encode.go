package cassette

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/failure"
)

// Encode gives the text of a cassette: the same bytes for the same contents. It fails for what the format cannot hold: a negative duration, a header name that is no token of HTTP, a name of a hash that is not made of small letters, digits and -._
//
// Texts of several lines and JSON stand as YAML literal blocks, other texts on one line, in double quotes where plain ones could be misread; bytes that are not UTF-8 as base64 under the tag !!binary.
func Encode(f *File) ([]byte, error) {
	size := 1 << 10
	for i := range f.Interactions {
		size += len(f.Interactions[i].Request.Body) + len(f.Interactions[i].Response.Body) + 512
	}
	e := encoder{b: make([]byte, 0, size+size/16)}
	e.file(f)
	if e.err != nil {
		return nil, failure.WithCode(e.err, failure.Cassette)
	}
	return e.b, nil
}

type encoder struct {
	b   []byte
	err error
}

func (e *encoder) file(f *File) {
	h := &f.Header
	if year := h.RecordedAt.UTC().Year(); year < 0 || year > 9999 {
		e.fail("recorded in the year %d, which RFC 3339 cannot say", year)
	}
	e.raw("---\nversion: 1\nechoeval:\n")
	e.int(2, "format", int64(or(h.Format, Format)))
	e.int(2, "canon", int64(or(h.Canon, Canon)))
	e.int(2, "entries", int64(len(f.Interactions)))
	e.text(2, "dataset", h.Dataset)
	e.text(2, "item", h.Item)
	e.int(2, "repeat", int64(h.Repeat))
	e.text(2, "provider", h.Provider)
	e.text(2, "vendor", h.Vendor)
	e.text(2, "model", h.Model)
	e.text(2, "recorded_at", h.RecordedAt.UTC().Format(time.RFC3339Nano))
	e.raw("  seed: " + strconv.FormatUint(h.Seed, 10) + "\n")
	if h.Upstream != "" {
		e.text(2, "upstream", h.Upstream)
	}
	if h.Imported != "" {
		e.text(2, "imported", h.Imported)
	}
	e.hashes(h.Hashes)
	e.list(2, "rules", h.Rules)
	if len(f.Interactions) == 0 {
		e.raw("interactions: []\n")
		return
	}
	e.raw("interactions:\n")
	for i := range f.Interactions {
		e.interaction(&f.Interactions[i])
		if e.err != nil {
			e.err = fmt.Errorf("interaction %d: %w", i+1, e.err)
			return
		}
	}
}

func or(v, otherwise int) int {
	if v == 0 {
		return otherwise
	}
	return v
}

func (e *encoder) interaction(i *Interaction) {
	dash := "- "
	if x := &i.Extra; *x != (Extra{}) {
		e.raw("- echoeval:\n")
		dash = "  "
		if x.TTFT != 0 {
			e.duration("ttft", x.TTFT)
		}
		if x.Partial {
			e.raw("    partial: true\n")
		}
		if x.Encoding != "" {
			e.text(4, "encoding", x.Encoding)
		}
		if x.Seq != 0 {
			e.int(4, "seq", int64(x.Seq))
		}
		if x.Effect != "" {
			e.text(4, "effect", x.Effect)
		}
		if x.Scope != "" {
			e.text(4, "scope", x.Scope)
		}
		if x.Occurrence != 0 {
			e.int(4, "occurrence", int64(x.Occurrence))
		}
		if x.Judge != "" {
			e.text(4, "judge", x.Judge)
		}
	}
	e.raw(dash + "request:\n")
	e.text(4, "body", i.Request.Body)
	e.lists("form", i.Request.Form)
	e.lists("headers", i.Request.Headers)
	e.text(4, "url", i.Request.URL)
	e.text(4, "method", i.Request.Method)
	e.raw("  response:\n")
	e.text(4, "body", i.Response.Body)
	e.lists("headers", i.Response.Headers)
	e.text(4, "status", i.Response.Status)
	e.int(4, "code", int64(i.Response.Code))
	e.duration("duration", i.Response.Duration)
}

func (e *encoder) raw(s string) { e.b = append(e.b, s...) }

func (e *encoder) key(indent int, name string) {
	for range indent {
		e.b = append(e.b, ' ')
	}
	e.b = append(e.b, name...)
	e.b = append(e.b, ':')
}

func (e *encoder) int(indent int, name string, v int64) {
	e.key(indent, name)
	e.b = append(e.b, ' ')
	e.b = append(strconv.AppendInt(e.b, v, 10), '\n')
}

func (e *encoder) duration(name string, d time.Duration) {
	if d < 0 {
		e.fail("%s is negative: %s", name, d)
	}
	e.key(4, name)
	e.raw(" " + d.String() + "\n")
}

func (e *encoder) text(indent int, name, s string) {
	e.key(indent, name)
	e.scalar(indent+2, s)
}

func (e *encoder) hashes(m map[string]string) {
	if len(m) == 0 {
		e.raw("  hashes: {}\n")
		return
	}
	e.raw("  hashes:\n")
	for _, name := range names(m) {
		if !hashName(name) {
			e.fail("the name of a hash, %q, is not made of 1 to 64 small letters, digits and -._", name)
		}
		e.text(4, name, m[name])
	}
}

// hashName accepts what can stand as a plain key in YAML and is none of its words.
func hashName(s string) bool {
	if len(s) == 0 || len(s) > 64 || !plain(s) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_') {
			return false
		}
	}
	return true
}

// lists writes a map of lists, the shape of HTTP headers and forms.
func (e *encoder) lists(name string, m map[string][]string) {
	if len(m) == 0 {
		e.raw("    " + name + ": {}\n")
		return
	}
	e.raw("    " + name + ":\n")
	for _, key := range names(m) {
		if !listName(key) {
			e.fail("%s: the name %q cannot stand in a cassette", name, key)
		}
		e.list(6, key, m[key])
	}
}

// listName accepts tokens of HTTP that can stand as a plain key in YAML.
func listName(s string) bool { return len(s) <= 128 && plain(s) && !strings.ContainsAny(s, " :") }

func (e *encoder) list(indent int, name string, values []string) {
	e.key(indent, name)
	if len(values) == 0 {
		e.raw(" []\n")
		return
	}
	e.b = append(e.b, '\n')
	for _, v := range values {
		for range indent {
			e.b = append(e.b, ' ')
		}
		e.b = append(e.b, '-')
		e.scalar(indent+2, v)
	}
}

func (e *encoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

// scalar writes a text behind "key:" or "-"; the lines of a block are indented by indent.
func (e *encoder) scalar(indent int, s string) {
	switch {
	case plain(s):
		e.b = append(e.b, ' ')
		e.b = append(e.b, s...)
	case !utf8.ValidString(s):
		e.binary(indent, s)
		return
	case literal(s):
		e.literal(indent, s)
		return
	default:
		e.quoted(s)
	}
	e.b = append(e.b, '\n')
}

// literal reports that s is better read as a block and stands unchanged in one: it has lines, quotes or backslashes, begins with neither space nor line end, and has only characters that YAML takes as they are.
func literal(s string) bool {
	return strings.ContainsAny(s, "\n\"\\") && s[0] != ' ' && s[0] != '\n' && clean(s)
}

func (e *encoder) literal(indent int, s string) {
	switch {
	case !strings.HasSuffix(s, "\n"):
		e.raw(" |-\n")
	case strings.HasSuffix(s, "\n\n"):
		e.raw(" |+\n")
	default:
		e.raw(" |\n")
	}
	for s != "" {
		line, rest, _ := strings.Cut(s, "\n")
		if line != "" {
			for range indent {
				e.b = append(e.b, ' ')
			}
			e.b = append(e.b, line...)
		}
		e.b = append(e.b, '\n')
		s = rest
	}
}

func (e *encoder) binary(indent int, s string) {
	const width = 76
	e.raw(" !!binary |-\n")
	text := base64.StdEncoding.EncodeToString([]byte(s))
	for text != "" {
		for range indent {
			e.b = append(e.b, ' ')
		}
		n := min(width, len(text))
		e.b = append(e.b, text[:n]...)
		e.b = append(e.b, '\n')
		text = text[n:]
	}
}

func (e *encoder) quoted(s string) {
	e.b = append(e.b, ' ', '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			e.b = append(e.b, '\\', byte(r))
		case r == '\n':
			e.b = append(e.b, `\n`...)
		case r == '\r':
			e.b = append(e.b, `\r`...)
		case r == '\t':
			e.b = append(e.b, `\t`...)
		case unclean(r):
			if r <= 0xFF {
				e.b = fmt.Appendf(e.b, `\x%02x`, r)
			} else {
				e.b = fmt.Appendf(e.b, `\u%04x`, r)
			}
		default:
			e.b = utf8.AppendRune(e.b, r)
		}
	}
	e.b = append(e.b, '"')
}

// plain reports that s can stand without quotes and is read back as the text s, by every reader of YAML 1.1 and 1.2: it begins with a letter, has no character that could mean something, and is no word for a truth value or nothing.
func plain(s string) bool {
	if s == "" || len(s) > 1<<10 || !letter(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case plainByte[c]:
		case c == ' ' || c == ':':
			if i+1 == len(s) || !plainByte[s[i+1]] {
				return false
			}
		default:
			return false
		}
	}
	if len(s) > 5 {
		return true
	}
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	return true
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

var plainByte = func() (set [256]bool) {
	for c := range 256 {
		set[c] = letter(byte(c)) || '0' <= c && c <= '9' || strings.IndexByte("-._/+=;,@~()*?&%$!'", byte(c)) >= 0
	}
	return set
}()

// clean reports that YAML takes every character of s as it stands, in a block: printable ones and line feeds. Of the others YAML refuses some and reads some as line ends. Text that is not UTF-8 is not clean.
func clean(s string) bool {
	for i := 0; i < len(s); {
		// Eight printable ASCII characters at once: no byte below the space, none of 0x7F and above.
		for len(s)-i >= 8 {
			v := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 | uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
			if (v|(v+ones)|(v-ones*' '))&(ones*0x80) != 0 {
				break
			}
			i += 8
		}
		if i == len(s) {
			break
		}
		c := s[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\n' || c == 0x7F {
				return false
			}
			i++
			continue
		}
		r, width := utf8.DecodeRuneInString(s[i:])
		if width == 1 || unclean(r) {
			return false
		}
		i += width
	}
	return true
}

const ones = 0x0101010101010101

// unclean are the control characters, what Unicode calls line and paragraph separators, the byte order mark and the two noncharacters that YAML excludes.
func unclean(r rune) bool {
	return r < ' ' && r != '\n' || r >= 0x7F && r < 0xA0 || r == 0x2028 || r == 0x2029 || r == 0xFEFF || r == 0xFFFE || r == 0xFFFF
}
