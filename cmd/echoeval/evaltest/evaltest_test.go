package evaltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/cmd/echoeval/evaltest"
	"github.com/echoeval/echoeval/core/failure"
	. "github.com/echoeval/echoeval/harness/matchers"
)

func TestEvaltest(t *testing.T) { suite.Run(t, "evaltest") }

var example = filepath.Join(suite.Root(), "docs", "examples", "gotest")

// binary holds the specs of testdata/specs, compiled.
var binary string

var _ = BeforeSuite(func(ctx SpecContext) {
	dir, err := os.MkdirTemp("", "evaltest-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	binary = filepath.Join(dir, "specs.test")
	out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, "./testdata/specs").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
})

// project is the project of the example in a folder of its own.
func project() string {
	GinkgoHelper()
	dir, err := filepath.EvalSymlinks(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	Expect(os.CopyFS(dir, os.DirFS(example))).To(Succeed())
	return dir
}

const quickstart = "datasets/quickstart.yaml"

// edit replaces a text of a file that must stand there once.
func edit(dir, name, before, after string) {
	GinkgoHelper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	data, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(strings.Count(string(data), before)).To(Equal(1), "%s", before)
	Expect(os.WriteFile(path, []byte(strings.Replace(string(data), before, after, 1)), 0o644)).To(Succeed())
}

// report is what a run of specs left behind.
type report struct {
	code  int
	out   string
	specs map[string]types.SpecReport // by the text of the spec, without its containers
}

// read reads Ginkgo's report of a finished run.
func read(path string, out []byte, err error) report {
	GinkgoHelper()
	r := report{out: string(out), specs: map[string]types.SpecReport{}}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.code = exit.ExitCode()
	} else {
		Expect(err).NotTo(HaveOccurred())
	}
	data, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred(), r.out)
	var suites []types.Report
	Expect(json.Unmarshal(data, &suites)).To(Succeed())
	Expect(suites).To(HaveLen(1))
	for _, s := range suites[0].SpecReports {
		if s.LeafNodeType.Is(types.NodeTypeIt) {
			name := s.LeafNodeText
			if _, twice := r.specs[name]; twice {
				name = s.FullText()
			}
			r.specs[name] = s
		}
	}
	return r
}

// run runs the specs of a dataset.
func run(dir string, env ...string) report {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "report.json")
	temp := GinkgoT().TempDir()
	cmd := exec.Command(binary, "-ginkgo.no-color", "-ginkgo.v", "-ginkgo.json-report="+path)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + temp, "DATASET=" + quickstart}, env...)
	out, err := cmd.CombinedOutput()
	r := read(path, out, err)
	Expect(os.ReadDir(temp)).To(BeEmpty(), "temporary files are left")
	Expect(filepath.Join(dir, ".echoeval")).NotTo(BeAnExistingFile())
	return r
}

// states are how the specs ended, by their text.
func (r report) states() map[string]string {
	out := map[string]string{}
	for name, s := range r.specs {
		out[name] = s.State.String()
	}
	return out
}

// with gives the states of six items, all passed but those named.
func with(changes map[string]string) map[string]string {
	out := map[string]string{"lists-two-files": "passed", "price-of-a-dish": "passed", "dishes-with-nuts": "passed", "flour-per-week": "passed", "raises-a-price": "passed", "says-what-it-does-not-know": "passed", "keeps its gates": "passed"}
	for name, state := range changes {
		out[name] = state
	}
	return out
}

// message is what a spec says of itself.
func (r report) message(name string) string {
	GinkgoHelper()
	Expect(r.specs).To(HaveKey(name))
	return r.specs[name].Failure.Message
}

