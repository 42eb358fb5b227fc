package dataset_test

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/dataset"
)

var known = dataset.Options{
	Checks:     []string{"equals", "contains", "regex", "no_tool_calls", "numeric"},
	Invariants: []string{"tool-call-pairing", "iteration-limit", "role-content"},
	Metrics:    []string{"pass_rate", "error_rate", "cost_usd"},
	Compared:   []string{"pass_rate", "score"},
	Vendors:    []string{"openai", "compat", "script", "deny"},
}

const png = "\x89PNG\r\n\x1a\n the rest of it"

// project writes files into a new project folder and returns it. Names end in / for folders.
func project(files map[string]string) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			Expect(os.MkdirAll(path, 0o755)).To(Succeed())
			return
		}
		Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
	}
	write("echoeval.yaml", "")
	for name, text := range files {
		write(name, text)
	}
	return dir
}

// load opens and validates datasets/d.yaml of a project.
func load(dir string) (*dataset.Dataset, error) {
	options := known
	options.Dir = dir
	d, err := dataset.Open("datasets/d.yaml", options)
	if err != nil {
		return nil, err
	}
	return d, d.Validate(nil)
}

const head = "version: 1\nname: d\nagent: {task: {description: x}}\nproviders: [script:m]\n"

// items loads a dataset whose part behind the head is given, and returns its items.
func items(text string, more ...map[string]string) []*dataset.Item {
	GinkgoHelper()
	all, wrong := tryItems(text, more...)
	Expect(wrong).To(BeEmpty())
	return all
}

// wrong loads a dataset and returns its problems.
func wrong(text string, more ...map[string]string) string {
	GinkgoHelper()
	_, wrong := tryItems(text, more...)
	return wrong
}

func tryItems(text string, more ...map[string]string) ([]*dataset.Item, string) {
	GinkgoHelper()
	files := map[string]string{"datasets/d.yaml": head + text}
	for _, m := range more {
		for name, text := range m {
			files[name] = text
		}
	}
	d, err := load(project(files))
	if err != nil {
		return nil, problems(err)
	}
	return collect(d), ""
}

func collect(d *dataset.Dataset) []*dataset.Item {
	GinkgoHelper()
	var all []*dataset.Item
	for item, err := range d.Items() {
		Expect(err).NotTo(HaveOccurred())
		all = append(all, item)
	}
	Expect(all).To(HaveLen(d.Count))
	return all
}

// problems gives an error as the user sees it, one line a problem.
func problems(err error) string {
	lines := strings.Split(strings.TrimSuffix(strings.NewReplacer("\nhint: ", " | ", "datasets/d.yaml:", "d:").Replace(failure.Render(err)), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "error: ")
	}
	return strings.Join(lines, "\n")
}

func inputText(i *dataset.Item) string {
	var b strings.Builder
	for _, part := range i.Input {
		if t, ok := part.(conversation.Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

func checkTexts(i *dataset.Item) []string {
	var list []string
	for _, c := range i.Checks {
		list = append(list, c.Name+"="+c.Args.JSON())
	}
	return list
}

func json(nodes ...strict.Node) []string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.JSON())
	}
	return list
}
