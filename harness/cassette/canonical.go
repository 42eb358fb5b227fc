package cassette

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Key is what requests are matched by: the SHA-256 of the canonical request. It is never stored.
type Key [sha256.Size]byte

// Canonical returns the form in which a request is stored and compared, and the names of the rules that changed something, sorted. It is version [Canon] of that form:
//
//   - URL: host in small letters without the port that goes without saying, no user and no fragment, parameters sorted by name, those that carry keys replaced;
//   - header: only names of the allow-list (accept, content-type, versions and beta flags of the vendors), so no credential, no key of idempotency, no name of an SDK;
//   - body: JSON with sorted keys, no needless escapes, numbers as they were written, laid out as one line per member and, in lists of the first level, per element; forms sorted by name; parts with one fixed boundary. What is not JSON, repeats a key or is not UTF-8 keeps its bytes;
//   - everywhere: values of the rules replaced by placeholders {{echoeval:NAME}}, also where escapes or JSON inside a JSON string hide them.
//
// A canonical request is its own canonical form. Neither header nor body are changed.
func Canonical(method, rawURL string, header http.Header, body []byte, rules *Rules) (Request, []string) {
	c := canon{rules: rules}
	if rules == nil {
		c.rules = &Rules{}
	}
	request := Request{Method: method, URL: c.url(rawURL), Headers: c.headers(header)}
	request.Body = c.body(string(body), request.Headers)
	slices.Sort(c.applied)
	return request, c.applied
}

// KeyOf returns the key of a canonical request.
func KeyOf(r Request) Key {
	h := sha256.New()
	var length [8]byte
	part := func(s string) {
		binary.BigEndian.PutUint64(length[:], uint64(len(s)))
		h.Write(length[:])
		h.Write([]byte(s))
	}
	part(r.Method)
	part(r.URL)
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		part(name)
		for _, v := range r.Headers[name] {
			part(v)
		}
		part("")
	}
	part("")
	part(r.Body)
	var key Key
	h.Sum(key[:0])
	return key
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
	for _, raw := range slices.Sorted(maps.Keys(header)) {
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
	// A replaced name of a member can change the order of members; a few rounds settle it.
	text, valid := sortJSON(body)
	for range 8 {
		redacted := c.redact(text, true)
		if redacted == text {
			break
		}
		text, valid = sortJSON(redacted)
	}
	if !valid {
		return text
	}
	text = layout(text)
	if text != body {
		c.apply("json")
	}
	return text
}

// sortJSON returns compact JSON with sorted keys and numbers as written. What is no JSON it returns as it is, and false.
func sortJSON(text string) (string, bool) {
	v := jsontext.Value(text)
	if v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) != nil {
		return text, false
	}
	return string(v), true
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

// layout breaks compact JSON into lines that a reviewer can compare: one per member of the outermost object (or element of the outermost list), and one per element of a list among those, such as messages and tools.
func layout(compact string) string {
	if len(compact) <= longLine {
		return compact
	}
	b := make([]byte, 0, len(compact)+len(compact)/16)
	depth := 0
	var broken [3]bool // whether the container of that depth is broken into lines
	line := func(depth int) {
		b = append(b, '\n')
		b = append(b, spaces[:depth]...)
	}
	for i := 0; i < len(compact); {
		ch := compact[i]
		switch ch {
		case '"':
			end := stringEnd(compact, i)
			b = append(b, compact[i:end]...)
			i = end
			continue
		case '{', '[':
			b = append(b, ch)
			depth++
			if depth <= 2 {
				empty := compact[i+1] == '}' || compact[i+1] == ']'
				broken[depth] = !empty && (depth == 1 || ch == '[' && broken[1])
				if broken[depth] {
					line(depth)
				}
			}
		case '}', ']':
			if depth <= 2 && broken[depth] {
				line(depth - 1)
			}
			depth--
			b = append(b, ch)
		case ',':
			b = append(b, ch)
			if depth <= 2 && broken[depth] {
				line(depth)
			}
		default:
			b = append(b, ch)
		}
		i++
	}
	return string(b)
}

// stringEnd returns the end of the JSON string that begins at i.
func stringEnd(s string, i int) int {
	for i++; ; {
		n := strings.IndexByte(s[i:], '"')
		i += n + 1
		slashes := 0
		for s[i-2-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}
