//go:build unix

package program_test

import (
	"context"
	"errors"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/program"
)

var _ = Describe("a worker that one caller holds", func() {
	start := func(script string, env ...string) *program.Worker {
		GinkgoHelper()
		pool := program.NewPool(program.Options{Root: GinkgoT().TempDir(), Environ: os.Environ(), Limits: program.Limits{Output: 1000}})
		DeferCleanup(pool.Close)
		w, err := pool.Start(program.Command{Dir: ".", Run: []string{"sh", "-c", script}, Env: env})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Kill)
		return w
	}

	It("keeps its state from question to question, with variables of its own", func() {
		w := start(`n=0; while read -r line; do n=$((n+1)); echo "$line $n $OWN" ; echo "heard $line" >&2; done`, "OWN=x")
		for i, want := range []string{"a 1 x", "b 2 x"} {
			out, err := w.Ask(context.Background(), []byte{byte('a' + i)})
			Expect(err).NotTo(HaveOccurred())
			Expect(string(out)).To(Equal(want))
			Expect(w.Ready()).To(BeTrue())
			Eventually(w.Stderr).Should(Equal("heard " + want[:1]))
		}
		w.Close()
		Expect(w.Ready()).To(BeFalse())
	})

	It("is over when it ends, says too much or its time is over", func() {
		w := start(`read -r line; echo why >&2; exit 4`)
		_, err := w.Ask(context.Background(), []byte("a"))
		Expect(err).To(MatchError("the program ended with code 4 in place of an answer: why"))
		Expect(w.Ready()).To(BeFalse())

		w = start(`read -r line; echo one; read -r line; echo unasked; echo two; sleep 600`)
		_, err = w.Ask(context.Background(), []byte("a"))
		Expect(err).NotTo(HaveOccurred())
		_, err = w.Ask(context.Background(), []byte("b"))
		if err == nil { // the second line came after the first was read
			Eventually(w.Ready).Should(BeFalse())
		}

		w = start(`sleep 600`)
		late := errors.New("late")
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(late)
		_, err = w.Ask(ctx, []byte("a"))
		Expect(err).To(MatchError(late))
	})
})
