package conversation_test

import (
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
)

func TestConversation(t *testing.T) { suite.Run(t, "conversation") }

var (
	png = conversation.Source{Type: conversation.SourceBase64, Data: "aGk="}
	web = conversation.Source{Type: conversation.SourceURL, URL: "https://example.com/i.png"}
)

// one holds a valid part of each kind.
var one = map[conversation.Kind]conversation.Content{
	conversation.KindText:       conversation.Text{Text: "hello"},
	conversation.KindReasoning:  conversation.Reasoning{Text: "thinking"},
	conversation.KindImage:      conversation.Image{MediaType: "image/png", Source: png},
	conversation.KindDocument:   conversation.Document{MediaType: "application/pdf", Name: "a.pdf", Source: web},
	conversation.KindToolCall:   conversation.ToolCall{ID: "c1", Name: "lookup", Input: `{"q":"x"}`},
	conversation.KindToolResult: conversation.ToolResult{ID: "c1", Result: `{"a":1}`},
}

type foreign struct{}

func (foreign) Kind() conversation.Kind { return conversation.KindText }

var _ = Describe("a message", func() {
	It("carries what its role may carry, and nothing else", func() {
		const t, r, i, d, c, s = conversation.KindText, conversation.KindReasoning, conversation.KindImage, conversation.KindDocument, conversation.KindToolCall, conversation.KindToolResult
		allowed := map[conversation.Role]map[conversation.Kind]bool{
			conversation.RoleSystem:    {t: true},
			conversation.RoleUser:      {t: true, i: true, d: true},
			conversation.RoleAssistant: {t: true, r: true, i: true, d: true, c: true},
			conversation.RoleTool:      {i: true, d: true, s: true},
		}
		cells := 0
		for role, kinds := range allowed {
			Expect(conversation.NewMessage(role, "m").Validate()).To(Succeed(), "a message may be empty")
			for kind, part := range one {
				Expect(part.Kind()).To(Equal(kind))
				cells++
				err := conversation.NewMessage(role, "m", part).Validate()
				if kinds[kind] {
					Expect(err).NotTo(HaveOccurred(), "%s %s", role, kind)
				} else {
					Expect(err).To(MatchError(fmt.Sprintf("part 1: a message of role %s may not carry %s", role, kind)))
				}
			}
		}
		Expect(cells).To(Equal(24))
		Expect(conversation.NewMessage("developer", "m").Validate()).To(MatchError(`unknown role "developer"`))
	})

	DescribeTable("is invalid with", func(part conversation.Content, text string) {
		role := conversation.RoleAssistant
		if _, ok := part.(conversation.ToolResult); ok {
			role = conversation.RoleTool
		}
		Expect(conversation.NewMessage(role, "m", one[conversation.KindImage], part).Validate()).To(MatchError(ContainSubstring(text)))
	},
		Entry("nothing", nil, "part 2 is empty"),
		Entry("a pointer", &conversation.Text{Text: "x"}, "part 2 is a *conversation.Text"),
		Entry("a foreign type", foreign{}, "no kind of content"),
		Entry("an image of another type", conversation.Image{MediaType: "image/tiff", Source: png}, `"image/tiff"`),
		Entry("an image without type", conversation.Image{Source: png}, "must be one of image/jpeg, image/png, image/gif, image/webp"),
		Entry("a document of another type", conversation.Document{MediaType: "text/plain", Source: png}, "must be application/pdf"),
		Entry("base64 without data", conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: "base64", URL: "https://x"}}, "data is required when source_type is base64"),
		Entry("url without url", conversation.Document{MediaType: "application/pdf", Source: conversation.Source{Type: "url", Data: "aGk="}}, "url is required when source_type is url"),
		Entry("another source", conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: "file", Data: "x"}}, `unknown source_type "file"; it must be base64 or url`),
		Entry("no source", conversation.Image{MediaType: "image/png"}, `unknown source_type ""`),
		Entry("a call without id", conversation.ToolCall{Name: "f"}, `tool call "f" has no tool_call_id`),
		Entry("a call without name", conversation.ToolCall{ID: "c"}, `tool call "c" has no name`),
		Entry("a result without id", conversation.ToolResult{Result: "1"}, "a tool result has no tool_call_id"),
	)

	It("takes both data and url, source_type decides", func() {
		both := conversation.Source{Type: conversation.SourceURL, Data: "aGk=", URL: "https://x"}
		Expect(conversation.User("m", conversation.Image{MediaType: "image/webp", Source: both}).Validate()).To(Succeed())
	})

	It("gives back what it holds", func() {
		m := conversation.Assistant("m1", conversation.Text{Text: "a"}, one[conversation.KindToolCall], conversation.Text{Text: "b"})
		Expect(m.ID()).To(Equal("m1"))
		Expect(m.Role()).To(Equal(conversation.RoleAssistant))
		Expect(m.Len()).To(Equal(3))
		Expect(m.Text()).To(Equal("ab"))
		Expect(m.ToolCalls()).To(Equal([]conversation.ToolCall{one[conversation.KindToolCall].(conversation.ToolCall)}))
		Expect(m.Part(2)).To(Equal(conversation.Text{Text: "b"}))
		_, ok := m.Usage()
		Expect(ok).To(BeFalse())
		_, ok = m.Time()
		Expect(ok).To(BeFalse())
		usage := conversation.Usage{InputTokens: 1}
		with := m.WithUsage(usage).WithTime(0)
		Expect(m.Equal(with)).To(BeFalse(), "the original stays as it was")
		got, ok := with.Usage()
		Expect(ok).To(BeTrue())
		Expect(got).To(Equal(usage))
		seconds, ok := with.Time()
		Expect(ok).To(BeTrue())
		Expect(seconds).To(BeZero())
		Expect(conversation.ToolResults("m").Role()).To(Equal(conversation.RoleTool))
	})

	It("does not change with what it was made of", func() {
		extras := conversation.Extras{{Vendor: "a", Data: `1`}}
		parts := []conversation.Content{conversation.Text{Text: "x", Extras: extras}, conversation.Reasoning{Extras: extras}, conversation.ToolCall{ID: "c", Name: "f", Extras: extras}}
		m := conversation.Assistant("m", parts...)
		before := string(m.AppendJSON(nil))
		parts[0] = conversation.Text{Text: "changed"}
		extras[0].Data = `"changed"`
		Expect(string(m.AppendJSON(nil))).To(Equal(before))
	})

	It("counts tokens", func() {
		a := conversation.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, ReasoningTokens: 5, LatencyMS: 6}
		Expect(a.Add(a)).To(Equal(conversation.Usage{InputTokens: 2, OutputTokens: 4, CacheReadTokens: 6, CacheWriteTokens: 8, ReasoningTokens: 10, LatencyMS: 12}))
	})

	It("shows a result as a model reads it", func() {
		for result, want := range map[conversation.JSON]string{`"a\n\"b\""`: "a\n\"b\"", ` "a" `: "a", `{"a":1}`: `{"a":1}`, `null`: "null", `12345678901234567890`: "12345678901234567890", `""`: "", `"\ud83e\udd8a"`: "🦊", ``: ""} {
			Expect(conversation.ToolResult{Result: result}.ResultText()).To(Equal(want), string(result))
		}
	})
})

