package llm

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
)

// DefaultMaxIterations bounds the model steps of a run that sets no bound of its own.
const DefaultMaxIterations = 10

// maxParallelCalls bounds how many read calls of one reply run at the same time.
const maxParallelCalls = 8

// ToolSet is the tools that a model sees in one step. [tool.Registry] is one.
type ToolSet interface {
	Specs() []tool.Spec
	Lookup(name string) (tool.Tool, tool.Spec, bool)
	// Unknown is what a model is told that called a tool which is not there.
	Unknown(name string) string
	// Validate checks arguments, a JSON object, against the tool's schema; its error is written for the model to read.
	Validate(name string, arguments conversation.JSON) error
}

// Step is what one model step is made of.
type Step struct {
	System string
	Tools  ToolSet // nil for none
}

// Loop asks a model, runs the tools that it calls, gives it their results and asks again until it is done. The zero values of all fields but Model are usable. A Loop holds no state of a run and may be used for many at once.
type Loop struct {
	Model Model
	// Agent and Name are the agent's and the model's names for the trace.
	Agent, Name string
	// Prepare gives the system prompt and the visible tools of a model step, counted from 1. It is asked anew for each step.
	Prepare  func(ctx context.Context, step int) (Step, error)
	Settings Settings
	Blocking bool
	// MaxIterations bounds the model steps; 0 means [DefaultMaxIterations].
	MaxIterations int
	// CallsBefore is how many tool calls earlier runs of the same conversation made: [tool.Call.Seq] goes on from it.
	CallsBefore int
	// Clock is the run's clock; nil means the wall clock.
	Clock clock.Clock
	// Recorder takes the run's events; nil records nothing.
	Recorder *trace.Recorder
}

// StreamType is the type of a [StreamEvent], as hosts know it.
type StreamType string

// The types. Every stream ends with exactly one StreamDone or StreamError.
const (
	StreamText      StreamType = "text"
	StreamReasoning StreamType = "reasoning"
	StreamToolStart StreamType = "tool_start"
	StreamToolArgs  StreamType = "tool_args"
	StreamToolEnd   StreamType = "tool_end"
	StreamDone      StreamType = "eos"
	StreamError     StreamType = "error"
)

// StreamEvent is what a host sees of a run while it goes on. Consumers ignore types that they do not know.
type StreamEvent struct {
	Type StreamType
	// Text is the piece of StreamText, StreamReasoning and StreamToolArgs.
	Text     string
	CallID   string
	ToolName string
	// Response and Context are set by StreamDone, and by StreamError as far as the run came.
	Response *Response
	Context  conversation.Context
	Err      error
}

// The ways in which a run ends; see [Response.Stop].
const (
	RunEnd           = "end"
	RunMaxIterations = "max_iterations"
	RunPaused        = "paused"
	RunRefused       = "refused"
	RunLength        = "length"
	RunError         = "error"
)

// Response sums up a run.
type Response struct {
	// Text is the text of the last reply, trimmed.
	Text string
	// Verbose lists texts and tool calls of the whole run in order.
	Verbose []VerboseItem
	// Stop is one of end, max_iterations, paused, refused, length, error.
	Stop  string
	Usage conversation.Usage
	Steps int
	// ToolCalls counts the calls that were executed, Calls all that the model made.
	ToolCalls int
	Calls     int
	Retries   int
	// LatencyMS is the wait for models and tools, repeated requests and their pauses excluded. TTFTMS is the time to the first text, -1 where there was none.
	LatencyMS int64
	TTFTMS    int64
	// PendingToolResults says that the last thing in the context are results that no model has read.
	PendingToolResults bool
}

// VerboseItem is one text or one tool call of a run.
type VerboseItem struct {
	Text     string
	ToolName string
}

