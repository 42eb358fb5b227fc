package cassette

import (
	"bytes"
	"encoding/binary"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Key is what requests are matched by: the parts of the canonical request, as a key of a map, which hashes them. It is never stored, and unlike a digest it never takes two requests for one.
type Key struct{ method, url, headers, body string }

// Canonical returns the form in which a request is stored and compared, and the names of the rules that changed something, sorted. It is version [Canon] of that form:
//
//   - URL: host in small letters without the port that goes without saying, no user and no fragment, parameters sorted by name, those that carry keys replaced;
//   - header: only names of the allow-list (accept, content-type, versions and beta flags of the vendors), so no credential, no key of idempotency, no name of an SDK;
//   - body: JSON with sorted keys, no needless escapes, numbers as they were written, laid out as one line per member and, in lists of the first level, per element; forms sorted by name; parts with one fixed boundary. What is not JSON, repeats a key or is not UTF-8 keeps its bytes;
//   - everywhere: values of the rules replaced by placeholders {{echoeval:NAME}}, also where escapes or JSON inside a JSON string hide them.
//
// A canonical request is its own canonical form. Neither header nor body are changed.
func Canonical(method, rawURL string, header http.Header, body []byte, rules *Rules) (Request, []string) {
	return canonical(Request{Method: method, URL: rawURL, Headers: header, Body: string(body)}, rules)
}

// Recanonical returns the canonical form of a stored request, which may have been edited by hand or stored under other rules.
func Recanonical(stored Request, rules *Rules) Request {
	r, _ := canonical(stored, rules)
	return r
}

func canonical(r Request, rules *Rules) (Request, []string) {
	c := canon{rules: rules}
	if rules == nil {
		c.rules = &Rules{}
	}
	out := Request{Method: r.Method, URL: c.url(r.URL), Headers: c.headers(r.Headers)}
	out.Body = c.body(r.Body, out.Headers)
	slices.Sort(c.applied)
	return out, c.applied
}

// KeyOf returns the key of a canonical request.
func KeyOf(r Request) Key {
	var headers []byte
	part := func(s string) {
		headers = append(binary.BigEndian.AppendUint64(headers, uint64(len(s))), s...)
	}
	for _, name := range names(r.Headers) {
		part(name)
		for _, v := range r.Headers[name] {
			part(v)
		}
		part("")
	}
	return Key{r.Method, r.URL, string(headers), r.Body}
}

// names returns the keys of a map, sorted.
func names[V any](m map[string]V) []string {
	all := make([]string, 0, len(m))
	for name := range m {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// ToolURL is the URL of an interaction with a tool. A name that begins with "-/" is one of the project's own, such as -/specs/SOURCE for a list of tools that was discovered.
func ToolURL(name string) string {
	return (&url.URL{Scheme: "tool", Path: "/" + name}).String()
}

type canon struct {
	rules   *Rules
	applied []string
}

func (c *canon) apply(rule string) {
	if !slices.Contains(c.applied, rule) {
		c.applied = append(c.applied, rule)
	}
}

func (c *canon) redact(text string, json bool) string {
	return c.rules.redact(text, json, func(x *Redaction, _ int) string { return placeholder(x.Name) }, func(name string) { c.apply("placeholder:" + name) })
}

// keyParameters are parameters of URLs in which vendors take a credential.
var keyParameters = []string{"access_token", "api-key", "api_key", "apikey", "key", "sig", "signature", "token", "x-amz-credential", "x-amz-security-token", "x-amz-signature"}

func (c *canon) url(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return c.redact(raw, false)
	}
	if u.User != nil {
		u.User = nil
		c.apply("url-user")
	}
	u.Fragment, u.RawFragment = "", ""
	u.Host = strings.ToLower(u.Host)
	if port := u.Port(); port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
		u.Host = strings.TrimSuffix(u.Host, ":"+port)
	}
	if path := c.redact(u.Path, false); path != u.Path {
		u.Path, u.RawPath = path, ""
	}
	if u.Opaque != "" {
		u.Opaque = c.redact(u.Opaque, false)
	}
	if u.RawQuery != "" {
		u.RawQuery = c.form(u.RawQuery, keyParameters)
	}
	u.ForceQuery = false
	return u.String()
}

// form sorts name=value pairs by name, those of one name in their order, and replaces the values of credentials.
func (c *canon) form(raw string, credentials []string) string {
	type pair struct{ name, text string }
	var pairs []pair
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, equals := strings.Cut(part, "=")
		n, err := url.QueryUnescape(name)
		v, err2 := url.QueryUnescape(value)
		if err != nil || err2 != nil {
			pairs = append(pairs, pair{part, c.redact(part, false)})
			continue
		}
		if slices.Contains(credentials, strings.ToLower(n)) && v != placeholder("credential") {
			v = placeholder("credential")
			c.apply("credential")
		}
		n, v = c.redact(n, false), c.redact(v, false)
		text := url.QueryEscape(n)
		if equals {
			text += "=" + url.QueryEscape(v)
		}
		pairs = append(pairs, pair{n, text})
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	texts := make([]string, len(pairs))
	for i, p := range pairs {
		texts[i] = p.text
	}
	return strings.Join(texts, "&")
}

// requestHeaders is the allow-list for requests.
var requestHeaders = []string{"Accept", "Anthropic-Beta", "Anthropic-Version", "Content-Type", "Openai-Beta"}

// dropped names the rule by which a header outside the allow-list goes: names, or their beginnings where they end in *.
var dropped = []struct {
	rule  string
	names []string
}{
	{"credential", []string{"Api-Key", "Authorization", "Cookie", "Proxy-Authorization", "X-Amz-Security-Token", "X-Api-Key", "X-Goog-Api-Key"}},
	{"idempotency-key", []string{"Idempotency-Key", "X-Idempotency-Key"}},
	{"sdk-fingerprint", []string{"Amz-Sdk-*", "User-Agent", "X-Amz-User-Agent", "X-Goog-Api-Client", "X-Stainless-*"}},
	{"header-allow-list", []string{"*"}},
}

func dropRule(name string) string {
	for _, d := range dropped {
		for _, pattern := range d.names {
			if begin, all := strings.CutSuffix(pattern, "*"); name == pattern || all && strings.HasPrefix(name, begin) {
				return d.rule
			}
		}
	}
	return ""
}

func (c *canon) headers(header http.Header) http.Header {
	var kept http.Header
	for _, raw := range names(header) {
		name := http.CanonicalHeaderKey(raw)
		if !slices.Contains(requestHeaders, name) {
			c.apply(dropRule(name))
			continue
		}
		for _, value := range header[raw] {
			value = strings.TrimSpace(value)
			if name == "Content-Type" {
				value = c.contentType(value)
			} else {
				value = c.redact(value, false)
			}
			if kept == nil {
				kept = make(http.Header, 2)
			}
			kept[name] = append(kept[name], value)
		}
	}
	return kept
}

// boundary stands in the place of the random one of a multipart body.
const boundary = "echoeval-boundary"

func (c *canon) contentType(value string) string {
	if value == "application/json" {
		return value
	}
	media, _, err := mime.ParseMediaType(value)
	if err != nil {
		return value
	}
	if media != "application/json" {
		return value
	}
	c.apply("content-type")
	return media
}

func (c *canon) body(body string, header http.Header) string {
	if body == "" {
		return ""
	}
	media := header.Get("Content-Type")
	switch {
	case strings.HasPrefix(media, "application/x-www-form-urlencoded"):
		return c.form(body, nil)
	case strings.HasPrefix(media, "multipart/"):
		body = c.multipart(body, header)
	}
	start := strings.TrimLeft(body, " \t\r\n")
	if start == "" || start[0] != '{' && start[0] != '[' {
		return c.redact(body, false)
	}
	text, valid := c.json(body)
	if valid && text != body {
		c.apply("json")
	}
	return text
}

// json returns the canonical form of JSON, or where it is none the text with placeholders, and false.
func (c *canon) json(body string) (string, bool) {
	b := buffers.Get().(*buffer)
	defer buffers.Put(b)
	text := body
	if c.rules.possible(body) {
		// A replaced name of a member can change the order of members; a few rounds settle it.
		text, _ = sortJSON(body)
		for range 8 {
			redacted := c.redact(text, true)
			if redacted == text {
				break
			}
			text, _ = sortJSON(redacted)
		}
	}
	if !b.sort(text) {
		return text, false
	}
	b.lines = layout(b.lines[:0], b.sorted)
	if string(b.lines) == body {
		return body, true
	}
	return string(b.lines), true
}

// multipart replaces the boundary in header and body.
func (c *canon) multipart(body string, header http.Header) string {
	media, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	old := params["boundary"]
	if err != nil || old == "" || old == boundary || strings.Contains(body, boundary) {
		return body
	}
	params["boundary"] = boundary
	value := mime.FormatMediaType(media, params)
	if value == "" {
		return body
	}
	c.apply("multipart-boundary")
	header.Set("Content-Type", value)
	return strings.ReplaceAll(body, "--"+old, "--"+boundary)
}

// longLine is the length in bytes up to which JSON stays on one line.
const longLine = 100

// layout appends compact JSON in lines that a reviewer can compare: one per member of the outermost object (or element of the outermost list), and one per element of a list among those, such as messages and tools.
func layout(b, compact []byte) []byte {
	if len(compact) <= longLine {
		return append(b, compact...)
	}
	depth := 0
	var broken [3]bool // whether the container of that depth is broken into lines
	from := 0          // of what is not yet in b
	line := func(to, depth int) {
		b = append(append(b, compact[from:to]...), '\n')
		b = append(b, spaces[:depth]...)
		from = to
	}
	for i := 0; i < len(compact); i++ {
		switch c := compact[i]; c {
		case '"':
			i = stringEnd(compact, i)
		case '{', '[':
			depth++
			if depth <= 2 {
				empty := compact[i+1] == '}' || compact[i+1] == ']'
				broken[depth] = !empty && (depth == 1 || c == '[' && broken[1])
				if broken[depth] {
					line(i+1, depth)
				}
			}
		case '}', ']':
			if depth <= 2 && broken[depth] {
				line(i, depth-1)
			}
			depth--
		case ',':
			if depth <= 2 && broken[depth] {
				line(i+1, depth)
			}
		}
	}
	return append(b, compact[from:]...)
}

// stringEnd returns the place of the quote that ends the JSON string that begins at i.
func stringEnd(s []byte, i int) int {
	for {
		i += bytes.IndexByte(s[i+1:], '"') + 1
		slashes := 0
		for s[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}
