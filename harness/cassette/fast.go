package cassette

import (
	"encoding/base64"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// reader reads exactly what the encoder writes, line by line, several times faster than a YAML parser. Whatever it does not know it leaves to that parser: a method that returns false has said nothing about the file but that.
//
// What it accepts it reads as the YAML parser does; FuzzDecode holds it to that.
type reader struct {
	s   string
	pos int
	buf []byte // scratch for texts that must be put together
}

// fast reads text. The result counts only if the text is clean.
func fast(text string) (f *File, entries int, ok bool) {
	r := &reader{s: text}
	f = &File{}
	h := &f.Header
	var n, recorded = 0, ""
	if !(r.eat("---\nversion: 1\nechoeval:\n") &&
		r.int("  format:", &h.Format) && r.int("  canon:", &h.Canon) && r.int("  entries:", &n) &&
		r.text("  dataset:", 4, &h.Dataset) && r.text("  item:", 4, &h.Item) && r.int("  repeat:", &h.Repeat) &&
		r.text("  provider:", 4, &h.Provider) && r.text("  vendor:", 4, &h.Vendor) && r.text("  model:", 4, &h.Model) &&
		r.text("  recorded_at:", 4, &recorded) && r.seed(&h.Seed)) {
		return nil, 0, false
	}
	if r.at("  upstream:") && !r.text("  upstream:", 4, &h.Upstream) || r.at("  imported:") && !r.text("  imported:", 4, &h.Imported) {
		return nil, 0, false
	}
	var err error
	if h.RecordedAt, err = parseTime(recorded); err != nil || !r.hashes(&h.Hashes) || !r.list("  rules:", 2, &h.Rules) {
		return nil, 0, false
	}
	if r.eat("interactions: []\n") {
		return f, n, r.pos == len(r.s)
	}
	if !r.eat("interactions:\n") {
		return nil, 0, false
	}
	f.Interactions = make([]Interaction, 0, min(max(n, 1), 1<<10))
	for r.pos < len(r.s) {
		f.Interactions = append(f.Interactions, Interaction{})
		if !r.interaction(&f.Interactions[len(f.Interactions)-1]) {
			return nil, 0, false
		}
	}
	return f, n, len(f.Interactions) > 0
}

func (r *reader) interaction(i *Interaction) bool {
	if r.eat("- echoeval:\n") {
		if !r.extra(&i.Extra) || !r.eat("  request:\n") {
			return false
		}
	} else if !r.eat("- request:\n") {
		return false
	}
	q, p := &i.Request, &i.Response
	return r.text("    body:", 6, &q.Body) && r.lists("    form:", (*map[string][]string)(&q.Form)) && r.lists("    headers:", (*map[string][]string)(&q.Headers)) &&
		r.text("    url:", 6, &q.URL) && r.text("    method:", 6, &q.Method) &&
		r.eat("  response:\n") &&
		r.text("    body:", 6, &p.Body) && r.lists("    headers:", (*map[string][]string)(&p.Headers)) &&
		r.text("    status:", 6, &p.Status) && r.int("    code:", &p.Code) && r.duration("    duration:", &p.Duration)
}

func (r *reader) extra(x *Extra) bool {
	if r.at("    ttft:") && !r.duration("    ttft:", &x.TTFT) {
		return false
	}
	x.Partial = r.eat("    partial: true\n")
	return (!r.at("    encoding:") || r.text("    encoding:", 6, &x.Encoding)) &&
		(!r.at("    seq:") || r.int("    seq:", &x.Seq)) &&
		(!r.at("    effect:") || r.text("    effect:", 6, &x.Effect)) &&
		(!r.at("    scope:") || r.text("    scope:", 6, &x.Scope)) &&
		(!r.at("    occurrence:") || r.int("    occurrence:", &x.Occurrence)) &&
		(!r.at("    judge:") || r.text("    judge:", 6, &x.Judge)) &&
		*x != Extra{}
}

func (r *reader) at(prefix string) bool { return strings.HasPrefix(r.s[r.pos:], prefix) }

func (r *reader) eat(prefix string) bool {
	if !r.at(prefix) {
		return false
	}
	r.pos += len(prefix)
	return true
}

// line returns the rest of the line behind key and a space.
func (r *reader) line(key string) (string, bool) {
	if !r.eat(key) || !r.eat(" ") {
		return "", false
	}
	n := strings.IndexByte(r.s[r.pos:], '\n')
	if n < 0 {
		return "", false
	}
	line := r.s[r.pos : r.pos+n]
	r.pos += n + 1
	return line, true
}

func (r *reader) seed(v *uint64) bool {
	line, ok := r.line("  seed:")
	if !ok {
		return false
	}
	*v, ok = parseUint(line)
	return ok
}

func (r *reader) int(key string, v *int) bool {
	line, ok := r.line(key)
	if !ok {
		return false
	}
	*v, ok = parseInt(line)
	return ok
}

// parseUint reads decimal numbers without sign and leading zeros, the one form that all versions of YAML take for the same number.
func parseUint(s string) (uint64, bool) {
	if s == "" || s[0] == '0' && s != "0" || s[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

func parseInt(s string) (int, bool) {
	n, ok := parseUint(strings.TrimPrefix(s, "-"))
	if n > math.MaxInt {
		return 0, false
	}
	if s != "" && s[0] == '-' {
		return -int(n), ok && n > 0
	}
	return int(n), ok
}

func (r *reader) duration(key string, d *time.Duration) bool {
	line, ok := r.line(key)
	if !ok {
		return false
	}
	*d, ok = parseDuration(line)
	return ok
}

// parseDuration reads what Go prints for a duration that is not negative.
func parseDuration(s string) (time.Duration, bool) {
	if s == "0s" {
		return 0, true
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0 && s[0] >= '0' && s[0] <= '9'
}

func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t.UTC(), err
}

func (r *reader) hashes(m *map[string]string) bool {
	if r.eat("  hashes: {}\n") {
		return true
	}
	if !r.eat("  hashes:\n") {
		return false
	}
	*m = map[string]string{}
	for r.eat("    ") {
		key, ok := r.key()
		if _, twice := (*m)[key]; !ok || twice || !hashName(key) {
			return false
		}
		var v string
		if !r.scalar(6, &v) {
			return false
		}
		(*m)[key] = v
	}
	return len(*m) > 0
}

func (r *reader) lists(key string, m *map[string][]string) bool {
	if !r.eat(key) {
		return false
	}
	if r.eat(" {}\n") {
		return true
	}
	if !r.eat("\n") {
		return false
	}
	*m = map[string][]string{}
	for r.eat("      ") {
		name, ok := r.key()
		if _, twice := (*m)[name]; !ok || twice || !listName(name) {
			return false
		}
		var values []string
		if !r.values(6, &values) {
			return false
		}
		(*m)[name] = values
	}
	return len(*m) > 0
}

// key reads a name and its colon.
func (r *reader) key() (string, bool) {
	n := strings.IndexAny(r.s[r.pos:min(len(r.s), r.pos+130)], ":\n")
	if n < 0 || r.s[r.pos+n] == '\n' {
		return "", false
	}
	key := r.s[r.pos : r.pos+n]
	r.pos += n + 1
	return key, true
}

func (r *reader) list(key string, indent int, values *[]string) bool {
	return r.eat(key) && r.values(indent, values)
}

var spaces = strings.Repeat(" ", 16)

func (r *reader) values(indent int, values *[]string) bool {
	if r.eat(" []\n") {
		return true
	}
	if !r.eat("\n") {
		return false
	}
	dash := spaces[:indent] + "-"
	for r.eat(dash) {
		var v string
		if !r.scalar(indent+2, &v) {
			return false
		}
		*values = append(*values, v)
	}
	return len(*values) > 0
}

func (r *reader) text(key string, indent int, v *string) bool {
	return r.eat(key) && r.scalar(indent, v)
}

func (r *reader) scalar(indent int, v *string) (ok bool) {
	if !r.eat(" ") || r.pos == len(r.s) {
		return false
	}
	switch r.s[r.pos] {
	case '|':
		*v, ok = r.block(indent)
		return ok
	case '!':
		*v, ok = r.binary(indent)
		return ok
	}
	n := strings.IndexByte(r.s[r.pos:], '\n')
	if n < 0 {
		return false
	}
	line := r.s[r.pos : r.pos+n]
	r.pos += n + 1
	if strings.HasPrefix(line, `"`) {
		*v, ok = r.unquote(line)
		return ok
	}
	*v = line
	return plain(line)
}

// block reads a literal block whose lines are indented by indent.
func (r *reader) block(indent int) (string, bool) {
	keep := false
	end := "\n"
	switch {
	case r.eat("|-\n"):
		end = ""
	case r.eat("|+\n"):
		keep = true
	case r.eat("|\n"):
	default:
		return "", false
	}
	margin := spaces[:indent]
	if !r.at(margin) {
		return "", false
	}
	// A block of one line needs no copy.
	first, after := r.pos+indent, 0
	if n := strings.IndexByte(r.s[first:], '\n'); n <= 0 || r.s[first] == ' ' {
		return "", false
	} else {
		after = first + n
	}
	r.pos = after + 1
	blanks := 0
	r.buf = r.buf[:0]
	start := first // of what is not yet in buf
	for r.pos < len(r.s) {
		if r.s[r.pos] == '\n' {
			r.pos++
			blanks++
			continue
		}
		if !r.at(margin) {
			break
		}
		r.buf = append(r.buf, r.s[start:after]...)
		for range blanks + 1 {
			r.buf = append(r.buf, '\n')
		}
		blanks = 0
		start = r.pos + indent
		n := strings.IndexByte(r.s[start:], '\n')
		if n <= 0 { // an end in mid-line, or a line of nothing but its margin
			return "", false
		}
		after = start + n
		r.pos = after + 1
	}
	if blanks > 0 && !keep {
		return "", false
	}
	if len(r.buf) == 0 && blanks == 0 {
		return r.s[start : after+len(end)], true
	}
	r.buf = append(r.buf, r.s[start:after]...)
	r.buf = append(r.buf, end...)
	for range blanks {
		r.buf = append(r.buf, '\n')
	}
	return string(r.buf), true
}

func (r *reader) binary(indent int) (string, bool) {
	if !r.eat("!!binary ") {
		return "", false
	}
	text, ok := r.block(indent)
	if !ok {
		return "", false
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return string(data), err == nil
}

// unquote reads a line that is one text in double quotes, with the escapes that the encoder uses.
func (r *reader) unquote(line string) (string, bool) {
	if len(line) < 2 || line[len(line)-1] != '"' {
		return "", false
	}
	line = line[1 : len(line)-1]
	n := strings.IndexAny(line, `"\`)
	if n < 0 {
		return line, true
	}
	r.buf = append(r.buf[:0], line[:n]...)
	for i := n; i < len(line); {
		c := line[i]
		if c == '"' {
			return "", false
		}
		if c != '\\' {
			r.buf = append(r.buf, c)
			i++
			continue
		}
		if i+1 == len(line) {
			return "", false
		}
		width := 0
		switch line[i+1] {
		case '"', '\\':
			r.buf = append(r.buf, line[i+1])
		case 'n':
			r.buf = append(r.buf, '\n')
		case 'r':
			r.buf = append(r.buf, '\r')
		case 't':
			r.buf = append(r.buf, '\t')
		case 'x':
			width = 2
		case 'u':
			width = 4
		default:
			return "", false
		}
		i += 2
		if width > 0 {
			if i+width > len(line) {
				return "", false
			}
			v, ok := hex(line[i : i+width])
			if !ok || !utf8.ValidRune(v) {
				return "", false
			}
			r.buf = utf8.AppendRune(r.buf, v)
			i += width
		}
	}
	return string(r.buf), true
}

func hex(s string) (rune, bool) {
	var v rune
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			v = v<<4 + rune(c-'0')
		case 'a' <= c && c <= 'f':
			v = v<<4 + rune(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// The types of the maps must be those that lists fills.
var (
	_ = (*map[string][]string)((*http.Header)(nil))
	_ = (*map[string][]string)((*url.Values)(nil))
)
