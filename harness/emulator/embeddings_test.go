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
		script, err := emulator.Load("s.yaml", []byte("version: 1\nname: s\nmodels: [\"text-embedding-*\", \"gemini-embedding-001\", \"*.titan-embed-*\", \"cohere.embed-*\"]\ndefault: {steps: [{text: Hi.}]}\n"))
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
	It("of Bedrock are those of the model's maker", func() {
		vector := func(text string) string {
			_, list, _ := strings.Cut(text, "[")
			list, _, _ = strings.Cut(strings.TrimPrefix(list, "["), "]")
			return list
		}
		status, text := post("/model/amazon.titan-embed-text-v2:0/invoke", `{"inputText":"sun and rain","dimensions":256}`)
		Expect(status).To(Equal(200), text)
		Expect(text).To(HavePrefix(`{"embedding":[0,`))
		Expect(text).To(ContainSubstring(`],"inputTextTokenCount":3,"embeddingsByType":{"float":[0,`))
		_, of := post("/model/cohere.embed-v4:0/invoke", `{"texts":["sun and rain","x"],"input_type":"clustering","embedding_types":["float"],"output_dimension":256}`)
		Expect(of).To(HavePrefix(`{"embeddings":{"float":[[0,`))
		Expect(vector(of)).To(Equal(vector(text)), "the numbers of the same text")
		Expect(of).To(HaveSuffix(`]]},"response_type":"embeddings_by_type","texts":["sun and rain","x"]}` + "\n"))
		_, of = post("/model/cohere.embed-english-v3/invoke", `{"texts":["a"],"input_type":"search_query"}`)
		Expect(of).To(HavePrefix(`{"embeddings":[[0,`))
		_, text = post("/model/amazon.titan-embed-text-v1/invoke", `{"inputText":"a"}`)
		Expect(text).To(HaveSuffix(`],"inputTextTokenCount":1}` + "\n"))
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
		Entry("another key for Titan", "/model/amazon.titan-embed-text-v1/invoke", `{"inputText":"a","dimensions":256}`, 400, "extraneous key [dimensions]"),
		Entry("no text for Titan", "/model/amazon.titan-embed-text-v2:0/invoke", `{}`, 400, "required key [inputText]"),
		Entry("an empty text for Titan", "/model/amazon.titan-embed-text-v2:0/invoke", `{"inputText":""}`, 400, "minLength"),
		Entry("dimensions that Titan has not", "/model/amazon.titan-embed-text-v2:0/invoke", `{"inputText":"a","dimensions":7}`, 400, "#/dimensions: 7"),
		Entry("bits", "/model/amazon.titan-embed-text-v2:0/invoke", `{"inputText":"a","embeddingTypes":["binary"]}`, 400, "floats alone"),
		Entry("no texts for Cohere", "/model/cohere.embed-v4:0/invoke", `{"texts":[],"input_type":"clustering"}`, 400, "[texts]"),
		Entry("no type for Cohere", "/model/cohere.embed-v4:0/invoke", `{"texts":["a"]}`, 400, "input_type"),
		Entry("too many texts", "/model/cohere.embed-v4:0/invoke", `{"texts":[`+strings.Repeat(`"a",`, 96)+`"a"],"input_type":"clustering"}`, 400, "found: 97"),
		Entry("a text that is none", "/model/cohere.embed-v4:0/invoke", `{"texts":[1],"input_type":"clustering"}`, 400, "#/texts/0"),
		Entry("a model that the script does not allow", "/model/other.titan-embed-text-v9/invoke", `{}`, 400, "emulator_unsupported"),
		Entry("another field", gemini+":embedContent", `{"text":"a"}`, 400, "Unknown name"),
	)
})

const known = `[0.41478068,0.62217104,0.41478068,0.51847583]`
