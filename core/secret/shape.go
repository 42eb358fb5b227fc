package secret

import (
	"iter"
	"strings"
)

// set is a set of ASCII characters.
type set [128]bool

func (s *set) has(c byte) bool { return c < 128 && s[c] }

func chars(ranges ...string) (s set) {
	for _, r := range ranges {
		if len(r) == 3 && r[1] == '-' {
			for c := r[0]; c <= r[2]; c++ {
				s[c] = true
			}
			continue
		}
		for i := range len(r) {
			s[r[i]] = true
		}
	}
	return s
}

var (
	alnum  = chars("a-z", "A-Z", "0-9")
	word   = chars("a-z", "A-Z", "0-9", "_", "-")
	upper  = chars("A-Z", "0-9")
	bearer = chars("a-z", "A-Z", "0-9", "_", "-", ".", "~", "+", "/", "=")
	dashed = chars("a-z", "A-Z", "0-9", "-")
)

// shape is one row: a prefix at the start of a word, then at least min (and, where max is set, at most max) characters of the set.
type shape struct {
	kind, prefix string
	rest         *set
	min, max     int
	plain        bool // letters alone are enough; otherwise a digit must be among the rest, which ordinary words have not
	inside       bool // the prefix is found within a word, too: no ordinary word holds it
}

// The shapes that vendors document or use for their keys. Of two that fit the first counts, so the longer prefix stands first.
var table = []shape{
	{kind: "anthropic-key", prefix: "sk-ant-", rest: &word, min: 20, inside: true},
	{kind: "langfuse-secret-key", prefix: "sk-lf-", rest: &dashed, min: 20, inside: true},
	{kind: "langfuse-public-key", prefix: "pk-lf-", rest: &dashed, min: 20, inside: true},
	{kind: "openai-key", prefix: "sk-proj-", rest: &word, min: 20, inside: true},
	{kind: "openai-key", prefix: "sk-svcacct-", rest: &word, min: 20, inside: true},
	{kind: "openai-key", prefix: "sk-", rest: &word, min: 20},
	{kind: "google-key", prefix: "AIza", rest: &word, min: 35, max: 35},
	{kind: "google-token", prefix: "ya29.", rest: &word, min: 20},
	{kind: "aws-key-id", prefix: "AKIA", rest: &upper, min: 16, max: 16, plain: true},
	{kind: "aws-key-id", prefix: "ASIA", rest: &upper, min: 16, max: 16, plain: true},
	{kind: "github-token", prefix: "github_pat_", rest: &word, min: 40, inside: true},
	{kind: "github-token", prefix: "ghp_", rest: &alnum, min: 36},
	{kind: "github-token", prefix: "gho_", rest: &alnum, min: 36},
	{kind: "github-token", prefix: "ghu_", rest: &alnum, min: 36},
	{kind: "github-token", prefix: "ghs_", rest: &alnum, min: 36},
	{kind: "github-token", prefix: "ghr_", rest: &alnum, min: 36},
	{kind: "gitlab-token", prefix: "glpat-", rest: &word, min: 20, inside: true},
	{kind: "slack-token", prefix: "xoxa-", rest: &dashed, min: 10},
	{kind: "slack-token", prefix: "xoxb-", rest: &dashed, min: 10},
	{kind: "slack-token", prefix: "xoxe-", rest: &dashed, min: 10},
	{kind: "slack-token", prefix: "xoxp-", rest: &dashed, min: 10},
	{kind: "slack-token", prefix: "xoxr-", rest: &dashed, min: 10},
	{kind: "slack-token", prefix: "xoxs-", rest: &dashed, min: 10},
	{kind: "groq-key", prefix: "gsk_", rest: &alnum, min: 32},
	{kind: "xai-key", prefix: "xai-", rest: &alnum, min: 32},
	{kind: "tavily-key", prefix: "tvly-", rest: &word, min: 20},
	{kind: "hugging-face-token", prefix: "hf_", rest: &alnum, min: 30},
	{kind: "bearer-token", prefix: "Bearer ", rest: &bearer, min: 16},
	{kind: "bearer-token", prefix: "bearer ", rest: &bearer, min: 16},
	{kind: "private-key", prefix: "-----BEGIN "},
	{kind: "json-web-token", prefix: "eyJ"},
}

