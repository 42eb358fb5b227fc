package dataset_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/dataset"
)

// programs are the files of a program under test.
var programs = map[string]string{
	"support/agent.py": "x", "support/tools/crm.py": "x", "support/tools/notes.txt": "x", "support/.cache/hidden.py": "x", "prompts/system.md": "x", "evals/run.sh": "x",
}

// withTarget loads a dataset whose target is given.
func withTarget(target, more string) (*dataset.Dataset, string) {
	GinkgoHelper()
	files := maps.Clone(programs)
	files["datasets/d.yaml"] = "version: 1\nname: d\ntarget: " + target + "\nitems: [{id: a, input: b}]\n" + more
	options := known
	options.Dir, options.TargetVariables = project(files), []string{"OPENAI_BASE_URL", "OPENAI_API_KEY"}
	d, err := dataset.Open("datasets/d.yaml", options)
	if err == nil {
		err = d.Validate(nil)
	}
	return d, problems(err)
}

var _ = Describe("a target", func() {
	It("is a program in place of an agent, and one column", func() {
		d, wrong := withTarget(`{command: [python, -m, evals.adapter], cwd: .., workers: lines, env: {A: b}, env_from: [TOKEN], proxy: {CRM_URL: "https://crm.example.com", OPENAI_BASE_URL: "https://gateway.example.com/v1"}, files: ["../support/**/*.py", ../prompts/system.md, "../evals/*"], model_calls: optional}`, "")
		Expect(wrong).To(BeEmpty())
		t := d.Target
		Expect(t.Command).To(Equal([]string{"python", "-m", "evals.adapter"}))
		Expect(t.Dir).To(Equal("."))
		Expect(t.Lines).To(BeTrue())
		Expect(t.WithoutModel).To(BeTrue())
		Expect(t.Env).To(Equal(map[string]string{"A": "b"}))
		Expect(t.EnvFrom).To(Equal([]string{"TOKEN"}))
		Expect(t.Proxy).To(HaveKeyWithValue("CRM_URL", "https://crm.example.com"))
		Expect(t.Files).To(Equal([]string{"evals/run.sh", "prompts/system.md", "support/agent.py", "support/tools/crm.py"}))
		Expect(d.Providers).To(HaveLen(1))
		Expect(d.Providers[0].ID).To(Equal(dataset.TargetProvider))
		Expect(d.TargetOf(d.Providers[0])).To(BeIdenticalTo(t))
	})

	It("starts in the folder of the file that names it, once a turn, unless it says otherwise", func() {
		d, wrong := withTarget("{command: [./run]}", "")
		Expect(wrong).To(BeEmpty())
		Expect(d.Target.Dir).To(Equal("datasets"))
		Expect(d.Target.Lines).To(BeFalse())
		Expect(d.Target.WithoutModel).To(BeFalse())
		Expect(d.Target.Files).To(BeEmpty())
	})

	It("is part of the dataset's hash", func() {
		one, _ := withTarget("{command: [./run]}", "")
		two, _ := withTarget("{command: [./run, x]}", "")
		again, _ := withTarget("{command: [./run]}", "")
		Expect(one.Hash).NotTo(Equal(two.Hash))
		Expect(one.Hash).To(Equal(again.Hash))
	})

	It("is a column's own, in place of the dataset's agent, and the other way round", func() {
		files := map[string]string{"datasets/d.yaml": "version: 1\nname: d\nagent: {task: {description: x}}\nproviders: [script:m, {id: py, provider: openai, model: m, target: {command: [./run]}}]\nitems: [{id: a, input: b}]\n"}
		d, err := load(project(files))
		Expect(err).NotTo(HaveOccurred())
		Expect(d.TargetOf(d.Providers[0])).To(BeNil())
		Expect(d.TargetOf(d.Providers[1]).Command).To(Equal([]string{"./run"}))
		d, wrong := withTarget("{command: [./run]}", "providers: [openai:m, {id: own, provider: openai, model: m, agent: {task: {description: x}}}, {id: sim, provider: openai, model: m, role: user, temperature: 1}]\n")
		Expect(wrong).To(BeEmpty())
		Expect(d.TargetOf(d.Providers[0])).NotTo(BeNil())
		Expect(d.TargetOf(d.Providers[1])).To(BeNil())
	})

	It("keeps its column beside providers that are none", func() {
		d, wrong := withTarget("{command: [./run]}", "providers: [{id: sim, provider: openai, model: m, role: user}]\n")
		Expect(wrong).To(BeEmpty())
		Expect(d.Providers).To(HaveLen(1))
		Expect(d.Roles).To(HaveLen(1))
	})

	It("is shown with each of its items", func() {
		d, _ := withTarget("{command: [./run], workers: lines}", "")
		values, err := d.Explain("a")
		Expect(err).NotTo(HaveOccurred())
		text := string(dataset.AppendYAML(nil, values))
		Expect(text).To(ContainSubstring("target:\n  command: [\"./run\"]  # datasets/d.yaml:3:19 dataset\n  workers: \"lines\"  # datasets/d.yaml:3:37 dataset\n"))
	})

	DescribeTable("that is wrong is refused with its place", func(target, want string) {
		_, wrong := withTarget(target, "")
		Expect(wrong).To(Equal(want))
	},
		Entry("a text", "./run", "d:3:9: target: want a mapping such as {command: [python, -m, evals.adapter]}, got a string"),
		Entry("no command", "{workers: lines}", "d:3:9: target: key \"command\" is missing | add it: command: [python, -m, evals.adapter]"),
		Entry("an empty command", "{command: []}", "d:3:19: target.command: want a list that is not empty: the program and its arguments | write command: [python, -m, evals.adapter]"),
		Entry("a command line", "{command: python x}", "d:3:19: target.command: want a list that is not empty: the program and its arguments | write command: [python, -m, evals.adapter]"),
		Entry("a program without a name", `{command: [""]}`, "d:3:20: target.command[0]: the program has no name | write command: [python, -m, evals.adapter]"),
		Entry("another way of working", "{command: [./run], workers: line}", "d:3:37: target.workers: unknown value \"line\" | did you mean \"lines\"?"),
		Entry("a misspelt key", "{command: [./run], worker: lines}", "d:3:28: target: unknown key \"worker\" | did you mean \"workers\"?"),
		Entry("an endpoint", `{http: {url: "http://127.0.0.1:8000"}}`, "d:3:10: target: key \"http\" is not read by this version | start the program as a command: target: {command: [python, -m, evals.adapter]}"),
		Entry("a service that listens", `{command: [./run], listen: "127.0.0.1:8787"}`, "d:3:28: target: key \"listen\" is not read by this version | start the program as a command: target: {command: [python, -m, evals.adapter]}"),
		Entry("a folder that there is not", "{command: [./run], cwd: ../absent}", "d:3:33: target.cwd: there is no folder absent | the path is relative to the file that names it"),
		Entry("a folder outside", "{command: [./run], cwd: ../..}", "d:3:33: target.cwd: ../.. leaves the project's folder | move it under the folder that holds echoeval.yaml or .git"),
		Entry("a variable of the recorder", "{command: [./run], env: {OPENAI_API_KEY: x}}", "d:3:34: target.env: the recorder sets OPENAI_API_KEY itself | another address of a vendor stands under proxy, or as base_url of a provider"),
		Entry("a name that is none", "{command: [./run], env_from: [A-B]}", "d:3:39: target.env_from[0]: \"A-B\" is no name of an environment variable | letters, digits and underscores, such as CRM_URL"),
		Entry("a variable twice", "{command: [./run], env: {A: x}, env_from: [A]}", "d:3:52: target.env_from[0]: A is set by env already | leave one of them out"),
		Entry("no address", "{command: [./run], proxy: {CRM_URL: crm.example.com}}", "d:3:45: target.proxy.CRM_URL: want an http or https address | write it whole: https://crm.example.com"),
		Entry("an address with credentials", `{command: [./run], proxy: {CRM_URL: "https://a:b@crm.example.com"}}`, "d:3:45: target.proxy.CRM_URL: the address of a service has no credentials, no query and no fragment | the program adds these itself"),
		Entry("a pattern without files", `{command: [./run], files: ["../support/*.rb"]}`, "d:3:36: target.files[0]: no file matches ../support/*.rb | the pattern is relative to the file that names it"),
		Entry("a file that there is not", `{command: [./run], files: [../absent]}`, "d:3:36: target.files[0]: there is no file absent | the path is relative to the file that names it"),
		Entry("files outside", `{command: [./run], files: ["../../**/*.py"]}`, "d:3:36: target.files[0]: ../../**/*.py leaves the project's folder | move it under the folder that holds echoeval.yaml or .git"),
		Entry("no pattern", `{command: [./run], files: ["../support/[a"]}`, "d:3:36: target.files[0]: \"../support/[a\" is no pattern | * and ? stand for characters of one name, ** for any folders"),
	)

	It("stands in place of the agent, not beside it", func() {
		_, wrong := withTarget("{command: [./run]}", "agent: {task: {description: x}}\n")
		Expect(wrong).To(Equal("d:3:1: a dataset has an agent or a target, not both | a provider may have an agent or a target of its own"))
		_, wrong = withTarget("{command: [./run]}", "providers: [{provider: openai, model: m, agent: {task: {description: x}}, target: {command: [./run]}}]\n")
		Expect(wrong).To(Equal("d:5:75: providers[0]: a provider has an agent or a target, not both | leave one of them out"))
	})

	It("sends its own requests: settings of the model would do nothing", func() {
		_, wrong := withTarget("{command: [./run]}", "providers: [{provider: openai, model: m, temperature: 0, price: {input: 1, output: 2}}]\n")
		Expect(wrong).To(Equal("d:5:42: providers[0]: key \"temperature\" does nothing here: the target decides it itself | the program is told id, provider and model, and sends its own requests"))
	})

	It("names no more files than a cassette can hold hashes of", func() {
		files := map[string]string{}
		for i := range dataset.MaxTargetFiles + 1 {
			files[fmt.Sprintf("many/%d.txt", i)] = "x"
		}
		files["datasets/d.yaml"] = "version: 1\nname: d\ntarget: {command: [./run], files: [\"../many/*\"]}\nitems: [{id: a, input: b}]\n"
		_, err := load(project(files))
		Expect(problems(err)).To(HavePrefix("d:3:35: target.files: these are 1001 files, and at most 1000 may be named"))
	})

	It("has a place in the schema", func() {
		schema, ok := dataset.Schema("dataset", known)
		Expect(ok).To(BeTrue())
		defs := schema["$defs"].(map[string]any)
		target := defs["target"].(strict.Schema)
		Expect(target["required"]).To(Equal([]any{"command"}))
		names := slices.Sorted(maps.Keys(target["properties"].(strict.Schema)))
		Expect(strings.Join(names, " ")).To(Equal("command cwd env env_from files model_calls proxy workers"))
		Expect(schema["properties"].(strict.Schema)).To(HaveKey("target"))
		Expect(defs["provider"].(strict.Schema)["properties"].(strict.Schema)).To(HaveKey("target"))
	})
})