// Run goes on with the conversation. messageID becomes the id of every message that the run adds. The context that the last event carries has the input as its prefix.
//
// The sequence is used once and yields on the caller's goroutine. When the caller breaks off, the request under way is closed and no tool is started any more.
func (l *Loop) Run(ctx context.Context, input conversation.Context, messageID string) iter.Seq[StreamEvent] {
	return func(yield func(StreamEvent) bool) {
		r := &run{Loop: l, ctx: ctx, conv: input, id: messageID, yield: yield, hidden: tool.NewHidden(input.ToolContext())}
		r.response.TTFTMS = -1
		r.seq = l.CallsBefore
		r.clock = l.Clock
		if r.clock == nil {
			r.clock = clock.Wall{}
		}
		r.limit = l.MaxIterations
		if r.limit <= 0 {
			r.limit = DefaultMaxIterations
		}
		r.start(input)
		err := r.loop()
		if r.stopped {
			return
		}
		if err != nil {
			r.response.Stop = RunError
			yield(StreamEvent{Type: StreamError, Err: err, Response: &r.response, Context: r.conv})
			return
		}
		yield(StreamEvent{Type: StreamDone, Response: &r.response, Context: r.conv})
	}
}

// Invoke runs to the end and returns the response and the new context. On an error both hold what came before it.
func (l *Loop) Invoke(ctx context.Context, input conversation.Context, messageID string) (Response, conversation.Context, error) {
	var last StreamEvent
	for e := range l.Run(ctx, input, messageID) {
		last = e
	}
	return *last.Response, last.Context, last.Err
}

type run struct {
	*Loop
	ctx      context.Context
	clock    clock.Clock
	conv     conversation.Context
	id       string
	hidden   tool.Hidden
	limit    int
	yield    func(StreamEvent) bool
	stopped  bool // the caller broke off
	seq      int
	response Response
}

func (r *run) emit(e StreamEvent) bool {
	if !r.stopped && !r.yield(e) {
		r.stopped = true
	}
	return !r.stopped
}

func (r *run) start(input conversation.Context) {
	start := &trace.Start{Agent: r.Agent, Model: r.Name, MaxIterations: r.limit}
	for _, m := range input.Messages() {
		start.Input = append(start.Input, m)
	}
	for name := range r.hidden.All() {
		start.Hidden = append(start.Hidden, name)
	}
	r.Recorder.Add(trace.Event{Kind: trace.KindStart, Start: start})
}

func (r *run) loop() error {
	for step := 1; ; step++ {
		if err := context.Cause(r.ctx); err != nil {
			return err
		}
		r.Recorder.Step(step)
		prepared, err := r.prepare(step)
		if err != nil {
			return err
		}
		reply, err := r.ask(step, prepared)
		if err != nil || r.stopped {
			return err
		}
		calls := callsOf(reply.Parts)
		if len(calls) == 0 {
			r.response.Stop = runStop(reply.Finish.Stop)
			return nil
		}
		paused, err := r.answer(prepared.Tools, calls, reply.Finish.Stop == StopLength)
		if err != nil || r.stopped {
			return err
		}
		if paused {
			r.response.Stop = RunPaused
			return nil
		}
		if step == r.limit {
			r.response.Stop = RunMaxIterations
			return nil
		}
	}
}

func (r *run) prepare(step int) (Step, error) {
	if r.Prepare == nil {
		return Step{}, nil
	}
	return r.Prepare(r.ctx, step)
}

