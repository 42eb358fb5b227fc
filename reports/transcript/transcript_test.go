package transcript_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/reports/transcript"
)

func TestTranscript(t *testing.T) { suite.Run(t, "transcript") }

func reply(ids ...string) trace.Event {
	var calls []conversation.Content
	for _, id := range ids {
		calls = append(calls, conversation.ToolCall{ID: id, Name: "t"})
	}
	return trace.Event{Reply: &trace.Reply{Message: conversation.Assistant("m", calls...)}}
}

func ran(id string) trace.Event { return trace.Event{Tool: &trace.ToolRun{CallID: id}} }

var _ = Describe("pairing", func() {
	It("gives each call of a reply its own run, whatever their order", func() {
		events := []trace.Event{reply("a", "b"), ran("b"), ran("a")}
		p := transcript.Pair(events)
		Expect(p.Of(0)("a")).To(BeIdenticalTo(&events[2]))
		Expect(p.Of(0)("b")).To(BeIdenticalTo(&events[1]))
		Expect(p.Orphan(1) || p.Orphan(2)).To(BeFalse())
	})

	It("does not look beyond the next reply, so that an id used again means the later run", func() {
		events := []trace.Event{reply("a"), reply("a"), ran("a")}
		p := transcript.Pair(events)
		Expect(p.Of(0)("a")).To(BeNil())
		Expect(p.Of(1)("a")).To(BeIdenticalTo(&events[2]))
	})

	It("names the runs that answer no call", func() {
		events := []trace.Event{ran("early"), reply("a"), ran("a"), ran("a"), ran("other")}
		p := transcript.Pair(events)
		Expect(p.Orphan(0)).To(BeTrue())
		Expect(p.Orphan(2)).To(BeFalse())
		Expect(p.Orphan(3)).To(BeTrue())
		Expect(p.Orphan(4)).To(BeTrue())
		Expect(p.Of(1)("unknown")).To(BeNil())
	})
})
