// Package reason helps providers to tell why a request failed: what a server said, fit for a message, and how often the request was sent.
package reason

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/transport"
)

// Repetitions is how many times the request was repeated before it got this reply.
func Repetitions(resp *http.Response) int {
	if resp.Request == nil {
		return 0
	}
	n, err := strconv.Atoi(resp.Request.Header.Get(transport.RetryCountHeader))
	if err != nil {
		return 0
	}
	return n
}

// Retries is how many times the request was repeated before it ended in this error; false where the error does not say.
func Retries(err error) (int, bool) {
	var retried *transport.RetriedError
	if errors.As(err, &retried) {
		return retried.Retries, true
	}
	return 0, false
}

// Final reports whether an error says that no repetition mends it.
func Final(err error) bool {
	var f interface{ Final() bool }
	return errors.As(err, &f) && f.Final()
}

// keyShape finds what may be a key. Vendors mostly mask it where they repeat it, but the placeholder's place is no place for a part of one either.
var keyShape = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\bbearer\s+\S+|\b(?:sk|pk|rk|gsk|hf|xai|aiza|key|nvapi|r8)[-_][\w*.-]{6,}[\w*]`)
})

// Excerpt makes a text of a server fit for a message: one line, no control characters, no key, not long.
func Excerpt(s string) string {
	const limit = 1000
	s = strings.ToValidUTF8(s, "\ufffd")
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	s = keyShape().ReplaceAllString(s, "[secret]")
	if len(s) <= limit {
		return s
	}
	cut := limit
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
