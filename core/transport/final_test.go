package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/transport"
)

var _ = Describe("why no reply came", func() {
	// reach asks for an address through a proxy, or none, and gives the error and how often it was tried.
	reach := func(address, proxy string) error {
		GinkgoHelper()
		rt := transport.Net((&net.Dialer{Timeout: 5 * time.Second}).DialContext, func(*http.Request) (*url.URL, error) {
			if proxy == "" {
				return nil, nil
			}
			return url.Parse(proxy)
		})
		DeferCleanup(rt.CloseIdleConnections)
		req, err := http.NewRequestWithContext(GinkgoT().Context(), http.MethodGet, address, http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		resp, err := transport.Retry(transport.RetryConfig{Clock: clock.NewVirtual(start)}, rt).RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		Expect(err).To(HaveOccurred())
		return err
	}
	retries := func(err error) int {
		var retried *transport.RetriedError
		if errors.As(err, &retried) {
			return retried.Retries
		}
		return 0
	}
	closed := func() string {
		GinkgoHelper()
		l, err := (&net.ListenConfig{}).Listen(GinkgoT().Context(), "tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		Expect(l.Close()).To(Succeed())
		return l.Addr().String()
	}

	It("is a name that does not exist", func() {
		err := reach("http://no-such-host.invalid/v1", "")
		Expect(transport.Cause(err)).To(Equal(transport.CauseDNS))
		var name *net.DNSError
		Expect(errors.As(err, &name)).To(BeTrue())
		Expect(transport.Final(err)).To(Equal(name.IsNotFound), "a resolver that is away may come back")
		Expect(retries(err) > 0).To(Equal(!name.IsNotFound))
	})

	It("is a certificate that nobody vouches for, and a server without TLS", func() {
		secure := httptest.NewTLSServer(http.NotFoundHandler())
		secure.Config.ErrorLog = nil
		DeferCleanup(secure.Close)
		plain := httptest.NewServer(http.NotFoundHandler())
		DeferCleanup(plain.Close)
		for _, address := range []string{secure.URL, "https" + plain.URL[len("http"):]} {
			err := reach(address, "")
			Expect(transport.Cause(err)).To(Equal(transport.CauseTLS), "%v", err)
			Expect(transport.Final(err)).To(BeTrue())
			Expect(retries(err)).To(BeZero())
		}
	})

	It("is a proxy that is not there, and one that refuses", func() {
		err := reach("https://api.invalid/", "http://"+closed())
		Expect(transport.Cause(err)).To(Equal(transport.CauseProxy))
		Expect(transport.Final(err)).To(BeFalse())
		Expect(retries(err)).To(Equal(2))
		refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
		DeferCleanup(refuses.Close)
		err = reach("https://api.invalid/", "http://user:hidden-word@"+refuses.URL[len("http://"):])
		Expect(transport.Cause(err)).To(Equal(transport.CauseProxy))
		Expect(err).To(MatchError(And(ContainSubstring("the proxy answered 407"), Not(ContainSubstring("hidden-word")))))
		Expect(transport.Final(err)).To(BeTrue())
	})

	It("is a dial that takes too long, which is tried again although it looks like the end of a context", func() {
		rt := transport.Net((&net.Dialer{Timeout: time.Nanosecond}).DialContext, nil)
		req, err := http.NewRequestWithContext(GinkgoT().Context(), http.MethodGet, "http://127.0.0.1:9/", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		_, err = transport.Retry(transport.RetryConfig{Clock: clock.NewVirtual(start)}, rt).RoundTrip(req)
		Expect(err).To(MatchError(context.DeadlineExceeded))
		Expect(retries(err)).To(Equal(2))
	})

	It("is nothing of these where a server is away", func() {
		err := reach("http://"+closed(), "")
		Expect(transport.Cause(err)).To(BeEmpty())
		Expect(transport.Final(err)).To(BeFalse())
		Expect(transport.Final(fmt.Errorf("wrapped: %w", context.Canceled))).To(BeFalse())
	})
})
