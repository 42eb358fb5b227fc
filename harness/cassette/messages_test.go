package cassette_test

import (
	"net/http"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/cassette"
)

const messagesURL = "https://api.anthropic.com/v1/messages"

const messages = `{"model":"claude-haiku-4-5","max_tokens":100,"stream":true,"temperature":0.2,
"system":[{"type":"text","text":"You triage patients. Urgent cases call 112 at once."}],
"messages":[
 {"role":"user","content":[{"type":"text","text":"Chest pain"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},
 {"role":"assistant","content":[{"type":"thinking","thinking":"Hm","signature":"c2ln"},{"type":"text","text":"Let me look."},{"type":"tool_use","id":"toolu_1","name":"contacts","input":{"of":"p-1"}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"{\"rows\":[]}"}]},{"type":"text","text":"And now?"}]}],
"tools":[{"name":"contacts","description":"Contacts of a patient","input_schema":{"type":"object","properties":{"of":{"type":"string","description":"patient id"}}}}]}`

func messagesRequest(body string, header http.Header) cassette.Request {
	r, _ := cassette.Canonical("POST", messagesURL, header, []byte(body), nil)
	return r
}

var _ = Describe("two requests for messages", func() {
	DescribeTable("differ by the same classes as those of other vendors", func(old, new string, class cassette.Class, path string) {
		Expect(messages).To(ContainSubstring(old))
		d := cassette.Compare(messagesRequest(messages, nil), messagesRequest(strings.Replace(messages, old, new, 1), nil))
		Expect(d.Changes).To(HaveLen(1))
		Expect(d.Changes[0]).To(And(HaveField("Class", class), HaveField("Path", path)))
	},
		Entry(nil, "haiku", "opus", cassette.ClassModel, "model"),
		Entry(nil, "call 112", "call 911", cassette.ClassSystemPrompt, "system[0].text"),
		Entry(nil, `"name":"contacts","description"`, `"name":"people","description"`, cassette.ClassToolSchema, "tools[0].name"),
		Entry(nil, `"type":"string"`, `"type":"integer"`, cassette.ClassToolSchema, "tools[0].input_schema.properties.of.type"),
		Entry(nil, "Contacts of a patient", "All contacts", cassette.ClassToolDescription, "tools[0].description"),
		Entry(nil, "patient id", "id", cassette.ClassToolDescription, "tools[0].input_schema.properties.of.description"),
		Entry(nil, "Chest pain", "Head ache", cassette.ClassUserInput, "messages[0].content[0].text"),
		Entry(nil, `"AAAA"`, `"AAAB"`, cassette.ClassUserInput, "messages[0].content[1].source.data"),
		Entry("a text beside a result", "And now?", "And then?", cassette.ClassUserInput, "messages[2].content[1].text"),
		Entry(nil, "Let me look.", "I look.", cassette.ClassHistory, "messages[1].content[1].text"),
		Entry("a signature", "c2ln", "c2lu", cassette.ClassHistory, "messages[1].content[0].signature"),
		Entry(nil, `p-1`, `p-2`, cassette.ClassToolArguments, "messages[1].content[2].input.of"),
		Entry(nil, `{\"rows\":[]}`, `{\"rows\":[1]}`, cassette.ClassToolResult, "messages[2].content[0].content[0].text"),
		Entry("a result that becomes an error", `"toolu_1","content"`, `"toolu_1","is_error":true,"content"`, cassette.ClassToolResult, "messages[2].content[0].is_error"),
		Entry(nil, `:100`, `:200`, cassette.ClassParameters, "max_tokens"),
		Entry(nil, `"stream":true`, `"stream":true,"thinking":{"type":"adaptive"}`, cassette.ClassParameters, "thinking"),
		Entry(nil, `0.2`, `0.3`, cassette.ClassSampling, "temperature"),
		Entry(nil, `"stream":true`, `"stream":true,"metadata":{"user_id":"x"}`, cassette.ClassTransport, "metadata"),
		Entry("a mark for the cache", `at once."}`, `at once.","cache_control":{"type":"ephemeral"}}`, cassette.ClassTransport, "system[0].cache_control"),
	)

	It("differ in a message of results as a result, not as the user's", func() {
		less := messages[:strings.Index(messages, ",\n {\"role\":\"user\",\"content\":[{\"type\":\"tool_result\"")] + `],` + messages[strings.Index(messages, `"tools"`):]
		d := cassette.Compare(messagesRequest(less, nil), messagesRequest(messages, nil))
		Expect(d.Changes).To(HaveExactElements(And(HaveField("Class", cassette.ClassToolResult), HaveField("Path", "messages[2]"))))
		Expect(d.Prefix).To(Equal(2))
	})

	It("keep the version and the features of the API, and no key", func() {
		r := messagesRequest(messages, http.Header{"Anthropic-Version": {"2026-10-21"}, "Anthropic-Beta": {"a"}, "X-Api-Key": {"sk-ant-secret"}, "Authorization": {"Bearer x"}, "X-Stainless-Lang": {"go"}})
		Expect(r.Headers).To(Equal(http.Header{"Anthropic-Version": {"2026-10-21"}, "Anthropic-Beta": {"a"}}))
		other := messagesRequest(messages, http.Header{"Anthropic-Version": {"2023-06-01"}, "Anthropic-Beta": {"a"}})
		Expect(classes(r, other)).To(Equal([]cassette.Class{cassette.ClassTransport}))
	})

	It("are evened out part by part", func() {
		for _, c := range []struct{ part, old, new string }{
			{"system", "call 112", "call 911"}, {"user", "Chest pain", "Head ache"}, {"user", "And now?", "And then?"}, {"tool", `{\"rows\":[]}`, `{\"rows\":[1]}`}, {"any", "Let me look.", "I look."}, {"any", "Contacts of a patient", "All contacts"},
		} {
			n := cassette.NewNormalizer([]cassette.Normalization{{In: cassette.Part(c.part), Regex: regexp.MustCompile(`(?s).+`), As: "x"}})
			a, _ := n.Request(messagesRequest(messages, nil))
			b, _ := n.Request(messagesRequest(strings.Replace(messages, c.old, c.new, 1), nil))
			Expect(cassette.KeyOf(a)).To(Equal(cassette.KeyOf(b)), "%s: %s", c.part, c.old)
		}
	})
})

