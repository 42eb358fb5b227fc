package terminal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/mattn/go-runewidth"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/terminal"
)

func TestTerminal(t *testing.T) { suite.Run(t, "terminal report") }

func open(dir string, err error) *results.Run {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	run, err := results.Open(dir)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(run.Close)
	return run
}

func gallery() *results.Run {
	GinkgoHelper()
	return open(resultstest.Gallery(GinkgoT().TempDir(), false))
}

// regular makes a finished run of the given size.
func regular(dir string, size resultstest.Size) (string, error) {
	if err := results.WriteManifest(dir, results.Manifest{Plan: size.Head()}); err != nil {
		return "", err
	}
	journal, err := results.Create(dir, resultstest.Clock())
	if err != nil {
		return "", err
	}
	for index := 1; index <= size.Items; index++ {
		for column := range size.Providers {
			if err := journal.Append(resultstest.Line(index, column, 1), nil, column); err != nil {
				return "", err
			}
		}
	}
	if err := journal.Close(); err != nil {
		return "", err
	}
	_, err = results.Fold(dir, size.Plan())
	return dir, err
}

func written(run *results.Run, opts reports.Options) string {
	GinkgoHelper()
	var out bytes.Buffer
	Expect(terminal.Write(&out, run, opts)).To(Succeed())
	return out.String()
}

func shown(run *results.Run, item, provider string, opts reports.Options) string {
	GinkgoHelper()
	var out bytes.Buffer
	Expect(terminal.Show(&out, run, item, provider, opts)).To(Succeed())
	return out.String()
}

var sgr = regexp.MustCompile(`\x1b\[[0-9]+m`)

// harmless checks that nothing in the text moves a cursor or reorders a line.
func harmless(text string) {
	GinkgoHelper()
	Expect(text).NotTo(BeEmpty())
	for _, r := range sgr.ReplaceAllString(text, "") {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			Fail(fmt.Sprintf("%U reaches the terminal", r))
		}
	}
}

var _ = Describe("the report", func() {
	DescribeTable("of a run with every status and cause", func(golden string, opts reports.Options) {
		got := written(gallery(), opts)
		harmless(got)
		suite.Golden(golden, []byte(got))
	},
		Entry("as usual", "short.txt", reports.Options{}),
		Entry("narrow: the table folds", "narrow.txt", reports.Options{Width: 48}),
		Entry("everything, in colour", "all.txt", reports.Options{Width: 140, All: true, Color: true}),
	)

	It("is the same with and without colours", func() {
		run := gallery()
		Expect(sgr.ReplaceAllString(written(run, reports.Options{Color: true}), "")).To(Equal(written(run, reports.Options{})))
	})

	DescribeTable("draws tables no wider than the terminal", func(width int) {
		rows := 0
		for _, line := range strings.Split(written(gallery(), reports.Options{Width: width, All: true}), "\n") {
			if strings.ContainsAny(line, "│┼") {
				rows++
				Expect((&runewidth.Condition{StrictEmojiNeutral: true}).StringWidth(line)).To(BeNumerically("<=", width), line)
			}
		}
		Expect(rows).To(BeNumerically(">", 40))
	}, Entry(nil, 40), Entry(nil, 60), Entry(nil, 80), Entry(nil, 120), Entry(nil, 300))

	It("survives a terminal that is absurdly narrow", func() {
		harmless(written(gallery(), reports.Options{Width: 1}))
	})

	It("says of a run that was cut off that it is incomplete", func() {
		got := written(open(resultstest.Gallery(GinkgoT().TempDir(), true)), reports.Options{})
		harmless(got)
		Expect(got).To(ContainSubstring("incomplete: read from the journal"))
		Expect(got).To(ContainSubstring("incomplete: 104 of 104 lines finished"))
		Expect(got).To(MatchRegexp(`hint: echoeval run --resume 20270104T081500Z-gallery-[0-9a-f]{4}\n$`))
	})

	It("of a run without items is short", func() {
		got := written(open(regular(GinkgoT().TempDir(), resultstest.Size{Items: 0, Providers: 2, Repeats: 1})), reports.Options{})
		Expect(got).To(HavePrefix("regular: 0 items x 2 providers, replay\n"))
		Expect(got).To(ContainSubstring("none"))
	})

	It("fits many providers by folding", func() {
		got := written(open(regular(GinkgoT().TempDir(), resultstest.Size{Items: 10, Providers: 9, Repeats: 1})), reports.Options{Width: 80})
		Expect(strings.Count(got, "\n item ")).To(Equal(3))
		Expect(strings.Count(got, "item-000010 │")).To(Equal(3))
	})

	It("says each cause once, however many items there are", func() {
		got := written(gallery(), reports.Options{})
		Expect(strings.Count(got, "items stale: system-prompt")).To(Equal(1))
		Expect(strings.Count(got, "You are helpful.")).To(Equal(1))
		Expect(strings.Count(got, "echoeval record")).To(Equal(1))
	})

	It("reports what the sink refuses, and what it cannot read", func() {
		run := gallery()
		err := terminal.Write(refusing{}, run, reports.Options{})
		Expect(err).To(MatchError(errFull))
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		Expect(terminal.Show(refusing{}, run, "flaky", "", reports.Options{})).To(MatchError(errFull))
		path := filepath.Join(run.Dir, results.ResultsFile)
		data, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(path, data[:len(data)/2], 0o644)).To(Succeed())
		err = terminal.Write(io.Discard, run, reports.Options{})
		Expect(err).To(MatchError(ContainSubstring("cut off within a line")))
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
	})
})

