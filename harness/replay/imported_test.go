package replay_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/replay"
)

var _ = Describe("over an imported cassette", func() {
	var (
		dir  string
		v    *vendor
		runs int
	)
	path := func() string { return filepath.Join(dir, "c.yaml") }
	use := func(i *item, f function, seq int, arguments string) (tool.Output, error) {
		return i.Tool(f).Run(context.Background(), call(seq, arguments))
	}
	BeforeEach(func() {
		dir, v, runs = GinkgoT().TempDir(), newVendor(), 0
		i := open(config(dir, replay.Record), http.DefaultTransport, v.URL)
		i.ask(chat(true, "one"))
		i.ask(chat(true, "two"))
		_, err := i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		f, err := cassette.Load(path(), "c.yaml")
		Expect(err).NotTo(HaveOccurred())
		f.Header.Imported, f.Header.Hashes = "VCR.py", nil
		Expect(cassette.Save(path(), "c.yaml", f)).To(Succeed())
		v.count = 0
	})

	DescribeTable("tools that stay in the workspace run, in no time", func(mode replay.Mode, effect tool.Effect, scope tool.Scope) {
		before, err := os.ReadFile(path())
		Expect(err).NotTo(HaveOccurred())
		c := config(dir, mode)
		c.Reproducible = false
		i := open(c, http.DefaultTransport, v.URL)
		i.ask(chat(true, "one"))
		at := i.Clock().Now()
		output, err := use(i, echo("edit", effect, scope, &runs), 1, `{"a":1}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(output.Result)).To(Equal(`{"got": {"a":1}}`))
		Expect([]any{output.Source, output.Took, runs}).To(Equal([]any{tool.Ran, i.Clock().Now().Sub(at), 1}))
		Expect(output.Took).To(BeZero())
		i.ask(chat(true, "two"))
		outcome, err := i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.State).To(Equal(replay.Fresh))
		Expect(v.count).To(BeZero())
		Expect(os.ReadFile(path())).To(Equal(before))
	},
		Entry(nil, replay.Replay, tool.Write, tool.Workspace),
		Entry(nil, replay.Replay, tool.Pure, tool.External),
		Entry(nil, replay.Extend, tool.Read, tool.Workspace),
	)

	It("others are missing", func() {
		i := open(config(dir, replay.Replay), nil, v.URL)
		i.ask(chat(true, "one"))
		_, err := use(i, echo("lookup", tool.Read, tool.External, &runs), 1, `{"a":1}`)
		Expect(err).To(HaveOccurred())
		Expect(runs).To(BeZero())
		outcome, err := i.Close(false)
		Expect(err).To(HaveOccurred())
		Expect(outcome.State).To(Equal(replay.Stale))
	})

	It("a miss behind a tool asks for a recording from the start, as none holds what the tool did", func() {
		i := open(config(dir, replay.Extend), http.DefaultTransport, v.URL)
		i.ask(chat(true, "one"))
		_, err := use(i, echo("edit", tool.Write, tool.Workspace, &runs), 1, `{"a":1}`)
		Expect(err).NotTo(HaveOccurred())
		_, err = i.send(chat(true, "deux"))
		Expect(err).To(MatchError(ContainSubstring("imported without the tools that have run")))
		outcome, err := i.Close(false)
		Expect(err).To(HaveOccurred())
		Expect(outcome.Restart).To(BeTrue())
		Expect(v.count).To(BeZero())
	})

	It("one that is only shortened stays imported", func() {
		i := open(config(dir, replay.Extend), http.DefaultTransport, v.URL)
		i.ask(chat(true, "one"))
		outcome, err := i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.State).To(Equal(replay.Extended))
		f, err := cassette.Load(path(), "c.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(f.Header.Imported).To(Equal("VCR.py"))
		Expect(f.Interactions).To(HaveLen(1))
	})
})
