package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/openai"
	"github.com/echoeval/echoeval/providers/providertest"
)

// replying answers every request with one body and keeps what was asked.
type replying struct {
	body  string
	asked string
	url   string
}

func (r *replying) RoundTrip(req *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.asked, r.url = string(data), req.URL.String()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(r.body)), Request: req}, nil
}

var _ = Describe("embeddings", func() {
	embed := func(rt http.RoundTripper, config openai.Config, texts ...string) (llm.Embeddings, error) {
		config.Model = "text-embedding-3-small"
		e, err := openai.NewEmbedder(config, rt)
		Expect(err).NotTo(HaveOccurred())
		return e.Embed(context.Background(), llm.EmbedRequest{Texts: texts})
	}
	It("are read from real replies, which have them as base64", func() {
		recordings := providertest.Recordings("vcrpy-v1", "/v1/embeddings")
		read := 0
		for _, r := range recordings {
			var asked struct{ Input []string }
			if r.Status != http.StatusOK || json.Unmarshal(r.Request, &asked) != nil {
				continue
			}
			got, err := embed(&replying{body: string(r.Body)}, openai.Config{}, asked.Input...)
			Expect(err).NotTo(HaveOccurred(), r.File)
			Expect(got.Model).To(Equal("text-embedding-3-small"))
			Expect(got.Usage.InputTokens).To(BeNumerically(">", 0))
			for _, v := range got.Vectors {
				Expect(v).To(HaveLen(1536))
				sum := 0.0
				for _, f := range v {
					sum += float64(f) * float64(f)
				}
				Expect(sum).To(BeNumerically("~", 1, 1e-4), "the vendor's vectors have norm 1")
				read++
			}
		}
		AddReportEntry("read", fmt.Sprintf("%d vectors of %d exchanges", read, len(recordings)))
		Expect(read).To(BeNumerically(">", 5), "no recorded embedding was read")
	})
	It("are put in the order of their index", func() {
		got, err := embed(&replying{body: `{"data":[{"index":1,"embedding":[2]},{"index":0,"embedding":"AACAPw=="}]}`}, openai.Config{}, "a", "b")
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Vectors).To(Equal([][]float32{{1}, {2}}))
		got, err = embed(&replying{body: `{"data":[{"embedding":[1]},{"embedding":[2]}]}`}, openai.Config{}, "a", "b")
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Vectors).To(Equal([][]float32{{1}, {2}}), "a server that numbers none keeps the order")
	})
	It("are asked for with the text as it is, the query of the address and the members of the server's own", func() {
		rt := &replying{body: `{"data":[{"index":0,"embedding":[1]}]}`}
		_, err := embed(rt, openai.Config{BaseURL: "http://h/v1?api-version=1", Quirks: &openai.Quirks{Extra: `{"truncate":true}`}}, "a\nb <c> é")
		Expect(err).NotTo(HaveOccurred())
		Expect(rt.url).To(Equal("http://h/v1/embeddings?api-version=1"))
		Expect(rt.asked).To(MatchJSON(`{"input":["a\nb <c> é"],"model":"text-embedding-3-small","encoding_format":"float","truncate":true}`))
	})
	DescribeTable("are no answer where they belong to no text", func(body string) {
		_, err := embed(&replying{body: body}, openai.Config{}, "a", "b")
		var failed *llm.Error
		Expect(errors.As(err, &failed)).To(BeTrue(), "%v", err)
	},
		Entry("twice the same index", `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}`),
		Entry("an index outside", `{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[2]}]}`),
		Entry("a negative index", `{"data":[{"index":0,"embedding":[1]},{"index":-1,"embedding":[2]}]}`),
		Entry("vectors of two lengths", `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[2,3]}]}`),
		Entry("base64 that is cut", `{"data":[{"index":0,"embedding":"AACA"},{"index":1,"embedding":[2]}]}`),
		Entry("base64 of no number", `{"data":[{"index":0,"embedding":"AADAfw=="},{"index":1,"embedding":[2]}]}`),
		Entry("text that is no base64", `{"data":[{"index":0,"embedding":"?"},{"index":1,"embedding":[2]}]}`),
	)
})
