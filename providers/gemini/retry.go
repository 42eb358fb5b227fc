package gemini

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"github.com/echoeval/echoeval/core/llm"
)

// RetryAfter gives a refusal that says in its body when to try again (google.rpc.RetryInfo) the header retry-after-ms, which those who repeat requests look for. A header that is there already stays, the body too.
func RetryAfter(next http.RoundTripper) http.RoundTripper { return retryAfter{next} }

type retryAfter struct{ next http.RoundTripper }

func (r retryAfter) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err != nil || resp.StatusCode < http.StatusBadRequest || resp.Header.Get("Retry-After") != "" || resp.Header.Get("Retry-After-Ms") != "" {
		return resp, err
	}
	begin, readErr := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	var rest io.Reader = resp.Body
	if readErr != nil {
		rest = broken{readErr}
	}
	body := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin), rest), body}
	if a, ok := readAnswer(begin); ok {
		var e llm.Error
		if a.into(&e); e.RetryAfter > 0 {
			resp.Header.Set("Retry-After-Ms", strconv.FormatInt(e.RetryAfter.Milliseconds(), 10))
		}
	}
	return resp, nil
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