var _ = Describe("a dataset as specs", func() {
	It("has one for each item, with place and labels, and one for the gates", func() {
		dir := project()
		r := run(dir)
		Expect(r.code).To(BeZero(), r.out)
		Expect(r.states()).To(Equal(with(nil)))
		s := r.specs["price-of-a-dish"]
		Expect(s.LeafNodeLocation.FileName).To(Equal(filepath.Join(dir, quickstart)))
		Expect(s.LeafNodeLocation.LineNumber).To(Equal(18))
		Expect(s.LeafNodeLabels).To(Equal([]string{"read"}))
		Expect(s.ContainerHierarchyTexts).To(Equal([]string{"dataset datasets/quickstart.yaml", "on openai:gpt-4o-mini"}))
		Expect(s.CapturedGinkgoWriterOutput).To(ContainSubstring("each saw price-of-a-dish 1 true"))
		Expect(r.specs["keeps its gates"].LeafNodeLocation.FileName).To(HaveSuffix("specs_test.go"))
	})

	It("shows the evidence and the transcript of an item that fails", func() {
		dir := project()
		edit(dir, quickstart, `expected: "6.50"`, `expected: "7.25"`)
		r := run(dir)
		Expect(r.code).To(Equal(1), r.out)
		Expect(r.states()).To(Equal(with(map[string]string{"price-of-a-dish": "failed", "keeps its gates": "failed"})))
		Expect(r.message("price-of-a-dish")).To(And(
			HavePrefix("the item failed\nexpected the item to pass: price-of-a-dish on openai:gpt-4o-mini: fail (check)\n"),
			MatchRegexp(`check contains failed: .* at datasets/quickstart\.yaml:24:9\n  expected: 7\.25\n  actual:   The leek soup costs 6\.50\.\n`),
		))
		Expect(r.message("keeps its gates")).To(And(HavePrefix("echoeval replay would end with code 1: failed: pass_rate of openai:gpt-4o-mini is 0.833"), ContainSubstring("\ngate pass_rate of openai:gpt-4o-mini: 0.833"), Not(ContainSubstring("echoeval show"))))
		entries := r.specs["price-of-a-dish"].ReportEntries
		Expect(entries).To(HaveLen(1))
		Expect(entries[0].Name).To(Equal("transcript"))
		Expect(entries[0].StringRepresentation()).To(And(ContainSubstring("read_file"), ContainSubstring("What does the leek soup cost in winter?")))
		Expect(r.out).To(ContainSubstring("datasets/quickstart.yaml:18"))
	})

	It("puts up with what the gates put up with", func() {
		dir := project()
		edit(dir, quickstart, `expected: "6.50"`, `expected: "7.25"`)
		edit(dir, quickstart, "items:\n", "gates: {pass_rate: \">= 0.8\"}\nitems:\n")
		r := run(dir)
		Expect(r.code).To(BeZero(), r.out)
		Expect(r.states()).To(Equal(with(map[string]string{"price-of-a-dish": "skipped"})))
		Expect(r.message("price-of-a-dish")).To(And(HavePrefix("the item failed, and the dataset's gates put up with it\n"), ContainSubstring("expected: 7.25")))
	})

	It("skips what the dataset skips, and what is for another provider", func() {
		dir := project()
		edit(dir, quickstart, "- id: lists-two-files\n", "- id: lists-two-files\n    skip: the menus move next week\n")
		edit(dir, quickstart, "providers: [openai:gpt-4o-mini]", "providers: [openai:gpt-4o-mini, {id: script, provider: script, role: spare}]")
		edit(dir, quickstart, "- id: flour-per-week\n", "- id: flour-per-week\n    providers: [script]\n")
		r := run(dir)
		Expect(r.code).To(BeZero(), r.out)
		Expect(r.states()).To(Equal(with(map[string]string{"lists-two-files": "skipped", "flour-per-week": "skipped"})))
		Expect(r.message("lists-two-files")).To(Equal("the dataset skips the item: the menus move next week"))
		Expect(r.message("flour-per-week")).To(Equal("not for this provider"))
	})

	It("runs an item in quarantine and shows it, until its day has passed", func() {
		dir := project()
		edit(dir, quickstart, `expected: "6.50"`, `expected: "7.25"`)
		edit(dir, quickstart, "- id: price-of-a-dish\n", "- id: price-of-a-dish\n    quarantine: {owner: ana, until: 2999-01-31, reason: \"a race, #812\"}\n")
		r := run(dir)
		Expect(r.code).To(BeZero(), r.out)
		Expect(r.states()).To(Equal(with(map[string]string{"price-of-a-dish": "skipped"})))
		Expect(r.message("price-of-a-dish")).To(And(HavePrefix("in quarantine by ana until 2999-01-31: a race, #812\nexpected the item to pass"), ContainSubstring("expected: 7.25")))

		edit(dir, quickstart, "until: 2999-01-31", "until: 2020-01-31")
		r = run(dir)
		Expect(r.states()).To(Equal(with(map[string]string{"price-of-a-dish": "failed", "keeps its gates": "failed"})))
	})

	It("fails an item in quarantine whose recording does not fit", func() {
		dir := project()
		edit(dir, quickstart, "input: Which menus do we have?", "input: Which menus are there?")
		edit(dir, quickstart, "- id: lists-two-files\n", "- id: lists-two-files\n    quarantine: {owner: ana, until: 2999-01-31, reason: race}\n")
		r := run(dir)
		Expect(r.code).To(Equal(1), r.out)
		Expect(r.states()).To(Equal(with(map[string]string{"lists-two-files": "failed", "keeps its gates": "failed"})))
		Expect(r.message("lists-two-files")).To(And(HavePrefix("the recording does not fit\n"), ContainSubstring("user-input")))
		Expect(r.message("keeps its gates")).To(And(HavePrefix("echoeval replay would end with code 4: "), ContainSubstring("\nhint: echoeval record datasets/quickstart.yaml --item lists-two-files --stale")))
	})

	It("fails an item that could not be judged, unless error_rate allows for it", func() {
		dir := project()
		Expect(os.WriteFile(filepath.Join(dir, "datasets", "crash.sh"), []byte("#!/bin/sh\nexit 3\n"), 0o755)).To(Succeed())
		edit(dir, quickstart, "- contains: \"{{expected}}\"\n", "- contains: \"{{expected}}\"\n      - command: [./crash.sh]\n")
		r := run(dir)
		Expect(r.code).To(Equal(1), r.out)
		Expect(r.states()).To(Equal(with(map[string]string{"price-of-a-dish": "failed", "keeps its gates": "failed"})))
		Expect(r.message("price-of-a-dish")).To(And(HavePrefix("the item could not be judged\n"), ContainSubstring("check command could not judge: ")))
		Expect(r.message("keeps its gates")).To(HavePrefix("echoeval replay would end with code 5: "))

		edit(dir, quickstart, "items:\n", "gates: {error_rate: \"<= 0.2\"}\nitems:\n")
		r = run(dir)
		Expect(r.code).To(BeZero(), r.out)
		Expect(r.states()).To(Equal(with(map[string]string{"price-of-a-dish": "skipped"})))
		Expect(r.message("price-of-a-dish")).To(HavePrefix("the item could not be judged, and the gate error_rate puts up with it\n"))
	})

	It("makes one verdict of the repeats where pass_if says so", func() {
		dir := project()
		// The second repeat of a recording is a copy whose answer is another.
		cassettes := filepath.Join(dir, "fixtures", "cassettes", "quickstart", "openai_gpt-4o-mini")
		first, err := os.ReadFile(filepath.Join(cassettes, "lists-two-files.yaml"))
		Expect(err).NotTo(HaveOccurred())
		changed := strings.Replace(strings.ReplaceAll(string(first), `"content":" win"`, `"content":" aut"`), "\n  repeat: 1\n", "\n  repeat: 2\n", 1)
		Expect(len(changed)).To(Equal(len(first)))
		Expect(changed == string(first)).To(BeFalse(), "the recording has nothing to change")
		Expect(os.WriteFile(filepath.Join(cassettes, "lists-two-files@2.yaml"), []byte(changed), 0o644)).To(Succeed())
		edit(dir, quickstart, "- id: lists-two-files\n", "- id: lists-two-files\n    repeat: 2\n    pass_if: \">= 0.5\"\n")
		r := run(dir)
		Expect(r.states()).To(Equal(with(nil)), r.out)
		Expect(r.specs["lists-two-files"].CapturedGinkgoWriterOutput).To(ContainSubstring("each saw lists-two-files 2 true"))

		edit(dir, quickstart, "pass_if: \">= 0.5\"", "pass_if: \"> 0.5\"")
		r = run(dir)
		Expect(r.states()).To(Equal(with(map[string]string{"lists-two-files": "failed", "keeps its gates": "failed"})), r.out)
		Expect(r.message("lists-two-files")).To(And(HavePrefix("the item failed: 1 of 2 repeats passed, pass_if > 0.5\n"), ContainSubstring("repeat 2: fail (check)")))
	})

	It("takes flags of the command, and only selects by them", func() {
		r := run(project(), "FLAGS=--tag read --item price-of-a-dish")
		Expect(r.code).To(BeZero(), r.out)
		Expect(r.states()).To(Equal(map[string]string{"price-of-a-dish": "passed", "keeps its gates": "passed"}))
	})

	It("asserts in Go what is to be asserted of each", func() {
		r := run(project(), "EACH=fails", "FLAGS=--item price-of-a-dish")
		Expect(r.code).To(Equal(1))
		Expect(r.message("price-of-a-dish")).To(And(HavePrefix("expected the model to call no tool\nthe model's calls:\n  1. read_file "), ContainSubstring("menus/winter.md")))
	})

	It("labels a spec by tags as far as Ginkgo takes them, and shows hostile ids as text", func() {
		dir := project()
		edit(dir, quickstart, "- id: lists-two-files\n", "- id: \"lists\\u202etwo\"\n")
		edit(dir, quickstart, "tags: [write]", "tags: [\"area:bill(ing)/a&b\", \"🩺\"]")
		r := run(dir)
		Expect(r.states()).To(HaveKeyWithValue(`lists\u202etwo`, "failed")) // nothing is recorded under that id
		Expect(r.out).NotTo(ContainSubstring("\u202e"))
		Expect(r.specs["raises-a-price"].LeafNodeLabels).To(Equal([]string{"area_bill_ing__a_b", "🩺"}))
	})

	It("passes none of its specs where the run cannot be made", func() {
		dir := project()
		Expect(os.WriteFile(filepath.Join(dir, "file"), nil, 0o644)).To(Succeed())
		r := run(dir, "FLAGS=--out file/runs")
		Expect(r.code).To(Equal(1), r.out)
		Expect(r.specs).To(HaveLen(7))
		Expect(r.out).To(ContainSubstring("file/runs"))
		for name, s := range r.specs {
			Expect(s.State.String()).NotTo(Equal("passed"), name)
		}
	})

	DescribeTable("that cannot be read is one spec that fails", func(env []string, change func(dir string), message string) {
		dir := project()
		change(dir)
		r := run(dir, env...)
		Expect(r.code).To(Equal(1), r.out)
		Expect(r.states()).To(Equal(map[string]string{"can be read": "failed"}))
		Expect(r.message("can be read")).To(ContainSubstring(message))
	},
		Entry("an unknown key", nil, func(dir string) { edit(dir, quickstart, "items:\n", "itms: 3\nitems:\n") }, `datasets/quickstart.yaml:10:1: unknown key "itms"`),
		Entry("no such file", []string{"DATASET=datasets/none.yaml"}, func(string) {}, "datasets/none.yaml"),
		Entry("no name", []string{"DATASET="}, func(string) {}, "a dataset file ends in"),
		Entry("nothing selected", []string{"FLAGS=--tag nothing"}, func(string) {}, "has all that the flags ask for"),
		Entry("an unknown flag", []string{"FLAGS=--tga read"}, func(string) {}, "--tga"),
		Entry("a flag of another mode", []string{"FLAGS=--mode record"}, func(string) {}, "--mode"),
		Entry("a word that is no flag", []string{"FLAGS=other.yaml"}, func(string) {}, `"other.yaml" is no flag`),
		Entry("another run's flags", []string{"FLAGS=--resume latest"}, func(string) {}, "--resume"),
	)
})

