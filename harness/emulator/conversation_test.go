package emulator_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/harness/emulator"
)

// ids are what the vendor's ids look like.
const (
	completionID = `^chatcmpl-[A-Za-z0-9]{29}$`
	callID       = `^call_[A-Za-z0-9]{24}$`
	fingerprint  = `^fp_[0-9a-f]{10}$`
)

var _ = Describe("a conversation", func() {
	It("goes on step by step", func() {
		h := handler(full(), emulator.Options{})
		one := decode(call(h, chat("gpt-4o", system("Be brief."), user(weather))).Body.Bytes())
		first := one.Choices[0]
		Expect(one.ID).To(MatchRegexp(completionID))
		Expect(one.SystemFingerprint).To(MatchRegexp(fingerprint))
		Expect(one.Created).To(And(BeNumerically(">=", 1_767_225_600), BeNumerically("<", 1_767_225_600+365*24*60*60)))
		Expect(one.Model).To(Equal("gpt-4o-2024-08-06"))
		Expect(first.FinishReason).To(Equal("tool_calls"))
		Expect(first.Message.Content).To(BeNil())
		Expect(first.Message.ToolCalls).To(HaveLen(1))
		made1 := first.Message.ToolCalls[0]
		Expect(made1.ID).To(MatchRegexp(callID))
		Expect(made1.Function.Arguments).To(Equal(`{"location":"Florence, Italy"}`))

		history := []string{system("Be brief."), user(weather), assistant(made(made1.ID, made1.Function.Name, made1.Function.Arguments)), result(made1.ID, "40 \"C\"")}
		two := decode(call(h, chat("gpt-4o", history...)).Body.Bytes()).Choices[0]
		Expect(*two.Message.Content).To(Equal(`The current temperature is 40 "C".`))
		made2 := two.Message.ToolCalls[0]
		Expect(made2.ID).To(Equal("call_fixed"))
		Expect(made2.Function.Arguments).To(Equal(`{"text":"it is 40 \"C\"","n":1.50,"deep":[{"a":` + quote(weather) + `}]}`))

		history = append(history, assistant(made(made2.ID, made2.Function.Name, made2.Function.Arguments)), result(made2.ID, "ok"))
		w := call(h, chat("gpt-4o", history...))
		three := decode(w.Body.Bytes())
		Expect(*three.Choices[0].Message.Content).To(Equal("Noted."))
		Expect(three.Choices[0].FinishReason).To(Equal("stop"))
		Expect(three.Usage.Prompt).To(Equal(90))
		Expect(three.Usage.Details.Cached).To(Equal(64))
		Expect(three.Usage.Completion).To(Equal(3))
		Expect(three.Usage.Total).To(Equal(93))
		Expect(w.Header().Get("Server-Timing")).To(Equal("total;dur=412, ttft;dur=90"))
		Expect(w.Header().Get("Openai-Processing-Ms")).To(Equal("412"))
		w = call(h, with(chat("gpt-4o", history...), streamed))
		Expect(w.Header().Get("Openai-Processing-Ms")).To(Equal("90"))
		Expect(w.Header().Get("Openai-Version")).To(Equal("2020-10-01"))
		Expect(w.Header().Get("X-Ratelimit-Remaining-Tokens")).To(Equal(strconv.Itoa(30_000_000 - 90)))
	})

	It("streams what it answers in one piece", func() {
		h := handler(full(), emulator.Options{})
		compared := 0
		for name, body := range accepted() {
			whole := decode(call(h, body).Body.Bytes())
			for _, more := range []string{streamed, streamedWithUsage, `"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}`} {
				w := call(h, with(body, more))
				texts := frames(w.Body.Bytes())
				got, want := fold(texts), whole.Choices[0]
				Expect(got.ids).To(HaveLen(1), name)
				Expect(got.finish).To(Equal(want.FinishReason), name)
				if want.Message.Content != nil {
					Expect(got.text).To(Equal(*want.Message.Content), name)
				}
				if want.Message.Refusal != nil {
					Expect(got.refusal).To(Equal(*want.Message.Refusal), name)
				}
				Expect(got.calls).To(HaveLen(len(want.Message.ToolCalls)), name)
				for i, c := range want.Message.ToolCalls {
					Expect(got.calls[i].Function).To(Equal(c.Function), name)
					Expect(got.calls[i].Type).To(Equal("function"))
				}
				all := strings.Join(texts, "\n")
				if more == streamed {
					Expect(got.usage).To(BeNil())
					Expect(all).NotTo(ContainSubstring(`"usage"`))
				} else {
					Expect(*got.usage).To(Equal(whole.Usage), name)
					Expect(strings.Count(all, `"usage":null`)).To(Equal(len(texts) - 1))
					Expect(texts[len(texts)-1]).To(ContainSubstring(`"choices":[]`))
				}
				Expect(strings.Contains(all, "obfuscation")).To(Equal(!strings.Contains(more, "obfuscation")))
				compared++
			}
		}
		Expect(compared).To(BeNumerically(">", 50))
	})

	It("has the same bytes as ever", func() {
		var all bytes.Buffer
		h := handler(full(), emulator.Options{})
		bodies := accepted()
		for _, name := range slices.Sorted(maps.Keys(bodies)) {
			requests := []string{bodies[name]}
			if slices.Contains([]string{"step 1", "step 2", "parallel", "refusal", "content filter"}, name) {
				requests = append(requests, with(bodies[name], streamedWithUsage))
			}
			for _, body := range requests {
				w := call(h, body)
				fmt.Fprintf(&all, "== %s\n", name)
				for _, header := range slices.Sorted(maps.Keys(w.Header())) {
					if v := w.Header()[header]; len(v) > 0 {
						fmt.Fprintf(&all, "%s: %s\n", header, strings.Join(v, ", "))
					}
				}
				fmt.Fprintf(&all, "\n%s\n", w.Body)
			}
		}
		suite.Golden("replies.txt", all.Bytes())
	})

	It("depends on nothing but script and request", func() {
		bodies := slices.Collect(maps.Values(accepted()))
		for _, b := range slices.Clone(bodies) {
			bodies = append(bodies, with(b, streamedWithUsage), with(b, streamed))
		}
		for _, r := range refusals() {
			bodies = append(bodies, r.body)
		}
		one, another := start(full(), emulator.Options{}), start(full(), emulator.Options{})
		want := make([]string, len(bodies))
		read := func(url, body string) string {
			reply, data, err := post(url, body)
			Expect(err).NotTo(HaveOccurred())
			var b strings.Builder
			Expect(reply.Header.Write(&b)).To(Succeed())
			Expect(reply.Header).NotTo(HaveKey("Date"))
			return reply.Status + "\n" + b.String() + "\n" + string(data)
		}
		for i, b := range bodies {
			want[i] = read(one, b)
		}
		order := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0)).Perm(len(bodies))
		var wait sync.WaitGroup
		for worker := range 4 {
			wait.Go(func() {
				defer GinkgoRecover()
				for at := worker; at < len(order); at += 4 {
					i := order[at]
					Expect(read(another, bodies[i])).To(Equal(want[i]))
				}
			})
		}
		wait.Wait()
		Expect(len(bodies)).To(BeNumerically(">", 100))
	})

	It("takes the content of a request, not its form", func() {
		h := handler(full(), emulator.Options{})
		a := call(h, `{"model":"gpt-4o","temperature":1,"messages":[{"role":"user","content":"unicode"}]}`)
		b := call(h, "{ \"messages\": [ {\"content\":\"uni\\u0063ode\" , \"role\":\"user\"} ],\r\n\t\"temperature\":1, \"model\":\"gpt-4o\" }\n", "User-Agent", "another")
		Expect(b.Body).To(Equal(a.Body))
		for _, other := range []string{
			`{"model":"gpt-4o","temperature":2,"messages":[{"role":"user","content":"unicode"}]}`,
			`{"model":"gpt-4o","messages":[{"role":"user","content":"unicode"}]}`,
			`{"model":"gpt-4o","temperature":1,"messages":[{"role":"user","content":[{"type":"text","text":"unicode"}]}]}`,
			`{"model":"gpt-4o-mini","temperature":1,"messages":[{"role":"user","content":"unicode"}]}`,
		} {
			Expect(decode(call(h, other).Body.Bytes()).ID).NotTo(Equal(decode(a.Body.Bytes()).ID), other)
		}
	})

	It("hashes images", func() {
		h := handler(full(), emulator.Options{})
		image := func(url string) string {
			return decode(call(h, chat("gpt-4o", `{"role":"user","content":[{"type":"text","text":"unicode"},{"type":"image_url","image_url":{"url":"`+url+`"}}]}`)).Body.Bytes()).ID
		}
		Expect(image(pixel)).NotTo(BeEmpty())
		Expect(image("https://example.com/a.png")).NotTo(Equal(image("https://example.com/b.png")))
	})

	It("prefers the last user message to the first, whatever the order of the script", func() {
		h := handler(load(`
version: 1
name: turns
conversations:
  - match: {user: one}
    steps: [{text: first}, {text: still the first}, {text: and on}]
  - match: {user: two}
    steps: [{text: second}, {text: on with the second}]
default: {steps: [{text: other}]}
`), emulator.Options{})
		answer := func(messages ...string) string {
			GinkgoHelper()
			w := call(h, chat("gpt-4o", messages...))
			Expect(w.Code).To(Equal(200), w.Body.String())
			return *decode(w.Body.Bytes()).Choices[0].Message.Content
		}
		Expect(answer(user("one"))).To(Equal("first"))
		Expect(answer(user("one"), said("first"), user("two"))).To(Equal("second"))
		Expect(answer(user("one"), said("first"), user("two"), said("second"))).To(Equal("on with the second"))
		Expect(answer(user("one"), said("first"), user("three"))).To(Equal("still the first"))
		Expect(answer(user("one"), said("first"), user("three"), said("x"), user("four"))).To(Equal("and on"))
		Expect(answer(user("zero"), said("first"), user("three"))).To(Equal("other"))
		Expect(answer(system("alone"))).To(Equal("other"))
	})

	It("carries every character", func() {
		h := handler(full(), emulator.Options{})
		want := "Grüße, 世界 👩‍👩‍👧‍👦 🇩🇪 \"quoted\" \\ \t\u0001\u2028 end\n"
		Expect(*decode(call(h, ask("unicode", "")).Body.Bytes()).Choices[0].Message.Content).To(Equal(want))
		texts := frames(call(h, ask("unicode", streamed)).Body.Bytes())
		Expect(fold(texts).text).To(Equal(want))
		Expect(texts).To(HaveLen(len([]rune(want)) + 2))
	})

	It("fills placeholders with data, not with placeholders", func() {
		h := handler(full(), emulator.Options{})
		w := call(h, chat("gpt-4o", user(weather), assistant(made("a", "weather", "{}")), result("a", `{{last_user}} 👍 </x> \`)))
		Expect(*decode(w.Body.Bytes()).Choices[0].Message.Content).To(Equal(`The current temperature is {{last_user}} 👍 </x> \.`))
		w = call(h, chat("gpt-4o", system("shop"), user("order #7")))
		Expect(*decode(w.Body.Bytes()).Choices[0].Message.Content).To(Equal("Your order #7 is on its way. {{not filled}}"))
	})

	It("counts reasoning without showing it", func() {
		c := decode(call(handler(full(), emulator.Options{}), chat("o3-mini", user("think"))).Body.Bytes())
		Expect(c.Usage.OutDetails.Reasoning).To(Equal(9))
		Expect(c.Usage.Completion).To(Equal(11))
	})

	It("may be huge", func() {
		script := load("version: 1\nname: huge\ndefault: {steps: [{text: '{{last_user}}'}, {calls: [{name: f, args: {x: '{{last_user}}'}}]}]}\n")
		text := strings.Repeat("0123456789 äöü 😀\n", 1<<20/24)
		Expect(len(text)).To(BeNumerically(">", 1_000_000))
		url := start(script, emulator.Options{})
		_, data, err := post(url, ask(text, ""))
		Expect(err).NotTo(HaveOccurred())
		Expect(*decode(data).Choices[0].Message.Content).To(Equal(text))
		_, data, err = post(url, ask(text, streamed))
		Expect(err).NotTo(HaveOccurred())
		texts := frames(data)
		Expect(len(texts)).To(And(BeNumerically(">", 1000), BeNumerically("<=", 2002)))
		Expect(fold(texts).text).To(Equal(text))
		_, data, err = post(url, with(chat("gpt-4o", user(text), said("x")), streamed))
		Expect(err).NotTo(HaveOccurred())
		Expect(fold(frames(data)).calls[0].Function.Arguments).To(Equal(`{"x":` + plain(text) + `}`))
	})

	It("has a built-in echo", func() {
		script, err := emulator.Echo()
		Expect(err).NotTo(HaveOccurred())
		h := handler(script, emulator.Options{})
		for _, body := range []string{ask("anything", ""), chat("some/model", system("s"), user(""))} {
			w := call(h, body)
			Expect(*decode(w.Body.Bytes()).Choices[0].Message.Content).To(Equal("Hello from the emulator."))
			Expect(w.Header().Get("Server-Timing")).To(Equal("total;dur=0, ttft;dur=0"))
		}
	})
})

// plain quotes a text without escaping for HTML.
func plain(s string) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(quote(s))
}
