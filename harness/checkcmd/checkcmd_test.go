package checkcmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/checkcmd"
	"github.com/echoeval/echoeval/harness/program"
	"github.com/echoeval/echoeval/harness/score"
)

func TestCheckcmd(t *testing.T) { suite.Run(t, "checkcmd") }

// childMark makes the test binary the check of a dataset.
const childMark = "as-a-check"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childMark {
		checkcmd.Main(words)
	}
	os.Exit(m.Run())
}

// words gives the full score to answers of at most so many words, and looks at everything it is told.
func words(c checkcmd.Case) checkcmd.Verdict {
	with := struct {
		Max   int    `json:"max"`
		Panic string `json:"panic"`
		Env   bool   `json:"env"`
	}{Max: 3}
	if err := c.With(&with); err != nil {
		return checkcmd.Unjudged(err.Error())
	}
	if with.Panic != "" {
		panic(with.Panic)
	}
	messages, err := c.Messages()
	if err != nil {
		return checkcmd.Unjudged(err.Error())
	}
	t, err := c.Trace()
	if err != nil {
		return checkcmd.Unjudged(err.Error())
	}
	n := len(strings.Fields(c.Output))
	return checkcmd.Score(min(1, float64(with.Max)/float64(max(n, 1))), fmt.Sprintf("%d words, %d messages, %d events, item %s on %s, expected %s, tags %v, pid %d", n, len(messages), len(t.Events), c.Item.ID, c.Item.Provider, c.Expected, c.Item.Tags, os.Getpid()))
}

// compile makes the one check of a dataset.
func compile(yaml string, programs score.Programs) score.Check {
	GinkgoHelper()
	n, err := strict.Parse("d.yaml", []byte(yaml))
	Expect(err).NotTo(HaveOccurred())
	var p strict.Problems
	threshold := 0.5
	checks := score.Compile([]score.Spec{{Kind: "command", Args: n, Pos: n.Pos(), Threshold: &threshold}}, score.Env{Programs: programs}, &p)
	Expect(p.Err()).NotTo(HaveOccurred())
	Expect(checks).To(HaveLen(1))
	return checks[0]
}

func example(output string) score.Case {
	reply := trace.Event{N: 2, Kind: trace.KindReply, Step: 1, Reply: &trace.Reply{Message: conversation.Assistant("m", conversation.Text{Text: output})}}
	start := trace.Event{N: 1, Kind: trace.KindStart, Start: &trace.Start{Input: []conversation.Message{conversation.User("u", conversation.Text{Text: "Hallo\nthere"})}}}
	return score.Case{Output: output, Trace: trace.Trace{Events: []trace.Event{start, reply}}, Expected: strict.NewString("112"), Item: score.Item{ID: "chest-pain", Provider: "haiku", Repeat: 1, Tags: []string{"urgent"}}}
}

