package conversation_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
)

// full uses every field of every part.
func full() conversation.Context {
	GinkgoHelper()
	extras := conversation.Extras{}.With("openai", `{"id":"x"}`).With("anthropic", `"sig"`)
	c, err := conversation.New(conversation.Hidden{"tenant": `"t-7"`, "limit": `12345678901234567890`}).
		WithSystem("trace", `[1,2]`).WithSummary("earlier\n").
		Append(
			conversation.NewMessage(conversation.RoleSystem, "m0", conversation.Text{Text: "be brief"}),
			conversation.User("m1", conversation.Text{Text: "a"}, conversation.Image{MediaType: "image/png", Source: web}, conversation.Image{MediaType: "image/gif", Source: png}, conversation.Document{MediaType: "application/pdf", Source: png}, conversation.Document{MediaType: "application/pdf", Name: "n.pdf", Source: web}, conversation.Text{Text: ""}).WithTime(1700000000),
			conversation.Assistant("m2", conversation.Reasoning{Text: "", Extras: extras}, conversation.Text{Text: "ok", Extras: extras}, conversation.ToolCall{ID: "c1", Name: "f", Input: `{"n":123456789012345678901234567890,"x":1.50}`, Extras: extras}, conversation.ToolCall{ID: "c2", Name: "g", Input: `{}`}).
				WithUsage(conversation.Usage{InputTokens: 10, OutputTokens: 5, LatencyMS: 7, CacheReadTokens: 3, CacheWriteTokens: 2, ReasoningTokens: 1}).WithTime(0),
			conversation.ToolResults("m2", conversation.ToolResult{ID: "c1", Result: `"text"`, Meta: `{"m":1}`}, conversation.ToolResult{ID: "c2", Result: `null`, IsError: true}),
			conversation.Assistant("m3"),
		)
	Expect(err).NotTo(HaveOccurred())
	return c
}

