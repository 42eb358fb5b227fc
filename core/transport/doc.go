// Package transport holds the small round trippers between a model provider and the network. Each does one thing; they are composed from the inside out in one visible line:
//
//	rt := transport.Retry(retry, transport.Observe(clock, transport.Limiter(limits, transport.Auth(transport.Bearer, key, redirected))))
//
// A recorder or replayer takes the place of Observe: it stands below the retries, so that every attempt is recorded, and above everything that knows a key or another address.
// Nothing here reads the environment, the time or a source of randomness by itself.
package transport

import (
	"io"
	"net/http"
	"sync"
)

// RetryCountHeader is the request header that tells a vendor which repetition it sees, from 0, as the vendors' own SDKs do.
const RetryCountHeader = "X-Stainless-Retry-Count"

// closeBody closes a request's body, as a round tripper must even where it sends nothing.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// clone returns a copy of req whose headers and URL may be changed; the body is shared.
func clone(req *http.Request) *http.Request {
	c := new(http.Request)
	*c = *req
	c.Header = req.Header.Clone()
	if c.Header == nil {
		c.Header = http.Header{}
	}
	return c
}

// body is a reply's body that calls done once, when it has been read to its end, has failed or is closed, whichever comes first.
type body struct {
	io.ReadCloser
	read func(n int)
	done func(error)
	once sync.Once
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && b.read != nil {
		b.read(n)
	}
	if err != nil {
		b.finish(err)
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.finish(nil)
	return err
}

func (b *body) finish(err error) {
	b.once.Do(func() { b.done(err) })
}
