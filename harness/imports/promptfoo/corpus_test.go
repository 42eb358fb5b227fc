package promptfoo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/imports"
	"github.com/echoeval/echoeval/harness/imports/promptfoo"
	"github.com/echoeval/echoeval/harness/score"
)

var vendors = []string{"compat", "openai", "script"}

// valid writes an import to a folder of its own and reads it as the command does.
func valid(result imports.Result) (int, error) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(result.Files).NotTo(BeEmpty())
	for _, f := range result.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		Expect(os.WriteFile(path, f.Data, 0o644)).To(Succeed())
	}
	var checks []string
	for _, k := range score.Kinds() {
		checks = append(checks, k.Name)
	}
	d, err := dataset.Open(filepath.Join(dir, result.Files[0].Path), dataset.Options{Dir: dir, Checks: checks, Vendors: vendors})
	if err != nil {
		return 0, err
	}
	compiled := 0
	err = d.Validate(func(item *dataset.Item, p *strict.Problems) { compiled += compile(item, judgesOf(d), p) })
	if err == nil && d.Count != result.Report.Items {
		err = errors.New("another number of items than the report says")
	}
	return compiled, err
}

// judgesOf are the providers that judge, each behind its role.
func judgesOf(d *dataset.Dataset) []string {
	var judges []string
	for _, p := range d.Roles {
		judges = append(judges, p.Role+" "+p.ID)
	}
	return judges
}

// ofRole are the ids of a role.
func ofRole(judges []string, role string) []string {
	var ids []string
	for _, j := range judges {
		if id, ok := strings.CutPrefix(j, role+" "); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// compile compiles the checks of an item and returns how many there are.
func compile(item *dataset.Item, judges []string, p *strict.Problems) int {
	var specs []score.Spec
	for _, c := range item.Checks {
		specs = append(specs, score.Spec{Kind: c.Kind, Args: c.Args, Name: c.Name, Not: c.Not, Weight: c.Weight, Threshold: c.Threshold, Required: c.Required, Pos: c.Pos})
	}
	return len(score.Compile(specs, score.Env{ToolsUnknown: true, Judges: ofRole(judges, "judge"), Embedders: ofRole(judges, "embed")}, p))
}

var _ = Describe("the configurations handed out", func() {
	It("become datasets, or say why not", func() {
		dir := suite.SharedData("promptfoo-configs")
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(45))
		total := map[string]imports.Count{}
		datasets, refused, items, compiled := 0, 0, 0, 0
		for _, file := range files {
			data, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			result, err := promptfoo.Import(filepath.Base(file), data, promptfoo.Options{Name: imports.DatasetName(file), Vendors: vendors, Folder: imports.Folder{Dir: dir}})
			for _, c := range result.Report.Assertions {
				Expect(c.Converted+c.Todo+c.Lost).To(Equal(c.Total), "%s in %s", c.Type, file)
				sum := total[c.Type]
				total[c.Type] = imports.Count{Type: c.Type, Total: sum.Total + c.Total, Converted: sum.Converted + c.Converted, Todo: sum.Todo + c.Todo, Lost: sum.Lost + c.Lost}
			}
			Expect(result.Report.Sum().Total).To(Equal(listed(file, data)), "assertions of %s", file)
			if err != nil {
				refused++
				Expect(err.Error()).To(MatchRegexp(`^`+filepath.Base(file)+`:\d+:\d+: no tests`), file)
				Expect(result.Files).To(BeEmpty())
				continue
			}
			datasets++
			items += result.Report.Items
			n, err := valid(result)
			Expect(err).NotTo(HaveOccurred(), "%s\n%s", file, result.Files[0].Data)
			compiled += n
			again, err := promptfoo.Import(filepath.Base(file), data, promptfoo.Options{Name: imports.DatasetName(file), Vendors: vendors, Folder: imports.Folder{Dir: dir}})
			Expect(err).NotTo(HaveOccurred())
			Expect(again.Files).To(Equal(result.Files), "twice the same bytes")
		}
		var table strings.Builder
		names := make([]string, 0, len(total))
		for name := range total {
			names = append(names, name)
		}
		slices.Sort(names)
		all := imports.Count{}
		for _, name := range names {
			c := total[name]
			fmt.Fprintf(&table, "%-24s %4d converted %4d to do %4d lost %4d\n", name, c.Total, c.Converted, c.Todo, c.Lost)
			all.Total += c.Total
			all.Converted += c.Converted
			all.Lost += c.Lost
			all.Todo += c.Todo
		}
		AddReportEntry("assertions by type", fmt.Sprintf("%d datasets of %d items, %d refused\n%s%d in all", datasets, items, refused, table.String(), all.Total), ReportEntryVisibilityAlways)
		Expect(datasets).To(BeNumerically(">", 25))
		Expect(items).To(BeNumerically(">", 100))
		Expect(compiled).To(BeNumerically(">", 50))
		Expect(all.Total).To(BeNumerically(">", 100))
		Expect(all.Converted).To(BeNumerically(">", 50))
		Expect(all.Lost).To(BeNumerically(">", 10))
		Expect(total["llm-rubric"].Converted).To(BeNumerically(">", 10))
	})
})

// listed counts the assertions of a configuration without the importer: entries of lists under a key assert, at any depth.
func listed(file string, data []byte) int {
	GinkgoHelper()
	n, err := strict.Parse(file, data)
	Expect(n.IsZero()).To(BeFalse(), "%v", err)
	count := 0
	var walk func(strict.Node)
	walk = func(n strict.Node) {
		for key, v := range n.Fields() {
			if key.Name == "assert" {
				count += v.Len()
			}
			walk(v)
		}
		for _, v := range n.Items() {
			walk(v)
		}
	}
	walk(n)
	return count
}
