package openai

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/wire"
)

// call is what the model and the dialect tell each other about one request, beside the SDK. It travels in the request's context.
type call struct {
	patch    patch
	blocking bool
	// whole keeps the reply's body from the SDK, which is shown an empty object.
	whole bool

	// Set by the dialect when the reply has begun.
	status    int
	requestID string
	retries   int
	body      []byte // where whole is set
}

type callKey struct{}

// dialect is the round tripper directly below the SDK; see the package's comment.
type dialect struct {
	vendor string
	query  string
	clock  clock.Clock
	next   http.RoundTripper
}

// RoundTrip sends the completed request. A status that is no success is returned as an error of type *llm.Error.
func (d *dialect) RoundTrip(req *http.Request) (*http.Response, error) {
	c, ok := req.Context().Value(callKey{}).(*call)
	if !ok {
		c = &call{}
	}
	out, err := d.complete(req, c)
	if err != nil {
		return nil, encodeError{err}
	}
	resp, err := d.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	c.status, c.requestID, c.retries = resp.StatusCode, requestID(resp.Header), wire.Repetitions(resp)
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusMultipleChoices {
		defer func() { _ = resp.Body.Close() }()
		return nil, refusal(d.vendor, resp, d.clock.Now())
	}
	if c.whole {
		defer func() { _ = resp.Body.Close() }()
		if c.body, err = transport.Whole(resp.Body, maxEmbedReply); err != nil {
			return nil, err
		}
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader("{}")), -1
		return resp, nil
	}
	resp.Body = newFrames(wire.Bound(resp.Body))
	return resp, nil
}

// complete returns the request as it goes out. The one that came from the SDK stays as it was.
func (d *dialect) complete(req *http.Request, c *call) (*http.Request, error) {
	var body []byte
	if req.Body != nil {
		defer func() { _ = req.Body.Close() }()
		body = make([]byte, max(req.ContentLength, 0))
		if _, err := io.ReadFull(req.Body, body); err != nil {
			return nil, err
		}
	}
	body, err := c.patch.apply(body)
	if err != nil {
		return nil, err
	}
	out := new(http.Request)
	*out = *req
	out.Header = req.Header.Clone()
	// HTTP/2 knows no such header, and HTTP/1.1 keeps connections anyway.
	out.Header.Del("Connection")
	if c.blocking {
		out.Header.Set("Accept", "application/json")
		out.Header.Del("Cache-Control")
	}
	if d.query != "" {
		u := *req.URL
		u.RawQuery = d.query
		out.URL = &u
	}
	out.ContentLength = int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body, err = out.GetBody()
	return out, err
}

// encodeError is a request that could not be completed; no repetition mends that.
type encodeError struct{ err error }

func (e encodeError) Error() string { return fmt.Sprintf("encoding the request: %v", e.err) }

func (e encodeError) Unwrap() error { return e.err }

func (e encodeError) Final() bool { return true }
