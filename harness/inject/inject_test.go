package inject_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/agent"
	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/ident"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/inject"
	"github.com/echoeval/echoeval/harness/invariant"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/providers/anthropic"
	"github.com/echoeval/echoeval/providers/bedrock"
	"github.com/echoeval/echoeval/providers/gemini"
	"github.com/echoeval/echoeval/providers/openai"
)

func TestInject(t *testing.T) { suite.Run(t, "inject") }

// way is one way to ask a model: a wire format, streamed or in one piece.
type way struct {
	name     string
	blocking bool
	model    func(base string, rt http.RoundTripper) (llm.Model, error)
}

// ways are all formats that are known.
func ways() []way {
	chat := func(api openai.API) func(string, http.RoundTripper) (llm.Model, error) {
		return func(base string, rt http.RoundTripper) (llm.Model, error) {
			return openai.New(openai.Config{BaseURL: base + "/v1", Model: "gpt-4o-mini", API: api}, rt)
		}
	}
	formats := []way{
		{name: "chat completions", model: chat(openai.Chat)},
		{name: "responses", model: chat(openai.Responses)},
		{name: "messages", model: func(base string, rt http.RoundTripper) (llm.Model, error) {
			return anthropic.New(anthropic.Config{BaseURL: base, Model: "claude-haiku-4-5"}, rt)
		}},
		{name: "gemini", model: func(base string, rt http.RoundTripper) (llm.Model, error) {
			return gemini.New(gemini.Config{BaseURL: base, Model: "gemini-2.5-flash"}, rt)
		}},
		{name: "converse", model: func(base string, rt http.RoundTripper) (llm.Model, error) {
			return bedrock.New(bedrock.Config{BaseURL: base, Region: "us-east-1", Model: "amazon.nova-lite-v1:0"}, rt)
		}},
	}
	var out []way
	for _, f := range formats {
		out = append(out, f, way{f.name + " in one piece", true, f.model})
	}
	return out
}

const script = `
version: 1
name: faults
default:
  steps:
    - calls: [{name: look, args: {at: a}}, {name: look, args: {at: "b\u00fc"}}]
    - calls: [{name: tick, args: {all: true}}]
    - text: All of it is done now.
`

// world is the agent's, as it was recorded.
type world struct {
	way
	base     string
	file     *cassette.File
	recorded inject.Run
}

// fragile says in what an agent differs from the good one. What is nil is as it should be.
type fragile struct {
	retries bool // it has none
	body    func(io.ReadCloser) io.ReadCloser
	model   func(llm.Model) llm.Model
	tool    func(tool.Tool) tool.Tool
}

// look is a tool of the workspace, tick one outside of it.
type testTool struct{ spec tool.Spec }

func (t testTool) Spec() tool.Spec { return t.spec }
func (t testTool) Run(_ context.Context, call tool.Call) (tool.Output, error) {
	return tool.Text(t.spec.Name + " " + string(call.Arguments)), nil
}

func tools() []tool.Tool {
	return []tool.Tool{
		testTool{tool.Spec{Name: "look", Description: "looks", Parameters: `{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}`, Effect: tool.Read, Scope: tool.Workspace}},
		testTool{tool.Spec{Name: "tick", Description: "ticks", Parameters: `{"type":"object","properties":{"all":{"type":"boolean"}}}`, Effect: tool.Write, Scope: tool.External}},
	}
}

