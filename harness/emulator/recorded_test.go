package emulator_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/olekukonko/tablewriter"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v4"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/harness/emulator"
)

// shape writes a JSON text with each value that is no container replaced by its kind: what is left is which keys are there, in which order, and where null is. Texts that both sides must agree on are kept.
func shape(text string) string {
	GinkgoHelper()
	kept := map[string]bool{"object": true, "role": true, "type": true, "service_tier": true, "finish_reason": true, "stop_reason": true}
	d := jsontext.NewDecoder(strings.NewReader(text))
	var b strings.Builder
	key := ""
	for d.PeekKind() != 0 {
		in, n := d.StackIndex(d.StackDepth())
		isKey := in == '{' && n%2 == 0
		token, err := d.ReadToken()
		Expect(err).NotTo(HaveOccurred())
		switch kind := token.Kind(); {
		case kind == '}' || kind == ']':
		case isKey:
			key = token.String()
			fmt.Fprintf(&b, " %s:", key)
			continue
		}
		switch kind := token.Kind(); kind {
		case '"':
			if kept[key] {
				b.WriteString(token.String())
			} else {
				b.WriteString("string")
			}
		case '0':
			b.WriteString("number")
		case 't', 'f':
			b.WriteString("bool")
		default:
			b.WriteString(token.String())
		}
	}
	return b.String()
}

// exchange is one recorded request and its reply.
type exchange struct {
	url, request, reply string
	headers             map[string][]string // of the reply, nil where they were not recorded
}

// recorded reads the chat exchanges with OpenAI from a recording of go-vcr v2 or VCR.py.
func recorded(elem ...string) []exchange {
	GinkgoHelper()
	data, err := os.ReadFile(suite.SharedData(append([]string{"cassettes"}, elem...)...))
	Expect(err).NotTo(HaveOccurred())
	var file struct {
		Interactions []struct {
			Request struct {
				URL, URI string
				Body     any
			}
			Response struct {
				Body    any
				Headers map[string][]string
			}
		}
	}
	Expect(yaml.Unmarshal(data, &file)).To(Succeed())
	var out []exchange
	for _, i := range file.Interactions {
		text := func(body any) string {
			if m, ok := body.(map[string]any); ok {
				body = m["string"]
			}
			return fmt.Sprint(body)
		}
		if url := i.Request.URL + i.Request.URI; url == "https://api.openai.com/v1/chat/completions" {
			out = append(out, exchange{url, text(i.Request.Body), text(i.Response.Body), i.Response.Headers})
		}
	}
	Expect(out).NotTo(BeEmpty())
	return out
}

// difference is where the emulator and a recording differ on purpose.
type difference struct{ where, recorded, ours, why string }

