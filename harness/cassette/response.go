package cassette

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/secret"
)

// responseHeaders is the allow-list for responses, names or their beginnings where they end in *. Dates, cookies, the names of servers and the ids of their transport are never kept.
var responseHeaders = []string{"Anthropic-Ratelimit-*", "Content-Encoding", "Content-Type", "Location", "Retry-After", "Retry-After-Ms", "X-Amzn-Bedrock-Input-Token-Count", "X-Amzn-Errortype", "X-Ratelimit-*", "X-Should-Retry"}

// requestIDs are kept of errors only, where the id is part of what the user is told.
var requestIDs = []string{"Request-Id", "X-Amzn-Requestid", "X-Request-Id"}

// Seal returns header and body of a response as they are stored, and the names of the rules that changed something, sorted: the header reduced to an allow-list, values of the rules replaced by placeholders, wherever JSON or a stream that sends a text in pieces hides them. All other bytes of
// the body stay. [Rules.Open] is the way back.
func (r *Rules) Seal(code int, header http.Header, body string) (http.Header, string, []string) {
	c := canon{rules: r}
	var kept http.Header
	for _, raw := range names(header) {
		name := http.CanonicalHeaderKey(raw)
		if !listed(responseHeaders, name) && !(code >= 400 && slices.Contains(requestIDs, name)) {
			continue
		}
		for _, value := range header[raw] {
			if kept == nil {
				kept = make(http.Header, 2)
			}
			kept[name] = append(kept[name], c.redact(value, false))
		}
	}
	// What looks like a placeholder and is none gets a second colon, so that only ours are filled.
	escape := func(text string) string { return strings.ReplaceAll(text, open, open+":") }
	if framed, ok := reframe(body, func(text string) string { return c.seal(escape(text), true) }); ok {
		body = framed
	} else {
		body = c.seal(escape(body), isStream(kept))
	}
	slices.Sort(c.applied)
	return kept, body, c.applied
}

// seal replaces the values of the rules in the body of a response by placeholders that know under how many escapes they stand.
func (c *canon) seal(body string, stream bool) string {
	mark := func(x *Redaction, depth int) string {
		if depth > 0 && quoted(x.Value, 1) != x.Value {
			return open + x.Name + "/" + string(rune('0'+depth)) + close
		}
		return placeholder(x.Name)
	}
	hit := func(name string) { c.apply("placeholder:" + name) }
	start := strings.TrimLeft(body, " \t\r\n")
	body = c.rules.redact(body, stream || start != "" && (start[0] == '{' || start[0] == '['), mark, hit)
	if stream {
		body = c.rules.redactPieces(body, mark, hit)
	}
	return body
}

func isStream(header http.Header) bool {
	return strings.HasPrefix(header.Get("Content-Type"), "text/event-stream")
}

func listed(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		begin, all := strings.CutSuffix(p, "*")
		return name == p || all && strings.HasPrefix(name, begin)
	})
}

// Open fills the placeholders of a stored response. One whose value is not known any more stays.
func (r *Rules) Open(body string) string {
	if !strings.Contains(body, open) {
		return body
	}
	if framed, ok := reframe(body, r.fill); ok {
		return framed
	}
	return r.fill(body)
}

func (r *Rules) fill(body string) string {
	at := strings.Index(body, open)
	var b strings.Builder
	for at >= 0 {
		b.WriteString(body[:at])
		body = body[at+len(open):]
		inside, rest, found := strings.Cut(body, close)
		name, depth := splitDepth(inside)
		value, known := r.value(name)
		switch {
		case strings.HasPrefix(body, ":"):
			b.WriteString(open)
			body = body[1:]
		case found && known:
			b.WriteString(quoted(value, depth))
			body = rest
		default:
			b.WriteString(open)
		}
		at = strings.Index(body, open)
	}
	b.WriteString(body)
	return b.String()
}

// quoted escapes a value as JSON strings do, so many times.
func quoted(value string, times int) string {
	for range times {
		b, err := jsontext.AppendQuote(nil, value)
		if err != nil { // not UTF-8, which JSON cannot hold
			return value
		}
		value = string(b[1 : len(b)-1])
	}
	return value
}

// redactPieces finds values that a stream sends in pieces: the placeholder goes where the value began, and nothing remains where it went on.
func (r *Rules) redactPieces(body string, mark func(*Redaction, int) string, hit func(string)) string {
	if len(r.redactions) == 0 {
		return body
	}
	type edit struct {
		fragment
		text string
	}
	var edits []edit
	paths, by := fragments(body)
	for _, path := range paths {
		pieces := by[path]
		whole := joined(pieces)
		if len(pieces) < 2 || len(r.Find(whole)) == 0 {
			continue
		}
		texts := make([]string, len(pieces))
		for i, p := range pieces {
			texts[i] = p.text
		}
		for i := range r.redactions {
			x := &r.redactions[i]
			for again := true; again; {
				again = false
				for layer := range secret.Layers(strings.Join(texts, "")) {
					at, end := r.index(layer.Text, 0, x)
					if at < 0 {
						continue
					}
					cut(texts, layer.Raw(at), layer.Raw(end), mark(x, layer.Depth+1))
					hit(x.Name)
					again = true
					break
				}
			}
		}
		for i, p := range pieces {
			if texts[i] != p.text {
				edits = append(edits, edit{p, texts[i]})
			}
		}
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.start - b.start })
	var b strings.Builder
	done := 0
	for _, e := range edits {
		b.WriteString(body[done:e.start])
		text, err := jsontext.AppendQuote(nil, e.text)
		if err != nil { // a text that is not UTF-8 was replaced character by character when it was read
			text = []byte(`""`)
		}
		b.Write(text)
		done = e.end
	}
	b.WriteString(body[done:])
	return b.String()
}

// cut replaces the bytes from start to end of the joined texts.
func cut(texts []string, start, end int, by string) {
	for i, t := range texts {
		n := len(t)
		if start < n && end > 0 {
			from, to := max(0, start), min(n, end)
			texts[i] = t[:from] + by + t[to:]
			by = ""
		}
		start -= n
		end -= n
	}
}
