package bedrock

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/providers/wire"
)

// call is what the model, the SDK's chain and the dialect tell each other about one request. It travels in the request's context.
type call struct {
	request []byte // the body

	made      *http.Request // as it is to be sent
	sent      bool
	reply     *http.Response
	status    int
	requestID string
	retries   int
}

type callKey struct{}

// dialect is the client directly below the SDK; see the package's comment.
type dialect struct {
	placeholder string
	clock       clock.Clock
	next        http.RoundTripper
}

const (
	jsonType = "application/json"
)

// Do implements the SDK's client. It keeps the request, and the SDK sees an empty reply.
func (d *dialect) Do(req *http.Request) (*http.Response, error) {
	c, ok := req.Context().Value(callKey{}).(*call)
	if !ok {
		return nil, errors.New("a request that nobody asked for")
	}
	accept := req.Header.Get("Accept")
	if accept == "" {
		accept = jsonType
	}
	c.made = new(http.Request)
	*c.made = *req
	c.made.ContentLength, c.made.TransferEncoding = int64(len(c.request)), nil
	c.made.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.request)), nil }
	c.made.Body, _ = c.made.GetBody()
	c.made.Header = http.Header{"Content-Type": {jsonType}, "Accept": {accept}, "Authorization": {"Bearer " + d.placeholder}}
	return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

// send sends the request that the SDK made. A status that is no success is returned as an error of type *llm.Error.
func (d *dialect) send(req *http.Request, c *call) error {
	c.sent = true
	resp, err := d.next.RoundTrip(req)
	if err != nil {
		return err
	}
	c.status, c.requestID, c.retries = resp.StatusCode, requestID(resp.Header), wire.Repetitions(resp)
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusMultipleChoices {
		defer func() { _ = resp.Body.Close() }()
		return refusal(resp, d.clock.Now())
	}
	resp.Body = wire.Bound(resp.Body)
	c.reply = resp
	return nil
}
