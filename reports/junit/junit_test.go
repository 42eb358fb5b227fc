package junit_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/junit"
)

func TestJUnit(t *testing.T) { suite.Run(t, "junit report") }

func written(unfinished bool) []byte {
	GinkgoHelper()
	dir, err := resultstest.Gallery(GinkgoT().TempDir(), unfinished)
	Expect(err).NotTo(HaveOccurred())
	return report(dir)
}

func report(dir string) []byte {
	GinkgoHelper()
	run, err := results.Open(dir)
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(run.Close()).To(Succeed()) }()
	var out bytes.Buffer
	Expect(junit.Write(&out, run, reports.Options{})).To(Succeed())
	return out.Bytes()
}

// element is what the common schema says of an element: its attributes, whether each is needed, and which children it takes in which order and how often at most (0: any number).
type element struct {
	attrs    map[string]bool
	children []child
	text     bool
}

type child struct {
	name string
	most int
}

var schema = map[string]element{
	"testsuites": {attrs: map[string]bool{"name": false, "tests": false, "failures": false, "errors": false, "skipped": false, "time": false}, children: []child{{"testsuite", 0}}},
	"testsuite": {attrs: map[string]bool{"name": true, "tests": true, "failures": true, "errors": true, "skipped": false, "time": true},
		children: []child{{"properties", 1}, {"testcase", 0}, {"system-out", 1}, {"system-err", 1}}},
	"properties": {children: []child{{"property", 0}}},
	"property":   {attrs: map[string]bool{"name": true, "value": true}},
	"testcase": {attrs: map[string]bool{"name": true, "classname": true, "time": true},
		children: []child{{"skipped", 1}, {"error", 1}, {"failure", 1}, {"system-out", 1}, {"system-err", 1}}},
	"failure": {attrs: map[string]bool{"message": false, "type": true}, text: true},
	"error":   {attrs: map[string]bool{"message": false, "type": true}, text: true},
	"skipped": {attrs: map[string]bool{"message": false}, text: true},
}

var numbers = []string{"tests", "failures", "errors", "skipped"}

// node is an element as it was read.
type node struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Nodes   []node     `xml:",any"`
}

