//go:build unix

package score_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/program"
	"github.com/echoeval/echoeval/harness/score"
)

// canned answers every question with the same text and remembers what it was asked.
type canned struct {
	answer   string
	err      error
	question []byte
	command  program.Command
}

func (c *canned) Find(_, name string) (string, error) {
	if strings.HasPrefix(name, "no-") {
		return "", failure.WithHint(errors.New("there is no program "+name), "install it")
	}
	return "/bin/" + name, nil
}

func (c *canned) Run(_ context.Context, command program.Command, question []byte) ([]byte, error) {
	c.command, c.question = command, question
	return []byte(c.answer), c.err
}

// commandCheck compiles the check of a dataset that asks programs.
func commandCheck(yaml string, programs score.Programs) score.Check {
	GinkgoHelper()
	var p strict.Problems
	checks := score.Compile(specs("- "+yaml), score.Env{Programs: programs}, &p)
	Expect(p.Err()).NotTo(HaveOccurred())
	Expect(checks).To(HaveLen(1))
	return checks[0]
}

var _ = Describe("command", func() {
	DescribeTable("reads the answer of a program", func(ctx SpecContext, answer string, status eval.CheckStatus, reason string) {
		c := commandCheck("{command: [python3, tone.py], threshold: 0.8}", &canned{answer: answer})
		r := c.Run(ctx, score.Case{Output: "so it is", Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[secret]") }})
		Expect(r.Status).To(Equal(status), r.Reason)
		Expect(r.Reason).To(MatchRegexp(reason))
		Expect(r.Score == nil).To(Equal(status == eval.CheckUnjudged))
		if status != eval.CheckUnjudged {
			Expect(*r.Expected).To(Equal("a score of at least 0.8 from python3 tone.py"))
		}
		if status == eval.CheckFail {
			Expect(*r.Actual).To(Equal("so it is"))
		}
	},
		Entry("a score that passes", `{"score":0.8,"reason":"brief"}`, eval.CheckPass, "^brief$"),
		Entry("a score that does not", "{\"reason\": \"long\", \"score\": 0.79}\r\n", eval.CheckFail, "^long$"),
		Entry("a whole number", " {\"score\": 1} \n", eval.CheckPass, "^the program scored 1$"),
		Entry("a power of ten", `{"score":8e-1}`, eval.CheckPass, "scored 8e-1"),
		Entry("an empty reason", `{"score":0,"reason":""}`, eval.CheckFail, "^the program scored 0$"),
		Entry("a secret in the reason", `{"score":1,"reason":"it said hunter2"}`, eval.CheckPass, `^it said \[secret\]$`),
		Entry("a long reason", `{"score":1,"reason":"`+strings.Repeat("\U0001F600", 2000)+`"}`, eval.CheckPass, "^\U0001F600{499}…$"),
		Entry("no judgement", `{"unjudged":"no network for hunter2"}`, eval.CheckUnjudged, `^no network for \[secret\]$`),
		Entry("no judgement and an empty score", `{"score":null,"unjudged":"why"}`, eval.CheckUnjudged, "^why$"),
		Entry("no judgement and no reason", `{"unjudged":" "}`, eval.CheckUnjudged, "does not say why"),
		Entry("both", `{"score":1,"unjudged":"why"}`, eval.CheckUnjudged, "no verdict: it holds a score and says that it is unjudged"),
		Entry("neither", `{"reason":"x"}`, eval.CheckUnjudged, `neither "score" nor "unjudged"`),
		Entry("nothing", "", eval.CheckUnjudged, "^the program answered nothing$"),
		Entry("white space", " \n", eval.CheckUnjudged, "answered nothing"),
		Entry("two answers", "{\"score\":1}\n{\"score\":0}\n", eval.CheckUnjudged, "no verdict: answer:2:1"),
		Entry("text", "looks good to me", eval.CheckUnjudged, "no verdict: answer:1:1"),
		Entry("text before the answer", "loading\n{\"score\":1}", eval.CheckUnjudged, "no verdict"),
		Entry("another value", "0.8", eval.CheckUnjudged, "no verdict"),
		Entry("a list", `[{"score":1}]`, eval.CheckUnjudged, "no verdict"),
		Entry("a score in quotes", `{"score":"1"}`, eval.CheckUnjudged, "the score is .*, want a number"),
		Entry("a score that is true", `{"score":true}`, eval.CheckUnjudged, "want a number"),
		Entry("a score above 1", `{"score":1.0000001}`, eval.CheckUnjudged, `1.0000001 is outside \[0,1\]`),
		Entry("a negative score", `{"score":-0.1}`, eval.CheckUnjudged, "outside"),
		Entry("an endless score", `{"score":1e999}`, eval.CheckUnjudged, "outside"),
		Entry("NaN", `{"score":NaN}`, eval.CheckUnjudged, "no verdict"),
		Entry("a misspelt key", `{"scores":1}`, eval.CheckUnjudged, `unknown key "scores"`),
		Entry("a key twice", `{"score":1,"score":0}`, eval.CheckUnjudged, "no verdict"),
		Entry("a reason that is no text", `{"score":1,"reason":["x"]}`, eval.CheckUnjudged, "no verdict"),
		Entry("invalid UTF-8", "{\"score\":1,\"reason\":\"\xff\"}", eval.CheckUnjudged, "no verdict.*UTF-8"),
		Entry("UTF-16", "\xff\xfe{\x00}\x00", eval.CheckUnjudged, "no verdict"),
		Entry("deep nesting", `{"score":`+strings.Repeat("[", 100_000), eval.CheckUnjudged, "no verdict"),
	)

	It("turns round, and takes 1 for its threshold", func(ctx SpecContext) {
		half := &canned{answer: `{"score":0.5}`}
		c := commandCheck("{command: [x]}", half)
		Expect(c.Threshold).To(BeEquivalentTo(1))
		Expect(c.Run(ctx, score.Case{}).Status).To(Equal(eval.CheckFail))
		c = commandCheck("{not: {command: [x]}}", half)
		Expect(c.Run(ctx, score.Case{}).Status).To(Equal(eval.CheckPass))
		c = commandCheck("{not: {command: [x]}}", &canned{answer: `{"unjudged":"why"}`})
		Expect(c.Run(ctx, score.Case{}).Status).To(Equal(eval.CheckUnjudged))
	})

	It("tells the program of the case in one line", func(ctx SpecContext) {
		programs := &canned{answer: `{"score":1}`}
		c := commandCheck("{command: {run: [./short, -v], workers: lines, with: {max: 80, words: [a, \"b\\nc\"]}}, name: short-go, threshold: 0.8}", programs)
		turn := 2
		metadata, err := strict.Parse("d.yaml", []byte("{area: billing}"))
		Expect(err).NotTo(HaveOccurred())
		events := []trace.Event{
			{N: 1, Kind: trace.KindStart, Start: &trace.Start{Agent: "a", Hidden: []string{"tenant"}, Input: []conversation.Message{conversation.User("u1", conversation.Text{Text: "Hi\nthere"})}}},
			{N: 2, Kind: trace.KindReply, Step: 1, Reply: &trace.Reply{Message: conversation.Assistant("m1", call(`contacts{"of":"p-1"}`))}},
			{N: 3, Kind: trace.KindResults, Step: 1, Results: &trace.Results{Message: conversation.ToolResults("m1", conversation.ToolResult{ID: "c", Result: conversation.JSON(`[1]`)})}},
			{N: 4, Kind: trace.KindReply, Step: 2, Reply: &trace.Reply{Message: conversation.Assistant("m1", conversation.Text{Text: "112"})}},
		}
		r := c.Run(ctx, score.Case{
			Turn: &turn, Output: "Call\n112 \u2028", Expected: strict.NewString("112"), Trace: trace.Trace{Events: events, Hidden: conversation.Hidden{"tenant": conversation.JSON(`"t-7f3a91-secret"`)}},
			Item: score.Item{ID: "chest-pain", Provider: "haiku", Repeat: 3, Tags: []string{"a", "b"}, Metadata: metadata},
		})
		Expect(r.Status).To(Equal(eval.CheckPass))
		Expect(programs.command).To(Equal(program.Command{Dir: ".", Run: []string{"./short", "-v"}, Lines: true}))
		text := string(programs.question)
		Expect(text).NotTo(ContainSubstring("\n"))
		Expect(text).NotTo(ContainSubstring("t-7f3a91-secret"))
		before, after, ok := strings.Cut(text, `,"messages":`)
		Expect(ok).To(BeTrue())
		Expect(before).To(Equal(`{"v":1,"check":{"name":"short-go","turn":2,"threshold":0.8,"with":{"max":80,"words":["a","b\nc"]}},` +
			`"item":{"id":"chest-pain","provider":"haiku","repeat":3,"group":null,"tags":["a","b"],"vars":{},"metadata":{"area":"billing"}},` +
			"\"output\":\"Call\\n112 \u2028\",\"expected\":\"112\""))
		var rest struct {
			Messages []conversation.Message
			Trace    struct {
				V      int
				Events trace.Trace
			}
		}
		Expect(json.Unmarshal([]byte(`{"messages":`+after), &rest)).To(Succeed())
		Expect(rest.Messages).To(HaveLen(4))
		Expect(rest.Messages[0].Text()).To(Equal("Hi\nthere"))
		Expect(rest.Messages[3].Text()).To(Equal("112"))
		Expect(rest.Trace.V).To(Equal(1))
		Expect(rest.Trace.Events.Events).To(HaveLen(4))

		c = commandCheck("{command: [x]}", programs)
		Expect(c.Run(ctx, score.Case{}).Status).To(Equal(eval.CheckPass))
		Expect(string(programs.question)).To(Equal(`{"v":1,"check":{"name":"command","turn":null,"threshold":1,"with":{}},"item":{"id":"","provider":"","repeat":0,"group":null,"tags":[],"vars":{},"metadata":{}},"output":"","expected":null,"messages":[],"trace":{"v":1,"events":[]}}`))
		Expect(programs.command.Lines).To(BeFalse())
	})

	DescribeTable("refuses", func(yaml, want string) {
		var p strict.Problems
		checks := score.Compile(specs("- "+yaml), score.Env{Programs: &canned{}}, &p)
		Expect(checks).To(BeEmpty())
		Expect(failure.CodeOf(p.Err())).To(Equal(failure.Input))
		Expect(failure.Render(p.Err())).To(MatchRegexp(want))
	},
		Entry("a text", "command: python3 tone.py", `d.yaml:1:12: .*want a list.*\nhint: write command: \[python3`),
		Entry("nothing", "command:", "want a list"),
		Entry("the bare word", "command", "want a list"),
		Entry("an empty list", "command: []", "not empty"),
		Entry("no program", "command: {workers: lines}", `key "run" is missing`),
		Entry("an empty program", "command: ['']", "has no name"),
		Entry("a text to run", "command: {run: ./short}", "d.yaml:1:18: .*not empty"),
		Entry("null to run", "command: {run: null}", "not empty"),
		Entry("an argument that is no text", "command: [python3, 3]", "d.yaml:1:22: "),
		Entry("another way of working", "command: {run: [x], workers: line}", `d.yaml:1:32: .*unknown way of working "line"`),
		Entry("no way of working", "command: {run: [x], workers: ''}", "unknown way of working"),
		Entry("arguments that are a list", "command: {run: [x], with: [1]}", "want a mapping"),
		Entry("a misspelt key", "command: {run: [x], wiht: {}}", `unknown key "wiht"(.|\n)*with`),
		Entry("a program that is not there", "command: [no-such, tone.py]", `d.yaml:1:13: .*there is no program no-such\nhint: install it`),
		Entry("a program that is not there, the long way", "command: {run: [no-such]}", `d.yaml:1:19: .*there is no program`),
		Entry("a threshold outside", "{command: [x], threshold: 2}", "outside"),
	)

	It("looks for no program and judges nothing where none is run", func(ctx SpecContext) {
		c := commandCheck("{command: [no-such]}", nil)
		r := c.Run(ctx, score.Case{})
		Expect(r.Status).To(Equal(eval.CheckUnjudged))
		Expect(r.Reason).To(Equal("programs are not run here"))
	})

	It("starts the program in the folder of the file that names it", func(ctx SpecContext) {
		root, err := filepath.EvalSymlinks(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		for _, dir := range []string{"evals/checks", "datasets"} {
			Expect(os.MkdirAll(filepath.Join(root, dir), 0o755)).To(Succeed())
		}
		Expect(os.WriteFile(filepath.Join(root, "evals/checks/where.sh"), []byte("#!/bin/sh\nprintf '{\"score\":1,\"reason\":\"%s\"}' \"$(basename \"$PWD\")\"\n"), 0o755)).To(Succeed())
		pool := program.NewPool(program.Options{Root: root, Environ: []string{"PATH=" + os.Getenv("PATH")}})
		DeferCleanup(pool.Close)
		args, err := strict.Parse("evals/safety.yaml", []byte("[checks/where.sh]"))
		Expect(err).NotTo(HaveOccurred())
		elsewhere, err := strict.Parse("datasets/d.yaml", []byte("[checks/where.sh]"))
		Expect(err).NotTo(HaveOccurred())
		var p strict.Problems
		checks := score.Compile([]score.Spec{{Kind: "command", Args: args, Pos: elsewhere.Pos()}}, score.Env{Programs: pool}, &p)
		Expect(p.Err()).NotTo(HaveOccurred())
		r := checks[0].Run(ctx, score.Case{})
		Expect(r.Reason).To(Equal("evals"))
		Expect(score.Compile([]score.Spec{{Kind: "command", Args: elsewhere, Pos: elsewhere.Pos()}}, score.Env{Programs: pool}, &p)).To(BeEmpty())
		Expect(p.Err()).To(MatchError(HavePrefix("datasets/d.yaml:1:2: ")))
	})

	It("is unjudged, never failed, when the program gives no answer", func(ctx SpecContext) {
		pool := program.NewPool(program.Options{Root: GinkgoT().TempDir(), Environ: []string{"PATH=" + os.Getenv("PATH")}})
		DeferCleanup(pool.Close)
		c := commandCheck(`{command: [sh, -c, "echo '{\"score\":1}'; echo Traceback >&2; exit 1"]}`, pool)
		r := c.Run(ctx, score.Case{})
		Expect(r.Status).To(Equal(eval.CheckUnjudged))
		Expect(r.Reason).To(Equal("the program ended with code 1: Traceback"))
		Expect(r.Score).To(BeNil())
	})
})

// FuzzVerdict gives a command check answers that no program should give: there is a verdict or a reason, and nothing is believed twice.
func FuzzVerdict(f *testing.F) {
	for _, s := range []string{`{"score":0.5,"reason":"x"}`, `{"unjudged":"x"}`, "", "{}", "\xff", `{"score":1e400}`, "{\"score\":1}\n{\"score\":0}", `{"score":1,"score":1}`} {
		f.Add(s)
	}
	programs := &canned{}
	var p strict.Problems
	checks := score.Compile(specs("- {command: [x], threshold: 0.5}"), score.Env{Programs: programs}, &p)
	f.Fuzz(func(t *testing.T, answer string) {
		programs.answer = answer
		r := checks[0].Run(context.Background(), score.Case{})
		if (r.Status == eval.CheckUnjudged) != (r.Score == nil) || r.Reason == "" || !utf8.ValidString(r.Reason) || utf8.RuneCountInString(r.Reason) > 500 {
			t.Fatalf("%q: %s, %q", answer, r.Status, r.Reason)
		}
		if r.Score != nil && (!json.Valid([]byte(answer)) || *r.Score < 0 || *r.Score > 1) {
			t.Fatalf("%q scored %v", answer, *r.Score)
		}
	})
}
