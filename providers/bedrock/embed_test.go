package bedrock_test

import (
	"context"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/bedrock"
)

var _ = Describe("an embedder of Bedrock", func() {
	// asked embeds a text over a server that gives the answer and the header, and returns what was sent.
	asked := func(model string, req llm.EmbedRequest, answer string, header http.Header) (*http.Request, string, llm.Embeddings) {
		GinkgoHelper()
		var sent *http.Request
		var body []byte
		e, err := bedrock.NewEmbedder(bedrock.Config{Region: "eu-west-1", Model: model}, roundTrip(func(r *http.Request) (*http.Response, error) {
			sent = r
			var err error
			body, err = io.ReadAll(r.Body)
			Expect(err).NotTo(HaveOccurred())
			return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
		}))
		Expect(err).NotTo(HaveOccurred())
		got, err := e.Embed(context.Background(), req)
		Expect(err).NotTo(HaveOccurred())
		return sent, string(body), got
	}

	It("asks Titan in its words, unsigned and with a placeholder", func() {
		req, body, got := asked("amazon.titan-embed-text-v2:0", llm.EmbedRequest{Texts: []string{"sun <&> \u2028 🌧"}, Dimensions: 2}, `{"embedding":[1,0],"inputTextTokenCount":7}`, http.Header{})
		Expect(req.Method + " " + req.URL.String()).To(Equal("POST https://bedrock-runtime.eu-west-1.amazonaws.com/model/amazon.titan-embed-text-v2%3A0/invoke"))
		Expect(req.Header).To(Equal(http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "Authorization": {"Bearer placeholder"}}))
		Expect(body).To(Equal("{\"inputText\":\"sun <&> \u2028 🌧\",\"dimensions\":2}"))
		Expect(got.Usage.InputTokens).To(Equal(7))
	})

	It("asks Cohere in its words, and counts by the header", func() {
		_, body, got := asked("eu.cohere.embed-v4:0", llm.EmbedRequest{Texts: []string{"a", "b"}}, `{"embeddings":{"float":[[1],[0.5]]}}`, http.Header{"X-Amzn-Bedrock-Input-Token-Count": {"12"}})
		Expect(body).To(Equal(`{"texts":["a","b"],"input_type":"clustering","embedding_types":["float"]}`))
		Expect(got.Vectors).To(Equal([][]float32{{1}, {0.5}}))
		Expect(got.Usage.InputTokens).To(Equal(12))
		_, _, got = asked("cohere.embed-english-v3", llm.EmbedRequest{Texts: []string{"a"}}, `{"embeddings":{"float":[[1]]}}`, http.Header{"X-Amzn-Bedrock-Input-Token-Count": {"many"}})
		Expect(got.Usage.InputTokens).To(BeZero())
	})

	It("refuses a model that is not known to embed, before anything is sent", func() {
		for _, model := range []string{"amazon.nova-lite-v1:0", "arn:aws:bedrock:us-east-1:1:application-inference-profile/x", "amazon.titan-embed-image-v1"} {
			_, err := bedrock.NewEmbedder(bedrock.Config{Model: model}, http.DefaultTransport)
			Expect(failure.CodeOf(err)).To(Equal(failure.Input), model)
			Expect(failure.Hints(err)).To(ConsistOf(ContainSubstring("cohere.embed-v4:0")))
		}
	})
})
