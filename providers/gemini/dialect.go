package gemini

import (
	"io"
	"net/http"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/providers/wire"
)

// call is what the model and the dialect tell each other about one request, beside the SDK. It travels in the request's context.
type call struct {
	// Set by the dialect when the reply has begun. The body is to be closed.
	body    io.ReadCloser
	status  int
	retries int
}

type callKey struct{}

// dialect is the round tripper directly below the SDK; see the package's comment.
type dialect struct {
	clock clock.Clock
	next  http.RoundTripper
}

// RoundTrip passes the request on, takes the reply's body for the model and returns a reply without one. A status that is no success is returned as an error of type *llm.Error.
func (d *dialect) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := d.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusMultipleChoices {
		defer func() { _ = resp.Body.Close() }()
		return nil, refusal(resp, d.clock.Now())
	}
	c := req.Context().Value(callKey{}).(*call)
	c.body, c.status, c.retries = wire.Bound(resp.Body), resp.StatusCode, wire.Repetitions(resp)
	empty := *resp
	empty.Body, empty.ContentLength = http.NoBody, 0
	return &empty, nil
}
