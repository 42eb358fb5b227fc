package localhost_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/localhost"
)

func TestLocalhost(t *testing.T) { suite.Run(t, "localhost") }

var _ = DescribeTable("listens on this machine alone", func(address, message string) {
	listener, err := localhost.Listen(address)
	if message == "" {
		Expect(err).NotTo(HaveOccurred())
		Expect(listener.Close()).To(Succeed())
		return
	}
	Expect(err).To(MatchError(ContainSubstring(message)))
	Expect(failure.CodeOf(err)).To(Equal(failure.Input))
	Expect(failure.Hints(err)).NotTo(BeEmpty())
},
	Entry(nil, "127.0.0.1:0", ""),
	Entry(nil, "localhost:0", ""),
	Entry(nil, "0.0.0.0:0", "this machine only"),
	Entry(nil, ":0", "this machine only"),
	Entry(nil, "192.0.2.1:0", "this machine only"),
	Entry(nil, "example.com:80", "this machine only"),
	Entry(nil, "127.0.0.1", "want host:port"),
	Entry(nil, "127.0.0.1:99999", "cannot listen"),
)

var _ = DescribeTable("guards by Host and Origin", func(host, origin string, served bool) {
	answer := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = host
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	w := httptest.NewRecorder()
	localhost.Guard(answer(200), answer(403)).ServeHTTP(w, r)
	Expect(w.Code == 200).To(Equal(served))
},
	Entry(nil, "127.0.0.1:8080", "", true),
	Entry(nil, "localhost", "", true),
	Entry(nil, "LOCALHOST:1", "", true),
	Entry(nil, "[::1]:8080", "", true),
	Entry(nil, "127.8.9.1", "", true),
	Entry(nil, "[::ffff:127.0.0.1]:1", "", true),
	Entry(nil, "localhost:1", "http://localhost:9", true),
	Entry(nil, "evil.example:8080", "", false),
	Entry(nil, "localhost.evil.example", "", false),
	Entry(nil, "127.0.0.1.nip.example", "", false),
	Entry(nil, "", "", false),
	Entry(nil, "127.0.0.1", "http://evil.example", false),
	Entry(nil, "127.0.0.1", "null", false),
	Entry(nil, "127.0.0.1", "file://localhost", false),
)

var _ = It("serves until it is told to stop, and says when the listener is gone", func() {
	listener, err := localhost.Listen("127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(GinkgoT().Context())
	ended := make(chan error, 1)
	go func() {
		ended <- localhost.Serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
	}()
	client := &http.Client{Transport: &http.Transport{}}
	response, err := client.Get("http://" + listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	Expect(io.ReadAll(response.Body)).To(BeEquivalentTo("here"))
	Expect(response.Body.Close()).To(Succeed())
	cancel()
	Eventually(ended, "10s").Should(Receive(BeNil()))
	Expect(localhost.Serve(GinkgoT().Context(), listener, http.NotFoundHandler())).To(MatchError(net.ErrClosed))
})
