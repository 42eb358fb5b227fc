package transport

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Net returns a transport for many requests to few hosts. dial opens the connections, and is where a guard looks at addresses; proxy chooses a proxy for a request, nil for none.
//
// There is no limit on the wait for an answer: a model may think for minutes, and the request's context bounds it.
func Net(dial func(ctx context.Context, network, address string) (net.Conn, error), proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	return &http.Transport{
		DialContext:         dial,
		Proxy:               proxy,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        512,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
		ReadBufferSize:      16 << 10,
		WriteBufferSize:     16 << 10,
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
			if resp.StatusCode != http.StatusOK {
				// net/http would tell the text of the status alone.
				return &proxyError{resp.Status}
			}
			return nil
		},
	}
}
