// Package localhost serves this machine alone. It listens on loopback addresses only, and refuses requests that came by another name: a web page can point a name of its own at 127.0.0.1 (DNS rebinding), but not change what a browser writes into Host and Origin.
package localhost

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/failure"
)

// Listen listens on a loopback address, host:port; port 0 takes a free one. Errors have code Input.
func Listen(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, failure.WithHint(failure.New(failure.Input, "--listen %s: want host:port", address), "127.0.0.1:0 takes a free port")
	}
	if host == "" || !Host(host) {
		return nil, failure.WithHint(failure.New(failure.Input, "--listen %s: it serves this machine only", address), "use 127.0.0.1 or localhost")
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, failure.WithHint(failure.New(failure.Input, "cannot listen on %s", address), "is another program using the port? --listen 127.0.0.1:0 takes a free one")
	}
	return listener, nil
}

// grace is how long running replies may take once a server is told to stop, headers how long a request may take to say what it wants.
const (
	grace   = 2 * time.Second
	headers = 10 * time.Second
)

// Serve answers on the listener until ctx ends; then it accepts no more, lets running replies end for two seconds and returns nil. It closes the listener. Any other end is an error. It checks nothing of a request: see [Guard].
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	s := &http.Server{Handler: handler, ReadHeaderTimeout: headers}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if s.Shutdown(last) != nil {
		// Replies that are still running, such as slow streams, are cut off: that is what a stop means.
		_ = s.Close()
	}
	<-ended
	return nil
}

// Guard hands on the requests that name a loopback host in Host and, where a browser sent it, in Origin; all others get what refuse answers.
func Guard(handler, refuse http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if Host(r.Host) && (origin == "" || ofLoopback(origin)) {
			handler.ServeHTTP(w, r)
			return
		}
		refuse.ServeHTTP(w, r)
	})
}

// Host reports whether a host, with or without a port, is localhost or a loopback address.
func Host(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && ip.Unmap().IsLoopback()
}

func ofLoopback(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && Host(u.Host)
}
