package cassette_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	vcr "github.com/dnaeon/go-vcr/v2/cassette"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/harness/cassette"
)

const chat = `{"model":"gpt-4o-mini","stream":true,"temperature":0.2,"max_completion_tokens":100,
"messages":[
 {"role":"system","content":"You triage patients. Urgent cases call 112 at once, others see a doctor."},
 {"role":"user","content":[{"type":"text","text":"Chest pain"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},
 {"role":"assistant","content":"Let me look.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"contacts","arguments":"{\"of\":\"p-1\"}"}}]},
 {"role":"tool","tool_call_id":"call_1","content":"{\"rows\":[]}"},
 {"role":"assistant","content":"Nobody there."},
 {"role":"user","content":"And now?"}],
"tools":[{"type":"function","function":{"name":"contacts","description":"Contacts of a patient","parameters":{"type":"object","properties":{"of":{"type":"string","description":"patient id"},"description":{"type":"string"}}}}}]}`

var _ = Describe("two requests", func() {
	DescribeTable("differ by class, path and values", func(old, new string, class cassette.Class, path, was, is string) {
		Expect(chat).To(ContainSubstring(old))
		d := cassette.Compare(canonical(chat), canonical(strings.Replace(chat, old, new, 1)))
		Expect(d.Changes[0]).To(Equal(cassette.Change{Class: class, Path: path, Old: was, New: is}))
		Expect(d.Count).To(BeNumerically(">=", 1))
	},
		Entry(nil, `"gpt-4o-mini"`, `"gpt-4o"`, cassette.ClassModel, "model", `"gpt-4o-mini"`, `"gpt-4o"`),
		Entry(nil, "call 112", "call 911", cassette.ClassSystemPrompt, "messages[0].content", `…"ents. Urgent cases call 112 at once, others see a doctor."`, `…"ents. Urgent cases call 911 at once, others see a doctor."`),
		Entry(nil, `"name":"contacts","description"`, `"name":"people","description"`, cassette.ClassToolSchema, "tools[0].function.name", `"contacts"`, `"people"`),
		Entry(nil, `"type":"string","description":"patient id"`, `"type":"integer","description":"patient id"`, cassette.ClassToolSchema, "tools[0].function.parameters.properties.of.type", `"string"`, `"integer"`),
		Entry("a property that is named description", `,"description":{"type":"string"}`, ``, cassette.ClassToolSchema, "tools[0].function.parameters.properties.description", `{"type":"string"}`, "absent"),
		Entry(nil, "Contacts of a patient", "All contacts", cassette.ClassToolDescription, "tools[0].function.description", `"Contacts of a patient"`, `"All contacts"`),
		Entry(nil, "patient id", "id", cassette.ClassToolDescription, "tools[0].function.parameters.properties.of.description", `"patient id"`, `"id"`),
		Entry(nil, "Chest pain", `Chest\u001b[31m pain\u202e`, cassette.ClassUserInput, "messages[1].content[0].text", `"Chest pain"`, `"Chest\x1b[31m pain\u202e"`),
		Entry("an image", "base64,AAAA", "base64,AAAB", cassette.ClassUserInput, "messages[1].content[1].image_url.url", `…"ata:image/png;base64,AAAA"`, `…"ata:image/png;base64,AAAB"`),
		Entry(nil, "Let me look.", "I look.", cassette.ClassHistory, "messages[2].content", `"Let me look."`, `"I look."`),
		Entry(nil, `p-1\"`, `p-2\"`, cassette.ClassToolArguments, "messages[2].tool_calls[0].function.arguments", `"{\"of\":\"p-1\"}"`, `"{\"of\":\"p-2\"}"`),
		Entry(nil, `{\"rows\":[]}`, `{\"rows\":[1]}`, cassette.ClassToolResult, "messages[3].content", `"{\"rows\":[]}"`, `"{\"rows\":[1]}"`),
		Entry("a message less", `,
 {"role":"user","content":"And now?"}`, ``, cassette.ClassUserInput, "messages[5]", `{"content":"And now?","role":"user"}`, "absent"),
		Entry(nil, `:100`, `:200`, cassette.ClassParameters, "max_completion_tokens", "100", "200"),
		Entry("what nobody knows", `"stream":true,`, `"stream":true,"new-thing":{"a":1},`, cassette.ClassParameters, `new-thing`, "absent", `{"a":1}`),
		Entry(nil, `0.2`, `0.3`, cassette.ClassSampling, "temperature", "0.2", "0.3"),
		Entry("whose readers differ", `"stream":true`, `"stream":false`, cassette.ClassParameters, "stream", "true", "false"),
		Entry(nil, `"stream":true`, `"stream":true,"store":true`, cassette.ClassTransport, "store", "absent", "true"),
		Entry("the class that comes first counts, not the path", `"stream":true,"temperature":0.2`, `"stream":true,"metadata":{},"temperature":0.3`, cassette.ClassSampling, "temperature", "0.2", "0.3"),
	)

	It("differ in several classes at once", func() {
		other := strings.NewReplacer("gpt-4o-mini", "gpt-4o", "call 112", "call 911", ":100", ":200", `"stream":true`, `"stream":true,"store":true`).Replace(chat)
		Expect(classes(canonical(chat), canonical(other))).To(Equal([]cassette.Class{cassette.ClassModel, cassette.ClassSystemPrompt, cassette.ClassParameters, cassette.ClassTransport}))
	})

	It("differ in what is around the body", func() {
		base := canonical(chat)
		other := base
		other.Headers = http.Header{"Content-Type": {"application/json"}, "Openai-Beta": {"a"}}
		d := cassette.Compare(base, other)
		Expect(d.Changes).To(Equal([]cassette.Change{{Class: cassette.ClassTransport, Path: "headers.openai-beta", Old: `""`, New: `"a"`}}))
		other = base
		other.URL = "https://api.openai.com/v1/embeddings"
		Expect(classes(base, other)[0]).To(Equal(cassette.ClassOther))
		other.URL = "https://eu.api.openai.com/v1/chat/completions"
		Expect(classes(base, other)[0]).To(Equal(cassette.ClassTransport))
		Expect(cassette.Compare(base, base)).To(Equal(cassette.Difference{}))
		path, old, new := cassette.Diff(base, other)
		Expect(path + " " + old + " " + new).To(HavePrefix(`url "https://api.openai.com`))
	})

	It("of tools differ in their arguments", func() {
		a, _ := cassette.Canonical(cassette.Method, cassette.ToolURL("read_file"), nil, []byte(`{"path":"a"}`), nil)
		b, _ := cassette.Canonical(cassette.Method, cassette.ToolURL("read_file"), nil, []byte(`{"path":"b"}`), nil)
		d := cassette.Compare(a, b)
		Expect(d.Changes).To(Equal([]cassette.Change{{Class: cassette.ClassToolArguments, Path: "path", Old: `"a"`, New: `"b"`}}))
		c, _ := cassette.Canonical(cassette.Method, cassette.ToolURL("write_file"), nil, []byte(`{"path":"a"}`), nil)
		Expect(classes(a, c)[0]).To(Equal(cassette.ClassOther))
	})

	It("have a nearest one", func() {
		step := func(n int, system string) cassette.Request {
			messages := []string{`{"role":"system","content":"` + system + `"}`, `{"role":"user","content":"q"}`}
			for i := range n {
				messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":"%d"}`, i))
			}
			return canonical(`{"model":"m","messages":[` + strings.Join(messages, ",") + `]}`)
		}
		tool, _ := cassette.Canonical(cassette.Method, cassette.ToolURL("x"), nil, nil, nil)
		recorded := []cassette.Request{tool, step(0, "old"), step(1, "old"), step(2, "old")}
		for n := range 3 {
			best, d := cassette.Nearest(recorded, step(n, "new"))
			Expect(best).To(Equal(n + 1))
			Expect(d.Changes[0].Class).To(Equal(cassette.ClassSystemPrompt))
		}
		best, d := cassette.Nearest(recorded, step(4, "old"))
		Expect(best).To(Equal(3))
		Expect(d.Prefix).To(Equal(4))
		best, _ = cassette.Nearest(nil, tool)
		Expect(best).To(Equal(-1))
	})

	It("are classified for every kind of change that real traffic shows", func() {
		paths, err := filepath.Glob(filepath.Join(suite.SharedData("cassettes", "go-vcr-v2"), "*", "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		seen := map[cassette.Class]int{}
		requests, chats := 0, 0
		for _, path := range paths {
			c, err := vcr.Load(strings.TrimSuffix(path, ".yaml"))
			Expect(err).NotTo(HaveOccurred())
			var previous *cassette.Request
			for _, i := range c.Interactions {
				r, _ := cassette.Canonical(i.Request.Method, i.Request.URL, i.Request.Headers, []byte(i.Request.Body), nil)
				again, applied := cassette.Canonical(r.Method, r.URL, r.Headers, []byte(r.Body), nil)
				Expect(again).To(Equal(r), path)
				Expect(applied).To(BeEmpty())
				requests++
				if !strings.HasSuffix(r.URL, "/chat/completions") {
					continue
				}
				chats++
				if previous != nil {
					d := cassette.Compare(*previous, r)
					seen[d.Changes[0].Class]++
				}
				previous = &r
				var body map[string]json.RawMessage
				Expect(json.Unmarshal([]byte(r.Body), &body)).To(Succeed())
				for _, name := range slices.Sorted(maps.Keys(body)) {
					if name == "messages" {
						continue
					}
					changed := maps.Clone(body)
					changed[name] = json.RawMessage(`"changed"`)
					text, err := json.Marshal(changed)
					Expect(err).NotTo(HaveOccurred())
					d := cassette.Compare(r, canonical(string(text)))
					seen[d.Changes[0].Class]++
				}
			}
		}
		Expect(requests).To(BeNumerically(">", 20))
		Expect(chats).To(BeNumerically(">", 5))
		Expect(seen).To(HaveKey(cassette.ClassModel))
		Expect(seen).To(HaveKey(cassette.ClassToolSchema))
		Expect(seen).NotTo(HaveKey(cassette.ClassOther))
		GinkgoWriter.Println(requests, "requests,", chats, "chats:", seen)
	})
})

func classes(recorded, got cassette.Request) (all []cassette.Class) {
	for _, c := range cassette.Compare(recorded, got).Changes {
		all = append(all, c.Class)
	}
	return all
}

func FuzzCompare(f *testing.F) {
	f.Add(chat, strings.Replace(chat, "112", "911", 1))
	f.Add(`{"a":[{"role":1}]}`, `{"a":{"role":"x"}}`)
	f.Add(`{"":"\ud800","a":1,"a":2}`, "\xff")
	f.Add("0", "2")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, _ := cassette.Canonical("POST", chatURL, nil, []byte(a), nil)
		y, _ := cassette.Canonical("POST", chatURL, nil, []byte(b), nil)
		d := cassette.Compare(x, y)
		if (cassette.KeyOf(x) == cassette.KeyOf(y)) != (d.Count == 0) {
			t.Fatalf("%q and %q: %+v", a, b, d)
		}
		if d.Count > 0 != (len(d.Changes) > 0) {
			t.Fatalf("nothing to show: %+v", d)
		}
		for _, c := range d.Changes {
			s := c.Old + c.New
			if c.Class == "" || c.Path == "" || c.Old == "" || c.New == "" || len(s) > 2000 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7F && r < 0xA0 || r == 0x202E }) {
				t.Fatalf("not fit for a terminal: %q", s)
			}
		}
	})
}
