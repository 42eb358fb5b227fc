package anthropic

import (
	"net/http"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/providers/wire"
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
		c.status, c.requestID, c.retries = resp.StatusCode, requestID(resp.Header), wire.Repetitions(resp)
	}
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusMultipleChoices {
		defer func() { _ = resp.Body.Close() }()
		return nil, refusal(resp, d.clock.Now())
	}
	resp.Body = wire.Bound(resp.Body)
	return resp, nil
}
