package cassette_test

import (
	"net/http"
	"path/filepath"
	"strings"

	vcr "github.com/dnaeon/go-vcr/v2/cassette"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/harness/cassette"
)

const geminiURL = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"

const geminiChat = `{"systemInstruction":{"parts":[{"text":"You triage patients. Urgent cases call 112 at once."}]},
"contents":[
 {"role":"user","parts":[{"text":"Chest pain"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]},
 {"role":"model","parts":[{"text":"Let me look."},{"functionCall":{"id":"1","name":"contacts","args":{"of":{"id":"p-1"}}},"thoughtSignature":"Yw=="}]},
 {"role":"user","parts":[{"functionResponse":{"id":"1","name":"contacts","response":{"result":"{\"rows\":[]}"}}}]},
 {"role":"model","parts":[{"text":"Nobody there."}]},
 {"role":"user","parts":[{"text":"And now?"}]}],
"tools":[{"functionDeclarations":[{"name":"contacts","description":"Contacts of a patient","parameters":{"type":"object","properties":{"of":{"type":"string","description":"patient id"}}}}]}],
"generationConfig":{"maxOutputTokens":100,"temperature":0.2,"thinkingConfig":{"thinkingBudget":128}}}`

func geminiCanonical(url, body string) cassette.Request {
	r, _ := cassette.Canonical("POST", url, http.Header{"X-Goog-Api-Key": {"k"}, "X-Goog-Api-Client": {"sdk"}, "Content-Type": {"application/json"}}, []byte(body), nil)
	return r
}

