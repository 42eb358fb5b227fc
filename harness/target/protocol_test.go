package target_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/target"
)

var _ = Describe("the protocol", func() {
	It("asks in one line of JSON, the conversation in OpenAI's form", func() {
		vars, err := strict.Parse("d.yaml", []byte("{clinic: North}"))
		Expect(err).NotTo(HaveOccurred())
		q := target.Question{
			Session: "chest-pain/haiku/1", Turn: 2, Vars: vars, Hidden: conversation.Hidden{"tenant_id": `"t-1"`}, Workspace: "/work/x", Provider: "haiku", Vendor: "anthropic", Model: "claude-haiku-4-5", Now: "2026-01-05T09:00:00Z", Seed: 7,
			Messages: []conversation.Message{
				conversation.User("u", conversation.Text{Text: "Hallo"}),
				conversation.Assistant("a", conversation.ToolCall{ID: "c1", Name: "find", Input: `{"of":1}`}),
				conversation.ToolResults("a", conversation.ToolResult{ID: "c1", Result: `{"rows":[]}`}),
				conversation.Assistant("a", conversation.Text{Text: "Nothing."}),
				conversation.User("u", conversation.Text{Text: "What\nis "}, conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceBase64, Data: "QUJD"}}, conversation.Text{Text: "this?"}),
			},
		}
		line := string(q.AppendJSON(nil))
		Expect(line).NotTo(ContainSubstring("\n"))
		Expect(line).To(MatchJSON(`{"v":1,"session":"chest-pain/haiku/1","turn":2,"input":"What\nis this?","messages":[
			{"role":"user","content":"Hallo"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"find","arguments":"{\"of\":1}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"{\"rows\":[]}"},
			{"role":"assistant","content":"Nothing."},
			{"role":"user","content":[{"type":"text","text":"What\nis "},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}},{"type":"text","text":"this?"}]}],
			"vars":{"clinic":"North"},"tool_context":{"tenant_id":"t-1"},"workspace":"/work/x","provider":{"id":"haiku","vendor":"anthropic","model":"claude-haiku-4-5"},"now":"2026-01-05T09:00:00Z","seed":7}`))
	})

	It("takes an output, with messages and usage where these pass by", func() {
		a, err := target.DecodeAnswer([]byte(`{"output":"42","messages":[{"role":"user","content":"dropped"},{"role":"assistant","content":"42"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`+"\n"), "m")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Output).To(Equal("42"))
		Expect(a.Messages).To(HaveLen(1))
		Expect(*a.Usage).To(Equal(conversation.Usage{InputTokens: 5, OutputTokens: 2}))
		a, err = target.DecodeAnswer([]byte(`{"error":"no"}`), "m")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Error).To(Equal("no"))
	})

	DescribeTable("takes nothing else", func(text, want string) {
		_, err := target.DecodeAnswer([]byte(text), "m")
		Expect(err).To(MatchError(ContainSubstring(want)))
	},
		Entry("nothing", " \n", "answered nothing"),
		Entry("a text", "Hello", "wrote something else"),
		Entry("a list", "[]", "wrote something else"),
		Entry("neither", "{}", `neither "output" nor "error"`),
		Entry("both", `{"output":"a","error":"b"}`, "an output and an error"),
		Entry("an error without words", `{"error":" "}`, "an error that says nothing"),
		Entry("an output that is no text", `{"output":{"a":1}}`, "output"),
		Entry("a misspelt key", `{"outptu":"a"}`, "outptu"),
		Entry("two answers", `{"output":"a"} {"output":"b"}`, "wrote something else"),
		Entry("a negative number of tokens", `{"output":"a","usage":{"prompt_tokens":-1}}`, "negative"),
		Entry("a message of nobody", `{"output":"a","messages":[{"role":"ghost","content":"boo"}]}`, `unknown role "ghost"`),
	)
})

// FuzzDecodeAnswer gives the decoder what programs may write: it takes an answer or says why not, and what it took is an answer still when it is written again.
func FuzzDecodeAnswer(f *testing.F) {
	for _, s := range []string{`{"output":"42"}`, `{"error":"no"}`, `{"output":"a","messages":[{"role":"assistant","content":[{"type":"text","text":"a"}],"tool_calls":[{"id":"c","function":{"name":"n","arguments":"{"}}]},{"role":"tool","tool_call_id":"c","content":"[1]"}],"usage":{"prompt_tokens":1}}`, "{", `{"output":null}`, `{"output":"\ud800"}`, "[]", `{"output":"a"}x`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := target.DecodeAnswer([]byte(s), "m")
		if err != nil {
			if a.Output != "" || a.Error != "" {
				t.Fatalf("%q is refused and taken", s)
			}
			return
		}
		key, text := "output", a.Output
		if a.Error != "" {
			key, text = "error", a.Error
		}
		again, err := json.Marshal(map[string]string{key: text})
		if err != nil {
			t.Fatal(err)
		}
		b, err := target.DecodeAnswer(again, "m")
		if err != nil || b.Output != a.Output || strings.TrimSpace(b.Error) != strings.TrimSpace(a.Error) {
			t.Fatalf("%q gave %q, and that %q, %v", s, again, b.Output, err)
		}
		q := target.Question{Messages: a.Messages}
		if !json.Valid(q.AppendJSON(nil)) {
			t.Fatalf("%q gives a question that is no JSON: %s", s, q.AppendJSON(nil))
		}
	})
}
