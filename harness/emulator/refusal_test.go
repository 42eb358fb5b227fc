package emulator_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/harness/emulator"
)

type errorBody struct {
	Error struct {
		Message string
		Type    string
		Param   *string
		Code    *string
	}
}

func (r refusal) send() *httptest.ResponseRecorder {
	GinkgoHelper()
	q := request(r.body, r.headers...)
	if r.method != "" {
		q.Method = r.method
	}
	if r.path != "" {
		q.URL.Path = r.path
	}
	w := httptest.NewRecorder()
	handler(full(), r.opts).ServeHTTP(w, q)
	return w
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

var _ = Describe("refusals", func() {
	It("have the vendor's status, parameter and code", func() {
		for _, r := range refusals() {
			w := r.send()
			var e errorBody
			Expect(json.Unmarshal(w.Body.Bytes(), &e)).To(Succeed(), r.name)
			Expect(w.Code).To(Equal(r.status), "%s: %s", r.name, w.Body)
			Expect(e.Error.Param).To(Equal(orNil(r.param)), "%s: %s", r.name, w.Body)
			Expect(e.Error.Code).To(Equal(orNil(r.code)), "%s: %s", r.name, w.Body)
			Expect(w.Header().Get("Content-Type")).To(Equal("application/json"))
			Expect(w.Header().Get("X-Request-Id")).To(MatchRegexp(`^req_[0-9a-f]{32}$`))
			Expect(w.Body.String()).NotTo(ContainSubstring(key))
			Expect(w.Body.String()).NotTo(ContainSubstring("secret-1234"))
		}
	})

	It("say what the vendor says", func() {
		var all bytes.Buffer
		for _, r := range refusals() {
			fmt.Fprintf(&all, "== %s: %d\n%s\n", r.name, r.status, r.send().Body)
		}
		suite.Golden("refusals.txt", all.Bytes())
	})

	It("answer a wrong method with the right one", func() {
		w := refusal{method: "DELETE"}.send()
		Expect(w.Header().Get("Allow")).To(Equal("POST"))
	})

	It("name the nearest conversation and what was asked", func() {
		w := call(handler(full(), emulator.Options{}), chat("gpt-4o", user("What's the wether in Florence, Italy?")))
		Expect(w.Body.String()).To(And(ContainSubstring(`the nearest conversation is \"three steps\"`), ContainSubstring("wether in Florence")))
		w = call(handler(full(), emulator.Options{}), chat("gpt-4o", user("unicode"), said("x")))
		Expect(w.Body.String()).To(ContainSubstring(`the conversation \"unicode\" has 1 step, but step 2 is asked for`))
	})

	It("know the models that a script names", func() {
		script := load("version: 1\nname: x\nconversations:\n- {match: {model: 'gpt-4o*'}, steps: [{text: a}]}\n- {match: {model: org/m?, user: b}, steps: [{text: b}]}\n")
		h := handler(script, emulator.Options{})
		for model, status := range map[string]int{"gpt-4o": 200, "gpt-4o-mini": 200, "gpt-4": 404, "org/m1": 200, "org/m": 404, "gpt-4o`\n": 200} {
			Expect(call(h, chat(model, user("b"))).Code).To(Equal(status), model)
		}
		w := call(h, chat("gpt-4", user("b")))
		Expect(w.Body.String()).To(ContainSubstring("The model `gpt-4` does not exist or you do not have access to it."))
		Expect(w.Body.String()).To(ContainSubstring(`"code": "model_not_found"`))

		script.Models = []string{"only"}
		Expect(call(handler(script, emulator.Options{}), chat("gpt-4o", user("b"))).Code).To(Equal(404))
	})
})

var _ = Describe("errors of a script", func() {
	It("have the status and the vendor's body", func() {
		var all bytes.Buffer
		h := handler(full(), emulator.Options{})
		Expect(failures).To(HaveLen(10))
		for _, text := range slices.Sorted(maps.Keys(failures)) {
			for _, more := range []string{"", streamed} {
				w := call(h, ask(text, more))
				Expect(w.Code).To(Equal(failures[text]))
				Expect(w.Header().Get("Content-Type")).To(Equal("application/json"))
				if more == "" {
					fmt.Fprintf(&all, "== %s\n%s\n", text, w.Body)
				}
			}
		}
		suite.Golden("failures.txt", all.Bytes())
	})

	It("say when to come back", func() {
		h := handler(full(), emulator.Options{})
		w := call(h, ask("flaky", ""))
		Expect(w.Code).To(Equal(429))
		Expect(w.Header().Get("Retry-After")).To(Equal("2"))
		Expect(w.Header().Get("Retry-After-Ms")).To(Equal("1500"))
		Expect(w.Header().Get("X-Ratelimit-Remaining-Requests")).To(Equal("0"))
		Expect(w.Header().Get("X-Ratelimit-Reset-Requests")).To(Equal("1.5s"))
		w = call(h, ask("e503", ""))
		Expect(w.Header().Get("Retry-After")).To(Equal("2"))
		w = call(h, ask("e500", ""))
		Expect(w.Header()).NotTo(HaveKey("Retry-After"))
	})

	It("end with the attempt that the client counts", func() {
		h := handler(full(), emulator.Options{})
		for header, status := range map[string]int{"": 429, "0": 429, "1": 503, "2": 200, "3": 200, "99999999999999999999": 429, "-1": 429, "x": 429} {
			Expect(call(h, ask("flaky", ""), "X-Stainless-Retry-Count", header).Code).To(Equal(status), header)
		}
		once, again := call(h, ask("flaky", ""), "X-Stainless-Retry-Count", "2"), call(h, ask("flaky", ""), "X-Stainless-Retry-Count", "3")
		Expect(again.Body).To(Equal(once.Body))
		Expect(again.Header().Get("X-Request-Id")).NotTo(Equal(once.Header().Get("X-Request-Id")))
		Expect(strings.TrimSpace(*decode(again.Body.Bytes()).Choices[0].Message.Content)).To(Equal("Fine now."))
	})
})
