package experiment

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/ident"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/invariant"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/score"
)

// maxOutput is how many bytes of the final text a result line holds; the whole stands in the trace.
const maxOutput = 16 << 10

// finishedItem is what one job leaves behind.
type finishedItem struct {
	line     eval.Result
	trace    []byte
	spent    money.USD
	warnings []trace.Warning
}

// item runs one job.
func (r *runner) item(ctx context.Context, j job) finishedItem {
	column := &r.opts.Columns[j.column]
	line := r.line(j.item, column, j.repeat)
	if reason := skipped(j.item, column); reason != "" {
		line.Status = eval.Skipped
		cause := eval.CauseDataset
		line.Cause = &cause
		return finishedItem{line: line}
	}
	run, err := r.prepare(j, column)
	if err != nil {
		line.Cassette = run.cassette()
		decide(&line, Outcome{Err: err}, replay.StaleCause(err), eval.Pass)
		if line.Status == eval.Stale {
			line.Error = nil
		}
		return finishedItem{line: line, trace: run.encode(line, trace.Trace{})}
	}
	out := run.run(ctx)
	return run.judge(ctx, line, out)
}

func skipped(item *dataset.Item, c *Column) string {
	if item.Skip != "" {
		return item.Skip
	}
	if !runsOn(item, c) {
		return "not for this provider"
	}
	return ""
}

// itemRun is one job under way.
type itemRun struct {
	*runner
	job
	column  *Column
	session *replay.Session
	rules   *cassette.Rules
	file    string // of the cassette, relative to the root
	space   *space
	hidden  conversation.Hidden
	outcome replay.Outcome
}

// prepare opens the cassette of a job. The run is usable for its names also where that fails.
func (r *runner) prepare(j job, column *Column) (*itemRun, error) {
	run := &itemRun{runner: r, job: j, column: column, hidden: hiddenValues(j.item), space: r.spaces.space(j.item.Workspace)}
	name := dataset.FileName(j.item.ID)
	if j.repeat > 1 {
		name += "@" + strconv.Itoa(j.repeat)
	}
	path := filepath.Join(r.opts.Cassettes, r.opts.Dataset.Name, dataset.FolderName(column.Provider.ID), name+".yaml")
	run.file = path
	if rel, err := filepath.Rel(r.opts.Dataset.Root, path); err == nil && !strings.HasPrefix(rel, "..") {
		run.file = filepath.ToSlash(rel)
	}
	var err error
	if run.rules, err = cassette.NewRules(redactions(run.hidden)); err != nil {
		return run, err
	}
	hashes := map[string]string{"agent": r.head.Providers[j.column].AgentHash, "prompt": r.head.Providers[j.column].PromptHash, "tools": r.head.Providers[j.column].ToolsHash, "workspace": ""}
	if j.item.Workspace != "" {
		if hashes["workspace"], err = r.spaces.hash(j.item.Workspace); err != nil {
			return run, err
		}
	}
	config := replay.Config{
		Mode:    r.opts.Mode,
		Path:    path,
		Display: run.file,
		Expect: cassette.Header{
			Dataset: r.opts.Dataset.Name, Item: j.item.ID, Repeat: j.repeat, Provider: column.Provider.ID,
			Vendor: column.Provider.Vendor, Model: column.Provider.Model, Seed: int64(r.opts.Seed), Hashes: hashes,
		},
		Rules:         run.rules,
		Secrets:       r.opts.Secrets,
		AllowLeftover: r.opts.AllowLeftover || r.opts.Dataset.AllowLeftover,
		RecordCommand: r.opts.RecordCommand(j.item.ID, column.Provider.ID),
		RecordedAt:    r.opts.RecordedAt,
		Reproducible:  !r.opts.RecordedAt.IsZero(),
		Quarantine:    r.opts.Quarantine,
		Wall:          r.opts.Clock,
	}
	run.session, err = replay.Open(config)
	return run, err
}

// redactions are the hidden values that are long enough to be told from ordinary text; the placeholder bears the name.
func redactions(hidden conversation.Hidden) []cassette.Redaction {
	var out []cassette.Redaction
	for name, value := range tool.NewHidden(hidden).All() {
		text, ok := stringOf(value)
		if ok && len(text) >= minHidden {
			out = append(out, cassette.Redaction{Name: "tool_context." + name, Value: text})
		}
	}
	return out
}