var _ = Describe("the codec", func() {
	It("has one form", func() {
		text := string(full().AppendJSON(nil))
		Expect(text).To(Equal(`{"messages":[` +
			`{"role":"system","content":[{"type":"text","text":"be brief"}],"usage":null,"timestamp":null,"msg_id":"m0"},` +
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","media_type":"image/png","source_type":"url","data":null,"url":"https://example.com/i.png"},` +
			`{"type":"image","media_type":"image/gif","source_type":"base64","data":"aGk=","url":null},{"type":"document","media_type":"application/pdf","source_type":"base64","data":"aGk=","url":null,"name":null},` +
			`{"type":"document","media_type":"application/pdf","source_type":"url","data":null,"url":"https://example.com/i.png","name":"n.pdf"},{"type":"text","text":""}],"usage":null,"timestamp":1700000000,"msg_id":"m1"},` +
			`{"role":"assistant","content":[{"type":"reasoning","text":"","extras":{"anthropic":"sig","openai":{"id":"x"}}},{"type":"text","text":"ok","extras":{"anthropic":"sig","openai":{"id":"x"}}},` +
			`{"type":"tool_call","tool_call_id":"c1","tool_name":"f","tool_input":{"n":123456789012345678901234567890,"x":1.50},"extras":{"anthropic":"sig","openai":{"id":"x"}}},{"type":"tool_call","tool_call_id":"c2","tool_name":"g","tool_input":{}}],` +
			`"usage":{"in_t":10,"op_t":5,"latency_ms":7,"cache_write_t":2,"cache_read_t":3,"reasoning_t":1},"timestamp":0,"msg_id":"m2"},` +
			`{"role":"tool","content":[{"type":"tool_result","tool_call_id":"c1","result":"text","meta":{"m":1}},{"type":"tool_result","tool_call_id":"c2","result":null,"meta":null,"is_error":true}],"usage":null,"timestamp":null,"msg_id":"m2"},` +
			`{"role":"assistant","content":[],"usage":null,"timestamp":null,"msg_id":"m3"}],` +
			`"conversation_summary":"earlier\n","system_context":{"tool_context":{"limit":12345678901234567890,"tenant":"t-7"},"trace":[1,2]}}`))
	})

	It("reads what it wrote", func() {
		c := full()
		data, err := json.Marshal(c)
		Expect(err).NotTo(HaveOccurred())
		back, warnings, err := conversation.Decode(data)
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(BeEmpty())
		Expect(back).To(Equal(c))
		var again conversation.Context
		Expect(json.Unmarshal(data, &again)).To(Succeed())
		Expect(again).To(Equal(c))
		for i, m := range c.Messages() {
			text, err := json.Marshal(m)
			Expect(err).NotTo(HaveOccurred())
			var back conversation.Message
			Expect(json.Unmarshal(text, &back)).To(Succeed())
			Expect(back).To(Equal(m), "message %d", i)
			Expect(back.Equal(m)).To(BeTrue())
		}
		Expect(conversation.DecodeUsage([]byte(`{"in_t":1,"new":2}`))).To(Equal(conversation.Usage{InputTokens: 1}))
		_, err = conversation.DecodeUsage([]byte(`[]`))
		Expect(err).To(HaveOccurred())
		Expect(string(conversation.Context{}.AppendJSON(nil))).To(Equal(`{"messages":[],"conversation_summary":null,"system_context":{}}`))
	})

	DescribeTable("keeps the arguments of a call as the model wrote them", func(input, encoded string) {
		m := conversation.Assistant("m", conversation.ToolCall{ID: "c", Name: "f", Input: conversation.JSON(input)})
		text := string(m.AppendJSON(nil))
		Expect(text).To(ContainSubstring(`"tool_name":"f",` + encoded + `}`))
		Expect(text).NotTo(ContainSubstring("\n"), "it stands on one line of a file")
		back, err := conversation.DecodeMessage([]byte(text))
		Expect(err).NotTo(HaveOccurred())
		Expect(back.ToolCalls()[0].Input).To(Equal(conversation.JSON(input)))
	},
		Entry("an object", `{"a": 1, "b":[ ]}`, `"tool_input":{"a": 1, "b":[ ]}`),
		Entry("an object on several lines", "{\n  \"a\": 1.0\n}", `"tool_input":{"a":1.0},"tool_input_raw":"{\n  \"a\": 1.0\n}"`),
		Entry("an object with space around", " {} ", `"tool_input":{},"tool_input_raw":" {} "`),
		Entry("white space", " \n", `"tool_input":{},"tool_input_raw":" \n"`),
		Entry("cut off", `{"a":"x`, `"tool_input":null,"tool_input_raw":"{\"a\":\"x"`),
		Entry("cut off on several lines", "{\n\"a\":", `"tool_input":null,"tool_input_raw":"{\n\"a\":"`),
		Entry("a key twice", `{"a":1,"a":2}`, `"tool_input":null,"tool_input_raw":"{\"a\":1,\"a\":2}"`),
		Entry("no object", `[1]`, `"tool_input":null,"tool_input_raw":"[1]"`),
		Entry("null", `null`, `"tool_input":null,"tool_input_raw":"null"`),
		Entry("huge integers", `{"a":123456789012345678901234567890123456789}`, `"tool_input":{"a":123456789012345678901234567890123456789}`),
		Entry("escapes", `{"a":"\u00e9\u2028\/"}`, `"tool_input":{"a":"\u00e9\u2028\/"}`),
	)

	It("takes no arguments for an empty object", func() {
		m := conversation.Assistant("m", conversation.ToolCall{ID: "c", Name: "f"})
		back, err := conversation.DecodeMessage(m.AppendJSON(nil))
		Expect(err).NotTo(HaveOccurred())
		Expect(back.ToolCalls()[0].Input).To(Equal(conversation.JSON(`{}`)))
		Expect(back.Equal(m)).To(BeTrue())
	})

	It("replaces bytes that are no UTF-8, once", func() {
		m := conversation.NewMessage("r\xff", "id\xff",
			conversation.Text{Text: "a\xffb\xc3"}, conversation.ToolCall{ID: "c\xff", Name: "f\xff", Input: "{\"a\":\"\xff\"}"}, conversation.ToolResult{ID: "r", Result: "\"\xff\"", Meta: "{"},
			conversation.Image{MediaType: "m\xff", Source: conversation.Source{Type: "t\xff", Data: "\xff", URL: "\xff"}})
		text := m.AppendJSON(nil)
		Expect(string(text)).To(ContainSubstring(`"text":"a` + "\ufffd" + `b` + "\ufffd" + `"`))
		Expect(string(text)).To(ContainSubstring(`"tool_input":{"a":"` + "\ufffd" + `"}`))
		Expect(string(text)).To(ContainSubstring(`"result":"` + "\ufffd" + `","meta":null`))
		back, err := conversation.DecodeMessage(text)
		Expect(err).NotTo(HaveOccurred())
		Expect(back.AppendJSON(nil)).To(Equal(text))
	})

	It("writes values of several lines on one", func() {
		Expect(string(conversation.AppendValue(nil, "{\n \"a\" : [ 1.0,\r\n 12345678901234567890 ] }"))).To(Equal(`{"a":[1.0,12345678901234567890]}`))
		Expect(string(conversation.AppendValue(nil, `{"a" : 1}`))).To(Equal(`{"a" : 1}`))
		Expect(string(conversation.AppendValue(nil, ``))).To(Equal(`null`))
		Expect(string(conversation.AppendValue(nil, `{`))).To(Equal(`null`))
		m := conversation.ToolResults("m", conversation.ToolResult{ID: "c", Result: "[\n1\n]", Meta: "{\n}"})
		Expect(string(m.AppendJSON(nil))).To(ContainSubstring(`"result":[1],"meta":{}`))
	})

	It("makes JSON of every text", func() {
		for _, s := range []string{"", "a", "\x00\x1f\u007f", "<&>", "\u2028", "🦊", "\xff", `\"`} {
			Expect(conversation.String(s).Valid()).To(BeTrue(), "%q", s)
		}
		Expect(conversation.String("<&>")).To(Equal(conversation.JSON(`"<&>"`)))
		Expect(conversation.JSON(`1 2`).Valid()).To(BeFalse())
	})

	DescribeTable("reads the id of a call by either name", func(member, want string) {
		for _, kind := range []string{`"type":"tool_call","tool_name":"f","tool_input":{}`, `"type":"tool_result","result":1`} {
			m, err := conversation.DecodeMessage([]byte(`{"role":"assistant","content":[{` + kind + member + `}]}`))
			if strings.HasPrefix(want, "error") {
				Expect(err).To(MatchError(`content[0]: tool_call_id "a" and tool_id "b" differ`))
				continue
			}
			Expect(err).NotTo(HaveOccurred())
			switch p := m.Part(0).(type) {
			case conversation.ToolCall:
				Expect(p.ID).To(Equal(want))
			case conversation.ToolResult:
				Expect(p.ID).To(Equal(want))
			}
			Expect(string(m.AppendJSON(nil))).To(And(ContainSubstring(`"tool_call_id":"`+want+`"`), Not(ContainSubstring(`"tool_id"`))))
		}
	},
		Entry("the new", `,"tool_call_id":"a"`, "a"),
		Entry("the old", `,"tool_id":"b"`, "b"),
		Entry("both, the same", `,"tool_id":"a","tool_call_id":"a"`, "a"),
		Entry("both, different", `,"tool_id":"b","tool_call_id":"a"`, "error"),
		Entry("neither", ``, ""),
	)

	DescribeTable("reads what others wrote", func(text, want string) {
		m, err := conversation.DecodeMessage([]byte(text))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(m.AppendJSON(nil))).To(Equal(want))
	},
		Entry("without a type", `{"role":"user","content":[{"text":"a"}],"msg_id":"m"}`, `{"role":"user","content":[{"type":"text","text":"a"}],"usage":null,"timestamp":null,"msg_id":"m"}`),
		Entry("with keys of the future", `{"role":"user","new":1,"content":[{"type":"text","text":"a","new":[{}]}]}`, `{"role":"user","content":[{"type":"text","text":"a"}],"usage":null,"timestamp":null,"msg_id":""}`),
		Entry("a document without a type", `{"role":"user","content":[{"type":"document","source_type":"url","url":"https://x"}]}`, `{"role":"user","content":[{"type":"document","media_type":"application/pdf","source_type":"url","data":null,"url":"https://x","name":null}],"usage":null,"timestamp":null,"msg_id":""}`),
		Entry("an unknown source is kept", `{"role":"user","content":[{"type":"image","media_type":"image/png","source_type":"file","data":"x"}]}`, `{"role":"user","content":[{"type":"image","media_type":"image/png","source_type":"file","data":"x","url":null}],"usage":null,"timestamp":null,"msg_id":""}`),
		Entry("nulls", `{"role":"user","content":null,"usage":null,"timestamp":null,"msg_id":null}`, `{"role":"user","content":[],"usage":null,"timestamp":null,"msg_id":""}`),
		Entry("a call without input", `{"role":"assistant","content":[{"type":"tool_call","tool_id":"c","tool_name":"f"}]}`, `{"role":"assistant","content":[{"type":"tool_call","tool_call_id":"c","tool_name":"f","tool_input":{}}],"usage":null,"timestamp":null,"msg_id":""}`),
		Entry("a result without result", `{"role":"tool","content":[{"type":"tool_result","tool_id":"c"}]}`, `{"role":"tool","content":[{"type":"tool_result","tool_call_id":"c","result":null,"meta":null}],"usage":null,"timestamp":null,"msg_id":""}`),
		Entry("extras in any order", `{"role":"assistant","content":[{"type":"reasoning","extras":{"b":1,"a":2}}]}`, `{"role":"assistant","content":[{"type":"reasoning","text":"","extras":{"a":2,"b":1}}],"usage":null,"timestamp":null,"msg_id":""}`),
	)

	DescribeTable("refuses", func(text, says string) {
		_, _, err := conversation.Decode([]byte(text))
		Expect(err).To(MatchError(ContainSubstring(says)))
		var c conversation.Context
		Expect(c.UnmarshalJSON([]byte(text))).NotTo(Succeed())
		Expect(c).To(Equal(conversation.Context{}))
	},
		Entry("no JSON", `{`, "reading a conversation"),
		Entry("nothing", ``, "reading a conversation"),
		Entry("a key twice", `{"messages":[],"messages":[]}`, "reading a conversation"),
		Entry("not UTF-8", "{\"conversation_summary\":\"\xff\"}", "reading a conversation"),
		Entry("an unknown type", `{"messages":[{"role":"user","content":[]},{"role":"user","content":[{"type":"text","text":"a"},{"type":"audio"}]}]}`, `messages[1]: content[1]: unknown content type "audio"`),
		Entry("a text without text", `{"messages":[{"role":"user","content":[{}]}]}`, "a text part without text"),
		Entry("an unknown role", `{"messages":[{"role":"bot","content":[]}]}`, `messages[0]: unknown role "bot"`),
		Entry("a call of the user", `{"messages":[{"role":"user","content":[{"type":"tool_call","tool_id":"a","tool_name":"f","tool_input":{}}]}]}`, "may not carry tool_call"),
		Entry("a result of the assistant", `{"messages":[{"role":"assistant","content":[{"type":"tool_result","tool_id":"a","result":1}]}]}`, "may not carry tool_result"),
		Entry("a medium without a source", `{"messages":[{"role":"user","content":[{"type":"image","media_type":"image/png","source_type":"url"}]}]}`, "url is required"),
		Entry("tool_context that is no object", `{"system_context":{"tool_context":[1]}}`, "system_context.tool_context: want an object"),
		Entry("a number too large", `{"messages":[{"role":"user","content":[],"timestamp":1e30}]}`, "reading a conversation"),
	)

	It("moves results out of a user message, order kept, and says so", func() {
		c, warnings, err := conversation.Decode([]byte(`{"messages":[
			{"role":"user","content":[{"type":"text","text":"before"}],"msg_id":"m0"},
			{"role":"user","content":[{"type":"tool_result","tool_id":"1","result":1},{"type":"tool_result","tool_id":"2","result":2},{"type":"text","text":"and"},{"type":"image","media_type":"image/png","source_type":"base64","data":"aGk="},{"type":"tool_result","tool_id":"3","result":3}],"msg_id":"m1","timestamp":5},
			{"role":"user","content":[{"type":"tool_result","tool_id":"4","result":4}],"msg_id":"m2"}]}`))
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(Equal([]conversation.Warning{
			{Code: "results-in-user-message", Text: "messages[1]: tool results in a user message were moved to a tool message"},
			{Code: "results-in-user-message", Text: "messages[2]: tool results in a user message were moved to a tool message"},
		}))
		var shape []string
		for _, m := range c.Messages() {
			kinds := string(m.Role()) + " " + m.ID()
			for _, p := range m.Parts() {
				kinds += " " + string(p.Kind())
			}
			shape = append(shape, kinds)
			if m.ID() == "m1" {
				seconds, ok := m.Time()
				Expect(ok).To(BeTrue())
				Expect(seconds).To(Equal(int64(5)))
			}
		}
		Expect(shape).To(Equal([]string{"user m0 text", "tool m1 tool_result tool_result", "user m1 text image", "tool m1 tool_result", "tool m2 tool_result"}))
		_, warnings, err = conversation.Decode(c.AppendJSON(nil))
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(BeEmpty())
	})

	It("never shares what it has read", func() {
		data := []byte(`{"messages":[{"role":"tool","content":[{"type":"tool_result","tool_id":"1","result":{"a":1}}]}]}`)
		c, _, err := conversation.Decode(data)
		Expect(err).NotTo(HaveOccurred())
		before := string(c.AppendJSON(nil))
		for i := range data {
			data[i] = 'x'
		}
		Expect(string(c.AppendJSON(nil))).To(Equal(before))
	})
})

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}],"usage":{"in_t":1},"timestamp":1,"msg_id":"m"}],"conversation_summary":null,"system_context":{"tool_context":{"a":1},"b":[]}}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"tool_call","tool_id":"c","tool_name":"f","tool_input":{"a":1e400}},{"type":"reasoning","extras":{"x":null}}]},{"role":"user","content":[{"type":"tool_result","tool_call_id":"c","result":"\u00e9","meta":{}}]}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"tool_call","tool_id":"c","tool_name":"f","tool_input":null,"tool_input_raw":"{\n"}]}],"system_context":{"tool_context":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := conversation.Decode(data)
		if err != nil {
			return
		}
		text := c.AppendJSON(nil)
		if strings.ContainsAny(string(text), "\n\r") {
			t.Fatalf("a line break: %s", text)
		}
		back, warnings, err := conversation.Decode(text)
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%s: %v %v", text, err, warnings)
		}
		if again := back.AppendJSON(nil); string(again) != string(text) {
			t.Fatalf("%s became %s", text, again)
		}
		if !back.HasPrefix(c) || !c.HasPrefix(back) {
			t.Fatal("not the same messages")
		}
	})
}