// run runs the agent over a session; with a variant over that.
func (w *world) run(session *replay.Session, live http.RoundTripper, v *inject.Variant, f fragile) inject.Run {
	GinkgoHelper()
	rt := session.RoundTripper(live)
	var list []tool.Tool
	for _, t := range tools() {
		inner := session.Tool(t)
		if v != nil {
			inner = v.Failing(v.Tool(inner, t), session.Clock())
		}
		if f.tool != nil {
			inner = f.tool(inner)
		}
		list = append(list, inner)
	}
	retry := func(next http.RoundTripper) http.RoundTripper {
		if f.body != nil {
			next = withBody{next, f.body}
		}
		if f.retries {
			return next
		}
		return transport.Retry(transport.RetryConfig{Clock: session.Waiting()}, next)
	}
	if v != nil {
		rt = v.Transport(retry, rt, false)
	} else {
		rt = retry(rt)
	}
	start, err := conversation.New(conversation.Hidden{}).Append()
	Expect(err).NotTo(HaveOccurred())
	target := experiment.AgentTarget{
		Config: agent.Config{Name: "tester", Task: agent.Task{Description: "Do it all."}, MaxIterations: 6},
		Model: func(rt http.RoundTripper) (llm.Model, error) {
			m, err := w.model(w.base, rt)
			if err == nil && f.model != nil {
				m = f.model(m)
			}
			return m, err
		},
	}
	out := target.Run(GinkgoT().Context(), experiment.Case{
		Start: start, Clock: session.Clock(), IDs: ident.Source{Seed: 1, Item: "x", Repeat: 1}, Transport: rt, Tools: list, Blocking: w.blocking,
		Next: func(_ context.Context, turn int, _ string) ([]conversation.Message, bool, error) {
			return []conversation.Message{conversation.User("u", conversation.Text{Text: "Go."})}, turn == 1, nil
		},
	})
	got := inject.Run{Response: out.Response, Trace: out.Trace, Err: out.Err}
	var problems strict.Problems
	for _, broken := range invariant.Select(nil, nil, &problems).Evaluate(out.Trace).Violations {
		if broken.Severity == eval.SeverityError && invariant.BlameOf(broken.Name) != invariant.Model {
			got.Violations = append(got.Violations, broken)
		}
	}
	return got
}

// survive runs the agent over a variant and judges it.
func (w *world) survive(v *inject.Variant, f fragile) (inject.Run, eval.FaultResult) {
	GinkgoHelper()
	session, err := replay.Open(replay.Config{Mode: replay.Replay, File: v.File, Display: "faulty.yaml"})
	Expect(err).NotTo(HaveOccurred())
	began := time.Now()
	got := w.run(session, nil, v, f)
	Expect(time.Since(began)).To(BeNumerically("<", 2*time.Second), "waits are on the item's clock")
	return got, v.Judge(w.recorded, got)
}

// variants are those of a fault; there must be some.
func (w *world) variants(f inject.Fault) []*inject.Variant {
	GinkgoHelper()
	list, none := inject.Derive(f, w.file, nil)
	Expect(none).To(BeEmpty())
	Expect(list).NotTo(BeEmpty())
	return list
}

// only is the one variant of a plan's only entry.
func (w *world) only(plan string) *inject.Variant {
	GinkgoHelper()
	p, err := inject.Load("plan.yaml", []byte("version: 1\nfaults: ["+plan+"]\n"))
	Expect(err).NotTo(HaveOccurred())
	list := w.variants(p.Faults[0])
	Expect(list).To(HaveLen(1))
	return list[0]
}

// worlds are recorded once a way.
var worlds = sync.OnceValue(func() map[string]*world { return map[string]*world{} })

func recorded(of way) *world {
	GinkgoHelper()
	if w := worlds()[of.name]; w != nil {
		return w
	}
	s, err := emulator.Load("script.yaml", []byte(script))
	Expect(err).NotTo(HaveOccurred())
	running, err := emulator.Start(context.Background(), s, emulator.Options{})
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(running.Close()).To(Succeed()) }()
	w := &world{way: of, base: running.URL}
	path := filepath.Join(GinkgoT().TempDir(), "recorded.yaml")
	session, err := replay.Open(replay.Config{Mode: replay.Record, Path: path, Display: "recorded.yaml", Clock: clock.NewVirtual(time.Date(2027, 1, 4, 8, 0, 0, 0, time.UTC))})
	Expect(err).NotTo(HaveOccurred())
	w.recorded = w.run(session, keyed{http.DefaultTransport}, nil, fragile{})
	Expect(w.recorded.Err).NotTo(HaveOccurred())
	Expect(w.recorded.Response.Text).To(Equal("All of it is done now."))
	Expect(w.recorded.Response.ToolCalls).To(Equal(3))
	_, err = session.Close(true)
	Expect(err).NotTo(HaveOccurred())
	w.file, err = cassette.Load(path, "recorded.yaml")
	Expect(err).NotTo(HaveOccurred())
	worlds()[of.name] = w
	return w
}

// keyed puts keys where vendors look for them.
type keyed struct{ next http.RoundTripper }

