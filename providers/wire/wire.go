// Package wire is what the wire formats of all providers share: why a request failed, fit for a message, how often it was sent, how much of a reply is read, and the ids of calls that have none.
package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/echoeval/echoeval/core/secret"
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

// Final reports whether no repetition mends an error, see [transport.Final].
func Final(err error) bool { return transport.Final(err) }

// maxReply is the longest body of a reply. The longest answers of the vendors take about a third of it, frames and all.
const maxReply = 128 << 20

// Bound ends a reply's body with an error that is final after 128 MiB, so that a stream that never ends does not fill the memory of those who collect it.
func Bound(body io.ReadCloser) io.ReadCloser { return &bounded{body, maxReply} }

type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, tooLong{}
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

type tooLong struct{}

func (tooLong) Error() string { return fmt.Sprintf("it is longer than %d MiB", maxReply>>20) }

func (tooLong) Final() bool { return true }

// keyShape finds what may be a key. Vendors mostly mask it where they repeat it, but the placeholder's place is no place for a part of one either.
var keyShape = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\bbearer\s+\S+|\b(?:sk|pk|rk|gsk|hf|xai|aiza|key|nvapi|r8)[-_][\w*.-]{6,}[\w*]`)
})

// page finds the beginning of a page of HTML, title its title, markup all that is no text of it.
var (
	page = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^[\s\x{feff}]*(<\?xml[^>]*>\s*)?<(!doctype\s+html|html|head|body)\b`)
	})
	title  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`) })
	markup = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?is)<script\b.*?(</script>|$)|<style\b.*?(</style>|$)|<!--.*?(-->|$)|<[^>]*(>|$)`)
	})
)

// Body makes a body that a server sent in the place of the vendor's JSON fit for a message. Of a page of HTML it is the title, else the text.
func Body(s string) string {
	if !page().MatchString(s) {
		return Excerpt(s)
	}
	if m := title().FindStringSubmatch(s); m != nil {
		s = m[1]
	}
	const found = "a page of HTML and no JSON"
	if text := Excerpt(html.UnescapeString(markup().ReplaceAllString(s, " "))); text != "" {
		return found + ": " + text
	}
	return found
}

// Excerpt makes a text of a server fit for a message: one line, no control characters, no key, not long.
func Excerpt(s string) string {
	const limit = 1000
	s = strings.ToValidUTF8(s, "\ufffd")
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	s = keyShape().ReplaceAllString(s, "[secret]")
	s = (&secret.Detector{}).Redact(s)
	if len(s) <= limit {
		return s
	}
	cut := limit
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// Cut is a reply that ended too early, said in the words given: an error that is [io.ErrUnexpectedEOF].
type Cut string

// Error implements error: it gives the words.
func (c Cut) Error() string { return string(c) }

// Unwrap makes the error an [io.ErrUnexpectedEOF].
func (Cut) Unwrap() error { return io.ErrUnexpectedEOF }

// ErrEmpty is a reply without a body.
var ErrEmpty error = Cut("the reply is empty")

// Unreadable says why a piece of a reply could not be decoded, in words that know nothing of the decoder: what was wanted where, what came, and the beginning of it. piece is what it was, such as "a frame of the reply".
func Unreadable(piece string, data []byte, err error) error {
	return &unreadable{"reading " + piece + ": " + unreadableWhy(data, err), err}
}

type unreadable struct {
	text string
	err  error
}

func (u *unreadable) Error() string { return u.text }

func (u *unreadable) Unwrap() error { return u.err }

func unreadableWhy(data []byte, err error) string {
	// A page is told by its beginning, and a text that ends too early by its end.
	const most = 200
	begin := func() string {
		text := Body(string(data[:min(len(data), 4<<10)]))
		if len(text) > most {
			cut := most
			for !utf8.RuneStart(text[cut]) {
				cut--
			}
			text = text[:cut] + "..."
		}
		return text
	}
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &semantic):
		at, got := "", "something else"
		if semantic.JSONPointer != "" {
			at = " at " + Excerpt(string(semantic.JSONPointer))
		}
		if word, ok := jsonWords[semantic.JSONKind.String()]; ok {
			got = word
		}
		want := wanted(semantic.GoType)
		if want == "" || want == got {
			return "the value" + at + " cannot be used: " + begin()
		}
		return "want " + want + at + ", got " + got + ": " + begin()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends in the middle: " + begin()
	}
	return "it is no JSON: " + begin()
}

// jsonWords says what the kinds of JSON values are called, by the first byte of their texts.
var jsonWords = map[string]string{"null": "null", "true": "a truth value", "false": "a truth value", "string": "a text", "number": "a number", "object": "an object", "array": "a list", "{": "an object", "[": "a list"}

// wanted says what a Go type is read from; "" where there is no word for it.
func wanted(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return ""
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "a truth value"
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Float64, reflect.Uint64, reflect.Float32:
		return "a number"
	}
	return ""
}

const (
	// drainBytes and drainTime bound what is read behind the end of a reply.
	drainBytes = 64 << 10
	drainTime  = 100 * time.Millisecond
)

// Close closes a reply's body. Of one that is whole it first reads what little may follow, so that the connection can be used again and a recorder sees the body end.
func Close(body io.ReadCloser, whole bool) error {
	if whole {
		stop := time.AfterFunc(drainTime, func() { _ = body.Close() })
		_, _ = io.CopyN(io.Discard, body, drainBytes)
		stop.Stop()
	}
	return body.Close()
}

// CallID makes the id of a call that has none, or that of another call: the same for the same place in the conversation, index in the reply and name. The prefix is that of the vendor's own.
func CallID(prefix string, position, index int, name string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", position, index, name))
	return prefix + hex.EncodeToString(sum[:12])
}