func FuzzEncode(f *testing.F) {
	f.Add("m", "text", `{"a":1}`, `"r"`, "anthropic", `{"s":1}`, 5)
	f.Add("\xff", "\x00", "{\n}", "[\n", "\xff", " 1", -1)
	f.Fuzz(func(t *testing.T, id, text, input, result, vendor, extra string, n int) {
		extras := conversation.Extras{}.With(vendor, conversation.JSON(extra))
		m := conversation.Assistant(id, conversation.Text{Text: text, Extras: extras}, conversation.Reasoning{Text: text}, conversation.ToolCall{ID: id, Name: text, Input: conversation.JSON(input), Extras: extras},
			conversation.ToolResult{ID: id, Result: conversation.JSON(result), Meta: conversation.JSON(extra), IsError: n%2 == 0}, conversation.Document{MediaType: "application/pdf", Name: text, Source: conversation.Source{Type: "url", URL: text, Data: input}}).
			WithUsage(conversation.Usage{InputTokens: n}).WithTime(int64(n))
		line := m.AppendJSON(nil)
		back, err := conversation.DecodeMessage(line)
		if err != nil || strings.ContainsAny(string(line), "\n\r") || !back.Equal(m) {
			t.Fatalf("%s: %v", line, err)
		}
		if valid := strings.ToValidUTF8(input, "") == input; valid && input != "" && string(back.ToolCalls()[0].Input) != input {
			t.Fatalf("the arguments %q became %q", input, back.ToolCalls()[0].Input)
		}
	})
}

func BenchmarkAppendJSON(b *testing.B) {
	m := conversation.Assistant("m", conversation.Text{Text: strings.Repeat("some text ", 50)}, conversation.ToolCall{ID: "c", Name: "read_file", Input: `{"path":"notes/a.txt","offset":1,"limit":200}`})
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = m.AppendJSON(dst[:0])
	}
}

func BenchmarkDecodeMessage(b *testing.B) {
	text := conversation.Assistant("m", conversation.Text{Text: strings.Repeat("some text ", 50)}, conversation.ToolCall{ID: "c", Name: "read_file", Input: `{"path":"notes/a.txt","offset":1,"limit":200}`}).AppendJSON(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conversation.DecodeMessage(text); err != nil {
			b.Fatal(err)
		}
	}
}