// minHidden is the length in bytes from which a hidden string is replaced wherever it stands.
const minHidden = 8

func stringOf(value conversation.JSON) (string, bool) {
	n, err := strict.ParseJSON("", 1, []byte(value))
	if err != nil || n.Kind() != strict.String {
		return "", false
	}
	return n.Text(), true
}

func (r *itemRun) cassette() *eval.CassetteInfo {
	if r.opts.Mode == replay.Live {
		return nil
	}
	info := &eval.CassetteInfo{File: r.file, State: r.outcome.State, Drift: r.outcome.Drift, LeftOver: r.outcome.LeftOver}
	if info.State == "" {
		info.State = eval.CassetteMissing
	}
	return info
}

// run runs the target within the item's timeout.
func (r *itemRun) run(ctx context.Context) Outcome {
	timeout := r.item.Timeout
	if r.opts.Timeout > 0 {
		timeout = r.opts.Timeout
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()

	input, err := conversation.New(r.hidden).Append(conversation.User(r.ids().ID(0, "input", 1), r.item.Input...))
	if err != nil {
		return Outcome{Err: err, Response: llm.Response{Stop: llm.RunError, TTFTMS: -1}}
	}
	var tools []tool.Tool
	names := r.tools(r.column)
	for _, t := range r.opts.Tools(r.space.get) {
		if slices.Contains(names, t.Spec().Name) {
			tools = append(tools, r.session.Tool(t))
		}
	}
	started := r.session.Clock().Now()
	target := AgentTarget{
		Config:    r.column.Agent,
		ModelName: r.column.Provider.Model,
		Model:     func(rt http.RoundTripper) (llm.Model, error) { return r.column.Model(r.item, rt) },
	}
	out := target.Run(limited, Case{
		Input: input, Clock: r.session.Clock(), IDs: r.ids(), Tools: tools, Settings: r.column.Settings,
		Transport: transport.Retry(transport.RetryConfig{Clock: r.pauses(), Random: r.random()}, r.session.RoundTripper(r.column.Live)),
	})
	if cause := context.Cause(limited); out.Err != nil && cause != nil {
		out.Err = cause
	}
	if r.opts.Mode == replay.Replay && out.Err == nil && r.session.Clock().Now().Sub(started) > timeout {
		out.Err = errTimeout
	}
	return out
}

func (r *itemRun) ids() ident.Source {
	return ident.Source{Seed: r.opts.Seed, Item: r.item.ID, Repeat: r.repeat}
}

// random gives the jitter of pauses: the same for the same item, so that a replay pauses as the recording did.
func (r *itemRun) random() func() float64 {
	id := r.ids().ID(0, "pause", 1)
	source := rand.New(rand.NewPCG(binary.LittleEndian.Uint64([]byte(id[:8])), r.opts.Seed))
	return source.Float64
}

// pauses is the clock that retries wait on: in a replay the session's own, which takes no time; otherwise real time passes and the session's clock follows.
func (r *itemRun) pauses() clock.Clock {
	if r.opts.Mode == replay.Replay {
		return r.session.Clock()
	}
	return bothClocks{r.session.Clock(), r.opts.Clock}
}

type bothClocks struct {
	*clock.Virtual
	wall clock.Clock
}

// Sleep waits on the wall clock and moves the virtual one on by the same time.
func (b bothClocks) Sleep(ctx context.Context, d time.Duration) error {
	if err := b.wall.Sleep(ctx, d); err != nil {
		return err
	}
	return b.Virtual.Sleep(ctx, d)
}

// judge closes the cassette and says what the run was worth.
func (r *itemRun) judge(ctx context.Context, line eval.Result, out Outcome) finishedItem {
	interrupted := ctx.Err() != nil && out.Err != nil
	var closeErr error
	r.outcome, closeErr = r.session.Close(out.Err == nil)
	stale := r.outcome.Stale
	if stale == "" && out.Err == nil && closeErr != nil {
		stale = replay.StaleCause(closeErr)
		if stale == "" {
			out.Err = closeErr
		}
	}
	if err := r.space.close(); err != nil && out.Err == nil {
		out.Err = err
	}
	response := out.Response
	line.Cassette = r.cassette()
	line.Stop = &response.Stop
	line.Turns, line.Steps, line.ToolCalls, line.Retries = 1, response.Steps, response.ToolCalls, response.Retries
	line.Usage = eval.Usage{InputTokens: response.Usage.InputTokens, CachedInputTokens: response.Usage.CacheReadTokens, OutputTokens: response.Usage.OutputTokens, ReasoningTokens: response.Usage.ReasoningTokens}
	if out.Err == nil || response.Steps > 0 {
		line.LatencyMS = &response.LatencyMS
	}
	if response.TTFTMS >= 0 {
		line.TTFTMS = &response.TTFTMS
	}
	var spent money.USD
	if cost, ok := r.column.Cost(response); ok {
		line.CostUSD = &cost
		if r.opts.Mode != replay.Replay {
			spent = cost
		}
	}
	var problems strict.Problems
	line.Invariants = invariant.Select(invariantSpecs(r.item), r.item.Drop, &problems).Evaluate(out.Trace)

	verdict := eval.Pass
	if stale == "" && out.Err == nil {
		output, cut := cutText(r.redact(response.Text))
		line.Output, line.OutputCut = &output, cut
		verdict = r.score(ctx, &line, out)
	}
	decide(&line, out, stale, verdict)
	r.redactLine(&line)
	done := finishedItem{line: line, spent: spent, warnings: warningsOf(out.Trace)}
	if !interrupted {
		done.trace = r.encode(line, out.Trace)
	}
	return done
}

// score runs the item's checks.
func (r *itemRun) score(ctx context.Context, line *eval.Result, out Outcome) eval.Status {
	tokens := line.Usage.InputTokens + line.Usage.OutputTokens
	var problems strict.Problems
	checks := score.Compile(checkSpecs(r.item), score.Env{Tools: r.tools(r.column)}, &problems)
	c := score.Case{Output: out.Response.Text, Trace: out.Trace, LatencyMS: line.LatencyMS, Cost: line.CostUSD, Tokens: &tokens}
	for _, check := range checks {
		line.Checks = append(line.Checks, check.Run(ctx, c))
	}
	total, verdict := score.Total(line.Checks, r.item.Threshold)
	line.Score = total
	switch verdict {
	case eval.CheckFail:
		return eval.Fail
	case eval.CheckUnjudged:
		return eval.Unjudged
	}
	return eval.Pass
}

func cutText(s string) (string, bool) {
	if len(s) <= maxOutput {
		return s, false
	}
	n := maxOutput
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], true
}

