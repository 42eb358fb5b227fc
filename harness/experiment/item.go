package experiment

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/ident"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/invariant"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/score"
	"github.com/echoeval/echoeval/harness/target"
)

// maxOutput is how many bytes of the final text a result line holds; the whole stands in the trace.
const maxOutput = 16 << 10

// finishedItem is what one job leaves behind.
type finishedItem struct {
	// overBudget says that the budget cut the item off.
	overBudget bool
	// restart says that the item must run again and be recorded from its start.
	restart bool
	// fatal ends the run.
	fatal error

	line     eval.Result
	trace    []byte
	warnings []trace.Warning
	// trial is the run itself, as long as somebody may want to judge it otherwise; nil where the item did not run.
	trial *Trial
}

// one runs one job.
func (r *runner) one(ctx context.Context, j job) finishedItem {
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
		err = errors.Join(err, run.space.close())
		run.explain(err)
		line.Cassette = run.cassette
		decide(&line, Outcome{Err: err}, staleness(err), judged{status: eval.Pass})
		run.known = run.knownSecrets()
		run.redactLine(&line)
		return finishedItem{line: line, trace: run.encode(line, trace.Trace{}), restart: run.recordWhole(err, false)}
	}
	out := run.run(ctx)
	if errors.Is(out.Err, errNoModel) {
		_, err := run.session.Close(false)
		return finishedItem{fatal: errors.Join(out.Err, err, run.space.close())}
	}
	done := run.judge(ctx, line, out)
	if r.opts.Faults != nil {
		done.line.Faults = run.inject(ctx, &done.line, out)
	}
	done.trial = &Trial{Outcome: out, run: run}
	return done
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
	path    string // of the cassette
	session *replay.Session
	rules   *cassette.Rules
	space   *space
	hidden  conversation.Hidden
	// folder is the absolute path of the item's own folder where a program under test is told it, else "".
	folder string
	// known are the secrets of which excerpts may hold parts.
	known []string
	// overhead is what judges, embedders and the simulated user cost.
	overhead money.USD
	// cassette is what the line says of the recording; nil in live mode.
	cassette *eval.CassetteInfo
	// checks are those of the item, compiled, and then of each turn that has been judged.
	checks map[int][]score.Check
	// answers are what judges answered, in order.
	answers []answer
}

// prepare opens the cassette of a job. The run is usable for its names also where that fails.
func (r *runner) prepare(j job, column *Column) (*itemRun, error) {
	run := &itemRun{runner: r, job: j, column: column, hidden: hiddenValues(j.item), space: r.spaces.space(j.item.Workspace)}
	run.path = filepath.Join(r.opts.Cassettes, r.opts.Dataset.Name, filepath.FromSlash(cassetteFile(j.item.ID, column.Provider.ID, j.repeat)))
	file := r.show(run.path)
	if j.mode != replay.Live {
		run.cassette = &eval.CassetteInfo{File: file, State: eval.CassetteMissing, Drift: []eval.Drift{}}
	}
	redacted := redactions(j.item.ToolContext)
	err := run.makeFolder()
	if err != nil {
		return run, err
	}
	if run.folder != "" {
		// Its place differs from run to run, and a program may well tell it to a model.
		redacted = append(redacted, cassette.Redaction{Name: "echoeval.workspace", Value: run.folder})
	}
	if run.rules, err = cassette.NewRules(redacted); err != nil {
		return run, err
	}
	info := &r.head.Providers[j.column]
	hashes := map[string]string{"agent": info.AgentHash, "prompt": info.PromptHash, "tools": info.ToolsHash, "workspace": ""}
	if column.Target != nil {
		hashes[cassette.TargetFiles] = r.files[j.column]
	}
	if j.item.Workspace != "" {
		if hashes["workspace"], err = r.spaces.hash(j.item.Workspace); err != nil {
			return run, err
		}
	}
	var faulty *cassette.File
	if j.variant != nil {
		faulty = j.variant.File
	}
	var frozen *replay.Frozen
	if r.opts.Freeze != FreezeNothing {
		source := filepath.Join(r.opts.Frozen, r.opts.Dataset.Name, filepath.FromSlash(cassetteFile(j.item.ID, column.Provider.ID, 1)))
		frozen = &replay.Frozen{Path: source, Display: r.show(source), Tools: r.opts.Freeze == FreezeTools}
	}
	run.session, err = replay.Open(replay.Config{
		Mode: j.mode, Path: run.path, Display: file, File: faulty, Frozen: frozen,
		Expect: cassette.Header{
			Dataset: r.opts.Dataset.Name, Item: j.item.ID, Repeat: j.repeat, Provider: column.Provider.ID,
			Vendor: column.Provider.Vendor, Model: column.Provider.Model, Seed: r.opts.Seed, Hashes: hashes,
		},
		Redactions:    redacted,
		Normalize:     r.normalize,
		Secrets:       &r.detector,
		Drift:         r.opts.Drift,
		Rejudge:       r.opts.OnlyStale,
		AllowLeftover: r.opts.AllowLeftover || r.opts.Dataset.AllowLeftover,
		RecordCommand: r.opts.RecordCommand(j.item.ID, column.Provider.ID),
		RecordedAt:    r.opts.RecordedAt,
		Reproducible:  !r.opts.RecordedAt.IsZero(),
		Quarantine:    filepath.Join(r.opts.Quarantine, r.opts.Dataset.Name, filepath.FromSlash(cassetteFile(j.item.ID, column.Provider.ID, j.repeat))),
		Clock:         r.opts.Clock,
	})
	return run, err
}

