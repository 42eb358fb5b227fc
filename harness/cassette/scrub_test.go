package cassette_test

import (
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/harness/cassette"
)

var _ = Describe("scrubbing", func() {
	// Not written as one word, so that no scanner takes this file for a leak.
	key := "sk-" + "proj-" + strings.Repeat("a1B2", 12)
	other := "sk-" + "proj-" + strings.Repeat("c3D4", 12)
	const value = "tenant \"nine\" 7f3a91"

	file := func() *cassette.File {
		quoted := `tenant \"nine\" 7f3a91`
		request := func(text string) cassette.Request {
			return canonicalChat(`{"messages":[{"role":"user","content":"` + text + `"}],"model":"m"}`)
		}
		stream := http.Header{"Content-Type": {"text/event-stream"}}
		return &cassette.File{Header: cassette.Header{Dataset: "d", Item: "i", Repeat: 1, Provider: "p", Vendor: "openai", Model: "m", Hashes: map[string]string{"workspace": "aa"}}, Interactions: []cassette.Interaction{
			{Request: request("use " + key), Response: cassette.Response{Code: 200, Status: "200 OK", Headers: stream, Body: "data: {\"choices\":[{\"delta\":{\"content\":\"it is " + key[:20] + "\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"" + key[20:] + " indeed\"}}]}\n\ndata: [DONE]\n\n"}},
			{Request: cassette.Request{Method: cassette.Method, URL: "tool:///f", Body: `{"who":"` + quoted + `"}`}, Response: cassette.Response{Code: 200, Status: "200 OK", Body: `{"output":"{\"key\":\"` + other + `\"}"}`}, Extra: cassette.Extra{Seq: 1, Effect: "read", Scope: "external", Occurrence: 1}},
			{Request: request("plain {{echoeval:kept}}"), Response: cassette.Response{Code: 200, Status: "200 OK", Body: `{"text":"{{echoeval:kept}} and {{echoeval::none}}","signature":"` + key[:8] + `"}`}},
		}}
	}

	It("replaces secrets and values wherever they hide, and leaves all else", func() {
		f := file()
		before, err := cassette.Encode(f)
		Expect(err).NotTo(HaveOccurred())
		out, found, err := cassette.Scrub(f, &secret.Detector{}, []cassette.Redaction{{Name: "tenant", Value: value}})
		Expect(err).NotTo(HaveOccurred())
		var places []string
		for _, x := range found {
			places = append(places, x.String())
		}
		Expect(places).To(HaveLen(4))
		Expect(places).To(ContainElements(ContainSubstring("of the request of interaction 1"), ContainSubstring("of the response of interaction 1"), ContainSubstring("value of tenant in who of the request of interaction 2"), ContainSubstring("of the response of interaction 2")))
		data, err := cassette.Encode(out)
		Expect(err).NotTo(HaveOccurred())
		for _, s := range []string{key, key[20:], other, "7f3a91"} {
			Expect(string(data)).NotTo(ContainSubstring(s))
			Expect(strings.Join(places, "\n")).NotTo(ContainSubstring(s))
		}
		again, err := cassette.Decode(data, "f")
		Expect(err).NotTo(HaveOccurred(), "it is still a cassette")
		Expect(again.Interactions[0].Response.Body).To(And(HavePrefix("data: {"), ContainSubstring("it is {{echoeval:scrubbed-"), ContainSubstring(" indeed")))
		Expect(again.Interactions[1].Request.Body).To(Equal(`{"who":"{{echoeval:tenant}}"}`))
		Expect(again.Interactions[2]).To(Equal(f.Interactions[2]))
		for _, i := range again.Interactions {
			Expect(cassette.Recanonical(i.Request, nil)).To(Equal(i.Request), "requests are canonical")
		}
		unchanged, err := cassette.Encode(f)
		Expect(err).NotTo(HaveOccurred())
		Expect(unchanged).To(Equal(before), "the file it was given is not touched")

		// A replay that knows the value asks for what stands there now, and hears it again.
		rules, err := cassette.NewRules([]cassette.Redaction{{Name: "tenant", Value: value}})
		Expect(err).NotTo(HaveOccurred())
		now, _ := cassette.Canonical(cassette.Method, "tool:///f", nil, []byte(f.Interactions[1].Request.Body), rules)
		Expect(cassette.KeyOf(now)).To(Equal(cassette.KeyOf(cassette.Recanonical(again.Interactions[1].Request, rules))))

		twice, found, err := cassette.Scrub(again, &secret.Detector{}, []cassette.Redaction{{Name: "tenant", Value: value}})
		Expect(err).NotTo(HaveOccurred())
		Expect(twice).To(BeNil(), "there is nothing left")
		Expect(found).To(BeEmpty())
	})

	It("gives two secrets of a kind two placeholders, and counts calls that are equal now", func() {
		f := file()
		f.Interactions = []cassette.Interaction{f.Interactions[1], f.Interactions[1], f.Interactions[1]}
		for n, word := range []string{key, other, key} {
			f.Interactions[n].Request.Body = `{"who":"` + word + `"}`
			f.Interactions[n].Response.Body = `{"output":1}`
			f.Interactions[n].Extra = cassette.Extra{Seq: n + 1, Effect: "read", Scope: "external", Occurrence: 1 + n/2}
		}
		out, found, err := cassette.Scrub(f, &secret.Detector{}, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(3))
		bodies := []string{out.Interactions[0].Request.Body, out.Interactions[1].Request.Body, out.Interactions[2].Request.Body}
		Expect(bodies[0]).To(Equal(bodies[2]))
		Expect(bodies[1]).To(HaveSuffix(`-2}}"}`))
		Expect([]int{out.Interactions[0].Extra.Occurrence, out.Interactions[1].Extra.Occurrence, out.Interactions[2].Extra.Occurrence}).To(Equal([]int{1, 1, 2}))
	})

	It("replaces short values where they are whole strings", func() {
		f := file()
		f.Interactions = f.Interactions[1:2]
		f.Interactions[0].Request.Body, f.Interactions[0].Response.Body = `{"pin":"4711","text":"47110"}`, `{"output":"4711"}`
		out, found, err := cassette.Scrub(f, &secret.Detector{}, []cassette.Redaction{{Name: "pin", Value: "4711"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(2))
		Expect(out.Interactions[0].Request.Body).To(Equal(`{"pin":"{{echoeval:pin}}","text":"47110"}`))
		Expect(out.Interactions[0].Response.Body).To(Equal(`{"output":"{{echoeval:pin}}"}`))
	})

	It("says what no placeholder can replace", func() {
		f := file()
		f.Header.Upstream = key
		_, found, err := cassette.Scrub(f, &secret.Detector{}, nil)
		Expect(err).To(MatchError(And(ContainSubstring("upstream of the header"), Not(ContainSubstring(key)))))
		Expect(slices.ContainsFunc(found, func(x cassette.Finding) bool { return x.Interaction == 0 })).To(BeTrue())
		_, _, err = cassette.Scrub(file(), &secret.Detector{}, []cassette.Redaction{{Name: "a b", Value: "x"}})
		Expect(err).To(HaveOccurred())
	})
})

var _ = Describe("what a reply says", func() {
	reply := func(header http.Header, body string, code int) (cassette.Reply, bool) {
		i := cassette.Interaction{Request: cassette.Request{Method: "POST", URL: chatURL}, Response: cassette.Response{Code: code, Headers: header, Body: body}}
		return i.Reply()
	}
	It("is read from whole replies and from streams", func() {
		whole, ok := reply(nil, `{"choices":[{"message":{"content":"a","tool_calls":[{"function":{"name":"f"}},{"function":{"name":"g"}}]}},{"message":{"content":"b"}}],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}}}`, 200)
		Expect(ok).To(BeTrue())
		Expect(whole).To(Equal(cassette.Reply{Text: "a", Calls: []string{"f", "g"}, Usage: &cassette.Usage{Input: 10, Output: 2, Cached: 4, Reasoning: 1}}))
		stream, ok := reply(http.Header{"Content-Type": {"text/event-stream"}}, "data: {\"choices\":[{\"delta\":{\"content\":\"on\"}}],\"usage\":null}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"e\",\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n", 200)
		Expect(ok).To(BeTrue())
		Expect(stream).To(Equal(cassette.Reply{Text: "one", Calls: []string{"f"}, Usage: &cassette.Usage{Input: 7, Output: 1}}))
		none, ok := reply(nil, `{"choices":[]}`, 200)
		Expect(ok).To(BeTrue())
		Expect(none).To(Equal(cassette.Reply{}))
	})
	It("is nothing for errors, for what is broken, and for what is no model", func() {
		for _, body := range []string{"", "<html>", `{"a":`} {
			_, ok := reply(nil, body, 200)
			Expect(ok).To(BeFalse(), body)
		}
		_, ok := reply(nil, `{"choices":[]}`, 429)
		Expect(ok).To(BeFalse())
		i := cassette.Interaction{Request: cassette.Request{Method: cassette.Method, URL: "tool:///f"}}
		_, ok = i.Reply()
		Expect(ok).To(BeFalse())
	})
})
