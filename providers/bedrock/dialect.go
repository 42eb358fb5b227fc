package bedrock

import (
	"io"
	"net/http"
	"time"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/providers/reason"
)

// call is what the model, the SDK's chain and the dialect tell each other about one request. It travels in the request's context.
type call struct {
	request []byte // the body

	reply     *http.Response
	err       error // of the way to the vendor and back
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
	jsonType   = "application/json"
	streamType = "application/vnd.amazon.eventstream"
)

// Do implements the SDK's client. It keeps the reply for the package's own reader, and a failure too; the SDK sees an empty reply.
func (d *dialect) Do(req *http.Request) (*http.Response, error) {
	c, _ := req.Context().Value(callKey{}).(*call)
	out := new(http.Request)
	*out = *req
	accept := req.Header.Get("Accept")
	if accept == "" {
		accept = jsonType
	}
	out.Header = http.Header{"Content-Type": {jsonType}, "Accept": {accept}, "Authorization": {"Bearer " + d.placeholder}}
	resp, err := d.next.RoundTrip(out)
	if err != nil {
		c.err = err
		return nil, err
	}
	c.status, c.requestID, c.retries = resp.StatusCode, requestID(resp.Header), reason.Repetitions(resp)
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusMultipleChoices {
		defer func() { _ = resp.Body.Close() }()
		c.err = refusal(resp, d.clock.Now())
		return nil, c.err
	}
	c.reply = resp
	return &http.Response{Status: resp.Status, StatusCode: resp.StatusCode, Proto: resp.Proto, ProtoMajor: resp.ProtoMajor, ProtoMinor: resp.ProtoMinor, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
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