func (n node) attr(name string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// check compares an element and all below it with the schema and returns how many it looked at.
func check(n node) int {
	GinkgoHelper()
	name := n.XMLName.Local
	kind, ok := schema[name]
	Expect(ok).To(BeTrue(), "element %s", name)
	seen := map[string]bool{}
	for _, a := range n.Attrs {
		_, known := kind.attrs[a.Name.Local]
		Expect(known).To(BeTrue(), "attribute %s of %s", a.Name.Local, name)
		Expect(seen[a.Name.Local]).To(BeFalse(), "attribute %s of %s stands twice", a.Name.Local, name)
		seen[a.Name.Local] = true
		if slices.Contains(numbers, a.Name.Local) {
			_, err := strconv.ParseUint(a.Value, 10, 31)
			Expect(err).NotTo(HaveOccurred())
		}
		if a.Name.Local == "time" {
			Expect(a.Value).To(MatchRegexp(`^\d+\.\d{3}$`))
		}
	}
	for attr, needed := range kind.attrs {
		Expect(!needed || seen[attr]).To(BeTrue(), "%s lacks %s", name, attr)
	}
	if !kind.text {
		Expect(strings.TrimSpace(n.Text)).To(BeEmpty(), "text in %s", name)
	}
	looked, place, times := 1, 0, 0
	for _, c := range n.Nodes {
		at := slices.IndexFunc(kind.children, func(k child) bool { return k.name == c.XMLName.Local })
		Expect(at).To(BeNumerically(">=", place), "%s in %s, or its place", c.XMLName.Local, name)
		if at > place {
			place, times = at, 0
		}
		times++
		Expect(kind.children[at].most == 0 || times <= kind.children[at].most).To(BeTrue(), "%d times %s in %s", times, c.XMLName.Local, name)
		looked += check(c)
	}
	return looked
}

// count checks that the numbers of a suite are those of its cases.
func count(suiteNode node) (tests int) {
	GinkgoHelper()
	got := map[string]int{}
	for _, c := range suiteNode.Nodes {
		if c.XMLName.Local != "testcase" {
			continue
		}
		got["tests"]++
		for _, outcome := range c.Nodes {
			got[map[string]string{"failure": "failures", "error": "errors", "skipped": "skipped"}[outcome.XMLName.Local]]++
		}
	}
	for _, name := range numbers {
		Expect(suiteNode.attr(name)).To(Equal(strconv.Itoa(got[name])), name)
	}
	return got["tests"]
}

func parse(data []byte) node {
	GinkgoHelper()
	var root node
	decoder := xml.NewDecoder(bytes.NewReader(data))
	Expect(decoder.Decode(&root)).To(Succeed())
	Expect(bytes.TrimSpace(data[decoder.InputOffset():])).To(BeEmpty(), "one root")
	return root
}

var _ = Describe("the report", func() {
	It("of a run with every status and cause is the golden one", func() {
		got := written(false)
		suite.Golden("gallery.xml", got)
		Expect(written(false)).To(Equal(got), "equal runs give equal bytes")
	})

	DescribeTable("is valid, and counts what it holds", func(unfinished bool) {
		data := written(unfinished)
		Expect(utf8.Valid(data)).To(BeTrue())
		Expect(bytes.IndexFunc(data, func(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r <= 0x9f })).To(Equal(-1), "a control character")
		root := parse(data)
		Expect(check(root)).To(BeNumerically(">", 200))
		tests := 0
		for _, s := range root.Nodes {
			tests += count(s)
		}
		Expect(tests).To(Equal(len(resultstest.GalleryItems()) * 2 * len(resultstest.GalleryProviders)))
		Expect(root.attr("tests")).To(Equal(strconv.Itoa(tests)))
		Expect(root.Nodes).To(HaveLen(len(resultstest.GalleryProviders)))
	}, Entry("finished", false), Entry("unfinished", true))

	It("takes item ids as names, and tells failures from errors", func() {
		outcome := map[string]string{}
		for _, c := range parse(written(false)).Nodes[0].Nodes[1:] {
			what := "passed"
			if len(c.Nodes) > 0 {
				what = c.Nodes[0].XMLName.Local
				if kind := c.Nodes[0].attr("type"); kind != "" {
					what += " " + kind
				}
			}
			outcome[c.attr("name")] = what
			Expect(c.attr("classname")).To(Equal("gallery.haiku"))
		}
		for item, want := range map[string]string{
			"all-is-well": "passed", "all-is-well@2": "passed", "wrong answer 🩺": "failure fail: check", "web-before-exec": "failure fail: invariant", "flaky": "passed", "flaky@2": "failure fail: check",
			"rate-limited": "error error: provider", "drifted-1": "error stale: drift", "judge-babbles": "error unjudged: judge_answer", "interrupted": "skipped", "no-money-left": "skipped", "skipped": "skipped",
		} {
			Expect(outcome).To(HaveKeyWithValue(item, want))
		}
	})

	It("says in a failure what was expected, what came, and how to replay it", func() {
		for _, c := range parse(written(false)).Nodes[0].Nodes[1:] {
			if c.attr("name") != "wrong answer 🩺" {
				continue
			}
			text := c.Nodes[0].Text
			Expect(text).To(ContainSubstring("expected: 112\n"))
			Expect(text).To(ContainSubstring(`actual: [2J]0;owned31m \u202egnp.exe\u2069  ]]> <b>&amp; | ` + "`x`"))
			Expect(text).To(HaveSuffix("replay: echoeval replay datasets/gallery.yaml --item 'wrong answer 🩺' --provider haiku\n"))
			return
		}
		Fail("the item is not there")
	})

	It("of a run without items is valid", func() {
		size := resultstest.Size{Providers: 1, Repeats: 1}
		dir := GinkgoT().TempDir()
		Expect(results.WriteManifest(dir, results.Manifest{Plan: size.Head()})).To(Succeed())
		journal, err := results.Create(dir, resultstest.Clock())
		Expect(err).NotTo(HaveOccurred())
		Expect(journal.Close()).To(Succeed())
		_, err = results.Fold(dir, size.Plan())
		Expect(err).NotTo(HaveOccurred())
		root := parse(report(dir))
		Expect(check(root)).To(BeNumerically(">", 5))
		Expect(count(root.Nodes[0])).To(BeZero())
	})

	It("counts what a killed run never began", func() {
		size := resultstest.Size{Items: 5, Providers: 1, Repeats: 1}
		dir := GinkgoT().TempDir()
		Expect(results.WriteManifest(dir, results.Manifest{Plan: size.Head()})).To(Succeed())
		journal, err := results.Create(dir, resultstest.Clock())
		Expect(err).NotTo(HaveOccurred())
		Expect(journal.Append(resultstest.Line(2, 0, 1), nil, 0)).To(Succeed())
		Expect(journal.Close()).To(Succeed())
		root := parse(report(dir))
		check(root)
		Expect(count(root.Nodes[0])).To(Equal(5))
		Expect(root.attr("skipped")).To(Equal("4"))
	})

	It("reports what the sink refuses, and what it cannot read", func() {
		dir, err := resultstest.Gallery(GinkgoT().TempDir(), false)
		Expect(err).NotTo(HaveOccurred())
		run, err := results.Open(dir)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(run.Close)
		err = junit.Write(refusing{}, run, reports.Options{})
		Expect(err).To(MatchError(errFull))
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		Expect(os.Truncate(filepath.Join(dir, results.ResultsFile), 5000)).To(Succeed())
		Expect(junit.Write(&bytes.Buffer{}, run, reports.Options{})).To(MatchError(ContainSubstring("cut off within a line")))
	})
})

var errFull = errors.New("no space left on device")

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errFull }

// BenchmarkWrite writes a run of 10,000 items and two providers.
func BenchmarkWrite(b *testing.B) {
	size := resultstest.Size{Items: 10_000, Providers: 2, Repeats: 1}
	dir := b.TempDir()
	if err := results.WriteManifest(dir, results.Manifest{Plan: size.Head()}); err != nil {
		b.Fatal(err)
	}
	journal, err := results.Create(dir, resultstest.Clock())
	if err != nil {
		b.Fatal(err)
	}
	for index := range size.Items {
		for column := range size.Providers {
			if err := journal.Append(resultstest.Line(index+1, column, 1), nil, column); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := journal.Close(); err != nil {
		b.Fatal(err)
	}
	if _, err := results.Fold(dir, size.Plan()); err != nil {
		b.Fatal(err)
	}
	run, err := results.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer run.Close() // only read
	for b.Loop() {
		if err := junit.Write(io.Discard, run, reports.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
