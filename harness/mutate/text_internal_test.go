package mutate

import (
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/experiment"
)

var _ = DescribeTable("the opposite", func(answer, want string) {
	got, ok := opposite(answer)
	Expect(ok).To(Equal(want != ""))
	Expect(got).To(Equal(want))
},
	Entry("of a statement", "The shop is open.", "The shop is not open."),
	Entry("of a denial", "The shop is not open.", "The shop is open."),
	Entry("of a short form", "It isn't open", "It is open"),
	Entry("of a short form with a typographic apostrophe", "I can’t", "I can"),
	Entry("of yes", "Yes, of course.", "No, of course."),
	Entry("of a word that begins like another", "Island hotels", "It is not true that Island hotels"),
	Entry("of another language", "Rufen Sie 112 an", "It is not true that Rufen Sie 112 an"),
	Entry("of knotted words", "This is nothing.", "This is not nothing."),
	Entry("of a number", "27", "-27"),
	Entry("of a negative number", "-3.5", "3.5"),
	Entry("of nothing", "0", ""),
	Entry("of JSON", `{"is":"true","open": true}`, `{"is":"true","open": false}`),
	Entry("of JSON that states nothing", `{"to":"18:00"}`, ""),
	Entry("of no answer", " ", ""),
	Entry("of emoji", "👍", "It is not true that 👍"),
)

var _ = DescribeTable("half an answer", func(answer, want string) {
	got, ok := half(answer)
	Expect(ok).To(Equal(answer != ""))
	Expect(got).To(Equal(want))
},
	Entry("of words", "one two", "one"),
	Entry("of characters of several bytes", "äöüß", "äö"),
	Entry("of one character", "5", ""),
	Entry("of none", "", ""),
	Entry("of bytes that are no text", "\xff\xfe\xfd\xfc", "\xff\xfe"),
)

var _ = DescribeTable("another argument", func(schema, arguments string, want ...string) {
	got := []string{}
	for _, e := range edits(conversation.ToolCall{Input: conversation.JSON(arguments)}, tool.Spec{Parameters: conversation.JSON(schema)}) {
		got = append(got, e.path+" "+string(e.arguments))
	}
	Expect(got).To(HaveExactElements(want))
},
	Entry("of a path", "", `{"path":"a/notes.txt"}`, `path {"path":"a/notesx.txt"}`),
	Entry("of a text with a figure", "", `{"id":"order 19"}`, `id {"id":"order 10"}`),
	Entry("of an escaped text", "", `{"t":"\"\u00e4"}`, `t {"t":"\"äx"}`),
	Entry("of numbers and booleans, at any depth", "", `{"n":1,"a":[true,{"b":-0.5}],"none":null}`,
		`n {"n":2,"a":[true,{"b":-0.5}],"none":null}`, `a[0] {"n":1,"a":[false,{"b":-0.5}],"none":null}`, `a[1].b {"n":1,"a":[true,{"b":0.5}],"none":null}`),
	Entry("that the schema allows", `{"type":"object","properties":{"unit":{"type":"string","enum":["C","F"]},"n":{"type":"integer","maximum":3}}}`, `{"unit":"C","n":3}`,
		`unit {"unit":"F","n":3}`, `n {"unit":"C","n":2}`),
	Entry("where the schema allows none", `{"type":"object","properties":{"unit":{"type":"string","enum":["C"]}}}`, `{"unit":"C"}`),
	Entry("of malformed arguments", "", `{"a":`),
	Entry("of no arguments", "", ``),
	Entry("of a list", "", `[1]`),
)

var _ = DescribeTable("made up arguments", func(schema, want string) {
	got, ok := invented(conversation.JSON(schema))
	Expect(ok).To(Equal(want != ""))
	if ok {
		Expect(string(got)).To(Equal(want))
	}
},
	Entry("are what is required", `{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer","minimum":5},"deep":{"type":"object","properties":{"x":{"type":"boolean"}},"required":["x"]},"free":{"type":"string"}},"required":["path","n","deep"]}`,
		`{"deep":{"x":true},"n":5,"path":"planted.txt"}`),
	Entry("are nothing where nothing is required", `{"type":"object"}`, `{}`),
	Entry("are of an enumeration", `{"type":"object","properties":{"a":{"enum":["p","q"]},"b":{"type":["string","null"]}},"required":["a","b"]}`, `{"a":"p","b":"planted"}`),
	Entry("are not found for a pattern", `{"type":"object","properties":{"a":{"type":"string","pattern":"^[0-9]+$"}},"required":["a"]}`, ""),
	Entry("are not found without a schema", ``, ""),
)