func callsOf(parts []conversation.Content) []conversation.ToolCall {
	var calls []conversation.ToolCall
	for _, p := range parts {
		if c, ok := p.(conversation.ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

func runStop(s StopReason) string {
	switch s {
	case StopRefused:
		return RunRefused
	case StopLength:
		return RunLength
	}
	return RunEnd
}

// ask makes one model step: it streams the reply to the host, records it and appends it to the conversation.
func (r *run) ask(step int, prepared Step) (Reply, error) {
	req := Request{System: prepared.System, Settings: r.Settings, Blocking: r.Blocking, Messages: make([]conversation.Message, 0, r.conv.Len())}
	for _, m := range r.conv.Messages() {
		req.Messages = append(req.Messages, m)
	}
	if prepared.Tools != nil {
		req.Tools = prepared.Tools.Specs()
	}
	r.Recorder.Add(trace.Event{Kind: trace.KindRequest, Request: &trace.Request{System: req.System, Tools: req.Tools, Messages: len(req.Messages)}})

	began := r.clock.Now()
	firstText := int64(-1)
	var collected Collector
	names := map[int]StreamEvent{} // the start event of each call, by index
	err := func() error {
		for event, err := range r.Model.Stream(trace.WithRecorder(r.ctx, r.Recorder), req) {
			if err != nil {
				return err
			}
			collected.Add(event)
			switch e := event.(type) {
			case TextDelta:
				if e.Text == "" { // only extras
					break
				}
				if firstText < 0 {
					firstText = r.clock.Now().Sub(began).Milliseconds()
				}
				r.emit(StreamEvent{Type: StreamText, Text: e.Text})
			case ReasoningDelta:
				r.emit(StreamEvent{Type: StreamReasoning, Text: e.Text})
			case CallStart:
				start := StreamEvent{Type: StreamToolStart, CallID: e.ID, ToolName: e.Name}
				names[e.Index] = start
				r.emit(start)
			case CallDelta:
				start := names[e.Index]
				r.emit(StreamEvent{Type: StreamToolArgs, CallID: start.CallID, ToolName: start.ToolName, Text: e.Arguments})
			case Warning:
				r.Recorder.Warn(e.Code, e.Text)
			}
			if r.stopped {
				return nil
			}
		}
		return collected.Err()
	}()
	reply := collected.Reply()
	latency, ttft, retries := r.timing(began, firstText)
	r.response.Retries += retries
	r.response.Steps = step
	if err != nil || r.stopped {
		return reply, err
	}
	usage := reply.Finish.Usage
	usage.LatencyMS = int(latency)
	message := conversation.Assistant(r.id, reply.Parts...).WithUsage(usage)
	r.Recorder.Add(trace.Event{Kind: trace.KindReply, Reply: &trace.Reply{Message: message, Stop: string(reply.Finish.Stop), Model: reply.Finish.Model, LatencyMS: latency, TTFTMS: ttft, Retries: retries}})
	if r.response.TTFTMS < 0 && ttft >= 0 && message.Text() != "" {
		r.response.TTFTMS = r.response.LatencyMS + ttft
	}
	r.response.LatencyMS += latency
	r.response.Usage = r.response.Usage.Add(usage)
	r.response.PendingToolResults = false
	r.response.Text = strings.TrimSpace(message.Text())
	for _, p := range reply.Parts {
		switch p := p.(type) {
		case conversation.Text:
			if p.Text != "" {
				r.response.Verbose = append(r.response.Verbose, VerboseItem{Text: p.Text})
			}
		case conversation.ToolCall:
			r.response.Verbose = append(r.response.Verbose, VerboseItem{ToolName: p.Name})
		}
	}
	r.conv, err = r.conv.Append(message)
	return reply, err
}

// timing takes the step's times from the exchanges that the transport recorded, and from the clock where none did.
func (r *run) timing(began time.Time, firstText int64) (latency, ttft int64, retries int) {
	exchanges := r.Recorder.Exchanges()
	if len(exchanges) == 0 {
		return r.clock.Now().Sub(began).Milliseconds(), firstText, 0
	}
	last := exchanges[len(exchanges)-1]
	return last.DurationMS, last.TTFTMS, len(exchanges) - 1
}

// outcome is what came of one call.
type outcome struct {
	call   conversation.ToolCall
	tool   tool.Tool // nil where the call is not executed
	record trace.ToolRun
	output tool.Output
	abort  error // ends the run
}

// answer runs the calls of one reply and appends the message with their results, in call order. Calls of pure and read effect that follow each other run at the same time, all others alone.
//
// Of a reply that was cut at its output limit the last call is not run: nothing tells whether it is whole, and without its optional arguments it may mean something else.
func (r *run) answer(tools ToolSet, calls []conversation.ToolCall, cut bool) (paused bool, err error) {
	outcomes := make([]outcome, len(calls))
	for i, call := range calls {
		r.seq++
		r.response.Calls++
		outcomes[i] = r.check(tools, call, cut && i == len(calls)-1)
		outcomes[i].record.Seq = r.seq
	}
	for i := 0; i < len(outcomes); {
		j := i + 1
		if parallel(outcomes[i]) {
			for j < len(outcomes) && parallel(outcomes[j]) {
				j++
			}
		}
		before := r.clock.Now()
		r.execute(outcomes[i:j], before)
		r.response.LatencyMS += longest(outcomes[i:j])
		i = j
	}
	for _, o := range outcomes {
		if o.abort != nil && err == nil {
			err = o.abort
		}
	}
	if cause := context.Cause(r.ctx); cause != nil {
		err = cause
	}
	parts := make([]conversation.Content, 0, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		r.Recorder.Add(trace.Event{Kind: trace.KindTool, Tool: &o.record})
		r.emit(StreamEvent{Type: StreamToolEnd, CallID: o.call.ID, ToolName: o.call.Name})
		if o.record.Outcome == trace.Executed {
			r.response.ToolCalls++
		}
		if o.output.Flow == tool.Pause {
			paused = true
			continue
		}
		parts = append(parts, conversation.ToolResult{ID: o.call.ID, Result: o.output.Result, IsError: o.output.IsError, Meta: o.output.Meta})
	}
	if err != nil || len(parts) == 0 {
		return paused, err
	}
	message := conversation.ToolResults(r.id, parts...)
	r.Recorder.Add(trace.Event{Kind: trace.KindResults, Results: &trace.Results{Message: message}})
	r.response.PendingToolResults = true
	r.conv, err = r.conv.Append(message)
	return paused, err
}

func parallel(o outcome) bool { return o.tool == nil || o.record.Effect.Parallel() }

func longest(outcomes []outcome) int64 {
	var ms int64
	for _, o := range outcomes {
		ms = max(ms, o.record.DurationMS)
	}
	return ms
}

// check finds the tool of a call and looks at the arguments; a call that cannot be executed gets its error result here.
func (r *run) check(tools ToolSet, call conversation.ToolCall, cut bool) outcome {
	o := outcome{call: call, record: trace.ToolRun{CallID: call.ID, Name: call.Name, Arguments: call.Input}}
	refuse := func(why trace.Outcome, text string) outcome {
		o.output = tool.Failed(text)
		o.record.Outcome, o.record.Result, o.record.IsError = why, o.output.Result, true
		return o
	}
	if tools == nil {
		return refuse(trace.Unknown, "Error: Tool not found: no tools are available; answer without them")
	}
	t, spec, ok := tools.Lookup(call.Name)
	if !ok {
		return refuse(trace.Unknown, "Error: Tool not found: "+tools.Unknown(call.Name))
	}
	o.record.Effect, o.record.Scope = spec.Effect, spec.Scope
	if cut {
		return refuse(trace.Invalid, "Error: "+call.Name+" was not run: your reply reached its output limit, so that the call may not be whole; make it again, and write less before it")
	}
	arguments, err := call.Arguments()
	if err == nil {
		err = tools.Validate(call.Name, arguments)
	}
	if err != nil {
		return refuse(trace.Invalid, fmt.Sprintf("Error: invalid arguments for %s: %s", call.Name, err))
	}
	o.tool = t
	return o
}

// execute runs the calls that can be executed, side by side, all of them beginning at the time at.
func (r *run) execute(batch []outcome, at time.Time) {
	if len(batch) == 1 {
		r.executeOne(&batch[0], at)
		return
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxParallelCalls)
	for i := range batch {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r.executeOne(&batch[i], at)
		})
	}
	wg.Wait()
}

func (r *run) executeOne(o *outcome, at time.Time) {
	if o.tool == nil {
		return
	}
	if err := context.Cause(r.ctx); err != nil {
		o.output = tool.Failed("Error running tool: the run was cut off")
		o.record.Outcome, o.record.Result, o.record.IsError = trace.CutOff, o.output.Result, true
		return
	}
	arguments, _ := o.call.Arguments()
	o.output, o.abort = tool.Do(r.ctx, o.tool, tool.Call{ID: o.call.ID, Name: o.call.Name, Arguments: arguments, Hidden: r.hidden, Seq: o.record.Seq, At: at})
	took := o.output.Took
	if o.output.Source == "" {
		o.output.Source = tool.Ran
		took = r.clock.Now().Sub(at)
	}
	o.record.Outcome = trace.Executed
	if o.output.Flow == tool.Pause {
		o.record.Outcome = trace.Paused
	}
	o.record.Source = o.output.Source
	o.record.Result = o.output.Result
	o.record.IsError = o.output.IsError
	o.record.DurationMS = took.Milliseconds()
	o.record.Paths = slices.Clone(o.output.Paths)
}
