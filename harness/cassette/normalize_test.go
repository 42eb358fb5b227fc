package cassette_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/cassette"
)

func rule(in cassette.Part, pattern, as string) cassette.Normalization {
	GinkgoHelper()
	n, err := cassette.NewNormalization(in, pattern, as)
	Expect(err).NotTo(HaveOccurred())
	return n
}

func canonicalChat(body string) cassette.Request {
	r, _ := cassette.Canonical("POST", chatURL, http.Header{"Content-Type": {"application/json"}}, []byte(body), nil)
	return r
}

const conversation = `{"model":"m","messages":[` +
	`{"role":"system","content":"Today is 2026-11-30. You answer."},` +
	`{"role":"developer","content":[{"type":"text","text":"It is 2026-11-30."}]},` +
	`{"role":"user","content":[{"type":"text","text":"on 2026-11-30?"},{"type":"image_url","image_url":{"url":"https://example.com/2026-11-30.png"}}]},` +
	`{"role":"assistant","content":"from 2026-11-30","tool_calls":[{"id":"2026-11-30","type":"function","function":{"name":"f","arguments":"{\"day\":\"2026-11-30\"}"}}]},` +
	`{"role":"tool","tool_call_id":"2026-11-30","content":"{\"day\":\"2026-11-30\"}"}],` +
	`"tools":[{"type":"function","function":{"name":"f","description":"Since 2026-11-30.","parameters":{"type":"object"}}}]}`

var _ = Describe("normalisation", func() {
	const date = `\d{4}-\d\d-\d\d`

	DescribeTable("finds its texts by what they are, whoever the vendor is", func(in cassette.Part, want []string) {
		n := cassette.NewNormalizer([]cassette.Normalization{rule(in, date, "day")})
		got, applied := n.Request(canonicalChat(conversation))
		Expect(applied).To(Equal([]string{"normalize:day"}))
		for _, text := range []string{"Today is DAY. You", "It is DAY.", "on DAY?", "from DAY", `{\"day\":\"DAY\"}","name":"f"`, `"content":"{\"day\":\"DAY\"}"`, "Since DAY."} {
			found := strings.Contains(strings.ReplaceAll(got.Body, "{{echoeval:=day}}", "DAY"), text)
			Expect(found).To(Equal(slices.Contains(want, text)), "%q in\n%s", text, got.Body)
		}
		Expect(got.Body).To(And(ContainSubstring(`"id":"2026-11-30"`), ContainSubstring(`"tool_call_id":"2026-11-30"`), ContainSubstring("2026-11-30.png")))
	},
		Entry(nil, cassette.PartSystem, []string{"Today is DAY. You", "It is DAY."}),
		Entry(nil, cassette.PartUser, []string{"on DAY?"}),
		Entry(nil, cassette.PartTool, []string{`"content":"{\"day\":\"DAY\"}"`}),
		Entry(nil, cassette.PartAny, []string{"Today is DAY. You", "It is DAY.", "on DAY?", "from DAY", `{\"day\":\"DAY\"}","name":"f"`, `"content":"{\"day\":\"DAY\"}"`, "Since DAY."}),
	)

	It("makes equal what differs within the expression alone", func() {
		n := cassette.NewNormalizer([]cassette.Normalization{rule(cassette.PartSystem, "Today is "+date, "today")})
		key := func(body string) cassette.Key {
			r, _ := n.Request(canonicalChat(body))
			return cassette.KeyOf(r)
		}
		Expect(key(strings.Replace(conversation, "Today is 2026-11-30", "Today is 2027-01-04", 1))).To(Equal(key(conversation)))
		for _, edit := range [][2]string{{"You answer.", "You answer briefly."}, {"Today is 2026", "today is 2026"}, {"It is 2026-11-30", "It is 2026-12-01"}, {"on 2026-11-30?", "on 2026-12-01?"}, {`"model":"m"`, `"model":"n"`}} {
			edited := strings.Replace(conversation, edit[0], edit[1], 1)
			Expect(edited).NotTo(Equal(conversation))
			Expect(key(edited)).NotTo(Equal(key(conversation)), "%v", edit)
		}
	})

	It("looks at every string of what is no model, and at bodies that are no JSON", func() {
		n := cassette.NewNormalizer([]cassette.Normalization{rule(cassette.PartAny, date, "day"), rule(cassette.PartUser, "a", "b")})
		for body, want := range map[string]string{`{"from":"2026-11-30","n":2026}`: `{"from":"{{echoeval:=day}}","n":2026}`, "at 2026-11-30": "at {{echoeval:=day}}", "a": "a", "": ""} {
			got, _ := n.Request(cassette.Request{Method: "POST", URL: "https://crm.example.com/q", Body: body})
			Expect(got.Body).To(Equal(want))
		}
		Expect(n.Output(`{"output":{"at":"2026-11-30"}}`)).To(Equal(`{"output":{"at":"{{echoeval:=day}}"}}`))
		var none *cassette.Normalizer
		r := canonicalChat(conversation)
		same, applied := none.Request(r)
		Expect(same).To(Equal(r))
		Expect(applied).To(BeEmpty())
		Expect(none.Output("x")).To(Equal("x"))
		Expect(cassette.NewNormalizer(nil)).To(BeNil())
	})

	It("applies rules in their order and leaves placeholders alone", func() {
		n := cassette.NewNormalizer([]cassette.Normalization{rule(cassette.PartUser, "[0-9]+", "number"), rule(cassette.PartUser, "echoeval|number|x|}}", "word"), rule(cassette.PartUser, "z*", "z")})
		got, applied := n.Request(canonicalChat(`{"messages":[{"content":"7 x","role":"user"}]}`))
		Expect(got.Body).To(ContainSubstring(`"{{echoeval:=number}} {{echoeval:=word}}"`))
		Expect(applied).To(Equal([]string{"normalize:number", "normalize:word"}))
	})

	DescribeTable("refuses", func(in cassette.Part, pattern, as, message string) {
		_, err := cassette.NewNormalization(in, pattern, as)
		Expect(err).To(MatchError(ContainSubstring(message)))
	},
		Entry("no expression", cassette.PartUser, "(", "x", "regex: "),
		Entry("look-around, which RE2 does not have", cassette.PartUser, "a(?=b)", "x", "regex: "),
		Entry("an empty expression", cassette.PartUser, "", "x", "never matches"),
		Entry("an expression too large to run", cassette.PartUser, "((a{100}){100}){100}", "x", "regex: "),
		Entry("an unknown part", cassette.Part("model"), "a", "x", `in: "model"`),
		Entry("no part", cassette.Part(""), "a", "x", "in: "),
		Entry("a name that no placeholder can bear", cassette.PartUser, "a", "x y", "as: "),
		Entry("no name", cassette.PartUser, "a", "", "as: "),
	)
})

