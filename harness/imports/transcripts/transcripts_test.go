package transcripts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/imports/recordings"
	"github.com/echoeval/echoeval/harness/imports/transcripts"
	"github.com/echoeval/echoeval/harness/invariant"
)

func TestTranscripts(t *testing.T) { suite.Run(t, "transcripts") }

// sketch writes a trace in a line: kinds of events with what tells them apart.
func sketch(t trace.Trace) string {
	var all []string
	for _, e := range t.Events {
		text := string(e.Kind)
		switch {
		case e.Start != nil:
			text += fmt.Sprintf(" %d", len(e.Start.Input))
		case e.Request != nil:
			for _, tool := range e.Request.Tools {
				text += " " + tool.Name
			}
		case e.Reply != nil:
			text += fmt.Sprintf(" %q", e.Reply.Message.Text())
			for _, c := range e.Reply.Message.ToolCalls() {
				text += fmt.Sprintf(" %s=%s%s", c.ID, c.Name, c.Input)
			}
		case e.Tool != nil:
			text += fmt.Sprintf(" %s %s %t", e.Tool.CallID, e.Tool.Result, e.Tool.IsError)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

func lists(name, text string) []transcripts.Transcript {
	GinkgoHelper()
	out, err := transcripts.Lists(name, []byte(text))
	Expect(err).NotTo(HaveOccurred())
	return out
}

var _ = Describe("a list of messages", func() {
	const asked = `start 2; reply "" c1=lookup{"id":7}; tool c1 "found" false; results; reply "It is there."; end`
	DescribeTable("of any vendor becomes the same trace", func(text string) {
		Expect(sketch(lists("x.json", text)[0].Trace)).To(Equal(asked))
	},
		Entry("OpenAI chat", `[{"role":"system","content":"S"},{"role":"user","content":"Where?"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"lookup","arguments":"{\"id\":7}"}}]},{"role":"tool","tool_call_id":"c1","content":"found"},{"role":"assistant","content":"It is there."}]`),
		Entry("Anthropic", `{"system":"S","messages":[{"role":"user","content":"Where?"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"c1","name":"lookup","input":{"id":7}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"found"}]}]},{"role":"assistant","content":[{"type":"text","text":"It is there."}]}]}`),
		Entry("OpenAI responses", `{"instructions":"S","input":[{"role":"user","content":[{"type":"input_text","text":"Where?"}]},{"type":"reasoning","summary":[]},{"type":"function_call","call_id":"c1","name":"lookup","arguments":"{\"id\":7}"},{"type":"function_call_output","call_id":"c1","output":"found"},{"role":"assistant","content":[{"type":"output_text","text":"It is there."}]}]}`),
		Entry("Bedrock", `{"system":[{"text":"S"}],"messages":[{"role":"user","content":[{"text":"Where?"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"lookup","input":{"id":7}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"found"}]}}]},{"role":"assistant","content":[{"text":"It is there."}]}]}`),
		Entry("tau-bench", `{"task_id":1,"traj":[{"role":"system","content":"S"},{"role":"user","content":"Where?"},{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"lookup","arguments":"{\"id\":7}"}}]},{"role":"tool","tool_call_id":"c1","content":"found"},{"role":"assistant","content":"It is there."}]}`),
	)

	It("of Gemini gets ids, as there are none", func() {
		Expect(sketch(lists("x.json", `{"contents":[{"role":"user","parts":[{"text":"Where?"}]},{"role":"model","parts":[{"functionCall":{"name":"lookup","args":{"id":7}}},{"functionCall":{"name":"lookup","args":{"id":8}}}]},{"role":"user","parts":[{"functionResponse":{"name":"lookup","response":{"a":1}}},{"functionResponse":{"name":"lookup","response":{"a":2}}}]},{"role":"model","parts":[{"text":"Both."}]}],"tools":[{"functionDeclarations":[{"name":"lookup","parameters":{"type":"OBJECT","properties":{"id":{"type":"INTEGER"}}}}]}]}`)[0].Trace)).
			To(Equal(`start 1; request lookup; reply "" lookup-1=lookup{"id":7} lookup-2=lookup{"id":8}; tool lookup-1 {"a":1} false; tool lookup-2 {"a":2} false; results; request lookup; reply "Both."; end`))
	})

	It("has a run for each turn, which is given all that was said before", func() {
		t := lists("x.yaml", "- {role: user, content: a}\n- {role: assistant, content: b}\n- {role: user, content: c}\n- {role: assistant, content: d}\n- {role: user, content: bye}\n")[0].Trace
		Expect(sketch(t)).To(Equal(`start 1; reply "b"; end; start 3; reply "d"; end; start 5; end`))
	})

	It("that ends on a call or its result has not ended", func() {
		Expect(sketch(lists("x.json", `[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":""}}]}]`)[0].Trace)).To(HaveSuffix(`reply "" c=f`))
	})

	It("comes one a line, or several in a list, with names", func() {
		const one = `{"id":"first","messages":[{"role":"user","content":"a"}]}`
		got := lists("x.jsonl", one+"\r\n"+`[{"role":"user","content":"🍵"}]`+"\n")
		Expect(got).To(HaveLen(2))
		Expect([]string{got[0].Name, got[1].Name, got[1].Pos.String()}).To(Equal([]string{"first", "2", "x.jsonl:2:1"}))
		Expect(lists("x.json", "["+one+","+one+"]")).To(HaveLen(2))
	})

	DescribeTable("that is none is said to be, with its place", func(text, want string) {
		_, err := transcripts.Lists("x.json", []byte(text))
		Expect(err).To(HaveOccurred())
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		got := err.Error()
		if pos, ok := failure.PositionOf(err); ok {
			got = pos.String() + ": " + got
		}
		Expect(got).To(ContainSubstring(want))
	},
		Entry(nil, `[]`, "x.json: there is no conversation in it"),
		Entry(nil, `{}`, "x.json:1:1: there is no conversation in it"),
		Entry(nil, `{"messages":[]}`, "x.json:1:1: there is no conversation in it"),
		Entry(nil, `[{"role":"usr","content":"a"}]`, `x.json:1:10: unknown role "usr"`),
		Entry(nil, `[{"role":"user","content":7}]`, "x.json:1:27: want the content of a message"),
		Entry(nil, `[{"role":"user","content":"a"},3]`, "x.json:1:32: want a message"),
		Entry(nil, `[{"role":"user","content":"a"},{"content":"b"}]`, "x.json:1:32: a message without a role"),
		Entry(nil, `[{"role":"user"`, "x.json:1:"),
	)
})

// judged gives the violations of the invariants in transcripts, as name, where and evidence.
func judged(where string, list []transcripts.Transcript) (out []string, evaluated map[string]int) {
	set := invariant.Select(nil, transcripts.Unseen, nil)
	evaluated = map[string]int{}
	for _, t := range list {
		got := set.Evaluate(t.Trace)
		for _, name := range set.Names() {
			if !slices.Contains(got.NotApplicable, name) {
				evaluated[name]++
			}
		}
		for _, v := range got.Violations {
			out = append(out, fmt.Sprintf("%s: %s: %s", v.Name, where+t.Name, v.Evidence))
		}
	}
	return out, evaluated
}

var _ = Describe("what was handed out", func() {
	It("of tau-bench breaks nothing but that ids return, in 13 trajectories", func() {
		data, err := os.ReadFile(suite.SharedData("traces", "tau-bench", "gpt-4o-airline-60.json"))
		Expect(err).NotTo(HaveOccurred())
		list, err := transcripts.Lists("airline.json", data)
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(HaveLen(60))
		broken, evaluated := judged("", list)
		Expect(evaluated["tool-call-pairing"]).To(Equal(55), "five trajectories call no tool")
		Expect(evaluated["role-content"]).To(Equal(60))
		Expect(broken).To(HaveLen(13))
		// The trajectories in which a search of the file for ids that occur twice among tool_calls finds them.
		for i, task := range []string{"14-trial-0", "17-trial-0", "30-trial-0", "31-trial-0", "2-trial-1", "6-trial-1", "11-trial-1", "24-trial-1", "28-trial-1", "11-trial-2", "16-trial-3", "26-trial-3", "27-trial-3"} {
			Expect(broken[i]).To(HavePrefix("tool-call-unique-ids: task-" + task + ": "))
		}
	})

	It("as recordings of tool loops breaks what is broken in them and nothing else", func() {
		dir := suite.SharedData("cassettes")
		index, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
		Expect(err).NotTo(HaveOccurred())
		var broken []string
		loops := 0
		for line := range strings.Lines(string(index)) {
			columns := strings.Split(strings.TrimSpace(line), "\t")
			if !slices.Contains(strings.Split(columns[5], ","), "tool_loop") {
				continue
			}
			loops++
			data, err := os.ReadFile(filepath.Join(dir, columns[0]))
			Expect(err).NotTo(HaveOccurred())
			recording, err := recordings.Read(columns[0], data)
			Expect(err).NotTo(HaveOccurred())
			file, err := recording.Cassette(cassette.Header{}, &secret.Detector{}, nil)
			Expect(file).NotTo(BeNil(), "%v", err)
			list := transcripts.Cassette(columns[0], file)
			found, evaluated := judged(filepath.Base(columns[0])+", ", list)
			Expect(evaluated["tool-call-pairing"]).To(BeNumerically(">", 0), "%s: no loop was read", columns[0])
			Expect(evaluated["visible-tools-only"]).To(BeNumerically(">", 0), "%s: no tools were read", columns[0])
			broken = append(broken, found...)
		}
		Expect(loops).To(Equal(36))
		slices.Sort(broken)
		Expect(broken).To(Equal([]string{
			// The client writes the input of the older form of its agent, a plain text, in the place of the arguments.
			`arguments-match-schema: 8e5a4b-TestExecutorWithOpenAIFunctionAgent.httprr, request 3: call "call_xBZmyTROTl3UDnkHo7ViHPJ6" of "GoogleSearch": the arguments are not valid JSON`,
			// The client gives as the name of the function, by which Gemini pairs results, an id of its own.
			`tool-call-pairing: 64edcc-TestExec_Gemini_ToolCall.yaml, request 2: a result for "call_1338bc52-c261-432d-b5e5-9dfb8f9c13bb", which nothing called (and 1 more)`,
		}))
	})
})

// FuzzLists looks that no input makes the reader panic, and that what it reads can be judged.
func FuzzLists(f *testing.F) {
	for _, text := range []string{
		`[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"x"}]`,
		`{"contents":[{"parts":[{"functionCall":{"name":"f"}}]}]}`,
		`{"input":[{"type":"function_call","call_id":"a"}],"tools":[{"type":"function"}]}`,
		`[{"role":"tool","content":[{"type":"tool_result"}]}]`,
	} {
		f.Add(text)
	}
	set := invariant.Select(nil, transcripts.Unseen, nil)
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"x.json", "x.jsonl"} {
			list, err := transcripts.Lists(name, []byte(text))
			if err == nil && len(list) == 0 {
				t.Fatal("neither a conversation nor an error")
			}
			for _, one := range list {
				set.Evaluate(one.Trace)
			}
		}
	})
}