var _ = Describe("extras", func() {
	It("are kept by vendor, in order, one each", func() {
		var e conversation.Extras
		e = e.With("b", `1`)
		f := e.With("a", `2`).With("c", `3`)
		g := f.With("b", `4`)
		Expect(e).To(Equal(conversation.Extras{{Vendor: "b", Data: `1`}}))
		Expect(f).To(Equal(conversation.Extras{{Vendor: "a", Data: `2`}, {Vendor: "b", Data: `1`}, {Vendor: "c", Data: `3`}}))
		Expect(g.Get("b")).To(Equal(conversation.JSON(`4`)))
		Expect(f.Get("b")).To(Equal(conversation.JSON(`1`)))
		Expect(g.Get("none")).To(BeEmpty())
		Expect(g).To(HaveLen(3))
	})
})

var _ = Describe("the arguments of a call", func() {
	DescribeTable("are an object", func(input, want conversation.JSON) {
		Expect(conversation.ToolCall{Input: input}.Arguments()).To(Equal(want))
	},
		Entry(nil, conversation.JSON(``), conversation.JSON(`{}`)),
		Entry(nil, conversation.JSON(" \n"), conversation.JSON(`{}`)),
		Entry(nil, conversation.JSON(`{"a":1}`), conversation.JSON(`{"a":1}`)),
		Entry("the text is kept", conversation.JSON("{ \"a\":\n1.0e0 }"), conversation.JSON("{ \"a\":\n1.0e0 }")),
	)

	DescribeTable("or an error", func(input conversation.JSON, text string) {
		_, err := conversation.ToolCall{Input: input}.Arguments()
		Expect(err).To(MatchError(text))
	},
		Entry(nil, conversation.JSON(`{`), "the arguments are not valid JSON"),
		Entry(nil, conversation.JSON(`{"a":1}{`), "the arguments are not valid JSON"),
		Entry(nil, conversation.JSON("{\"a\":\"\xff\"}"), "the arguments are not valid JSON"),
		Entry("a key twice", conversation.JSON(`{"a":1,"a":2}`), "the arguments are not valid JSON"),
		Entry(nil, conversation.JSON(`"{}"`), "the arguments are a string, not a JSON object"),
		Entry(nil, conversation.JSON(`[]`), "the arguments are a list, not a JSON object"),
		Entry(nil, conversation.JSON(`7`), "the arguments are a number, not a JSON object"),
		Entry(nil, conversation.JSON(`true`), "the arguments are a boolean, not a JSON object"),
		Entry(nil, conversation.JSON(`false`), "the arguments are a boolean, not a JSON object"),
		Entry(nil, conversation.JSON(`null`), "the arguments are null, not a JSON object"),
	)
})