func (k keyed) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
		req.Header.Set(name, "Bearer any")
	}
	return k.next.RoundTrip(req)
}

type withBody struct {
	next http.RoundTripper
	body func(io.ReadCloser) io.ReadCloser
}

func (w withBody) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err == nil {
		resp.Body = w.body(resp.Body)
	}
	return resp, err
}

// events is a model whose replies were changed on the way.
type events func(iter.Seq2[llm.Event, error]) iter.Seq2[llm.Event, error]

func (e events) wrap(m llm.Model) llm.Model { return changed{m, e} }

type changed struct {
	llm.Model
	change events
}

func (c changed) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return c.change(c.Model.Stream(ctx, req))
}

// mapped changes each event alone.
func mapped(change func(llm.Event) llm.Event) events {
	return func(from iter.Seq2[llm.Event, error]) iter.Seq2[llm.Event, error] {
		return func(yield func(llm.Event, error) bool) {
			for e, err := range from {
				if err == nil {
					e = change(e)
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// neverFails takes what came before an error for the whole.
func neverFails(from iter.Seq2[llm.Event, error]) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for e, err := range from {
			var miss *replay.Miss
			if err != nil && !errors.As(err, &miss) {
				yield(llm.Finish{Stop: llm.StopEnd}, nil)
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// piecewise loses the first byte of a character whose others come later.
type piecewise struct{ io.ReadCloser }

func (p piecewise) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	if n > 0 && b[n-1] == 0xF0 {
		b[n-1] = '?'
	}
	return n, err
}

// forgetful leaves the results out of what it asks.
type forgetful struct{ llm.Model }

func (f forgetful) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	req.Messages = slices.DeleteFunc(slices.Clone(req.Messages), func(m conversation.Message) bool { return m.Role() == conversation.RoleTool })
	return f.Model.Stream(ctx, req)
}

// hides takes the error off what a tool gives.
type hides struct{ tool.Tool }

func (h hides) Run(ctx context.Context, call tool.Call) (tool.Output, error) {
	out, err := h.Tool.Run(ctx, call)
	if err != nil {
		out = tool.Text("done")
	}
	out.IsError = false
	return out, nil
}

// frailties give for each kind of fault an agent that cannot bear it.
var frailties = map[inject.Kind]fragile{
	inject.RateLimit:   {retries: true},
	inject.ServerError: {retries: true},
	inject.Overloaded:  {retries: true},
	inject.Timeout:     {retries: true},
	inject.CutStream:   {model: events(neverFails).wrap},
	inject.SplitRune:   {body: func(b io.ReadCloser) io.ReadCloser { return piecewise{b} }},
	inject.MalformedArguments: {model: events(func(from iter.Seq2[llm.Event, error]) iter.Seq2[llm.Event, error] {
		return func(yield func(llm.Event, error) bool) { // it guesses what it cannot read
			arguments := map[int]string{}
			for e, err := range from {
				switch e := e.(type) {
				case llm.CallDelta:
					arguments[e.Index] += e.Arguments
					continue
				case llm.Finish:
					for _, index := range slices.Sorted(maps.Keys(arguments)) {
						text := arguments[index]
						if !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") {
							text = `{"at":"guessed"}`
						}
						if !yield(llm.CallDelta{Index: index, Arguments: text}, nil) {
							return
						}
					}
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}).wrap},
	inject.UnknownTool: {model: mapped(func(e llm.Event) llm.Event {
		if start, ok := e.(llm.CallStart); ok {
			start.Name = strings.TrimSuffix(start.Name, "_2") // whatever is near
			return start
		}
		return e
	}).wrap},
	inject.ToolError:   {tool: func(t tool.Tool) tool.Tool { return hides{t} }},
	inject.ToolTimeout: {tool: func(t tool.Tool) tool.Tool { return hides{t} }},
	inject.DuplicateCallID: {model: func(m llm.Model) llm.Model {
		last, repeated := "", false // it goes by the id that the vendor gave
		return mapped(func(e llm.Event) llm.Event {
			switch e := e.(type) {
			case llm.Warning:
				repeated = repeated || e.Code == "call-id-repeated"
			case llm.CallStart:
				if repeated {
					e.ID, repeated = last, false
				}
				last = e.ID
				return e
			}
			return e
		}).wrap(m)
	}},
	inject.EmptyAnswer: {model: events(func(from iter.Seq2[llm.Event, error]) iter.Seq2[llm.Event, error] {
		return func(yield func(llm.Event, error) bool) { // it makes something up
			said := false
			for e, err := range from {
				switch e := e.(type) {
				case llm.TextDelta:
					said = said || e.Text != ""
				case llm.CallStart:
					said = true
				case llm.Finish:
					if !said && !yield(llm.TextDelta{Text: "Done."}, nil) {
						return
					}
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}).wrap},
	inject.Length:  {model: mapped(alwaysEnds).wrap},
	inject.Refusal: {model: mapped(alwaysEnds).wrap},
}

func alwaysEnds(e llm.Event) llm.Event {
	if finish, ok := e.(llm.Finish); ok {
		finish.Stop = llm.StopEnd
		return finish
	}
	return e
}

var _ = Describe("faults", func() {
	for _, of := range ways() {
		Context("of "+of.name, func() {
			var w *world
			BeforeEach(func() { w = recorded(of) })

			It("are survived by the agent, each of the built-in plan", func() {
				kinds := map[inject.Kind]bool{}
				for _, f := range inject.Builtin().Faults {
					list, none := inject.Derive(f, w.file, nil)
					if of.blocking && f.Kind == inject.CutStream {
						Expect(none).To(Equal("no recorded reply has more than one frame"))
						continue
					}
					Expect(list).To(HaveLen(1), "%s: %s", f.Name, none)
					_, result := w.survive(list[0], fragile{})
					Expect(result.Status).To(Equal(eval.FaultSurvived), "%s: %s", f.Name, result.Reason)
					kinds[f.Kind] = true
				}
				Expect(len(kinds)).To(BeNumerically(">=", len(inject.Kinds())-1))
			})

			for _, kind := range inject.Kinds() {
				if of.blocking && kind == inject.CutStream {
					continue // there is one frame
				}
				It("are not survived by an agent that cannot bear "+string(kind), func() {
					options := "{}"
					if kind == inject.MalformedArguments || kind == inject.UnknownTool {
						options = "{tool: look}"
					}
					v := w.only(string(kind) + ": " + options)
					_, result := w.survive(v, frailties[kind])
					Expect(result.Status).To(Equal(eval.FaultBroke), "%s: %s", result.Ending, result.Reason)
					Expect(result.Reason).NotTo(BeEmpty())

					session, err := replay.Open(replay.Config{Mode: replay.Replay, File: w.file, Display: "recorded.yaml"})
					Expect(err).NotTo(HaveOccurred())
					without := w.run(session, nil, nil, frailties[kind])
					Expect(without.Err).NotTo(HaveOccurred())
					Expect(without.Response.Text).To(Equal(w.recorded.Response.Text), "without the fault it does well")
				})
			}

			It("hold a call that broke off behind its name, which is not run although the tool needs no arguments", func() {
				if strings.HasPrefix(of.name, "gemini") || of.name == "messages in one piece" || of.name == "converse in one piece" {
					_, none := inject.Derive(inject.Fault{Kind: inject.Length, Tool: "tick"}, w.file, nil)
					Expect(none).To(Equal("no recorded reply calls tick in a form that can break off"))
					return
				}
				got, result := w.survive(w.only("length: {tool: tick}"), fragile{})
				Expect(result.Status).To(Equal(eval.FaultSurvived), result.Reason)
				Expect(got.Response.ToolCalls).To(Equal(2))
				_, result = w.survive(w.only("length: {tool: tick}"), frailties[inject.Length])
				Expect(result.Status).To(Equal(eval.FaultBroke))
				Expect(result.Reason).To(Equal("executed a call that had broken off"))
			})

			It("are the same each time, and leave the recording as it is", func() {
				before := encoded(w.file)
				for _, f := range inject.Builtin().Faults {
					f.At = inject.Each
					first, none := inject.Derive(f, w.file, nil)
					again, _ := inject.Derive(f, w.file, nil)
					Expect(len(first) + len(none)).To(BeNumerically(">", 0))
					Expect(again).To(HaveLen(len(first)))
					for i := range first {
						Expect(encoded(again[i].File)).To(Equal(encoded(first[i].File)))
						Expect(encoded(first[i].File)).To(Or(Not(Equal(before)), WithTransform(func(string) bool { return f.OfTool() }, BeTrue())))
					}
				}
				Expect(encoded(w.file)).To(Equal(before))
			})

			It("are injected in every place that suits, or in the one that is named", func() {
				counts := map[string]int{}
				for _, kind := range inject.Kinds() {
					list, _ := inject.Derive(inject.Fault{Kind: kind, At: inject.Each, Times: 1}, w.file, nil)
					counts[string(kind)] = len(list)
					for _, v := range list {
						_, result := w.survive(v, fragile{})
						Expect(result.Status).To(Equal(eval.FaultSurvived), "%s, request %d: %s", kind, v.Request, result.Reason)
					}
				}
				Expect(counts).To(HaveKeyWithValue("rate_limit", 3))
				Expect(counts).To(HaveKeyWithValue("unknown_tool", 3))
				Expect(counts).To(HaveKeyWithValue("duplicate_call_id", 2))
				Expect(counts).To(HaveKeyWithValue("tool_timeout", 3))
				Expect(counts).To(HaveKeyWithValue("refusal", 1))
				second := w.only("tool_error: {at: 2}")
				Expect([]int{second.Request, second.Call}).To(Equal([]int{1, 2}))
				third := w.only("tool_error: {tool: tick}")
				Expect([]int{third.Request, third.Call}).To(Equal([]int{2, 3}))
				_, none := inject.Derive(inject.Fault{Kind: inject.ToolError, At: 4}, w.file, nil)
				Expect(none).To(Equal("there is no place 4, only 3"))
				_, none = inject.Derive(inject.Fault{Kind: inject.UnknownTool, Tool: "sing"}, w.file, nil)
				Expect(none).To(Equal("no recorded reply calls sing"))
			})

			It("are waited out on the item's clock", func() {
				got, result := w.survive(w.only("rate_limit: {retry_after: 20s, times: 2}"), fragile{})
				Expect(result.Status).To(Equal(eval.FaultSurvived), result.Reason)
				Expect(result.Retries).To(Equal(2))
				last := got.Trace.Events[len(got.Trace.Events)-1]
				Expect(last.AtMS).To(BeNumerically(">=", 40_000))
				got, result = w.survive(w.only("timeout: {after: 30s}"), fragile{})
				Expect(result.Status).To(Equal(eval.FaultSurvived), result.Reason)
				Expect(got.Trace.Events[len(got.Trace.Events)-1].AtMS).To(BeNumerically(">=", 30_000))
			})

			It("show a request that the vendor would refuse", func() {
				forgets := func(m llm.Model) llm.Model { return forgetful{m} }
				_, result := w.survive(w.only("unknown_tool: {tool: look}"), fragile{model: forgets})
				Expect(result.Status).To(Equal(eval.FaultBroke))
				Expect(result.Reason).To(HavePrefix("asked on in a way that the vendor refuses: "))
			})

			It("are too many for the retries that there are", func() {
				_, result := w.survive(w.only("server_error: {times: 3}"), fragile{})
				Expect(result.Status).To(Equal(eval.FaultBroke))
				Expect(result.Reason).To(HavePrefix("gave up: "))
				Expect(result.Ending).To(Equal("error"))
			})

			It("are not injected where nobody comes to them", func() {
				v := w.only("refusal: {}")
				result := v.Judge(w.recorded, w.recorded)
				Expect(result.Status).To(Equal(eval.FaultNotInjected))
			})
		})
	}

	It("do not depend on what the recording holds beside models", func() {
		_, none := inject.Derive(inject.Fault{Kind: inject.RateLimit}, &cassette.File{}, nil)
		Expect(none).To(Equal("no reply of a model is recorded in a format that is known"))
		w := recorded(ways()[0])
		_, none = inject.Derive(inject.Fault{Kind: inject.RateLimit}, w.file, func(int) bool { return false })
		Expect(none).NotTo(BeEmpty(), "those of a simulated user are not the agent's")
	})
})

func encoded(f *cassette.File) string {
	GinkgoHelper()
	data, err := cassette.Encode(f)
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}
