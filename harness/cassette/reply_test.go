package cassette_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/cassette"
)

var _ = Describe("a conversation in a cassette", func() {
	It("is the agent's: what judges say of it is no part of it", func() {
		reply := func(judge, text string) cassette.Interaction {
			return cassette.Interaction{
				Request:  cassette.Request{Method: "POST", URL: "https://api.openai.com/v1/chat/completions", Body: "{}"},
				Response: cassette.Response{Code: 200, Body: `{"choices":[{"message":{"content":"` + text + `","tool_calls":[{"function":{"name":"` + text + `"}}]}}]}`},
				Extra:    cassette.Extra{Judge: judge},
			}
		}
		f := &cassette.File{Interactions: []cassette.Interaction{reply("", "one"), reply("", "two"), reply("strict", "kind")}}
		Expect(f.Answer()).To(Equal("two"))
		Expect(f.Calls()).To(Equal([]string{"one", "two"}))
		f.Interactions[2].Extra.Judge = ""
		Expect(f.Answer()).To(Equal("kind"))
	})
})