var _ = Describe("a check in Go", func() {
	It("judges as a process, once and as a worker", func() {
		self, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		pool := program.NewPool(program.Options{Root: GinkgoT().TempDir(), Environ: os.Environ(), Limits: program.Limits{Time: 30 * time.Second, Output: 1 << 20}})
		DeferCleanup(pool.Close)
		for _, way := range []string{"once", "lines"} {
			pids := map[string]bool{}
			c := compile(fmt.Sprintf("{run: [%q, %s], workers: %s, with: {max: 2}}", self, childMark, way), pool)
			for range 3 {
				r := c.Run(context.Background(), example("one two\u2028three \U0001F600"))
				Expect(r.Status).To(Equal(eval.CheckPass), r.Reason)
				Expect(*r.Score).To(BeEquivalentTo(0.5))
				told, pid, ok := strings.Cut(r.Reason, ", pid ")
				Expect(ok).To(BeTrue())
				Expect(told).To(Equal(`4 words, 2 messages, 2 events, item chest-pain on haiku, expected "112", tags [urgent]`))
				pids[pid] = true
			}
			Expect(pids).To(HaveLen(map[string]int{"once": 3, "lines": 1}[way]))
			crashing := compile(fmt.Sprintf("{run: [%q, %s], workers: %s, with: {panic: oh}}", self, childMark, way), pool)
			r := crashing.Run(context.Background(), example("x"))
			Expect(r.Status).To(Equal(eval.CheckUnjudged))
			Expect(r.Reason).To(Equal("the check crashed: oh"))
			misspelt := compile(fmt.Sprintf("{run: [%q, %s], workers: %s, with: {maxx: 1}}", self, childMark, way), pool)
			Expect(misspelt.Run(context.Background(), example("x")).Reason).To(ContainSubstring(`unknown field "maxx"`))
		}
	})

	DescribeTable("answers in one line", func(v checkcmd.Verdict, want string) {
		var out bytes.Buffer
		in := strings.NewReader(`{"v":1,"check":{"with":{}},"output":"a"}` + "\n" + `{"v":1,"output":"b"} `)
		Expect(checkcmd.Serve(in, &out, func(checkcmd.Case) checkcmd.Verdict { return v })).To(Succeed())
		Expect(out.String()).To(Equal(want + "\n" + want + "\n"))
	},
		Entry("a score", checkcmd.Score(0.8, "brief\nand \"good\""), `{"score":0.8,"reason":"brief\nand \"good\""}`),
		Entry("nothing", checkcmd.Score(0, ""), `{"score":0,"reason":""}`),
		Entry("no score", checkcmd.Unjudged("no answer"), `{"unjudged":"no answer"}`),
		Entry("the zero verdict", checkcmd.Verdict{}, `{"unjudged":""}`),
		Entry("a score above 1", checkcmd.Score(1.5, "x"), `{"unjudged":"the check scored 1.5, which is outside [0,1]"}`),
		Entry("a score that is none", checkcmd.Score(math.NaN(), "x"), `{"unjudged":"the check scored NaN, which is outside [0,1]"}`),
	)

	It("says so when it is told something else", func() {
		never := func(checkcmd.Case) checkcmd.Verdict { panic("asked") }
		var out bytes.Buffer
		Expect(checkcmd.Serve(strings.NewReader(`{"v":2}`), &out, never)).To(Succeed())
		Expect(out.String()).To(Equal(`{"unjudged":"the case is of version 2, and the check was built for version 1"}` + "\n"))
		Expect(checkcmd.Serve(strings.NewReader(`{"v":`), &out, never)).To(MatchError(ContainSubstring("reading a case")))
		Expect(checkcmd.Serve(strings.NewReader("no case"), &out, never)).To(MatchError(ContainSubstring("reading a case")))
		Expect(checkcmd.Serve(strings.NewReader(""), &out, never)).To(Succeed())
		Expect(checkcmd.Serve(strings.NewReader(`{"v":1}`), broken{}, never)).To(MatchError(ContainSubstring("writing a verdict")))
	})

	It("is told of an item without anything", func() {
		var got checkcmd.Case
		look := func(c checkcmd.Case) checkcmd.Verdict { got = c; return checkcmd.Score(1, "") }
		Expect(checkcmd.Serve(strings.NewReader(`{"v":1,"check":{"name":"x","turn":2,"threshold":0.5,"with":{}},"item":{"group":null,"vars":{"a":[1]}},"output":"","expected":null,"messages":[],"trace":{"v":1,"events":[]},"later":1}`), &bytes.Buffer{}, look)).To(Succeed())
		Expect(got.Expected).To(BeNil())
		Expect(*got.Check.Turn).To(Equal(2))
		Expect(got.Item.Group).To(BeEmpty())
		Expect(got.Item.Vars).To(HaveKeyWithValue("a", json.RawMessage("[1]")))
		Expect(got.Messages()).To(BeEmpty())
		t, err := got.Trace()
		Expect(err).NotTo(HaveOccurred())
		Expect(t.Events).To(BeEmpty())
	})
})

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

// FuzzServe gives a check input that nobody sends: it answers with whole lines of JSON or ends with an error, and never crashes.
func FuzzServe(f *testing.F) {
	for _, s := range []string{`{"v":1,"check":{"name":"a","with":{"max":2}},"item":{"tags":["a"]},"output":"x","expected":1,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"trace":{"events":[]}}`, `{"v":2}`, "", "[]", `{"v":1}{"v":1}`, `{"v":1,"messages":[1],"trace":{"events":{}}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var out bytes.Buffer
		_ = checkcmd.Serve(strings.NewReader(s), &out, words)
		for line := range strings.Lines(out.String()) {
			if !strings.HasSuffix(line, "\n") || !json.Valid([]byte(line)) {
				t.Fatalf("%q gave %q", s, line)
			}
		}
	})
}