var _ = Describe("recordings of the vendor", func() {
	// The answers of the recordings below.
	script := func() emulator.Script {
		return load(`
version: 1
name: as recorded
conversations:
  - match: {user: "What's the weather in Florence,Italy?"}
    steps:
      - {calls: [{name: weather, args: {location: "Florence, Italy"}}], fragment: 3}
      - text: The current temperature in Florence, Italy is 40°C.
  - match: {user: What is OpenLLMetry?}
    steps: [{calls: [{name: tavily_search_results_json, args: {query: OpenLLMetry}}]}, {text: OpenLLMetry is open.}]
  - match: {user: What is the weather in Berlin}
    steps: [{calls: [{name: get_current_weather, args: {location: "Berlin, Germany"}}]}]
default:
  steps: [{text: An answer.}]
`)
	}

	It("have the same chunks as our streams", func() {
		h := handler(script(), emulator.Options{})
		chunks, kinds := 0, map[string]bool{}
		var found []difference
		for _, e := range slices.Concat(
			recorded("go-vcr-v2", "charmbracelet+fantasy", "71357c-tool_streaming.yaml"),
			recorded("vcrpy-v1", "traceloop+openllmetry", "79ff34-test_agents_with_events_with_content.yaml"),
		) {
			w := call(h, e.request)
			Expect(w.Code).To(Equal(200), w.Body.String())
			theirs, ours := map[string]bool{}, map[string]bool{}
			count := func(set map[string]bool, stream string) {
				for _, f := range frames([]byte(strings.TrimRight(stream, "\n") + "\n\n")) {
					chunks++
					// The older model of the second recording had no fingerprint.
					s := shape(f)
					if plain := strings.Replace(s, "system_fingerprint:null", "system_fingerprint:string", 1); plain != s {
						found = append(found, difference{"system_fingerprint", "null", "a string", "gpt-3.5-turbo has none; newer models do, and the description knows only strings"})
						s = plain
					}
					set[s] = true
					Expect(utf8.RuneCountInString(f)%16).To(Equal(1), "padding: %s", f)
				}
			}
			count(theirs, e.reply)
			count(ours, w.Body.String())
			Expect(slices.Sorted(maps.Keys(ours))).To(Equal(slices.Sorted(maps.Keys(theirs))))
			maps.Copy(kinds, ours)
		}
		Expect(len(kinds)).To(BeNumerically(">=", 10))
		fmt.Printf("%d chunks compared, of %d kinds\n", chunks, len(kinds))
		print(found)
	})

	It("have the same first and last chunks in the same order", func() {
		h := handler(script(), emulator.Options{})
		for _, e := range recorded("go-vcr-v2", "charmbracelet+fantasy", "71357c-tool_streaming.yaml") {
			var theirs, ours []string
			for _, f := range frames([]byte(strings.TrimRight(e.reply, "\n") + "\n\n")) {
				theirs = append(theirs, shape(f))
			}
			for _, f := range frames(call(h, e.request).Body.Bytes()) {
				ours = append(ours, shape(f))
			}
			Expect(slices.Compact(ours)).To(Equal(slices.Compact(theirs)))
			Expect(fold(frames(call(h, e.request).Body.Bytes())).finish).NotTo(BeEmpty())
		}
	})

	It("have the same blocking replies, but for what is known", func() {
		h := handler(script(), emulator.Options{})
		known := map[string]difference{
			"98ce55": {"98ce55", "no annotations, audio counts, prediction counts and service_tier; fingerprint null", "all of them", "a reply of October 2024: the vendor added the fields later"},
		}
		var found []difference
		compared := 0
		for id, elem := range map[string][]string{
			"34f122": {"vcrpy-v1", "Arize-ai+openinference", "34f122-test_async_pipeline_tool_calling_llm_span_has_expected_attributes.yaml"},
			"886d24": {"vcrpy-v1", "crewAIInc+crewAI", "886d24-TestAgentA2AKickoff.test_agent_kickoff_with_conversation_skill.yaml"},
			"98ce55": {"vcrpy-v1", "Arize-ai+openinference", "98ce55-test_rag_module_True_.yaml"},
		} {
			for _, e := range recorded(elem...) {
				w := call(h, e.request)
				Expect(w.Code).To(Equal(200), "%s: %s", id, w.Body)
				compared++
				if shape(w.Body.String()) != shape(e.reply) {
					d, ok := known[id]
					Expect(ok).To(BeTrue(), "%s:\n%s\n%s", id, shape(e.reply), shape(w.Body.String()))
					found = append(found, d)
					continue
				}
				// Not only the keys: the spaces too.
				Expect(indentation(w.Body.Bytes())).To(Equal(indentation([]byte(e.reply))), id)
			}
		}
		Expect(compared).To(BeNumerically(">=", 6))
		fmt.Printf("%d blocking replies compared\n", compared)
		print(found)
	})

	It("have the same headers, but for what is known", func() {
		const edge, account = "of the network in front of the vendor", "names the account"
		known := map[string]difference{
			"Alt-Svc":                       {"", "there", "absent", edge},
			"Cf-Ray":                        {"", "there", "absent", edge},
			"Cf-Cache-Status":               {"", "there", "absent", edge},
			"Set-Cookie":                    {"", "there", "absent", edge},
			"Strict-Transport-Security":     {"", "there", "absent", "the emulator speaks plain HTTP on loopback"},
			"X-Envoy-Upstream-Service-Time": {"", "there", "absent", edge},
			"Connection":                    {"", "there", "absent", "HTTP/1.1 keeps connections without it"},
			"Date":                          {"", "there", "absent", "it would differ from run to run"},
			"Openai-Organization":           {"", "there", "absent", account},
			"Openai-Project":                {"", "there", "absent", account},
			"Server-Timing":                 {"", "absent", "there", "tells the recorder how long a reply takes"},
		}
		h := handler(script(), emulator.Options{})
		e := recorded("vcrpy-v1", "traceloop+openllmetry", "79ff34-test_agents_with_events_with_content.yaml")[0]
		Expect(e.headers).NotTo(BeEmpty())
		theirs := map[string]bool{}
		for name := range e.headers {
			theirs[http.CanonicalHeaderKey(name)] = true
		}
		ours := map[string]bool{}
		for name, values := range call(h, e.request).Header() {
			if len(values) > 0 {
				ours[name] = true
			}
		}
		var found []difference
		for _, name := range slices.Sorted(maps.Keys(maps.Collect(func(yield func(string, bool) bool) {
			for _, set := range []map[string]bool{theirs, ours} {
				for name := range set {
					if !yield(name, true) {
						return
					}
				}
			}
		}))) {
			if theirs[name] != ours[name] {
				d, ok := known[name]
				Expect(ok).To(BeTrue(), "%s: recorded %t, ours %t", name, theirs[name], ours[name])
				d.where = name
				found = append(found, d)
			}
		}
		Expect(found).To(HaveLen(len(known)), "a difference that is no more")
		print(found)
	})
})

// indentation returns what stands between the values of a JSON text.
func indentation(text []byte) string {
	var b strings.Builder
	for line := range bytes.Lines(text) {
		b.WriteString(string(line[:len(line)-len(bytes.TrimLeft(line, " "))]) + "|")
	}
	return b.String()
}

func print(found []difference) {
	GinkgoHelper()
	table := tablewriter.NewWriter(os.Stdout)
	table.Header("where", "recorded", "ours", "why")
	seen := map[difference]bool{}
	for _, d := range found {
		if !seen[d] {
			seen[d] = true
			Expect(table.Append(d.where, d.recorded, d.ours, d.why)).To(Succeed())
		}
	}
	Expect(table.Render()).To(Succeed())
}