var _ = DescribeTable("excerpts", func(before, after, wantBefore, wantAfter string) {
	a, b := excerpts(before, after)
	Expect([]string{a, b}).To(Equal([]string{wantBefore, wantAfter}))
},
	Entry("of short texts are whole", "one", "two", "one", "two"),
	Entry("show where texts differ", strings.Repeat("a", 300)+"x", strings.Repeat("a", 300)+"y", "…"+strings.Repeat("a", 40)+"x", "…"+strings.Repeat("a", 40)+"y"),
	Entry("are cut between characters", strings.Repeat("ä", 200), "ö", strings.Repeat("ä", 160)+"…", "ö"),
	Entry("of nothing", "", "x", "", "x"),
	Entry("are valid text", "\xff", "", "\ufffd", ""),
)

// FuzzText spoils texts and arguments as models may write them.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "It is so.", `{"a":[1,"x",true]}`, "\x1b[31m\u202e", "-0", `{"a":"\ud800"}`, "not is not"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, ok := half(text); ok && (len(got) > len(text) || !strings.Contains(text, got)) {
			t.Fatalf("half of %q is %q", text, got)
		}
		if got, ok := opposite(text); ok && strings.TrimSpace(got) == strings.TrimSpace(text) {
			t.Fatalf("the opposite of %q is the same", text)
		}
		for _, e := range edits(conversation.ToolCall{Input: conversation.JSON(text)}, tool.Spec{}) {
			if canonical(e.arguments) == canonical(conversation.JSON(text)) {
				t.Fatalf("%q became %q", text, e.arguments)
			}
			if !jsontext.Value(e.arguments).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) {
				t.Fatalf("%q became %q, which is no JSON", text, e.arguments)
			}
		}
		a, b := excerpts(text, text+"x")
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			t.Fatalf("excerpts of %q are %q and %q", text, a, b)
		}
	})
}

// FuzzMutants mutates traces as damaged or hostile files may hold them: whatever they are, nothing breaks, and the events are numbered.
func FuzzMutants(f *testing.F) {
	f.Add([]byte("[]"), 0)
	f.Add([]byte(`[{"n":1,"kind":"start","step":0,"at_ms":0,"agent":"a","model":"m","max_iterations":3,"hidden":[],"input":[]},{"n":2,"kind":"request","step":1,"at_ms":0,"messages":0,"system":"","tools":[]},{"n":3,"kind":"reply","step":1,"at_ms":0,"stop":"end","model":"m","latency_ms":0,"ttft_ms":null,"retries":0,"message":{"role":"assistant","content":[{"type":"tool_call","tool_call_id":"c","tool_name":"t","tool_input":{"a":1}}]}},{"n":4,"kind":"results","step":1,"at_ms":0,"message":{"role":"tool","content":[{"type":"tool_result","tool_call_id":"c","result":1}]}}]`), 1)
	f.Fuzz(func(t *testing.T, data []byte, turn int) {
		decoded, err := trace.Decode(data)
		if err != nil {
			t.Skip()
		}
		n := len(decoded.Events)
		cut := min(max(turn, 0), n)
		out := experiment.Outcome{Trace: decoded, Turns: []experiment.TurnOutcome{{Text: "It is so.", To: cut}, {Text: "yes", From: cut, To: n}}}
		out.Trace.Hidden = conversation.Hidden{"k": `{"a":[1,"x"]}`}
		for m := range (Choice{Seed: 1, Limit: 3}).Mutants(Subject{Item: "i", Repeat: 1, Outcome: out, Checked: []int{-1, 0, 7}, Others: []Answer{{"o", "other"}}}) {
			if m == nil {
				continue
			}
			for i, e := range m.Outcome.Trace.Events {
				if e.N != i+1 {
					t.Fatalf("%s: event %d has number %d", m.Operator.Name, i+1, e.N)
				}
			}
			for _, turn := range m.Outcome.Turns {
				_ = m.Outcome.Trace.Events[turn.From:turn.To] // within bounds
			}
		}
	})
}
