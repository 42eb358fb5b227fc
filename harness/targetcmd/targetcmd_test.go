package targetcmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/harness/target"
	"github.com/echoeval/echoeval/harness/targetcmd"
)

func TestTargetcmd(t *testing.T) { suite.Run(t, "targetcmd") }

// question is a line as the recorder writes it.
func question(input string) string {
	q := target.Question{Session: "a/target/1", Turn: 1, Messages: []conversation.Message{conversation.User("u", conversation.Text{Text: input})}, Hidden: conversation.Hidden{"tenant_id": `"t-1"`}, Now: "2026-01-05T09:00:00Z", Seed: 3, Provider: "target"}
	return string(q.AppendJSON(nil)) + "\n"
}

var _ = Describe("a program in Go", func() {
	It("is asked what the recorder asks, and answers what the recorder takes", func() {
		var out bytes.Buffer
		err := targetcmd.Serve(context.Background(), strings.NewReader(question("one")+question("crash")+question("fail")+question("more")), &out, func(_ context.Context, t targetcmd.Turn) (targetcmd.Answer, error) {
			switch t.Input {
			case "crash":
				panic("oh")
			case "fail":
				return targetcmd.Answer{}, errors.New("no")
			case "more":
				return targetcmd.Answer{Output: "x", Messages: []json.RawMessage{json.RawMessage(`{"role":"assistant","content":"x"}`)}, Usage: &targetcmd.Usage{PromptTokens: 1}}, nil
			}
			return targetcmd.Answer{Output: fmt.Sprintf("%s %d %s %s %d %s %s", t.Session, t.Turn, t.Messages[0], t.ToolContext["tenant_id"], t.Seed, t.Provider.ID, t.Now)}, nil
		})
		Expect(err).NotTo(HaveOccurred())
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		Expect(lines).To(HaveLen(4))
		var answers []target.Answer
		for _, line := range lines {
			a, err := target.DecodeAnswer([]byte(line), "m")
			Expect(err).NotTo(HaveOccurred())
			answers = append(answers, a)
		}
		Expect(answers[0].Output).To(Equal(`a/target/1 1 {"role":"user","content":"one"} "t-1" 3 target 2026-01-05 09:00:00 +0000 UTC`))
		Expect(answers[1].Error).To(Equal("the program crashed: oh"))
		Expect(answers[2].Error).To(Equal("no"))
		Expect(answers[3].Messages).To(HaveLen(1))
	})

	It("says so when it is told something else", func() {
		never := func(context.Context, targetcmd.Turn) (targetcmd.Answer, error) { panic("asked") }
		var out bytes.Buffer
		Expect(targetcmd.Serve(context.Background(), strings.NewReader(`{"v":2}`), &out, never)).To(Succeed())
		Expect(out.String()).To(Equal(`{"error":"the turn is of version 2, and the program was built for version 1"}` + "\n"))
		Expect(targetcmd.Serve(context.Background(), strings.NewReader("no turn"), &out, never)).To(MatchError(ContainSubstring("reading a turn")))
	})
})

// A program is tested without a process, and without a recorder.
func ExampleServe() {
	in := strings.NewReader(`{"v":1,"input":"Is it open?"}`)
	err := targetcmd.Serve(context.Background(), in, os.Stdout, func(_ context.Context, t targetcmd.Turn) (targetcmd.Answer, error) {
		return targetcmd.Answer{Output: "You asked: " + t.Input}, nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: {"output":"You asked: Is it open?"}
}
