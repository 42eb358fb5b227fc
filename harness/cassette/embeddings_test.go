package cassette_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/cassette"
)

var _ = Describe("a request for embeddings", func() {
	const (
		openAI = "https://api.openai.com/v1/embeddings"
		gemini = "https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:batchEmbedContents"
		titan  = "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.titan-embed-text-v2%3A0/invoke"
		cohere = "https://bedrock-runtime.us-east-1.amazonaws.com/model/cohere.embed-v4%3A0/invoke"
	)
	bodies := map[string]string{
		openAI: `{"dimensions":4,"input":["here","there"],"model":"text-embedding-3-small"}`,
		gemini: `{"requests":[{"content":{"parts":[{"text":"here"}]},"model":"models/m","outputDimensionality":4}]}`,
		titan:  `{"dimensions":4,"inputText":"here"}`,
		cohere: `{"input_type":"clustering","output_dimension":4,"texts":["here","there"]}`,
	}

	DescribeTable("is told from another by what it is", func(url, before, after string, class cassette.Class) {
		was := cassette.Request{Method: "POST", URL: url, Body: bodies[url]}
		now := was
		now.URL, now.Body = strings.Replace(was.URL, before, after, 1), strings.Replace(was.Body, before, after, 1)
		Expect(now).NotTo(Equal(was))
		changes := cassette.Compare(was, now).Changes
		Expect(changes).To(HaveLen(1))
		Expect(changes[0].Class).To(Equal(class))
	},
		Entry("text", openAI, "there", "nowhere", cassette.ClassUserInput),
		Entry("model", openAI, "small", "large", cassette.ClassModel),
		Entry("dimensions", openAI, "4", "5", cassette.ClassParameters),
		Entry("text", gemini, "here", "nowhere", cassette.ClassUserInput),
		Entry("model", gemini, "001", "002", cassette.ClassModel),
		Entry("dimensions", gemini, `y":4`, `y":5`, cassette.ClassParameters),
		Entry("text", titan, `"here`, `"nowhere`, cassette.ClassUserInput),
		Entry("model", titan, "v2", "v1", cassette.ClassModel),
		Entry("dimensions", titan, `s":4`, `s":5`, cassette.ClassParameters),
		Entry("region", titan, "us-east-1", "eu-west-1", cassette.ClassTransport),
		Entry("text", cohere, "there", "nowhere", cassette.ClassUserInput),
		Entry("what for", cohere, "clustering", "search_query", cassette.ClassParameters),
	)

	It("is counted, and is no part of what an agent said", func() {
		file := &cassette.File{Interactions: []cassette.Interaction{
			{Request: cassette.Request{Method: "POST", URL: "https://api.openai.com/v1/chat/completions"}, Response: cassette.Response{Code: 200, Body: `{"choices":[{"message":{"content":"Hi."}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`}},
			{Request: cassette.Request{Method: "POST", URL: titan}, Response: cassette.Response{Code: 200, Body: `{"embedding":[1],"inputTextTokenCount":7}`}},
			{Request: cassette.Request{Method: "POST", URL: gemini}, Response: cassette.Response{Code: 200, Body: `{"embeddings":[{"values":[1]}]}`}},
		}}
		Expect(file.Answer()).To(Equal("Hi."))
		reply, ok := file.Interactions[1].Reply()
		Expect(ok).To(BeTrue())
		Expect(reply.Usage).To(Equal(&cassette.Usage{Input: 7}))
		reply, ok = file.Interactions[2].Reply()
		Expect(ok).To(BeTrue())
		Expect(reply.Usage).To(BeNil())
	})
})