var errFull = errors.New("no space left on device")

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errFull }

var _ = Describe("one item", func() {
	DescribeTable("with everything about it", func(item, golden string) {
		got := shown(gallery(), item, resultstest.GalleryProviders[0], reports.Options{})
		harmless(got)
		suite.Golden(golden, []byte(got))
	},
		Entry("a failed check with text that attacks", "wrong answer 🩺", "show-check.txt"),
		Entry("a violated invariant", "web-before-exec", "show-invariant.txt"),
		Entry("an outage", "rate-limited", "show-error.txt"),
		Entry("drift", "drifted-1", "show-stale.txt"),
		Entry("never run", "interrupted", "show-notrun.txt"),
		Entry("quarantined", "quarantined", "show-quarantined.txt"),
	)

	It("can be shown for every item, provider and repeat", func() {
		run := gallery()
		items := resultstest.GalleryItems()
		Expect(items).NotTo(BeEmpty())
		for _, item := range items {
			got := shown(run, item, "", reports.Options{All: true, Color: true})
			harmless(got)
			Expect(strings.Count(got, "replay:")).To(Equal(4), item)
		}
	})

	It("cuts huge texts unless everything is asked for", func() {
		run := gallery()
		short, all := shown(run, "huge", "haiku", reports.Options{}), shown(run, "huge", "haiku", reports.Options{All: true})
		Expect(short).To(MatchRegexp(`… \d+ more bytes: --all shows them`))
		Expect(len(short)).To(BeNumerically("<", 20_000))
		Expect(len(all)).To(BeNumerically(">", 2*64_000))
	})

	It("is read from the journal too", func() {
		got := shown(open(resultstest.Gallery(GinkgoT().TempDir(), true)), "web-before-exec", "haiku", reports.Options{})
		Expect(got).To(ContainSubstring("#5 executed, served, 9 ms"))
	})

	It("shows the output where no trace was kept", func() {
		run := open(regular(GinkgoT().TempDir(), resultstest.Size{Items: 3, Providers: 1, Repeats: 1}))
		Expect(shown(run, "item-000002", "", reports.Options{})).To(ContainSubstring("output (no trace was kept)\n  Call 112 now."))
	})

	DescribeTable("that is not there", func(item, provider, message, hint string) {
		var out bytes.Buffer
		err := terminal.Show(&out, gallery(), item, provider, reports.Options{})
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(failure.Hints(err)).To(ContainElement(ContainSubstring(hint)))
		Expect(out.Len()).To(BeZero())
	},
		Entry(nil, "flakey", "", `no item "flakey"`, `did you mean "flaky"?`),
		Entry(nil, "something else entirely", "", "no item", "echoeval show gallery --all"),
		Entry(nil, "flaky", "haikoo", `no provider "haikoo"`, `did you mean "haiku"?`),
	)
})

// BenchmarkWrite writes all rows of a run of 10,000 items and two providers.
func BenchmarkWrite(b *testing.B) {
	dir, err := regular(b.TempDir(), resultstest.Size{Items: 10_000, Providers: 2, Repeats: 1})
	if err != nil {
		b.Fatal(err)
	}
	run, err := results.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer run.Close() // only read
	for b.Loop() {
		if err := terminal.Write(io.Discard, run, reports.Options{All: true}); err != nil {
			b.Fatal(err)
		}
	}
}