// normalizations compiles the rules of replay.normalize.
func normalizations(rules []dataset.Normalize, p *strict.Problems) []cassette.Normalization {
	var out []cassette.Normalization
	for i, rule := range rules {
		n, err := cassette.NewNormalization(cassette.Part(rule.In), rule.Regex, rule.As)
		if err != nil {
			p.Key("replay").Key("normalize").At(i).Add(rule.Pos, "", "%s", err)
			continue
		}
		out = append(out, n)
	}
	return out
}

// show gives a path relative to the project's root, with slashes, where it lies below it, and else its last three parts: no line holds an absolute path.
func (r *runner) show(path string) string {
	if rel, err := filepath.Rel(r.opts.Dataset.Root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	parts := strings.Split(filepath.ToSlash(path), "/")
	return strings.Join(parts[max(0, len(parts)-3):], "/")
}

// recordWhole says that an item is recorded from its start after all: where its session asks for it, and with --stale where the cassette drifted and what it drifted by is said to fail a replay.
func (r *itemRun) recordWhole(stale error, asked bool) bool {
	return asked || r.mode == replay.Extend && r.opts.OnlyStale && replay.CauseOf(stale) == replay.Drift
}

// unreadableReply says that a recorded reply of status 200 could not be read. It was read when it was recorded: the file was changed since.
func unreadableReply(err error, file string) error {
	var provider *llm.Error
	if !errors.As(err, &provider) || provider.Status != http.StatusOK {
		return nil
	}
	return failure.WithHint(failure.At(failure.Position{File: file}, failure.Cassette, "a recorded reply cannot be read: %s", provider.Message), "record it again, or undo the change of the file")
}

// staleness is err where it says that the cassette does not fit, and else nil.
func staleness(err error) error {
	if replay.CauseOf(err) == "" {
		return nil
	}
	return err
}

// explain writes into the line's cassette why the recording does not fit.
func (r *itemRun) explain(err error) {
	if r.cassette == nil {
		return
	}
	switch cause := replay.CauseOf(err); {
	case cause == "" || cause == replay.Missing, cause == replay.Secret && errors.Is(err, fs.ErrNotExist):
		return
	}
	r.cassette.State = eval.CassetteStale
	var miss *replay.Miss
	if errors.As(err, &miss) && len(r.cassette.Drift) == 0 {
		r.cassette.Drift = []eval.Drift{drift(miss, replay.Fail)}
	}
}

func drift(m *replay.Miss, action replay.Action) eval.Drift {
	return eval.Drift{Class: string(m.Class), Request: m.Request, Path: m.Path, Old: m.Old, New: m.New, Action: string(action)}
}

// redactions are the hidden strings that are long enough to be told from ordinary text, nested ones included. A placeholder bears the value's path, such as auth.token.
func redactions(context strict.Node) []cassette.Redaction {
	var out []cassette.Redaction
	var walk func(name string, n strict.Node)
	walk = func(name string, n strict.Node) {
		switch n.Kind() {
		case strict.String:
			if len(n.Text()) >= minHidden {
				out = append(out, cassette.Redaction{Name: placeholderName(name), Value: n.Text()})
			}
		case strict.Mapping:
			for key, value := range n.Fields() {
				walk(name+"."+key.Name, value)
			}
		case strict.Sequence:
			for i, value := range n.Items() {
				walk(name+"."+strconv.Itoa(i), value)
			}
		}
	}
	for key, value := range context.Fields() {
		walk(key.Name, value)
	}
	return out
}

// minHidden is the length in bytes from which a hidden string is replaced wherever it stands.
const minHidden = 8

// placeholderName is the name itself where a placeholder can bear it, and else a hash of it.
func placeholderName(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == "" {
		return name
	}
	return "hidden-" + hash(name)
}

// run runs the target within the item's timeout.
func (r *itemRun) run(ctx context.Context) Outcome {
	timeout := r.timeout()
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()

	start, err := conversation.New(r.hidden).Append(r.before()...)
	if err != nil {
		return Outcome{Err: err, Response: llm.Response{Stop: llm.RunError, TTFTMS: -1}}
	}
	started := r.session.Clock().Now()
	out := r.target().Run(limited, Case{
		Start: start, Next: r.talk(), Clock: r.session.Clock(), IDs: r.ids(), Tools: r.itemTools(), Settings: r.column.Settings,
		Transport: r.transport(r.column),
	})
	if cause := context.Cause(limited); out.Err != nil && cause != nil && !errors.As(out.Err, new(*target.Fault)) {
		out.Err = cause
	}
	if !r.session.Live() && out.Err == nil && r.variant == nil && r.session.Clock().Now().Sub(started) > timeout {
		out.Err = errTimeout
	}
	return out
}

// timeout bounds the agent's run, and then each question to a judge.
func (r *itemRun) timeout() time.Duration {
	if r.opts.Timeout > 0 {
		return r.opts.Timeout
	}
	return r.item.Timeout
}

// target is what the item is asked of.
func (r *itemRun) target() Target {
	if r.column.Target != nil {
		return r.program()
	}
	return AgentTarget{Config: agentOf(r.item, r.column), ModelName: r.column.Provider.Model, Model: r.model}
}

// transport is what a model of a column talks through: retries over the recorder or replayer.
func (r *itemRun) transport(c *Column) http.RoundTripper { return r.over(c.Live) }

// over puts the item's recorder or replayer, the fault that is injected, and the retries over what dials.
func (r *itemRun) over(live http.RoundTripper) http.RoundTripper {
	retry := func(next http.RoundTripper) http.RoundTripper {
		return transport.Retry(transport.RetryConfig{Clock: r.session.Waiting(), Random: r.random()}, next)
	}
	if r.variant != nil {
		return r.variant.Transport(retry, r.session.RoundTripper(live), r.column.Target != nil)
	}
	return retry(r.session.RoundTripper(live))
}

// model builds the item's model; where money is spent, within the budget.
func (r *itemRun) model(rt http.RoundTripper) (llm.Model, error) {
	return r.modelOf(r.column, rt, r.session.Live)
}

// modelOf is the model of a column; live says whether the network answers it.
func (r *itemRun) modelOf(c *Column, rt http.RoundTripper, live func() bool) (llm.Model, error) {
	model, err := c.Model(r.item, rt, r.session.Clock())
	if err == nil && r.mode != replay.Replay && c.Provider.Limits.TPM > 0 {
		model = metered{model}
	}
	if err != nil || r.opts.Budget == nil || r.mode == replay.Replay {
		return model, err
	}
	return budgeted{Model: model, budget: r.opts.Budget, cost: c.Cost, live: live}, nil
}

// embedderOf is what turns texts into vectors for a column; live as in modelOf.
func (r *itemRun) embedderOf(c *Column, rt http.RoundTripper, live func() bool) (llm.Embedder, error) {
	embedder, err := c.Embedder(rt, r.session.Clock())
	if err != nil || r.mode == replay.Replay {
		return embedder, err
	}
	return boundEmbedder{Embedder: embedder, budget: r.opts.Budget, cost: c.Cost, live: live}, nil
}

func (r *itemRun) ids() ident.Source {
	return ident.Source{Seed: r.opts.Seed, Item: r.item.ID, Repeat: r.repeat}
}

// random gives the jitter of pauses: the same for the same item, so that a replay pauses as the recording did.
func (r *itemRun) random() func() float64 {
	source := sync.OnceValue(func() *rand.Rand {
		id := r.ids().ID(0, "pause", 1)
		return rand.New(rand.NewPCG(binary.LittleEndian.Uint64([]byte(id[:8])), r.opts.Seed))
	})
	return func() float64 { return source().Float64() }
}

// judge says what the run was worth, and closes the cassette.
func (r *itemRun) judge(ctx context.Context, line eval.Result, out Outcome) finishedItem {
	interrupted := ctx.Err() != nil && out.Err != nil
	complete := r.complete(out)
	r.account(&line, out)
	verdict, asked := judged{status: eval.Pass}, judges{run: r}
	settled := out.Err == nil && r.session.Settled(true) == nil
	if settled {
		verdict = r.score(ctx, &line, out, r.space.files, &asked)
		unjudged := func(c eval.CheckResult) bool { return c.Status == eval.CheckUnjudged }
		if cause := context.Cause(ctx); cause != nil && slices.ContainsFunc(line.Checks, unjudged) {
			out.Err = cause // the check was cut off: a resumed run judges the item
		}
	}
	var spaceErr error
	if !r.tries { // checks have looked at it
		spaceErr = r.space.close()
	}
	line.OverheadUSD = r.overhead
	closed, err := r.session.Close(complete)
	stale := staleness(err)
	if r.cassette != nil {
		for _, d := range closed.Drift {
			r.cassette.Drift = append(r.cassette.Drift, drift(d.Miss, d.Action))
		}
	}
	switch {
	case stale != nil:
		r.explain(err)
		if r.cassette != nil {
			r.cassette.LeftOver = len(closed.LeftOver)
		}
	case err != nil && out.Err == nil:
		out.Err = err
	case spaceErr != nil && out.Err == nil:
		out.Err = spaceErr
	case asked.err != nil && out.Err == nil:
		out.Err = &judgeError{asked.err}
	}
	if stale == nil && r.mode == replay.Replay {
		if stale = unreadableReply(out.Err, r.cassette.File); stale != nil {
			r.explain(stale)
		}
	}
	switch {
	case r.cassette == nil || stale != nil:
	case closed.State != "":
		r.cassette.State = eval.CassetteState(closed.State)
	default:
		r.cassette = nil // nothing was recorded, and what there was is untouched
	}
	line.Cassette = r.cassette
	response := out.Response
	if settled {
		output, cut := cutText(r.redact(response.Text))
		line.Output, line.OutputCut = &output, cut
	}
	if stale != nil || out.Err != nil || r.opts.ReplayOnly {
		line.Checks, line.Score = nil, nil
	}
	if !r.opts.ReplayOnly {
		r.look(&line, out)
	}
	decide(&line, out, stale, verdict)
	r.known = r.knownSecrets(append(promptsOf(out.Trace), response.Text)...)
	r.redactLine(&line)
	done := finishedItem{line: line, warnings: warningsOf(out.Trace.Events), overBudget: errors.Is(out.Err, errBudget), restart: r.recordWhole(stale, closed.Restart)}
	needed := r.opts.Traces != results.KeepFailed || line.Status != eval.Pass || len(done.warnings) > 0
	if !interrupted && needed {
		done.trace = r.encode(line, out.Trace)
	}
	return done
}

// account writes into the line what the agent took.
func (r *itemRun) account(line *eval.Result, out Outcome) {
	response := out.Response
	line.Stop = &response.Stop
	line.Turns, line.Steps, line.ToolCalls, line.Retries = len(out.Turns), response.Steps, response.ToolCalls, response.Retries
	line.Usage = eval.Usage{InputTokens: response.Usage.InputTokens, CachedInputTokens: response.Usage.CacheReadTokens, OutputTokens: response.Usage.OutputTokens, ReasoningTokens: response.Usage.ReasoningTokens}
	if (out.Err == nil || response.Steps > 0) && !out.Untimed {
		line.LatencyMS = &response.LatencyMS
	}
	if response.TTFTMS >= 0 {
		line.TTFTMS = &response.TTFTMS
	}
	if cost, ok := r.cost(out); ok {
		line.CostUSD = &cost
	}
}

// look evaluates the item's invariants and its limits.
func (r *itemRun) look(line *eval.Result, out Outcome) {
	var problems strict.Problems
	invariants := invariant.Select(invariantSpecs(r.item), r.item.Drop, &problems)
	invariants.Secrets = r.detector
	line.Invariants = invariants.Evaluate(out.Trace)
	if broken := overLimits(r.item, line); broken != nil {
		line.Invariants.Violations = append(line.Invariants.Violations, *broken)
	}
	for i, v := range line.Invariants.Violations {
		if v.At == "" {
			line.Invariants.Violations[i].At = r.item.Pos.String()
		}
	}
}

// score runs the item's checks; those of a run that only replays are the ones that ask models.
func (r *itemRun) score(ctx context.Context, line *eval.Result, out Outcome, files score.Workspace, asked asker) judged {
	tokens := line.Usage.InputTokens + line.Usage.OutputTokens
	item := score.Item{ID: r.item.ID, Provider: r.column.Provider.ID, Repeat: r.repeat, Group: r.item.Group, Tags: r.item.Tags, Vars: r.item.Vars, Metadata: r.item.Metadata}
	cause := eval.CauseCheckCrash
	run := func(turn int, checks []dataset.Check, c score.Case) {
		c.Item, c.Expected, c.Redact, c.Judge, c.Embedder = item, r.item.Expected, r.redact, asked, asked
		for _, check := range r.compiledChecks(turn, checks) {
			if r.opts.ReplayOnly && check.Asks == 0 {
				continue
			}
			result := check.Run(ctx, c)
			if result.Status == eval.CheckUnjudged && check.Asks > 0 && check.Weight > 0 {
				cause = eval.CauseJudgeAnswer
			}
			line.Checks = append(line.Checks, result)
		}
	}
	run(0, r.item.Checks, score.Case{Output: out.Response.Text, Trace: out.Trace, LatencyMS: line.LatencyMS, Cost: line.CostUSD, Tokens: &tokens, Workspace: files})
	for i, turn := range out.Turns {
		if i >= len(r.item.Turns) {
			break
		}
		number := i + 1
		run(number, r.item.Turns[i].Checks, score.Case{Turn: &number, Output: turn.Text, Trace: trace.Trace{Events: out.Trace.Events[turn.From:turn.To], Hidden: out.Trace.Hidden}})
	}
	total, verdict := score.Total(line.Checks, r.item.Threshold)
	line.Score = total
	switch verdict {
	case eval.CheckFail:
		return judged{status: eval.Fail}
	case eval.CheckUnjudged:
		return judged{eval.Unjudged, cause}
	}
	return judged{status: eval.Pass}
}

// compiledChecks are the checks of a turn, from 1, or with 0 those of the item.
func (r *itemRun) compiledChecks(turn int, checks []dataset.Check) []score.Check {
	if ready, ok := r.checks[turn]; ok {
		return ready
	}
	var problems strict.Problems // there are none: the checks were compiled before the run
	if r.checks == nil {
		r.checks = map[int][]score.Check{}
	}
	r.checks[turn] = r.compile(r.job.column, permitted(r.item, r.column.Agent.Tools), turn > 0, checks, &problems)
	return r.checks[turn]
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
	return strings.ToValidUTF8(r.detector.Redact(text), "\uFFFD")
}

func (r *itemRun) redactLine(line *eval.Result) {
	for i := range line.Checks {
		c := &line.Checks[i]
		c.Reason = r.excerpt(c.Reason)
		c.Expected, c.Actual = r.excerptPointer(c.Expected), r.excerptPointer(c.Actual)
		for k := range c.Edits {
			c.Edits[k] = r.excerpt(c.Edits[k])
		}
	}
	for i := range line.Invariants.Violations {
		line.Invariants.Violations[i].Evidence = r.excerpt(line.Invariants.Violations[i].Evidence)
	}
	if line.Error != nil {
		line.Error.Message = r.redact(line.Error.Message)
		line.Error.Hint = r.redactPointer(line.Error.Hint)
	}
	if line.Cassette != nil {
		for i := range line.Cassette.Drift {
			d := &line.Cassette.Drift[i]
			d.Path, d.Old, d.New = r.excerpt(d.Path), r.excerpt(d.Old), r.excerpt(d.New)
		}
	}
}

// promptsOf are the system prompts of a run.
func promptsOf(t trace.Trace) []string {
	var out []string
	for _, e := range t.Events {
		if e.Request != nil && (len(out) == 0 || out[len(out)-1] != e.Request.System) {
			out = append(out, e.Request.System)
		}
	}
	return out
}

// excerpt redacts a text that was cut out of a longer one: of a secret that the cut went through a part may be left.
func (r *itemRun) excerpt(text string) string {
	text = r.redact(text)
	for _, secret := range r.known {
		text = withoutPart(text, secret)
	}
	return text
}

// minPart is how many bytes of a secret are enough to be taken out of an excerpt.
const minPart = 4

// withoutPart takes the beginning of a secret off what stands before "…", and its end off the beginning of an excerpt and what follows "…": there excerpts are cut.
func withoutPart(text, secret string) string {
	parts := strings.Split(text, "…")
	for i, part := range parts {
		quoteless := strings.TrimRight(part, "\"'`")
		for n := len(secret) - 1; n >= minPart && i < len(parts)-1; n-- {
			if strings.HasSuffix(quoteless, secret[:n]) {
				part = quoteless[:len(quoteless)-n] + "[secret]" + part[len(quoteless):]
				break
			}
		}
		quoteless = strings.TrimLeft(part, "\"'`")
		for n := len(secret) - 1; n >= minPart; n-- {
			if strings.HasPrefix(quoteless, secret[len(secret)-n:]) {
				part = part[:len(part)-len(quoteless)] + "[secret]" + quoteless[n:]
				break
			}
		}
		parts[i] = part
	}
	return strings.Join(parts, "…")
}

// knownSecrets are the texts of which excerpts may hold parts: hidden values, secrets of the environment, and the key shapes in what the agent said.
func (r *itemRun) knownSecrets(texts ...string) []string {
	var out []string
	for _, x := range redactions(r.item.ToolContext) {
		out = append(out, x.Value)
	}
	for _, v := range r.opts.Secrets.Values {
		out = append(out, v.Value)
	}
	for _, text := range texts {
		for hit := range r.detector.All(text) {
			out = append(out, text[hit.Start:hit.End])
		}
	}
	return out
}

func (r *itemRun) excerptPointer(s *string) *string {
	if s == nil {
		return nil
	}
	text := r.excerpt(*s)
	return &text
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
