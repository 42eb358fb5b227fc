package emulator_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/emulator"
)

var _ = Describe("embeddings of the emulator", func() {
	post := func(path, body string) (int, string) {
		script, err := emulator.Load("s.yaml", []byte("version: 1\nname: s\nmodels: [\"text-embedding-*\", \"gemini-embedding-001\"]\ndefault: {steps: [{text: Hi.}]}\n"))
		Expect(err).NotTo(HaveOccurred())
		handler, err := emulator.New(script, emulator.Options{})
		Expect(err).NotTo(HaveOccurred())
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer k")
		r.Header.Set("X-Goog-Api-Key", "k")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const gemini = "/v1beta/models/gemini-embedding-001"

	It("are the same numbers in every format, of norm 1", func() {
		status, text := post("/v1/embeddings", `{"model":"text-embedding-3-small","input":"sun and rain","dimensions":4}`)
		Expect(status).To(Equal(200))
		// Known answer: it holds on every machine and may not change, since recordings depend on it.
		Expect(text).To(Equal(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + known + `}],"model":"text-embedding-3-small","usage":{"prompt_tokens":3,"total_tokens":3}}` + "\n"))
		var vector []float64
		Expect(json.Unmarshal([]byte(known), &vector)).To(Succeed())
		sum := 0.0
		for _, f := range vector {
			sum += f * f
		}
		Expect(math.Sqrt(sum)).To(BeNumerically("~", 1, 1e-6))
		_, text = post(gemini+":embedContent", `{"content":{"parts":[{"text":"sun and rain"}]},"outputDimensionality":4}`)
		Expect(text).To(Equal(`{"embedding":{"values":` + known + "}}\n"))
		_, text = post(gemini+":batchEmbedContents", `{"requests":[{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"sun and rain"}]},"outputDimensionality":4}]}`)
		Expect(text).To(Equal(`{"embeddings":[{"values":` + known + "}]}\n"))
	})
	It("come as base64 where that is asked for", func() {
		_, text := post("/v1/embeddings", `{"model":"text-embedding-3-small","input":["sun"],"dimensions":1,"encoding_format":"base64"}`)
		Expect(text).To(ContainSubstring(`"embedding":"AACAPw=="`), "1 as a little-endian float of 32 bits")
	})
	DescribeTable("are refused as the vendor does", func(path, body string, status int, message string) {
		got, text := post(path, body)
		Expect(got).To(Equal(status), text)
		Expect(text).To(ContainSubstring(message))
	},
		Entry("another model", "/v1/embeddings", `{"model":"gpt-4o","input":"a"}`, 404, "model_not_found"),
		Entry("no model", "/v1/embeddings", `{"input":"a"}`, 400, "model"),
		Entry("no input", "/v1/embeddings", `{"model":"text-embedding-3-small"}`, 400, "$.input"),
		Entry("an empty text", "/v1/embeddings", `{"model":"text-embedding-3-small","input":["a",""]}`, 400, "empty string"),
		Entry("tokens", "/v1/embeddings", `{"model":"text-embedding-3-small","input":[1,2]}`, 400, "emulator_unsupported"),
		Entry("another argument", "/v1/embeddings", `{"model":"text-embedding-3-small","input":"a","messages":[]}`, 400, "Unrecognized request argument"),
		Entry("dimensions", "/v1/embeddings", `{"model":"text-embedding-3-small","input":"a","dimensions":0}`, 400, "dimensions"),
		Entry("a format", "/v1/embeddings", `{"model":"text-embedding-3-small","input":"a","encoding_format":"hex"}`, 400, "encoding_format"),
		Entry("a list", "/v1/embeddings", `[]`, 400, "want an object"),
		Entry("a path below", "/v1/embeddings/x", `{}`, 404, "Invalid URL"),
		Entry("another model", "/v1beta/models/other:batchEmbedContents", `{"requests":[]}`, 404, "NOT_FOUND"),
		Entry("no requests", gemini+":batchEmbedContents", `{"requests":[]}`, 400, "want a list"),
		Entry("a request for another model", gemini+":batchEmbedContents", `{"requests":[{"model":"models/x","content":{"parts":[{"text":"a"}]}}]}`, 400, "must match"),
		Entry("an image", gemini+":embedContent", `{"content":{"parts":[{"inlineData":{}}]}}`, 400, "EMULATOR_UNSUPPORTED"),
		Entry("no content", gemini+":embedContent", `{}`, 400, "contents is not specified"),
		Entry("another field", gemini+":embedContent", `{"text":"a"}`, 400, "Unknown name"),
	)
})

const known = `[0.41478068,0.62217104,0.41478068,0.51847583]`