var _ = Describe("what a reply of messages says", func() {
	read := func(header http.Header, body string) cassette.Reply {
		GinkgoHelper()
		i := cassette.Interaction{Request: cassette.Request{Method: "POST", URL: messagesURL}, Response: cassette.Response{Code: 200, Headers: header, Body: body}}
		r, ok := i.Reply()
		Expect(ok).To(BeTrue())
		return r
	}

	It("is the same whole and streamed, with the tokens that the cache had", func() {
		want := cassette.Reply{Text: "Looking.", Calls: []string{"f", "g"}, Usage: &cassette.Usage{Input: 40, Output: 9, Cached: 30, Written: 3, Reasoning: 4}}
		Expect(read(nil, `{"type":"message","content":[{"type":"thinking","thinking":"Hm"},{"type":"text","text":"Looking."},{"type":"tool_use","name":"f","input":{"text":"x","name":"y"}},{"type":"tool_use","name":"g","input":{}}],"usage":{"input_tokens":7,"cache_creation_input_tokens":3,"cache_read_input_tokens":30,"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}}`)).To(Equal(want))
		stream := func(delta string) string {
			var b strings.Builder
			for _, data := range []string{
				`{"type":"message_start","message":{"content":[],"usage":{"input_tokens":7,"cache_creation_input_tokens":3,"cache_read_input_tokens":30,"output_tokens":1}}}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Look"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ing."}}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","name":"f","input":{}}}`, `{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","name":"g","input":{}}}`,
				delta, `{"type":"message_stop"}`,
			} {
				b.WriteString("event: x\ndata: " + data + "\n\n")
			}
			return b.String()
		}
		header := http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}
		Expect(read(header, stream(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"input_tokens":7,"cache_creation_input_tokens":3,"cache_read_input_tokens":30,"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}}`))).To(Equal(want))
		short := read(header, stream(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`))
		Expect(short.Usage).To(Equal(&cassette.Usage{Input: 40, Output: 9, Cached: 30, Written: 3}), "an older stream counts its input once")
	})
})