// redact replaces hidden values by placeholders and secrets by their kind.
func (r *itemRun) redact(text string) string {
	if text == "" {
		return text
	}
	_, text, _ = r.rules.Seal(http.StatusOK, nil, text)
	detector := secret.Detector{Values: r.opts.Secrets}
	return strings.ToValidUTF8(detector.Redact(text), "\uFFFD")
}

func (r *itemRun) redactLine(line *eval.Result) {
	for i := range line.Checks {
		c := &line.Checks[i]
		c.Reason = r.redact(c.Reason)
		c.Expected, c.Actual = r.redactPointer(c.Expected), r.redactPointer(c.Actual)
	}
	for i := range line.Invariants.Violations {
		line.Invariants.Violations[i].Evidence = r.redact(line.Invariants.Violations[i].Evidence)
	}
	if line.Error != nil {
		line.Error.Message = r.redact(line.Error.Message)
	}
}

func (r *itemRun) redactPointer(s *string) *string {
	if s == nil {
		return nil
	}
	text := r.redact(*s)
	return &text
}

// encode is the item's line in traces/: the item as it ran, then its events.
func (r *itemRun) encode(line eval.Result, t trace.Trace) []byte {
	dst := append([]byte(nil), `{"v":1,"item":{"id":`...)
	dst = conversation.AppendString(dst, r.item.ID)
	dst = append(dst, `,"provider":`...)
	dst = conversation.AppendString(dst, line.Provider)
	dst = append(dst, `,"repeat":`...)
	dst = strconv.AppendInt(dst, int64(line.Repeat), 10)
	dst = append(dst, `,"workspace":`...)
	dst = conversation.AppendString(dst, r.item.Workspace)
	dst = append(dst, `,"expected":`...)
	if r.item.Expected.IsZero() {
		dst = append(dst, "null"...)
	} else {
		dst = r.item.Expected.AppendJSON(dst)
	}
	dst = append(dst, `},"events":`...)
	dst = t.AppendJSON(dst)
	dst = append(dst, '}')
	return []byte(r.redact(string(dst)))
}