// FuzzNormalize holds that a stored request, canonicalised and normalised again, gives the key of the present one; that normalising twice changes nothing; and that what it makes of JSON is in its canonical form.
func FuzzNormalize(f *testing.F) {
	f.Add(conversation, `\d{4}-\d\d-\d\d`, "any", chatURL)
	f.Add(`{"messages":[{"content":"a \"b\" \u00e9 \n","role":"user"}]}`, "[^c]", "user", chatURL)
	f.Add(`{"messages":[{"content":"system","role":"system"},{"role":"system"}],"role":"x"}`, "system", "system", chatURL)
	f.Add("a=b&c=%20", ".", "any", "https://example.com/")
	f.Add(`["\ud800", "{{echoeval:=x}}", "}}"]`, `\ba`, "any", "https://example.com/")
	f.Fuzz(func(t *testing.T, body, pattern, in, url string) {
		rule, err := cassette.NewNormalization(cassette.Part(in), pattern, "x")
		if err != nil {
			t.Skip()
		}
		other, err := cassette.NewNormalization(cassette.PartAny, "[aeiou]+", "y")
		if err != nil {
			t.Fatal(err)
		}
		n := cassette.NewNormalizer([]cassette.Normalization{rule, other})
		stored, _ := cassette.Canonical("POST", url, http.Header{"Content-Type": {"application/json"}}, []byte(body), nil)
		before := stored.Body
		once, _ := n.Request(stored)
		if stored.Body != before {
			t.Fatal("what is stored was changed")
		}
		if again, _ := n.Request(cassette.Recanonical(stored, nil)); cassette.KeyOf(again) != cassette.KeyOf(once) {
			t.Fatalf("another key when read again:\n%s\n%s", once.Body, again.Body)
		}
		if twice, _ := n.Request(once); twice.Body != once.Body {
			t.Fatalf("not idempotent:\n%s\n%s", once.Body, twice.Body)
		}
		if canon := cassette.Recanonical(once, nil); canon.Body != once.Body {
			t.Fatalf("not canonical:\n%s\n%s", once.Body, canon.Body)
		}
	})
}

func BenchmarkNormalize(b *testing.B) {
	rule, err := cassette.NewNormalization(cassette.PartSystem, `Today is \d{4}-\d\d-\d\d`, "today")
	if err != nil {
		b.Fatal(err)
	}
	n := cassette.NewNormalizer([]cassette.Normalization{rule})
	r := canonicalChat(strings.Replace(conversation, "You answer.", strings.Repeat("You answer from the notes and from nothing else. ", 400), 1))
	b.SetBytes(int64(len(r.Body)))
	for b.Loop() {
		n.Request(r)
	}
}
