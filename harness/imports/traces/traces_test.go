package traces_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/agent"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/imports"
	"github.com/echoeval/echoeval/harness/imports/traces"
	"github.com/echoeval/echoeval/harness/score"
)

// look is what is left of an import that was written and read back.
type look struct {
	items  []*dataset.Item
	checks int
	agent  agent.Config
}

func readBack(result imports.Result) look {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	for _, f := range result.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		Expect(os.WriteFile(path, f.Data, 0o644)).To(Succeed())
	}
	var kinds []string
	for _, k := range score.Kinds() {
		kinds = append(kinds, k.Name)
	}
	d, err := dataset.Open(filepath.Join(dir, result.Files[0].Path), dataset.Options{Dir: dir, Checks: kinds})
	Expect(err).NotTo(HaveOccurred())
	var l look
	var p strict.Problems
	l.agent = agent.Decode(d.Agent.Node, &p)
	Expect(p.Err()).NotTo(HaveOccurred())
	Expect(d.Validate(func(item *dataset.Item, p *strict.Problems) {
		l.items = append(l.items, item)
		var specs []score.Spec
		for _, c := range item.Checks {
			specs = append(specs, score.Spec{Kind: c.Kind, Args: c.Args, Name: c.Name, Not: c.Not, Pos: c.Pos})
		}
		// The agent has every tool that a check names.
		l.checks += len(score.Compile(specs, score.Env{Tools: l.agent.Tools}, p))
		for name, mock := range item.ToolMocks {
			Expect(l.agent.Tools).To(ContainElement(name))
			for _, c := range mock.Cases {
				score.CompileArguments(c.Args, p)
			}
		}
	})).To(Succeed())
	Expect(result.Report.Items).To(Equal(len(l.items)))
	return l
}

func read(name string, path ...string) traces.Source {
	GinkgoHelper()
	data, err := os.ReadFile(suite.SharedData(path...))
	Expect(err).NotTo(HaveOccurred())
	return traces.Source{Name: name, Data: data}
}