var _ = Describe("a replay", func() {
	replay := func(dir string, flags ...string) *evaltest.Run {
		GinkgoHelper()
		r, err := evaltest.Replay(context.Background(), filepath.Join(dir, quickstart), flags...)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(r.Close)
		return r
	}

	It("gives each outcome with its trace", func() {
		r := replay(example)
		Expect(r.Lines).To(HaveLen(6))
		Expect(r.Summary.Verdict.Code).To(Equal(failure.OK))
		Expect(r.Said).To(ContainSubstring("passed: 6 of 6"))
		for _, line := range r.Lines {
			o, err := r.Outcome(line)
			Expect(err).NotTo(HaveOccurred())
			Expect(o).To(And(Pass(), ReplayCleanly(), KeepInvariants(), HavePairedToolCalls(), Not(CallNoTools())))
		}
		o, err := r.Item("raises-a-price", "openai:gpt-4o-mini")
		Expect(err).NotTo(HaveOccurred())
		Expect(o).To(CallTool("edit_file", WithArgs(map[string]any{"path": "menus/winter.md"})))
		Expect(o).To(Answer(ContainSubstring("7.00")))
	})

	It("suggests the nearest where there is no such item or provider", func() {
		r := replay(example)
		_, err := r.Item("raises-a-prize")
		Expect(err).To(MatchError(ContainSubstring(`did you mean "raises-a-price"?`)))
		_, err = r.Item("raises-a-price", "openai:gpt-4o")
		Expect(err).To(MatchError(ContainSubstring("choices: openai:gpt-4o-mini")))
		_, err = r.Item("raises-a-price", "a", "b")
		Expect(err).To(MatchError(ContainSubstring("one provider at most")))
	})

	It("that fails is a run all the same", func() {
		dir := project()
		edit(dir, quickstart, `expected: "6.50"`, `expected: "7.25"`)
		r := replay(dir)
		Expect(r.Summary.Verdict.Code).To(Equal(failure.Gate))
		o, err := r.Item("price-of-a-dish")
		Expect(err).NotTo(HaveOccurred())
		Expect(o).NotTo(Pass())
	})

	It("leaves the run where --out says, and else nothing", func() {
		dir, out := project(), filepath.Join(GinkgoT().TempDir(), "runs")
		for range 2 {
			r := replay(dir, "--out", out)
			Expect(r.Close()).To(Succeed())
		}
		entries, err := os.ReadDir(out)
		Expect(err).NotTo(HaveOccurred())
		Expect(entries).To(HaveLen(3), "two runs and latest")

		temp := GinkgoT().TempDir()
		GinkgoT().Setenv("TMPDIR", temp)
		r := replay(dir)
		Expect(os.ReadDir(temp)).To(HaveLen(1))
		Expect(r.Close()).To(Succeed())
		Expect(os.ReadDir(temp)).To(BeEmpty())
	})

	It("that cannot be made is an error with the place", func() {
		dir := project()
		edit(dir, quickstart, "items:\n", "itms: 3\nitems:\n")
		temp := GinkgoT().TempDir()
		GinkgoT().Setenv("TMPDIR", temp)
		_, err := evaltest.Replay(context.Background(), filepath.Join(dir, quickstart))
		Expect(err).To(MatchError(ContainSubstring(`quickstart.yaml:10:1: unknown key "itms"`)))
		Expect(os.ReadDir(temp)).To(BeEmpty())
	})

	It("ends with its context", func() {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errors.New("enough"))
		_, err := evaltest.Replay(ctx, filepath.Join(example, quickstart))
		Expect(err).To(MatchError(ContainSubstring("was ended: enough")))
	})
})