// Kinds lists the kinds of key shapes, each once, in the order of the table.
func Kinds() []string {
	var kinds []string
	for _, s := range table {
		if len(kinds) == 0 || kinds[len(kinds)-1] != s.kind {
			kinds = append(kinds, s.kind)
		}
	}
	return kinds
}

// first maps the first byte of a prefix to the rows that begin with it; second holds, by first byte, the second bytes that occur. Nearly every place in a text fails on these two.
var first, second = func() (rows [128][]shape, next [128][2]uint64) {
	for _, s := range table {
		a, b := s.prefix[0], s.prefix[1]
		rows[a] = append(rows[a], s)
		next[a][b>>6] |= 1 << (b & 63)
	}
	return rows, next
}()

func shapes(text string) iter.Seq[Hit] {
	return func(yield func(Hit) bool) {
		for i := 0; i+1 < len(text); i++ {
			c, d := text[i], text[i+1]
			if c >= 128 || d >= 128 || second[c][d>>6]&(1<<(d&63)) == 0 {
				continue
			}
			for _, row := range first[c] {
				if !strings.HasPrefix(text[i:], row.prefix) || !row.inside && !starts(text, i) {
					continue
				}
				if end := row.end(text, i+len(row.prefix)); end > 0 {
					if !yield(Hit{row.kind, i, end}) {
						return
					}
					i = end - 1
					break
				}
			}
		}
	}
}

// end returns where the secret ends whose prefix ends at from, 0 if there is none.
func (s *shape) end(text string, from int) int {
	switch s.kind {
	case "private-key":
		return pem(text, from)
	case "json-web-token":
		return jwt(text, from)
	}
	end, digit := from, s.plain
	for end < len(text) && s.rest.has(text[end]) {
		digit = digit || '0' <= text[end] && text[end] <= '9'
		end++
	}
	if n := end - from; !digit || n < s.min || s.max > 0 && n > s.max {
		return 0
	}
	return end
}

// starts reports that a word may begin at i: the character before is no part of one, or it ends an escape of JSON (a newline's, a code point's) or of a URL (%20).
func starts(text string, i int) bool {
	if i == 0 || !word.has(text[i-1]) || text[i] == '-' {
		return true
	}
	if i >= 2 && text[i-2] == '\\' && strings.IndexByte("bfnrt", text[i-1]) >= 0 {
		return true
	}
	if i >= 6 && text[i-6] == '\\' && text[i-5] == 'u' {
		if _, ok := hex4(text[i-4:]); ok {
			return true
		}
	}
	if i >= 3 && text[i-3] == '%' {
		if _, ok := hex4("00" + text[i-2:i]); ok {
			return true
		}
	}
	return false
}

// pem finds the end of a private key block whose "-----BEGIN " ends at from. A block that is cut off ends with the text.
func pem(text string, from int) int {
	label, rest, found := strings.Cut(text[from:min(len(text), from+64)], "-----")
	if !found || !strings.Contains(label, "PRIVATE KEY") || rest == "" && from+len(label)+5 == len(text) {
		return 0
	}
	footer := "-----END " + label + "-----"
	if at := strings.Index(text[from:], footer); at >= 0 {
		return from + at + len(footer)
	}
	return len(text)
}

// jwt finds the end of three base64url parts joined by dots whose "eyJ" (the letters of `{"`) ends at from; the second begins like an object too.
func jwt(text string, from int) int {
	end := from
	part := func() int {
		start := end
		for end < len(text) && word.has(text[end]) {
			end++
		}
		return end - start
	}
	if part() < 10 || !strings.HasPrefix(text[end:], ".eyJ") {
		return 0
	}
	end++
	if part() < 10 || end == len(text) || text[end] != '.' {
		return 0
	}
	end++
	if part() < 16 {
		return 0
	}
	return end
}