var _ = Describe("a context", func() {
	message := func(i int) conversation.Message {
		return conversation.User(fmt.Sprint("m", i), conversation.Text{Text: fmt.Sprint(i)})
	}

	It("gives a new one when a message is added", func() {
		empty := conversation.New(nil)
		a, err := empty.Append(message(1), message(2))
		Expect(err).NotTo(HaveOccurred())
		b, err := a.Append(message(3))
		Expect(err).NotTo(HaveOccurred())
		c, err := a.Append(message(4))
		Expect(err).NotTo(HaveOccurred())
		Expect([]int{empty.Len(), a.Len(), b.Len(), c.Len()}).To(Equal([]int{0, 2, 3, 3}))
		Expect(b.Message(2).Text()).To(Equal("3"), "c has not written over it")
		Expect(c.Message(2).Text()).To(Equal("4"))
		for _, longer := range []conversation.Context{a, b, c} {
			Expect(longer.HasPrefix(a)).To(BeTrue())
			Expect(longer.HasPrefix(empty)).To(BeTrue())
		}
		Expect(b.HasPrefix(c)).To(BeFalse())
		Expect(a.HasPrefix(b)).To(BeFalse())
		var texts []string
		for i, m := range b.Messages() {
			Expect(m.ID()).To(Equal(fmt.Sprint("m", i+1)))
			texts = append(texts, m.Text())
		}
		Expect(texts).To(Equal([]string{"1", "2", "3"}))
	})

	It("stays as it was when a message is invalid", func() {
		a, err := conversation.New(nil).Append(message(1))
		Expect(err).NotTo(HaveOccurred())
		b, err := a.Append(message(2), conversation.User("m", one[conversation.KindToolCall]))
		Expect(err).To(MatchError("message 3: part 1: a message of role user may not carry tool_call"))
		Expect(b.Len()).To(Equal(1))
	})

	It("is shared by a hundred goroutines that each append", func() {
		base, err := conversation.New(conversation.Hidden{"k": `1`}).Append(message(0))
		Expect(err).NotTo(HaveOccurred())
		before := string(base.AppendJSON(nil))
		results := make([]conversation.Context, 100)
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() {
				c := base
				for j := range 5 {
					c, _ = c.Append(message(100*i + j))
				}
				c = c.WithSystem("n", conversation.JSON(fmt.Sprint(i))).WithSummary(fmt.Sprint(i))
				c.ToolContext()["k"] = `"changed"`
				results[i] = c
			})
		}
		wg.Wait()
		Expect(string(base.AppendJSON(nil))).To(Equal(before))
		for i, c := range results {
			Expect(c.Len()).To(Equal(6))
			Expect(c.HasPrefix(base)).To(BeTrue())
			Expect(c.Message(5).Text()).To(Equal(fmt.Sprint(100*i + 4)))
			Expect(c.System("n")).To(Equal(conversation.JSON(fmt.Sprint(i))))
			Expect(c.Summary()).To(Equal(fmt.Sprint(i)))
			Expect(c.ToolContext()).To(HaveKeyWithValue("k", conversation.JSON(`1`)))
		}
	})

	It("keeps a copy of what is hidden, and is never without", func() {
		hidden := conversation.Hidden{"tenant": `"t"`}
		c := conversation.New(hidden)
		hidden["tenant"] = `"changed"`
		Expect(c.ToolContext()).To(Equal(conversation.Hidden{"tenant": `"t"`}))
		Expect(conversation.Context{}.ToolContext()).To(Equal(conversation.Hidden{}))
		Expect(c.System("tool_context")).To(BeEmpty())
		d := c.WithSystem("a", `1`)
		Expect(c.System("a")).To(BeEmpty())
		Expect(d.System("a")).To(Equal(conversation.JSON(`1`)))
	})
})

func ExampleContext_Append() {
	first, _ := conversation.New(nil).Append(conversation.User("m1", conversation.Text{Text: "how warm is it in Oslo?"}))
	second, _ := first.Append(
		conversation.Assistant("m2", conversation.ToolCall{ID: "c1", Name: "weather", Input: `{"city":"Oslo"}`}),
		conversation.ToolResults("m2", conversation.ToolResult{ID: "c1", Result: `{"celsius":-3}`}),
	)
	fmt.Println(first.Len(), second.Len(), second.HasPrefix(first))
	// Output: 1 3 true
}

func ExampleCheckPairing() {
	c, _ := conversation.New(nil).Append(
		conversation.Assistant("m1", conversation.ToolCall{ID: "c1", Name: "weather"}),
		conversation.User("m2", conversation.Text{Text: "never mind"}),
	)
	for _, problem := range conversation.CheckPairing(c.Messages()) {
		fmt.Println(problem)
	}
	// Output: message 1, part 1: call "c1" of weather has no result before the next message
}