var _ = Describe("the example module", func() {
	// goTest runs `go test` in a copy of the module, offline.
	goTest := func(ctx context.Context, change func(dir string)) report {
		GinkgoHelper()
		dir := project()
		change(dir)
		goCommand := func(args ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, "go", args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
			return cmd
		}
		out, err := goCommand("mod", "edit", "-replace", "github.com/echoeval/echoeval="+suite.Root()).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)
		path := filepath.Join(GinkgoT().TempDir(), "report.json")
		out, err = goCommand("test", "-count=1", ".", "-ginkgo.no-color", "-ginkgo.json-report="+path).CombinedOutput()
		return read(path, out, err)
	}

	It("runs by go test from its recordings, offline", func(ctx SpecContext) {
		r := goTest(ctx, func(string) {})
		Expect(r.code).To(BeZero(), r.out)
		Expect(r.states()).To(Equal(with(map[string]string{"raises a price once, where it stands": "passed", "answers a question from one look": "passed"})))
	}, SpecTimeout(5*time.Minute))

	It("turns red with the agent", func(ctx SpecContext) {
		r := goTest(ctx, func(dir string) {
			edit(dir, quickstart, "do not say", "are silent")
			edit(dir, "evals_test.go", `CallTools("list_dir")`, "CallNoTools()")
		})
		Expect(r.code).To(Equal(1))
		Expect(r.states()).To(Equal(with(map[string]string{
			"raises a price once, where it stands": "passed", "answers a question from one look": "failed",
			"says-what-it-does-not-know": "failed", "keeps its gates": "failed",
		})))
		Expect(r.out).To(And(ContainSubstring("expected: are silent"), ContainSubstring("expected the model to call no tool\n")))
	}, SpecTimeout(5*time.Minute))

	It("is what docs/go-tests.md shows", func() {
		doc, err := os.ReadFile(filepath.Join(suite.Root(), "docs", "go-tests.md"))
		Expect(err).NotTo(HaveOccurred())
		code, err := os.ReadFile(filepath.Join(example, "evals_test.go"))
		Expect(err).NotTo(HaveOccurred())
		blocks := regexp.MustCompile("(?s)```(go|text)\n(.*?)```\n").FindAllStringSubmatch(string(doc), -1)
		Expect(blocks).To(HaveLen(3))
		for _, block := range blocks[:2] {
			Expect(block[1]).To(Equal("go"))
			Expect(string(code)).To(ContainSubstring(block[2]))
		}
		r, err := evaltest.Replay(context.Background(), filepath.Join(example, quickstart))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(r.Close)
		o, err := r.Item("lists-two-files")
		Expect(err).NotTo(HaveOccurred())
		m := CallTool("list_dir", WithArgs(map[string]any{"path": HavePrefix("wines")}))
		Expect(m.Match(o)).To(BeFalse())
		Expect(blocks[2][2]).To(Equal(m.FailureMessage(o) + "\n"))
	})

	It("is what `echoeval init` writes, with Go tests", func() {
		from := filepath.Join(suite.Root(), "cmd", "echoeval", "internal", "cli", "initfiles")
		same := []string{"echoeval.yaml", "agents", "datasets", "fixtures"}
		if suite.Update() {
			for _, name := range same {
				Expect(os.RemoveAll(filepath.Join(example, name))).To(Succeed())
				if name == "echoeval.yaml" {
					data, err := os.ReadFile(filepath.Join(from, name))
					Expect(err).NotTo(HaveOccurred())
					Expect(os.WriteFile(filepath.Join(example, name), data, 0o644)).To(Succeed())
					continue
				}
				Expect(os.CopyFS(filepath.Join(example, name), os.DirFS(filepath.Join(from, name)))).To(Succeed())
			}
		}
		for _, name := range same {
			want, got := files(filepath.Join(from, name)), files(filepath.Join(example, name))
			Expect(want).NotTo(BeEmpty())
			Expect(got).To(Equal(want), "run `make golden`")
		}
	})
})

// files returns the files at or below a path with their contents.
func files(root string) map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	Expect(filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, relErr := filepath.Rel(root, path)
		out[filepath.ToSlash(rel)] = string(data)
		return errors.Join(err, relErr)
	})).To(Succeed())
	return out
}
