package cassette_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/eventstream"
	"github.com/echoeval/echoeval/providers/providertest"
)

var _ = Describe("a binary event stream", func() {
	event := providertest.ConverseEvent
	header := http.Header{"Content-Type": {eventstream.MediaType}, "X-Amzn-Requestid": {"r"}, "Date": {"d"}}
	const secretValue = "top-secret-value-0123456789"
	body := event("messageStart", `{"role":"assistant"}`) +
		event("contentBlockStart", `{"contentBlockIndex":0,"start":{"toolUse":{"name":"read_file","toolUseId":"a"}}}`) +
		event("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"text":"It is top-secret-"}}`) + event("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"text":"value-0123456789 {{"}}`) +
		event("metadata", `{"usage":{"inputTokens":5,"outputTokens":7,"totalTokens":15,"cacheReadInputTokens":3}}`)

	It("stays one where a value is taken out, in pieces too, and is filled in again", func() {
		rules, err := cassette.NewRules([]cassette.Redaction{{Name: "value", Value: secretValue}})
		Expect(err).NotTo(HaveOccurred())
		kept, sealed, applied := rules.Seal(200, header, body)
		Expect(kept).To(Equal(http.Header{"Content-Type": {eventstream.MediaType}}))
		Expect(applied).To(ContainElement("placeholder:value"))
		Expect(sealed).NotTo(Or(ContainSubstring("top-secret"), ContainSubstring("0123456789")))
		Expect(providertest.ConverseFrames([]byte(sealed))).To(Equal(5))
		for _, text := range []string{sealed, rules.Open(sealed)} {
			for n := 5; n > 0; n-- {
				_, rest, ok := eventstream.Cut(text)
				Expect(ok).To(BeTrue(), "lengths and checksums fit")
				text = rest
			}
			Expect(text).To(BeEmpty())
		}
		i := cassette.Interaction{Request: cassette.Request{Method: "POST", URL: "https://h/model/a%2Fb%3A0/converse-stream"}, Response: cassette.Response{Code: 200, Headers: kept, Body: rules.Open(sealed)}}
		reply, ok := i.Reply()
		Expect(ok).To(BeTrue())
		Expect(reply).To(Equal(cassette.Reply{Text: "It is " + secretValue + " {{", Calls: []string{"read_file"}, Usage: &cassette.Usage{Input: 8, Output: 7, Cached: 3}}))
	})

	It("is left to the byte where there is nothing to take out, also where it is cut", func() {
		rules, err := cassette.NewRules(nil)
		Expect(err).NotTo(HaveOccurred())
		for _, text := range []string{body, body[:len(body)-9]} {
			_, sealed, _ := rules.Seal(200, header, text)
			Expect(sealed).To(Equal(text))
			Expect(rules.Open(sealed)).To(Equal(text))
			Expect(cassette.Readable(text)).To(HavePrefix(`data:{"role":"assistant"}` + "\n"))
		}
	})

	It("is searched for secrets, also in pieces, and scrubbed", func() {
		file := &cassette.File{Interactions: []cassette.Interaction{{Request: cassette.Request{Method: "POST", URL: "https://h/model/m/converse-stream"}, Response: cassette.Response{Code: 200, Status: "200 OK", Headers: http.Header{"Content-Type": {eventstream.MediaType}}, Body: body}}}}
		detector := &secret.Detector{Values: []secret.Value{{Name: "value", Value: secretValue}}}
		rules, err := cassette.NewRules(nil)
		Expect(err).NotTo(HaveOccurred())
		found := cassette.Scan(file, detector, rules)
		Expect(found).To(HaveLen(1))
		Expect(found[0].Field).To(Equal("delta.text"))
		scrubbed, _, err := cassette.Scrub(file, detector, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(scrubbed.Interactions[0].Response.Body).NotTo(ContainSubstring("top-secret"))
		Expect(providertest.ConverseFrames([]byte(scrubbed.Interactions[0].Response.Body))).To(Equal(5))
	})
})

var _ = DescribeTable("a difference of two requests to Bedrock is told by what it is", func(change func(*cassette.Request), class cassette.Class) {
	was := cassette.Request{Method: "POST", URL: "https://bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Ax%2Fa%3A0/converse", Body: `{"inferenceConfig":{"maxTokens":5,"temperature":0.5},` +
		`"messages":[{"content":[{"text":"ask"}],"role":"user"},{"content":[{"toolUse":{"input":{"a":1},"name":"t","toolUseId":"x"}}],"role":"assistant"},{"content":[{"toolResult":{"content":[{"text":"result"}],"toolUseId":"x"}}],"role":"user"}],` +
		`"system":[{"text":"brief"}],"toolConfig":{"tools":[{"toolSpec":{"description":"does","inputSchema":{"json":{"type":"object"}},"name":"t"}}]}}`}
	now := was
	change(&now)
	Expect(now).NotTo(Equal(was))
	Expect(cassette.Compare(was, now).Changes[0].Class).To(Equal(class))
},
	Entry("model", func(r *cassette.Request) { r.URL = strings.Replace(r.URL, "%2Fa", "%2Fb", 1) }, cassette.ClassModel),
	Entry("a stream", func(r *cassette.Request) { r.URL += "-stream" }, cassette.ClassParameters),
	Entry("region", func(r *cassette.Request) { r.URL = strings.Replace(r.URL, "us-east-1", "eu-west-1", 1) }, cassette.ClassTransport),
	Entry("system", func(r *cassette.Request) { r.Body = strings.Replace(r.Body, "brief", "long", 1) }, cassette.ClassSystemPrompt),
	Entry("user", func(r *cassette.Request) { r.Body = strings.Replace(r.Body, "ask", "beg", 1) }, cassette.ClassUserInput),
	Entry("arguments", func(r *cassette.Request) { r.Body = strings.Replace(r.Body, `"a":1`, `"a":2`, 1) }, cassette.ClassToolArguments),
	Entry("result", func(r *cassette.Request) { r.Body = strings.Replace(r.Body, "result", "answer", 1) }, cassette.ClassToolResult),
	Entry("description", func(r *cassette.Request) { r.Body = strings.Replace(r.Body, "does", "makes", 1) }, cassette.ClassToolDescription),
	Entry("schema", func(r *cassette.Request) {
		r.Body = strings.Replace(r.Body, `"type":"object"`, `"type":"array"`, 1)
	}, cassette.ClassToolSchema),
	Entry("sampling", func(r *cassette.Request) { r.Body = strings.Replace(r.Body, "0.5", "0.6", 1) }, cassette.ClassSampling),
	Entry("a point behind the instructions", func(r *cassette.Request) {
		r.Body = strings.Replace(r.Body, `{"text":"brief"}`, `{"text":"brief"},{"cachePoint":{"type":"default"}}`, 1)
	}, cassette.ClassTransport),
	Entry("a point behind the conversation", func(r *cassette.Request) {
		r.Body = strings.Replace(r.Body, `"toolUseId":"x"}}],"role":"user"`, `"toolUseId":"x"}},{"cachePoint":{"type":"default","ttl":"1h"}}],"role":"user"`, 1)
	}, cassette.ClassTransport),
	Entry("limit", func(r *cassette.Request) { r.Body = strings.Replace(r.Body, `maxTokens":5`, `maxTokens":6`, 1) }, cassette.ClassParameters),
)