var _ = Describe("the traces handed out", func() {
	It("of tau-bench become 60 items", func() {
		source := read("airline.json", "traces", "tau-bench", "gpt-4o-airline-60.json")
		result, err := traces.Import([]traces.Source{source}, traces.Options{Name: "airline"})
		Expect(err).NotTo(HaveOccurred())
		l := readBack(result)
		Expect(l.items).To(HaveLen(60))
		Expect(l.checks).To(BeNumerically(">", 50))
		Expect(l.agent.Task.Description).To(ContainSubstring("Airline Agent Policy"))
		Expect(l.agent.Tools).To(ContainElements("get_user_details", "book_reservation"))
		turns, mocked, tagged := 0, 0, 0
		for _, item := range l.items {
			turns += len(item.Turns)
			for _, m := range item.ToolMocks {
				mocked += len(m.Cases)
			}
			tagged += len(item.Tags)
		}
		Expect(turns).To(BeNumerically(">", 200))
		Expect(mocked).To(BeNumerically(">=", 322), "one for each recorded result")
		Expect(tagged).To(Equal(60))
		again, err := traces.Import([]traces.Source{source}, traces.Options{Name: "airline"})
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Files).To(Equal(result.Files))
	})

	It("of Langfuse become an item each", func() {
		files, err := filepath.Glob(filepath.Join(suite.SharedData("traces", "langfuse"), "*.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(7))
		slices.Sort(files)
		var sources []traces.Source
		for _, f := range files {
			sources = append(sources, read(filepath.Base(f), "traces", "langfuse", filepath.Base(f)))
		}
		result, err := traces.Import(sources, traces.Options{Name: "langfuse"})
		Expect(err).NotTo(HaveOccurred())
		l := readBack(result)
		var inputs []string
		for _, item := range l.items {
			inputs = append(inputs, item.ID+": "+item.Expected.Text())
		}
		Expect(l.items).To(HaveLen(7), strings.Join(inputs, "\n"))
		Expect(string(result.Files[0].Data)).To(And(
			ContainSubstring("input: What is currently trending on Twitter?"),
			ContainSubstring("input: What's the weather in Tokyo?"),
			ContainSubstring("input: What is Langfuse?"),
			ContainSubstring("name: get_weather"),
		))
	})
})

const chat = `[
  {"role": "system", "content": "Be kind."},
  {"role": "user", "content": "How warm is {{city}}?"},
  {"role": "assistant", "content": null, "tool_calls": [
    {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Oslo\", \"$unit\": \"C\"}"}},
    {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Oslo\", \"$unit\": \"C\"}"}}]},
  {"role": "tool", "tool_call_id": "c1", "content": "{\"error\": \"busy\"}"},
  {"role": "tool", "tool_call_id": "c2", "content": "4 degrees in {{city}}"},
  {"role": "assistant", "content": "4 degrees."},
  {"role": "user", "content": [{"type": "text", "text": "Thanks"}]},
  {"role": "assistant", "content": "Bye."}
]`

var _ = Describe("a list of messages", func() {
	It("becomes turns, the calls as a check, and what the tools gave as their answers", func() {
		result, err := traces.Import([]traces.Source{{Name: "chat.json", Data: []byte(chat)}}, traces.Options{Name: "chat", Providers: []string{"openai:gpt-4o"}})
		Expect(err).NotTo(HaveOccurred())
		l := readBack(result)
		Expect(l.items).To(HaveLen(1))
		Expect(l.items[0].Turns).To(HaveLen(2))
		out := result.Report.Text()
		for _, f := range result.Files {
			out += "\n=== " + f.Path + "\n" + string(f.Data)
		}
		suite.Golden("chat.golden", []byte(out))
	})

	It("stands alone, in a record, or on a line each", func() {
		one := `{"messages": [{"role": "user", "content": "Hi"}]}`
		for name, data := range map[string]string{"a.json": one, "b.json": "[" + one + "," + one + "]", "c.jsonl": one + "\n\n" + one + "\r\n", "d.json": `[{"role": "user", "content": "Hi"}]`} {
			result, err := traces.Import([]traces.Source{{Name: name, Data: []byte(data)}}, traces.Options{Name: "x"})
			Expect(err).NotTo(HaveOccurred(), name)
			Expect(readBack(result).items).To(HaveLen(strings.Count(data, "Hi")), name)
		}
	})
})

var _ = Describe("items of a data set of Langfuse", func() {
	It("keep question, answer and metadata", func() {
		result, err := traces.Import([]traces.Source{{Name: "items.jsonl", Data: []byte(`{"id":"q1","input":{"question":"Why?"},"expectedOutput":"Because.","metadata":{"area":"x"}}` + "\n" + `{"id":"q2","input":"\"How?\"","expectedOutput":null}` + "\n")}}, traces.Options{Name: "x"})
		Expect(err).NotTo(HaveOccurred())
		l := readBack(result)
		Expect(l.items).To(HaveLen(2))
		Expect(l.items[0].Expected.Text()).To(Equal("Because."))
		Expect(l.items[1].Expected.IsZero()).To(BeTrue())
	})
})

var _ = DescribeTable("what is no trace is an error with its place", func(name, data, message string) {
	_, err := traces.Import([]traces.Source{{Name: name, Data: []byte(data)}}, traces.Options{Name: "x"})
	Expect(err).To(MatchError(ContainSubstring(message)))
	Expect(failure.CodeOf(err)).To(Equal(failure.Input))
},
	Entry(nil, "a.json", "", "a.json:1:1: empty"),
	Entry(nil, "a.json", "[{", "a.json:1:"),
	Entry(nil, "a.json", "[]", "no conversation"),
	Entry(nil, "a.json", `{"a": 1}`, "no conversation"),
	Entry(nil, "a.json", `[{"role": "assistant", "content": "x"}]`, "no conversation"),
	Entry(nil, "a.jsonl", "{\n", "no conversation"),
	Entry(nil, "a.json", strings.Repeat("[", 200), "a.json:1:101: nested"),
)

func FuzzImport(f *testing.F) {
	f.Add([]byte(`[{"role":"system","content":"Be kind."},{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"t","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"c","content":"{}"}]`))
	f.Add([]byte(`{"trace":{"id":"12345678","name":"x","input":"\"hi\"","output":"{}"},"observations":[{"type":"TOOL","name":"t","input":"{}","output":"1"}]}`))
	f.Add([]byte(`[{"task_id":1,"trial":0,"reward":1.0,"traj":[{"role":"user","content":"x {{y}}"}],"info":{"task":{"actions":[{"name":"a","kwargs":{"$b":[1,null]}}],"outputs":["3"]}}}]`))
	f.Add([]byte(`[{"input":{"question":"q"},"expectedOutput":"a","metadata":{"a":1}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"a.json", "a.jsonl"} {
			result, err := traces.Import([]traces.Source{{Name: name, Data: data}}, traces.Options{Name: "a"})
			if err != nil {
				continue
			}
			dir := t.TempDir()
			for _, file := range result.Files {
				path := filepath.Join(dir, filepath.FromSlash(file.Path))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, file.Data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			d, err := dataset.Open(filepath.Join(dir, result.Files[0].Path), dataset.Options{Dir: dir})
			if err == nil {
				err = d.Validate(nil)
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, result.Files[0].Data)
			}
		}
	})
}