var _ = Describe("requests of the Gemini API", func() {
	DescribeTable("differ by the same classes", func(old, new string, class cassette.Class, path string) {
		Expect(geminiChat).To(ContainSubstring(old))
		d := cassette.Compare(geminiCanonical(geminiURL, geminiChat), geminiCanonical(geminiURL, strings.Replace(geminiChat, old, new, 1)))
		Expect(d.Changes).NotTo(BeEmpty())
		Expect(d.Changes[0].Class).To(Equal(class))
		Expect(d.Changes[0].Path).To(Equal(path))
	},
		Entry(nil, "call 112", "call 911", cassette.ClassSystemPrompt, "systemInstruction.parts[0].text"),
		Entry(nil, `"name":"contacts","description"`, `"name":"people","description"`, cassette.ClassToolSchema, "tools[0].functionDeclarations[0].name"),
		Entry(nil, `"type":"string"`, `"type":"integer"`, cassette.ClassToolSchema, "tools[0].functionDeclarations[0].parameters.properties.of.type"),
		Entry(nil, "Contacts of a patient", "All contacts", cassette.ClassToolDescription, "tools[0].functionDeclarations[0].description"),
		Entry(nil, "patient id", "id", cassette.ClassToolDescription, "tools[0].functionDeclarations[0].parameters.properties.of.description"),
		Entry(nil, "Chest pain", "Pain", cassette.ClassUserInput, "contents[0].parts[0].text"),
		Entry(nil, "AAAA", "AAAB", cassette.ClassUserInput, "contents[0].parts[1].inlineData.data"),
		Entry(nil, "Let me look.", "I look.", cassette.ClassHistory, "contents[1].parts[0].text"),
		Entry(nil, "Yw==", "Zg==", cassette.ClassHistory, "contents[1].parts[1].thoughtSignature"),
		Entry(nil, "p-1", "p-2", cassette.ClassToolArguments, "contents[1].parts[1].functionCall.args.of.id"),
		Entry(nil, `[]}"}`, `[1]}"}`, cassette.ClassToolResult, "contents[2].parts[0].functionResponse.response.result"),
		Entry(nil, `0.2`, `0.3`, cassette.ClassSampling, "generationConfig.temperature"),
		Entry(nil, `:100`, `:200`, cassette.ClassParameters, "generationConfig.maxOutputTokens"),
		Entry(nil, `:128`, `:64`, cassette.ClassParameters, "generationConfig.thinkingConfig.thinkingBudget"),
		Entry(nil, `"contents"`, `"labels":{},"contents"`, cassette.ClassTransport, "labels"),
	)

	It("name the model in their address", func() {
		base := geminiCanonical(geminiURL, geminiChat)
		class := func(url string) cassette.Class {
			return cassette.Compare(base, geminiCanonical(url, geminiChat)).Changes[0].Class
		}
		Expect(class(strings.Replace(geminiURL, "2.5", "3", 1))).To(Equal(cassette.ClassModel))
		Expect(class(strings.Replace(geminiURL, "streamGenerateContent?alt=sse", "generateContent", 1))).To(Equal(cassette.ClassParameters))
		Expect(class(strings.Replace(geminiURL, "generativelanguage", "eu", 1))).To(Equal(cassette.ClassTransport))
		Expect(class(strings.Replace(geminiURL, ":streamGenerateContent", ":countTokens", 1))).To(Equal(cassette.ClassOther))
	})

	It("keep no key, neither of the header nor of the address", func() {
		r := geminiCanonical(geminiURL+"&key=AIzaSecret", geminiChat)
		Expect(r.URL).To(HaveSuffix("?alt=sse&key=%7B%7Bechoeval%3Acredential%7D%7D"))
		Expect(r.Headers).To(Equal(http.Header{"Content-Type": {"application/json"}}))
	})

	It("are normalised part by part", func() {
		for part, want := range map[cassette.Part]string{cassette.PartSystem: "call 112", cassette.PartUser: "Chest", cassette.PartTool: "rows", cassette.PartAny: "p-1"} {
			rule, err := cassette.NewNormalization(part, "call 112|Chest|rows|p-1", "x")
			Expect(err).NotTo(HaveOccurred())
			r, applied := cassette.NewNormalizer([]cassette.Normalization{rule}).Request(geminiCanonical(geminiURL, geminiChat))
			Expect(applied).To(Equal([]string{"normalize:x"}))
			Expect(r.Body).NotTo(ContainSubstring(want))
			if part != cassette.PartAny {
				Expect(strings.Count(r.Body, "{{echoeval:=x}}")).To(Equal(1))
			}
		}
	})

	It("have replies that are read in every form", func() {
		frames := []string{
			`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"Fi"}]}}],"usageMetadata":{"promptTokenCount":5}}`,
			`{"candidates":[{"content":{"parts":[{"text":"ne."},{"functionCall":{"name":"look","args":{"name":"x"}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"thoughtsTokenCount":3,"cachedContentTokenCount":4}}`,
		}
		for contentType, body := range map[string]string{
			"text/event-stream": "data: " + frames[0] + "\r\n\r\ndata: " + frames[1] + "\r\n\r\n",
			"application/json":  "[" + frames[0] + "\n,\r\n" + frames[1] + "\n]",
		} {
			i := cassette.Interaction{Request: geminiCanonical(geminiURL, geminiChat), Response: cassette.Response{Code: 200, Headers: http.Header{"Content-Type": {contentType}}, Body: body}}
			reply, ok := i.Reply()
			Expect(ok).To(BeTrue())
			Expect(reply).To(Equal(cassette.Reply{Text: "Fine.", Calls: []string{"look"}, Usage: &cassette.Usage{Input: 5, Output: 5, Cached: 4, Reasoning: 3}}))
		}
	})

	It("are read and classified in real traffic", func() {
		paths, err := filepath.Glob(filepath.Join(suite.SharedData("cassettes", "go-vcr-v2"), "*", "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		pairs, replies := 0, 0
		for _, path := range paths {
			c, err := vcr.Load(strings.TrimSuffix(path, ".yaml"))
			Expect(err).NotTo(HaveOccurred())
			var previous *cassette.Request
			for _, x := range c.Interactions {
				if !strings.Contains(x.URL, "enerateContent") {
					continue
				}
				r := geminiCanonical(x.URL, x.Request.Body)
				i := cassette.Interaction{Request: r, Response: cassette.Response{Code: x.Code, Headers: http.Header{"Content-Type": {"text/event-stream"}}, Body: x.Response.Body}}
				reply, ok := i.Reply()
				Expect(ok).To(BeTrue(), path)
				Expect(reply.Text != "" || len(reply.Calls) > 0).To(BeTrue(), path)
				Expect(reply.Usage.Output).To(BeNumerically(">", 0))
				replies++
				if previous != nil {
					d := cassette.Compare(*previous, r)
					Expect(d.Changes).NotTo(BeEmpty())
					Expect(d.Changes[0].Class).To(BeElementOf(cassette.ClassHistory, cassette.ClassToolResult), "%s: %v", path, d.Changes)
					Expect(d.Prefix).To(BeNumerically(">", 0))
					pairs++
				}
				previous = &r
			}
		}
		Expect(pairs).To(BeNumerically(">=", 9))
		Expect(replies).To(BeNumerically(">=", 18))
	})
})
