package replay_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/replay"
)

// question is what a judge is asked.
func question(rubric, answer string) string {
	return fmt.Sprintf(`{"model":"j","stream":false,"messages":[{"role":"system","content":%q},{"role":"user","content":%q}]}`, rubric, answer)
}

var _ = Describe("judges", func() {
	var (
		dir string
		v   *vendor
	)
	BeforeEach(func() { dir, v = GinkgoT().TempDir(), newVendor() })

	file := func() *cassette.File {
		GinkgoHelper()
		f, err := cassette.Load(filepath.Join(dir, "c.yaml"), "c.yaml")
		Expect(err).NotTo(HaveOccurred())
		return f
	}
	begin := func(mode replay.Mode, change ...func(*replay.Config)) *item {
		GinkgoHelper()
		c := config(dir, mode)
		for _, f := range change {
			f(&c)
		}
		var live http.RoundTripper
		if mode != replay.Replay {
			live = http.DefaultTransport
		}
		return open(c, live, v.URL)
	}
	// put asks judge j; live is whether the network answered.
	put := func(i *item, body string) (answer string, live bool, err error) {
		err = i.Ask("j", http.DefaultTransport, func(way replay.Way) error {
			resp, err := i.sendBy(way, body)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			data, err := io.ReadAll(resp.Body)
			answer, live = string(data), way.Live()
			return err
		})
		return answer, live, err
	}
	got := func(i *item, body string) string {
		GinkgoHelper()
		answer, _, err := put(i, body)
		Expect(err).NotTo(HaveOccurred())
		return answer
	}
	closed := func(i *item, state replay.State) {
		GinkgoHelper()
		outcome, err := i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.State).To(Equal(state))
	}
	record := func(rubrics ...string) {
		GinkgoHelper()
		i := begin(replay.Record)
		i.ask(chat(false, "hi"))
		for _, r := range rubrics {
			got(i, question(r, "hi"))
		}
		closed(i, replay.Recorded)
	}

	It("are recorded behind the agent, and are no part of its trace", func() {
		i := begin(replay.Record)
		i.ask(chat(false, "hi"))
		first := got(i, question("kind", "hi"))
		second := got(i, question("kind", "hi"))
		Expect(first).NotTo(Equal(second), "votes are asked each for itself")
		Expect(i.exchanges()).To(HaveLen(1))
		closed(i, replay.Recorded)
		f := file()
		Expect(f.Interactions).To(HaveLen(3))
		Expect([]string{f.Interactions[0].Extra.Judge, f.Interactions[1].Extra.Judge, f.Interactions[2].Extra.Judge}).To(Equal([]string{"", "j", "j"}))
		Expect(f.Answer()).To(BeEmpty())

		asked := v.count
		i = begin(replay.Replay)
		i.ask(chat(false, "hi"))
		Expect(i.Settled(true)).To(Succeed())
		Expect(got(i, question("kind", "hi"))).To(Equal(first))
		answer, live, err := put(i, question("kind", "hi"))
		Expect(err).NotTo(HaveOccurred())
		Expect(answer).To(Equal(second))
		Expect(live).To(BeFalse())
		Expect(i.exchanges()).To(HaveLen(1))
		closed(i, replay.Fresh)
		Expect(v.count).To(Equal(asked))
	})

	It("miss by themselves: the agent's part fits, and the number is that in the file", func() {
		record("kind", "brief")
		i := begin(replay.Replay)
		i.ask(chat(false, "hi"))
		Expect(i.Settled(true)).To(Succeed())
		got(i, question("kind", "hi"))
		_, _, err := put(i, question("brief and kind", "hi"))
		var miss *replay.Miss
		Expect(errors.As(err, &miss)).To(BeTrue())
		Expect(miss.Judge).To(BeTrue())
		Expect(miss.Class).To(Equal(cassette.ClassSystemPrompt))
		Expect(miss.Path).To(Equal("judge.messages[0].content"))
		Expect(miss.Nearest).To(Equal(3))
		Expect(miss.Error()).To(HavePrefix("request 2 of a check (POST "))
		outcome, err := i.Close(true)
		Expect(replay.CauseOf(err)).To(Equal(replay.Drift))
		Expect(outcome.State).To(Equal(replay.Stale))
		Expect(outcome.Drift).To(HaveLen(1))
		Expect(outcome.LeftOver).To(BeEmpty())
	})

	It("say that nobody asked one before", func() {
		record()
		i := begin(replay.Replay)
		i.ask(chat(false, "hi"))
		_, _, err := put(i, question("kind", "hi"))
		Expect(err).To(MatchError(ContainSubstring("no check asked when it was recorded")))
		_, err = i.Close(true)
		Expect(err).To(HaveOccurred())
	})

	It("are left over where nobody asks them any more, unless they may be", func() {
		record("kind", "brief")
		i := begin(replay.Replay)
		i.ask(chat(false, "hi"))
		got(i, question("kind", "hi"))
		outcome, err := i.Close(true)
		Expect(replay.CauseOf(err)).To(Equal(replay.LeftOver))
		Expect(outcome.LeftOver).To(HaveLen(1))
		Expect(outcome.LeftOver[0].Number).To(Equal(3))

		i = begin(replay.Replay)
		i.ask(chat(false, "hi"))
		_, err = i.Close(true)
		Expect(err).To(MatchError(ContainSubstring("2 recorded interactions were not used")))

		i = begin(replay.Replay, func(c *replay.Config) { c.AllowLeftover = true })
		i.ask(chat(false, "hi"))
		closed(i, replay.Fresh)
	})

	It("are never left over where the agent's part does not fit", func() {
		record("kind")
		i := begin(replay.Replay)
		_, err := i.send(chat(false, "other"))
		Expect(err).To(HaveOccurred())
		Expect(i.Settled(false)).NotTo(Succeed())
		outcome, err := i.Close(false)
		Expect(replay.CauseOf(err)).To(Equal(replay.Drift))
		Expect(outcome.Miss.Judge).To(BeFalse())
	})

	It("are asked again one by one when they are extended", func() {
		record("kind", "brief", "warm")
		before := file()
		asked := v.count
		i := begin(replay.Extend)
		i.ask(chat(false, "hi"))
		Expect(got(i, question("kind", "hi"))).To(Equal(before.Interactions[1].Response.Body))
		_, live, err := put(i, question("short", "hi"))
		Expect(err).NotTo(HaveOccurred())
		Expect(live).To(BeTrue())
		answer, live, err := put(i, question("warm", "hi"))
		Expect(err).NotTo(HaveOccurred())
		Expect(live).To(BeFalse(), "it does not depend on the one before")
		Expect(answer).To(Equal(before.Interactions[3].Response.Body))
		Expect(v.count).To(Equal(asked + 1))
		closed(i, replay.Extended)
		after := file()
		Expect(after.Interactions).To(HaveLen(4))
		Expect(after.Interactions[0]).To(Equal(before.Interactions[0]))
		Expect(after.Interactions[1]).To(Equal(before.Interactions[1]))
		Expect(after.Interactions[2].Request.Body).To(ContainSubstring("short"))
		Expect(after.Interactions[3]).To(Equal(before.Interactions[3]))

		data, err := os.ReadFile(filepath.Join(dir, "c.yaml"))
		Expect(err).NotTo(HaveOccurred())
		i = begin(replay.Extend)
		i.ask(chat(false, "hi"))
		for _, r := range []string{"kind", "short", "warm"} {
			got(i, question(r, "hi"))
		}
		closed(i, replay.Fresh)
		Expect(os.ReadFile(filepath.Join(dir, "c.yaml"))).To(Equal(data))
	})

	It("keep their answers when the agent is recorded again and says the same", func() {
		record("kind")
		before := file()
		i := begin(replay.Extend)
		i.ask(chat(false, "otherwise asked"))
		Expect(i.Live()).To(BeTrue())
		answer, live, err := put(i, question("kind", "hi"))
		Expect(err).NotTo(HaveOccurred())
		Expect(live).To(BeFalse())
		Expect(answer).To(Equal(before.Interactions[1].Response.Body))
		closed(i, replay.Recorded)
		Expect(file().Interactions[1]).To(Equal(before.Interactions[1]))
	})

	It("leave nothing of a question without an answer, and take nothing away", func() {
		down := errors.New("down")
		i := begin(replay.Record)
		i.ask(chat(false, "hi"))
		got(i, question("kind", "hi"))
		Expect(i.Ask("j", http.DefaultTransport, func(way replay.Way) error {
			resp, err := i.sendBy(way, question("brief", "hi"))
			Expect(err).NotTo(HaveOccurred())
			_ = resp.Body // nobody reads it
			return down
		})).To(MatchError(down))
		closed(i, replay.Recorded)
		Expect(file().Interactions).To(HaveLen(2), "the agent's part and what was answered are kept")

		record("kind", "brief", "warm")
		data, err := os.ReadFile(filepath.Join(dir, "c.yaml"))
		Expect(err).NotTo(HaveOccurred())
		i = begin(replay.Extend)
		i.ask(chat(false, "hi"))
		got(i, question("kind", "hi"))
		Expect(i.Ask("j", failing{}, func(way replay.Way) error {
			_, err := i.sendBy(way, question("short", "hi"))
			return err
		})).NotTo(Succeed())
		closed(i, replay.Fresh)
		Expect(os.ReadFile(filepath.Join(dir, "c.yaml"))).To(Equal(data))

		i = begin(replay.Extend)
		i.ask(chat(false, "hi"))
		got(i, question("new", "hi"))
		Expect(i.Ask("j", failing{}, func(way replay.Way) error {
			_, err := i.sendBy(way, question("short", "hi"))
			return err
		})).NotTo(Succeed())
		closed(i, replay.Extended)
		var rubrics []string
		for _, x := range file().Interactions[1:] {
			for _, r := range []string{"kind", "brief", "warm", "new", "short"} {
				if strings.Contains(x.Request.Body, `"`+r+`"`) {
					rubrics = append(rubrics, r)
				}
			}
		}
		Expect(rubrics).To(Equal([]string{"new", "kind", "brief", "warm"}), "what was not asked may still be needed")
	})

	It("are served across the drift that is served, and asked again past the drift that fails where that is wanted", func() {
		record("kind")
		serve := func(c *replay.Config) {
			c.Drift = map[cassette.Class]replay.Action{cassette.ClassSystemPrompt: replay.Warn}
		}
		i := begin(replay.Replay, serve)
		i.ask(chat(false, "hi"))
		got(i, question("brief", "hi"))
		outcome, err := i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(outcome.Drift).To(HaveLen(1))
		Expect(outcome.Drift[0].Miss.Path).To(Equal("judge.messages[0].content"))

		fails := func(c *replay.Config) {
			c.Drift = map[cassette.Class]replay.Action{cassette.ClassSystemPrompt: replay.Fail}
		}
		i = begin(replay.Extend, fails)
		i.ask(chat(false, "hi"))
		_, _, err = put(i, question("brief", "hi"))
		Expect(replay.CauseOf(err)).To(Equal(replay.Drift))
		_, err = i.Close(true)
		Expect(err).To(HaveOccurred())
		i = begin(replay.Extend, fails, func(c *replay.Config) { c.Rejudge = true })
		i.ask(chat(false, "hi"))
		got(i, question("brief", "hi"))
		closed(i, replay.Extended)
	})

	It("keep nothing in live mode", func() {
		i := begin(replay.Live)
		i.ask(chat(false, "hi"))
		_, live, err := put(i, question("kind", "hi"))
		Expect(err).NotTo(HaveOccurred())
		Expect(live).To(BeTrue())
		_, err = i.Close(true)
		Expect(err).NotTo(HaveOccurred())
		Expect(filepath.Join(dir, "c.yaml")).NotTo(BeAnExistingFile())
	})

	It("are asked anew where there is no cassette to extend", func() {
		i := begin(replay.Extend)
		i.ask(chat(false, "hi"))
		got(i, question("kind", "hi"))
		closed(i, replay.Recorded)
		Expect(file().Interactions).To(HaveLen(2))
	})
})
