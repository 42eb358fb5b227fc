package replay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/replay"
)

var _ = Describe("extending", func() {
	var (
		dir string
		v   *vendor
	)
	BeforeEach(func() { dir, v = GinkgoT().TempDir(), newVendor() })

	file := func() string { return filepath.Join(dir, "c.yaml") }
	content := func() string {
		GinkgoHelper()
		data, err := os.ReadFile(file())
		Expect(err).NotTo(HaveOccurred())
		return string(data)
	}
	begin := func(mode replay.Mode, change ...func(*replay.Config)) *item {
		GinkgoHelper()
		c := config(dir, mode)
		for _, f := range change {
			f(&c)
		}
		return open(c, http.DefaultTransport, v.URL)
	}
	finish := func(i *item, state replay.State) replay.Outcome {
		GinkgoHelper()
		outcome, err := i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.State).To(Equal(state))
		return outcome
	}
	use := func(i *item, f function, seq int, arguments string) (tool.Output, error) {
		return i.Tool(f).Run(context.Background(), call(seq, arguments))
	}
	interactions := func(text string) string {
		_, after, found := strings.Cut(text, "\ninteractions:\n")
		Expect(found).To(BeTrue())
		return after
	}

	It("keeps the beginning that fits byte for byte and records a new ending", func() {
		runs := 0
		lookup := echo("lookup", tool.Read, tool.External, &runs)
		i := begin(replay.Record)
		i.ask(chat(true, "one"))
		_, err := use(i, lookup, 1, `{"a":1}`)
		Expect(err).NotTo(HaveOccurred())
		i.ask(chat(false, "two"))
		i.ask(chat(false, "three"))
		finish(i, replay.Recorded)
		before := content()
		Expect([]int{v.count, runs}).To(Equal([]int{3, 1}))

		i = begin(replay.Extend)
		first := i.ask(chat(true, "one"))
		_, err = use(i, lookup, 1, `{"a":1}`)
		Expect(err).NotTo(HaveOccurred())
		Expect([]int{v.count, runs}).To(Equal([]int{3, 1}), "what fits is served")
		Expect(i.ask(chat(false, "deux"))).To(ContainSubstring("deux"))
		Expect(i.ask(chat(false, "three"))).To(ContainSubstring(`"n":5`), "after the first miss nothing is served any more")
		Expect(i.exchanges()).To(HaveLen(3))
		Expect([]string{i.exchanges()[0].Source, i.exchanges()[1].Source, i.exchanges()[2].Source}).To(Equal([]string{"served", "recorded", "recorded"}))
		Expect(content()).To(Equal(before), "the old file stays until the item is complete")
		Expect(finish(i, replay.Extended).Drift).To(BeEmpty())
		Expect([]int{v.count, runs}).To(Equal([]int{5, 1}))

		after := content()
		Expect(after).NotTo(Equal(before))
		at := strings.Index(interactions(before), "\n- request:\n") // of the second request; the first entry has an echoeval block
		Expect(at).To(BeNumerically(">", 0))
		Expect(interactions(after)).To(HavePrefix(interactions(before)[:at]))

		i = begin(replay.Replay)
		Expect(i.ask(chat(true, "one"))).To(Equal(first))
		_, err = use(i, lookup, 1, `{"a":1}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(i.ask(chat(false, "deux"))).To(ContainSubstring(`"n":4`))
		Expect(i.ask(chat(false, "three"))).To(ContainSubstring(`"n":5`))
		finish(i, replay.Fresh)
		Expect(v.count).To(Equal(5))
	})

	It("touches nothing that fits as it is", func() {
		i := begin(replay.Record)
		i.ask(chat(true, "one"))
		finish(i, replay.Recorded)
		old := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		Expect(os.Chtimes(file(), old, old)).To(Succeed())
		i = begin(replay.Extend)
		i.ask(chat(true, "one"))
		finish(i, replay.Fresh)
		info, err := os.Stat(file())
		Expect(err).NotTo(HaveOccurred())
		Expect(info.ModTime().Equal(old)).To(BeTrue())
		Expect(v.count).To(Equal(1))
	})

	It("records where there is no cassette, or one that is broken", func() {
		for _, text := range []string{"", "version: 1\n"} {
			if text != "" {
				Expect(os.WriteFile(file(), []byte(text), 0o600)).To(Succeed())
			}
			i := begin(replay.Extend)
			i.ask(chat(true, "one"))
			finish(i, replay.Recorded)
			i = begin(replay.Replay)
			i.ask(chat(true, "one"))
			finish(i, replay.Fresh)
		}
		Expect(v.count).To(Equal(2))
	})

	DescribeTable("never replaces what can be read elsewhere", func(text, hint string) {
		Expect(os.WriteFile(file(), []byte(text), 0o600)).To(Succeed())
		_, err := replay.Open(config(dir, replay.Extend))
		Expect(replay.CauseOf(err)).To(Equal(replay.Unreadable))
		Expect(failure.Hints(err)).To(Equal([]string{hint}))
		Expect(content()).To(Equal(text))
	},
		Entry("by Git LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git lfs pull"),
		Entry("by a later release", "---\nversion: 1\nechoeval:\n  format: 99\n  canon: 1\n  entries: 0\n  dataset: d\n  item: i\n  repeat: 1\n  provider: p\n  vendor: v\n  model: m\n  recorded_at: \"2027-01-04T08:15:00Z\"\n  seed: 1\n  hashes: {}\n  rules: []\ninteractions: []\n", "update echoeval"),
	)

	It("records from the start where the first request misses", func() {
		i := begin(replay.Record)
		i.ask(chat(true, "one"))
		finish(i, replay.Recorded)
		i = begin(replay.Extend)
		i.ask(chat(true, "eins"))
		finish(i, replay.Recorded)
		Expect(content()).NotTo(ContainSubstring(`"one"`))
	})

	It("leaves the old file alone when the item does not come to its end, and when it holds a secret", func() {
		i := begin(replay.Record)
		i.ask(chat(true, "one"))
		finish(i, replay.Recorded)
		before := content()
		i = begin(replay.Extend)
		i.ask(chat(true, "one"))
		i.ask(chat(true, "two"))
		outcome, err := i.Close(false)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.State).To(BeEmpty())
		Expect(content()).To(Equal(before))

		i = begin(replay.Extend, func(c *replay.Config) {
			c.Secrets = &secret.Detector{Values: []secret.Value{{Name: "MY_KEY", Value: "quite-a-long-secret"}}}
			c.Quarantine = filepath.Join(dir, "q.yaml")
		})
		i.ask(chat(true, "one"))
		i.ask(chat(true, "quite-a-long-secret"))
		outcome, err = i.Close(true)
		Expect(err).To(MatchError(ContainSubstring("value of MY_KEY")))
		Expect(outcome.Quarantined).To(BeTrue())
		Expect(content()).To(Equal(before))

		i = begin(replay.Extend, func(c *replay.Config) { c.Quarantine = filepath.Join(dir, "q.yaml") })
		i.ask(chat(true, "one"))
		i.ask(chat(true, "two"))
		finish(i, replay.Extended)
		Expect(filepath.Join(dir, "q.yaml")).NotTo(BeAnExistingFile(), "a clean recording takes the place of what was put aside")
	})

	DescribeTable("asks for a recording from the start where the beginning holds a served write", func(effect tool.Effect) {
		runs := 0
		book := echo("book", effect, tool.External, &runs)
		i := begin(replay.Record)
		i.ask(chat(true, "one"))
		_, err := use(i, book, 1, `{"day":"fri"}`)
		Expect(err).NotTo(HaveOccurred())
		i.ask(chat(true, "two"))
		finish(i, replay.Recorded)
		before := content()

		i = begin(replay.Extend)
		i.ask(chat(true, "one"))
		_, err = use(i, book, 1, `{"day":"fri"}`)
		Expect(err).NotTo(HaveOccurred())
		_, err = i.send(chat(true, "deux"))
		Expect(err).To(MatchError(ContainSubstring("a call that wrote was served before")))
		Expect(errors.As(err, new(*replay.Miss))).To(BeTrue())
		_, again := i.send(chat(true, "two"))
		Expect(again).To(Equal(err), "after it nothing is answered")
		outcome, err := i.Close(false)
		Expect(replay.CauseOf(err)).To(Equal(replay.Drift))
		Expect(outcome.Restart).To(BeTrue())
		Expect(outcome.State).To(Equal(replay.Stale))
		Expect([]int{v.count, runs}).To(Equal([]int{2, 1}), "nothing was dialled and nothing written")
		Expect(content()).To(Equal(before))

		// A miss before the write needs no restart.
		i = begin(replay.Extend)
		i.ask(chat(true, "eins"))
		_, err = use(i, book, 1, `{"day":"fri"}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(finish(i, replay.Recorded).Restart).To(BeFalse())
		Expect(runs).To(Equal(2))
	},
		Entry(nil, tool.Write),
		Entry(nil, tool.Irreversible),
	)

	It("goes on behind a write to the workspace, which is made again", func() {
		runs := 0
		edit := echo("edit", tool.Write, tool.Workspace, &runs)
		i := begin(replay.Record)
		_, err := use(i, edit, 1, `{"a":1}`)
		Expect(err).NotTo(HaveOccurred())
		i.ask(chat(true, "one"))
		finish(i, replay.Recorded)
		i = begin(replay.Extend)
		_, err = use(i, edit, 1, `{"a":1}`)
		Expect(err).NotTo(HaveOccurred())
		i.ask(chat(true, "two"))
		finish(i, replay.Extended)
		Expect(runs).To(Equal(2))
	})

	It("records the new result of a tool whose world has changed, from there on", func() {
		price := "10"
		read := function{spec: tool.Spec{Name: "read", Effect: tool.Read, Scope: tool.Workspace}, run: func(tool.Call) (tool.Output, error) {
			return tool.Output{Result: conversation.JSON(price)}, nil
		}}
		changed := func(c *replay.Config) { c.Expect.Hashes = map[string]string{"workspace": "cc", "agent": "bb"} }
		i := begin(replay.Record)
		i.ask(chat(true, "one"))
		_, err := use(i, read, 1, `{}`)
		Expect(err).NotTo(HaveOccurred())
		i.ask(chat(true, "ten"))
		finish(i, replay.Recorded)

		price = "11"
		i = begin(replay.Extend, changed)
		i.ask(chat(true, "one"))
		out, err := use(i, read, 1, `{}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Result).To(Equal(conversation.JSON("11")))
		i.ask(chat(true, "eleven"))
		finish(i, replay.Extended)
		Expect(v.count).To(Equal(3))
		Expect(strings.Count(content(), "tool:///read")).To(Equal(1))

		i = begin(replay.Replay, changed)
		i.ask(chat(true, "one"))
		_, err = use(i, read, 1, `{}`)
		Expect(err).NotTo(HaveOccurred())
		i.ask(chat(true, "eleven"))
		finish(i, replay.Fresh)
	})

	It("takes note of a changed workspace that changes nothing, and records anew for other inputs", func() {
		i := begin(replay.Record, func(c *replay.Config) { c.Expect.Hashes["seed"] = "11" })
		i.ask(chat(true, "one"))
		finish(i, replay.Recorded)
		entries := interactions(content())
		workspace := func(c *replay.Config) { c.Expect.Hashes["workspace"], c.Expect.Hashes["seed"] = "cc", "11" }
		i = begin(replay.Extend, workspace)
		i.ask(chat(true, "one"))
		finish(i, replay.Extended)
		Expect(interactions(content())).To(Equal(entries))
		Expect(v.count).To(Equal(1))
		allowed := func(c *replay.Config) {
			c.Expect.Hashes["workspace"], c.Expect.Hashes["seed"], c.AllowLeftover = "dd", "11", true
		}
		i = begin(replay.Extend, allowed)
		finish(i, replay.Extended)
		Expect(interactions(content())).To(Equal(entries), "what may be left over stays")
		i = begin(replay.Extend, workspace)
		i.ask(chat(true, "one"))
		finish(i, replay.Extended)
		i = begin(replay.Replay, workspace)
		i.ask(chat(true, "one"))
		finish(i, replay.Fresh)

		i = begin(replay.Extend, workspace, func(c *replay.Config) { c.Expect.Hashes["seed"] = "22" })
		i.ask(chat(true, "one"))
		finish(i, replay.Recorded)
		Expect(v.count).To(Equal(2), "rows of a database are served, so that nothing of it can be kept")

		_, err := replay.Open(func() replay.Config {
			c := config(dir, replay.Extend)
			c.Drift = map[cassette.Class]replay.Action{cassette.ClassInputFiles: replay.Fail}
			return c
		}())
		Expect(replay.CauseOf(err)).To(Equal(replay.Drift))
	})

	It("drops what is no longer asked for", func() {
		i := begin(replay.Record)
		i.ask(chat(true, "one"))
		i.ask(chat(true, "two"))
		finish(i, replay.Recorded)
		before := content()
		i = begin(replay.Extend, func(c *replay.Config) { c.AllowLeftover = true })
		i.ask(chat(true, "one"))
		finish(i, replay.Fresh)
		Expect(content()).To(Equal(before))
		i = begin(replay.Extend)
		i.ask(chat(true, "one"))
		finish(i, replay.Extended)
		Expect(v.count).To(Equal(2))
		Expect(strings.HasPrefix(interactions(before), interactions(content()))).To(BeTrue())
	})

	It("does about each class what it is told", func() {
		i := begin(replay.Record)
		i.ask(chat(true, "one"))
		finish(i, replay.Recorded)
		stored := strings.Replace(chat(true, "one"), `"stream":true`, `"stream":true,"store":true`, 1)
		i = begin(replay.Extend)
		i.ask(stored)
		Expect(finish(i, replay.Fresh).Drift).To(HaveLen(1), "transport is served unless it is told otherwise")
		i = begin(replay.Extend, func(c *replay.Config) {
			c.Drift = map[cassette.Class]replay.Action{cassette.ClassUserInput: replay.Fail, cassette.ClassSystemPrompt: replay.Serve}
		})
		_, err := i.send(chat(true, "two"))
		Expect(err).To(MatchError(ContainSubstring("user-input")))
		_, err = i.Close(false)
		Expect(replay.CauseOf(err)).To(Equal(replay.Drift))
		Expect(v.count).To(Equal(1))
		i = begin(replay.Extend, func(c *replay.Config) {
			c.Drift = map[cassette.Class]replay.Action{cassette.ClassTransport: replay.GoLive}
		})
		i.ask(stored)
		finish(i, replay.Recorded)
		Expect(v.count).To(Equal(2))

		c := config(dir, replay.Replay)
		c.Drift = map[cassette.Class]replay.Action{cassette.ClassTransport: replay.GoLive}
		_, err = replay.Open(c)
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(failure.Hints(err)).NotTo(BeEmpty())
	})

	It("holds with calls side by side", func() {
		const calls = 12
		result := "old"
		var mu sync.Mutex
		read := function{spec: tool.Spec{Name: "read", Effect: tool.Read, Scope: tool.Workspace}, run: func(c tool.Call) (tool.Output, error) {
			mu.Lock()
			defer mu.Unlock()
			return tool.Output{Result: conversation.JSON(`"` + result + `"`)}, nil
		}}
		all := func(i *item) {
			GinkgoHelper()
			var wg sync.WaitGroup
			errs := make([]error, calls)
			for n := range calls {
				wg.Go(func() { _, errs[n] = use(i, read, n+1, `{"n":`+strings.Repeat("1", n+1)+`}`) })
			}
			wg.Wait()
			Expect(errors.Join(errs...)).NotTo(HaveOccurred())
		}
		i := begin(replay.Record)
		i.ask(chat(true, "one"))
		all(i)
		finish(i, replay.Recorded)
		result = "new"
		i = begin(replay.Extend)
		i.ask(chat(true, "one"))
		all(i)
		finish(i, replay.Extended)
		Expect(strings.Count(content(), `{"output":"new"}`)).To(Equal(calls))
		i = begin(replay.Replay)
		i.ask(chat(true, "one"))
		all(i)
		finish(i, replay.Fresh)
	})

	It("gives the pauses of a replay no time, and waits out those behind the first miss", func() {
		waits := &noWait{}
		i := begin(replay.Record)
		i.ask(chat(true, "one"))
		finish(i, replay.Recorded)
		i = begin(replay.Extend, func(c *replay.Config) { c.Clock = waits })
		Expect(i.Waiting().Sleep(context.Background(), time.Second)).To(Succeed())
		Expect(waits.slept).To(BeZero())
		i.ask(chat(true, "one"))
		i.ask(chat(true, "two"))
		Expect(i.Waiting().Sleep(context.Background(), time.Second)).To(Succeed())
		Expect(waits.slept).To(Equal(time.Second))
		Expect(i.Clock().Now().Sub(start)).To(Equal(2*time.Second + 2*412*time.Millisecond))
		finish(i, replay.Extended)
	})
})

var _ = Describe("rules of normalisation", func() {
	dated := func(day, prompt string) string {
		return `{"model":"m","stream":false,"messages":[{"role":"system","content":"Today is ` + day + `. ` + prompt + `"},{"role":"user","content":"one"}]}`
	}
	normalize := func(pattern string) func(*replay.Config) {
		return func(c *replay.Config) {
			for _, in := range []cassette.Part{cassette.PartSystem, cassette.PartTool} {
				rule, err := cassette.NewNormalization(in, pattern, "today")
				Expect(err).NotTo(HaveOccurred())
				c.Normalize = append(c.Normalize, rule)
			}
		}
	}
	const date = `\d{4}-\d\d-\d\d`

	It("need no new recording, miss what is edited beside them, and are no part of what is stored", func() {
		dir, v := GinkgoT().TempDir(), newVendor()
		run := func(mode replay.Mode, day, prompt string, change ...func(*replay.Config)) (*item, error) {
			GinkgoHelper()
			c := config(dir, mode)
			for _, f := range change {
				f(&c)
			}
			i := open(c, http.DefaultTransport, v.URL)
			resp, err := i.send(dated(day, prompt))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				Expect(err).NotTo(HaveOccurred())
				Expect(resp.Body.Close()).To(Succeed())
				now := function{spec: tool.Spec{Name: "now", Effect: tool.Read, Scope: tool.Workspace}, run: func(tool.Call) (tool.Output, error) {
					return tool.Output{Result: conversation.JSON(`"` + day + `"`)}, nil
				}}
				var out tool.Output
				if out, err = i.Tool(now).Run(context.Background(), call(1, "{}")); err == nil {
					Expect(out.Result).To(Equal(conversation.JSON(`"`+day+`"`)), "what a tool gives now is what the model sees now")
				}
			}
			return i, err
		}
		// Recorded without rules, replayed with one that came later.
		i, err := run(replay.Record, "2026-11-30", "You answer.")
		Expect(err).NotTo(HaveOccurred())
		_, err = i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		before, err := os.ReadFile(filepath.Join(dir, "c.yaml"))
		Expect(err).NotTo(HaveOccurred())
		_, err = run(replay.Replay, "2027-01-04", "You answer.")
		Expect(err).To(MatchError(ContainSubstring("system-prompt")))
		i, err = run(replay.Replay, "2027-01-04", "You answer.", normalize(date))
		Expect(err).NotTo(HaveOccurred())
		outcome, err := i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome).To(Equal(replay.Outcome{State: replay.Fresh}))

		// A prompt edit outside of the expression misses, and what is shown of it is the edit.
		_, err = run(replay.Replay, "2027-01-04", "You answer briefly.", normalize(date))
		Expect(err).To(MatchError(And(ContainSubstring("system-prompt at messages[0].content"), ContainSubstring("You answer briefly."), Not(ContainSubstring("2027-01-04")))))

		// Recorded with a rule, the file is the same but for the rule's name, and is replayed without it where nothing differs.
		v.count = 0
		i, err = run(replay.Record, "2026-11-30", "You answer.", normalize(date))
		Expect(err).NotTo(HaveOccurred())
		_, err = i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		after, err := os.ReadFile(filepath.Join(dir, "c.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(after)).To(ContainSubstring("  - normalize:today\n"))
		Expect(strings.Replace(string(after), "  - normalize:today\n", "", 1)).To(Equal(string(before)))
		Expect(string(after)).To(And(ContainSubstring("Today is 2026-11-30"), Not(ContainSubstring("{{echoeval"))))
		i, err = run(replay.Replay, "2026-11-30", "You answer.")
		Expect(err).NotTo(HaveOccurred())
		_, err = i.Close(true)
		Expect(err).NotTo(HaveOccurred())

		// Extending serves what the rules make equal and keeps it as it was recorded.
		i, err = run(replay.Extend, "2027-01-04", "You answer.", normalize(date))
		Expect(err).NotTo(HaveOccurred())
		i.ask(chat(false, "more"))
		outcome, err = i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.State).To(Equal(replay.Extended))
		extended, err := os.ReadFile(filepath.Join(dir, "c.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(extended)).To(And(ContainSubstring("Today is 2026-11-30"), Not(ContainSubstring("Today is 2027-01-04")), ContainSubstring(`"more"`)))
	})
})

var _ = Describe("what a run fetches once", func() {
	It("is recorded, served to all items, and grows without losing what others need", func() {
		dir, v := GinkgoT().TempDir(), newVendor()
		begin := func(mode replay.Mode) *item {
			GinkgoHelper()
			c := config(dir, mode)
			c.Path, c.Display = filepath.Join(dir, cassette.SetupFile), "fixtures/"+cassette.SetupFile
			s, err := replay.OpenSetup(c)
			Expect(err).NotTo(HaveOccurred())
			return &item{s, nil, s.RoundTripper(http.DefaultTransport), v.URL + "/prompts"}
		}
		_, err := replay.OpenSetup(config(dir, replay.Replay))
		Expect(errors.Is(err, fs.ErrNotExist)).To(BeTrue())

		i := begin(replay.Record)
		i.ask(chat(false, "a"))
		i.ask(chat(false, "b"))
		_, err = i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		f, err := cassette.Load(filepath.Join(dir, cassette.SetupFile), "f")
		Expect(err).NotTo(HaveOccurred())
		Expect([]string{f.Header.Dataset, f.Header.Item, f.Header.Provider}).To(Equal([]string{"d", "", ""}))

		i = begin(replay.Replay)
		i.ask(chat(false, "b"))
		outcome, err := i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.State).To(Equal(replay.Fresh))

		i = begin(replay.Extend)
		i.ask(chat(false, "c"))
		i.ask(chat(false, "b"))
		outcome, err = i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.State).To(Equal(replay.Extended))
		data, err := os.ReadFile(filepath.Join(dir, cassette.SetupFile))
		Expect(err).NotTo(HaveOccurred())
		for _, word := range []string{"a", "b", "c"} {
			Expect(bytes.Count(data, []byte(`"content":"`+word+`"`))).To(Equal(1), word)
		}
	})
})
