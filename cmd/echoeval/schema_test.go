//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/strict"
)

// schema is what the command prints for a kind of file.
func (p *project) schema(kind string) *jsonschema.Resolved {
	GinkgoHelper()
	var schema jsonschema.Schema
	Expect(json.Unmarshal([]byte(p.succeed("schema", kind).stdout), &schema)).To(Succeed())
	Expect(schema.Schema).To(Equal(strict.Dialect))
	resolved, err := schema.Resolve(nil)
	Expect(err).NotTo(HaveOccurred())
	return resolved
}

// value reads a YAML or JSON file as a schema looks at it.
func value(file string, text []byte) any {
	GinkgoHelper()
	n, err := strict.Parse(file, text)
	Expect(err).NotTo(HaveOccurred())
	var v any
	Expect(json.Unmarshal(n.AppendJSON(nil), &v)).To(Succeed())
	return v
}

var _ = Describe("schema", func() {
	It("describes the files that come with the project, and not files with a misspelt key", func() {
		p := exampleProject()
		count := 0
		for pattern, kind := range map[string]string{"datasets/*.yaml": "dataset", "datasets/agents/*.yaml": "agent"} {
			schema := p.schema(kind)
			files, err := filepath.Glob(p.path(pattern))
			Expect(err).NotTo(HaveOccurred())
			for _, file := range files {
				text, err := os.ReadFile(file)
				Expect(err).NotTo(HaveOccurred())
				Expect(schema.Validate(value(file, text))).To(Succeed(), file)
				misspelt := strings.NewReplacer("\ntask:", "\ntsk:", "\nitems:", "\nitmes:", "\n    checks:", "\n    cheks:").Replace(string(text))
				Expect(schema.Validate(value(file, []byte(misspelt)))).NotTo(Succeed(), file)
				count++
			}
		}
		Expect(count).To(BeNumerically(">=", 3))
	})

	It("describes what a run writes", func() {
		p := exampleProject()
		p.run("run", "datasets/quickstart.yaml")
		folder := p.path(p.last())
		line, summary := p.schema("results"), p.schema("summary")
		text, err := os.ReadFile(filepath.Join(folder, "results.jsonl"))
		Expect(err).NotTo(HaveOccurred())
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		Expect(len(lines)).To(BeNumerically(">=", 12))
		for _, one := range lines {
			Expect(line.Validate(value("results.json", []byte(one)))).To(Succeed(), one)
			Expect(line.Validate(value("results.json", []byte(strings.Replace(one, `"status":`, `"stat":`, 1))))).NotTo(Succeed())
			Expect(line.Validate(value("results.json", []byte(strings.Replace(one, `{"v":1,`, `{"v":1,"later":2,`, 1))))).To(Succeed())
		}
		text, err = os.ReadFile(filepath.Join(folder, "summary.json"))
		Expect(err).NotTo(HaveOccurred())
		Expect(summary.Validate(value("summary.json", text))).To(Succeed())
		Expect(summary.Validate(value("summary.json", []byte(strings.Replace(string(text), `"verdict"`, `"vrdict"`, 1))))).NotTo(Succeed())
	})

	It("names the kinds", func() {
		p := emptyProject()
		Expect(p.expect(2, "schema", "datset").stderr).To(ContainSubstring(`did you mean "dataset"?`))
		Expect(p.expect(2, "schema").stderr).To(ContainSubstring("want one of dataset, agent, library, project, script, prices, baseline, faults, results, summary"))
	})
})

var _ = Describe("validate", func() {
	It("tells the kinds of files by their keys, and checks a project as a whole", func() {
		p := smallWith("items:\n", "use: [lib.yaml]\ndefaults: {checks: [{use: hello}]}\noverrides: [{match: \"id == 'two'\", skip: x}]\nitems:\n")
		p.write("echoeval.yaml", "version: 1\ndatasets: [d.yaml]\ndefaults: {vars: {word: Hello}}\n")
		p.write("lib.yaml", "version: 1\nchecks: {hello: {contains: \"{{word}}\"}}\n")
		o := p.succeed("validate")
		Expect(o.stdout).To(Equal("echoeval.yaml: project with 1 dataset\nd.yaml: dataset small, 1 item on 1 provider\n"))
		Expect(o.stderr).To(Equal("warning: d.yaml:7:21: no item meets \"id == 'two'\": the override changes nothing\nhint: mend the expression or remove the override\n"))
		Expect(p.succeed("validate", "lib.yaml").stdout).To(Equal("lib.yaml: library\n"))
		var reports []struct {
			Kind     string
			Warnings []struct{ At string }
		}
		Expect(json.Unmarshal([]byte(p.succeed("validate", "d.yaml", "--json").stdout), &reports)).To(Succeed())
		Expect(reports[0].Kind).To(Equal("dataset"))
		Expect(reports[0].Warnings).To(HaveLen(1))
		p.edit("lib.yaml", "contains", "contans")
		Expect(p.expect(2, "validate", "lib.yaml").stderr).To(HavePrefix("error: lib.yaml:2:18: checks.hello: unknown check \"contans\"\nhint: did you mean \"contains\"?\n"))
		Expect(p.expect(2, "validate").stderr).NotTo(BeEmpty())
	})

	It("prints an item as it will run", func() {
		p := smallWith("", "")
		o := p.succeed("validate", "d.yaml", "--item", "one", "--set", "items.timeout=5s")
		Expect(o.stdout).To(ContainSubstring("input: \"Hello\"  # d.yaml:7:12 item\n"))
		Expect(o.stdout).To(ContainSubstring("timeout: \"5s\"  # --set items.timeout:1:1 --set\nrepeat: 1  # built in\n"))
		var values []struct{ Key, Layer string }
		Expect(json.Unmarshal([]byte(p.succeed("validate", "d.yaml", "--item", "one", "--json").stdout), &values)).To(Succeed())
		Expect(values[0].Key).To(Equal("id"))
		Expect(p.expect(2, "validate", "d.yaml", "--item", "on").stderr).To(Equal("error: d.yaml has no item \"on\"\nhint: did you mean \"one\"?\n"))
		p.expect(2, "validate", "--item", "one")
		p.expect(2, "validate", "d.yaml", "--set", "items.timeout=5s")
	})
})
