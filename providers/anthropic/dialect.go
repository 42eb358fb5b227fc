package anthropic

import (
	"io"
	"net/http"
	"time"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/providers/reason"
)

// call is what the dialect tells the model about one request, beside the SDK. It travels in the request's context.
type call struct {
	status    int
	requestID string
	retries   int
}

type callKey struct{}

// dialect is the round tripper directly below the SDK; see the package's comment.
type dialect struct {
	version     string
	placeholder string
	clock       clock.Clock
	next        http.RoundTripper
}

// RoundTrip sends the request. A status that is no success is returned as an error of type *llm.Error.
func (d *dialect) RoundTrip(req *http.Request) (*http.Response, error) {
	out := new(http.Request)
	*out = *req
	out.Header = req.Header.Clone()
	out.Header.Set("Anthropic-Version", d.version)
	// The SDK sends its key as a bearer. The transport replaces what stands in the header of the vendor's documentation.
	out.Header.Del("Authorization")
	out.Header.Set("X-Api-Key", d.placeholder)
	resp, err := d.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	if c, ok := req.Context().Value(callKey{}).(*call); ok {
		c.status, c.requestID, c.retries = resp.StatusCode, requestID(resp.Header), reason.Repetitions(resp)
	}
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusMultipleChoices {
		defer func() { _ = resp.Body.Close() }()
		return nil, refusal(resp, d.clock.Now())
	}
	resp.Body = reason.Bound(resp.Body)
	return resp, nil
}

const (
	// drainBytes and drainTime bound what is read behind the end of a reply, so that the connection can be used again and a recorder sees the body end.
	drainBytes = 64 << 10
	drainTime  = 100 * time.Millisecond
)

// closeBody closes a reply's body. Of one that is whole it first reads what little may follow.
func closeBody(body io.ReadCloser, whole bool) {
	if whole {
		stop := time.AfterFunc(drainTime, func() { _ = body.Close() })
		_, _ = io.CopyN(io.Discard, body, drainBytes)
		stop.Stop()
	}
	_ = body.Close()
}
