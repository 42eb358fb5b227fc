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
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

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
