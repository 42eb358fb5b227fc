package providertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/harness/emulator"
)

// EmbedSuite is an embedder under test. All fields but Usage, Dimensions and Refusal must be set.
type EmbedSuite struct {
	// Name heads the specs.
	Name string
	// New returns an embedder that sends its requests to the server at url (http://host:port) through rt. It adds whatever the server takes for a key.
	New func(url string, rt http.RoundTripper) (llm.Embedder, error)
	// Batch is how many texts the vendor takes in one request.
	Batch int
	// Reply is the vendor's form of a whole reply with one vector, written as JSON.
	Reply func(vector string) string
	// Usage: the vendor counts the tokens.
	Usage bool
	// Dimensions are the only ones that can be asked for; 0 is any.
	Dimensions int
	// Refusal is the vendor's form of an error that says "no, thanks"; nil is that of OpenAI and of Google.
	Refusal func(status int) string
}

// RunEmbed defines the specs. The server is the emulator, and for what it never sends one that sends that.
func RunEmbed(s EmbedSuite) bool {
	return ginkgo.Describe("embeddings of "+s.Name, func() {
		var requests atomic.Int32
		start := func(handler http.Handler) llm.Embedder {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				handler.ServeHTTP(w, r)
			}))
			rt := &http.Transport{}
			ginkgo.DeferCleanup(func() { rt.CloseIdleConnections(); server.Close() })
			requests.Store(0)
			e, err := s.New(server.URL, rt)
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			return e
		}
		emulated := func() llm.Embedder {
			script, err := emulator.Echo()
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			handler, err := emulator.New(script, emulator.Options{})
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			return start(handler)
		}
		answering := func(status int, contentType, body string) llm.Embedder {
			return start(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", contentType)
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body) // the client may have gone
			}))
		}
		dimensions := func(n int) int {
			if s.Dimensions > 0 {
				return s.Dimensions
			}
			return n
		}
		refusal := s.Refusal
		if refusal == nil {
			refusal = func(status int) string { return `{"error":{"message":"no, thanks","code":` + fmt.Sprint(status) + `}}` }
		}
		vectors := func(e llm.Embedder, dimensions int, texts ...string) [][]float32 {
			got, err := e.Embed(context.Background(), llm.EmbedRequest{Texts: texts, Dimensions: dimensions})
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			gomega.Expect(got.Vectors).To(gomega.HaveLen(len(texts)))
			return got.Vectors
		}
		failed := func(e llm.Embedder) *llm.Error {
			got, err := e.Embed(context.Background(), llm.EmbedRequest{Texts: []string{"a"}})
			gomega.Expect(err).To(gomega.HaveOccurred())
			gomega.Expect(got).To(gomega.Equal(llm.Embeddings{}))
			var e2 *llm.Error
			gomega.Expect(errors.As(err, &e2)).To(gomega.BeTrue(), "%T: %v", err, err)
			return e2
		}

		ginkgo.It("are one vector for each text, in their order, whatever stands beside a text", func() {
			e := emulated()
			texts := []string{"the weather in Florence", "गर्मी और बारिश 🌧", "line one\nline two", "!?", "the weather in Florence"}
			all := vectors(e, dimensions(32), texts...)
			gomega.Expect(all[0]).To(gomega.Equal(all[4]))
			for i, text := range texts {
				gomega.Expect(vectors(e, dimensions(32), text)[0]).To(gomega.Equal(all[i]), text)
			}
			gomega.Expect(all[0]).NotTo(gomega.Equal(all[1]))
		})
		ginkgo.It("have the dimensions that are asked for, else those of the model", func() {
			e := emulated()
			gomega.Expect(vectors(e, dimensions(7), "a", "b")).To(gomega.HaveEach(gomega.HaveLen(dimensions(7))))
			gomega.Expect(len(vectors(e, 0, "a")[0])).To(gomega.BeNumerically(">", 100))
		})
		ginkgo.It("are near each other for texts that have much in common", func() {
			v := vectors(emulated(), 0, "the sun shines in Florence", "in Florence the sun shines", "refund of an invoice")
			near, err := llm.Cosine(v[0], v[1])
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			far, err := llm.Cosine(v[0], v[2])
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			gomega.Expect(near).To(gomega.BeNumerically(">", far+0.3))
		})
		ginkgo.It("are asked for in several requests where one cannot hold the texts", func() {
			e := emulated()
			texts := make([]string, s.Batch+1)
			for i := range texts {
				texts[i] = fmt.Sprintf("text %d", i)
			}
			all := vectors(e, dimensions(4), texts...)
			gomega.Expect(requests.Load()).To(gomega.BeEquivalentTo(2))
			for _, i := range []int{0, 1, s.Batch - 1, s.Batch} {
				gomega.Expect(vectors(e, dimensions(4), texts[i])[0]).To(gomega.Equal(all[i]), texts[i])
			}
		})
		ginkgo.It("count what they used, where the vendor says", func() {
			got, err := emulated().Embed(context.Background(), llm.EmbedRequest{Texts: []string{"four", "eight888"}, Dimensions: dimensions(2)})
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			if s.Usage {
				gomega.Expect(got.Usage.InputTokens).To(gomega.Equal(3))
			} else {
				gomega.Expect(got.Usage).To(gomega.BeZero())
			}
			gomega.Expect(got.Usage.OutputTokens).To(gomega.BeZero())
		})
		ginkgo.It("are not asked for where there is nothing to embed", func() {
			e := emulated()
			for _, req := range []llm.EmbedRequest{{}, {Texts: []string{"a", ""}}, {Texts: []string{"a"}, Dimensions: -1}} {
				_, err := e.Embed(context.Background(), req)
				gomega.Expect(failure.CodeOf(err)).To(gomega.Equal(failure.Input), "%v", err)
			}
			gomega.Expect(requests.Load()).To(gomega.BeZero())
		})
		ginkgo.DescribeTable("tell of a refusal", func(status int, retryable bool) {
			e := failed(answering(status, "application/json", refusal(status)))
			gomega.Expect(e.Status).To(gomega.Equal(status))
			gomega.Expect(e.Retryable).To(gomega.Equal(retryable))
			gomega.Expect(e.Message).To(gomega.Equal("no, thanks"))
			gomega.Expect(e.Vendor).NotTo(gomega.BeEmpty())
			gomega.Expect(requests.Load()).To(gomega.BeEquivalentTo(1), "the provider repeats nothing")
		},
			ginkgo.Entry(nil, 400, false), ginkgo.Entry(nil, 401, false), ginkgo.Entry(nil, 403, false), ginkgo.Entry(nil, 404, false),
			ginkgo.Entry(nil, 413, false), ginkgo.Entry(nil, 429, true), ginkgo.Entry(nil, 500, true), ginkgo.Entry(nil, 503, true))
		ginkgo.DescribeTable("tell of a reply that is none", func(body string) {
			e := failed(answering(http.StatusOK, "application/json", body))
			gomega.Expect(e.Status).To(gomega.Equal(http.StatusOK))
			gomega.Expect(e.Error()).NotTo(gomega.BeEmpty())
		},
			ginkgo.Entry("an empty body", ""),
			ginkgo.Entry("a page", "<html><body>Bad gateway</body></html>"),
			ginkgo.Entry("another object", `{"ok":true}`),
			ginkgo.Entry("null", `null`),
			ginkgo.Entry("an error with status 200", `{"error":{"message":"over capacity","code":503,"status":"UNAVAILABLE"}}`),
			ginkgo.Entry("a vector of text", s.Reply(`["a"]`)),
			ginkgo.Entry("an empty vector", s.Reply(`[]`)),
			ginkgo.Entry("a vector that is null", s.Reply(`null`)),
			ginkgo.Entry("a number that is none", s.Reply(`[1e999]`)),
			ginkgo.Entry("a cut", s.Reply(`[1,0]`)[:len(s.Reply(`[1,0]`))/2]),
		)
		ginkgo.It("read the reply that the broken ones are made of", func() {
			gomega.Expect(vectors(answering(http.StatusOK, "application/json", s.Reply(`[0.25,-1]`)), 0, "a")).To(gomega.Equal([][]float32{{0.25, -1}}))
		})
		ginkgo.It("tell of vectors that are not of the dimensions asked for, and of too few", func() {
			e := answering(http.StatusOK, "application/json", s.Reply(`[1,2,3]`))
			few := []llm.EmbedRequest{{Texts: []string{"a"}, Dimensions: 2}, {Texts: []string{"a", "b"}}}
			if s.Batch == 1 {
				few = few[:1] // each text has a reply of its own
			}
			for _, req := range few {
				_, err := e.Embed(context.Background(), req)
				var failed *llm.Error
				gomega.Expect(errors.As(err, &failed)).To(gomega.BeTrue(), "%v", err)
			}
		})
		ginkgo.It("end with their context", func() {
			reached := make(chan struct{})
			e := start(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // the server sees the client go once it has read all
				close(reached)
				<-r.Context().Done()
			}))
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			go func() { <-reached; cancel() }()
			_, err := e.Embed(ctx, llm.EmbedRequest{Texts: []string{"a"}})
			gomega.Expect(errors.Is(err, context.Canceled)).To(gomega.BeTrue(), "%v", err)
		})
		ginkgo.It("are finite numbers", func() {
			for _, f := range vectors(emulated(), 0, "a")[0] {
				gomega.Expect(math.IsNaN(float64(f)) || math.IsInf(float64(f), 0)).To(gomega.BeFalse())
			}
		})
	})
}
