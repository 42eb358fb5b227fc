package experiment

import (
	"context"
	"errors"
	"fmt"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/trace"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/inject"
	"github.com/echoeval/echoeval/harness/invariant"
	"github.com/echoeval/echoeval/harness/results"
)

// faultInfos is what the run's folder says of the plan.
func faultInfos(p *inject.Plan) []results.FaultInfo {
	if p == nil {
		return nil
	}
	var out []results.FaultInfo
	for _, f := range p.Faults {
		out = append(out, results.FaultInfo{Name: f.Name, Kind: string(f.Kind), Hash: hash(fmt.Sprintf("%+v", f))})
	}
	return out
}

// inject replays the item once more for each fault of the plan and says which of them the agent survives. recorded is what came of the recording itself; line is its line, which stays as it is.
func (r *itemRun) inject(ctx context.Context, line *eval.Result, recorded Outcome) []eval.FaultResult {
	out := []eval.FaultResult{}
	without := func(f inject.Fault, why string) {
		out = append(out, eval.FaultResult{Name: f.Name, Kind: string(f.Kind), Status: eval.FaultNotInjected, Reason: why, Violations: []eval.Violation{}})
	}
	why := ""
	var file *cassette.File
	switch {
	case line.Status == eval.Stale:
		why = "the recording does not fit"
	case recorded.Err != nil:
		why = "the recording ends in an error"
	default:
		var err error
		if file, err = cassette.Load(r.path, r.cassette.File); err != nil {
			why = "the recording cannot be read"
		}
	}
	own := agentsOwn(recorded.Trace)
	for _, f := range r.opts.Faults.Faults {
		switch {
		case why != "":
			without(f, why)
			continue
		case r.column.Target != nil && f.OfTool():
			without(f, "its tools run in the program under test")
			continue
		}
		variants, none := inject.Derive(f, file, own)
		if none != "" {
			without(f, none)
		}
		for _, v := range variants {
			out = append(out, r.survive(ctx, v, recorded))
			if ctx.Err() != nil {
				return out
			}
		}
	}
	return out
}

// agentsOwn tells the interactions that the agent's trace names from those of a simulated user. Where the trace names none, all are the agent's.
func agentsOwn(t trace.Trace) func(int) bool {
	named := map[int]bool{}
	for _, e := range t.Events {
		if e.Exchange != nil && e.Exchange.Interaction > 0 {
			named[e.Exchange.Interaction-1] = true
		}
	}
	if len(named) == 0 {
		return nil
	}
	return func(i int) bool { return named[i] }
}

// survive runs the item over a variant of its recording.
func (r *itemRun) survive(ctx context.Context, v *inject.Variant, recorded Outcome) eval.FaultResult {
	j := r.job
	j.variant = v
	run, err := r.prepare(j, r.column)
	if err != nil {
		why := run.redact(errors.Join(err, run.space.close()).Error())
		return eval.FaultResult{Name: v.Fault.Name, Kind: string(v.Fault.Kind), Status: eval.FaultNotInjected, Reason: why, Violations: []eval.Violation{}}
	}
	out := run.run(ctx)
	_, err = run.session.Close(false)
	if run.session.Miss() != nil {
		err = nil // where the recording ends is for the judgement
	}
	if err = errors.Join(err, run.space.close()); err != nil && out.Err == nil {
		out.Err = err
	}
	line := r.line(j.item, r.column, j.repeat)
	run.account(&line, out)
	run.look(&line, out)
	program := r.column.Target != nil
	violations := []eval.Violation{}
	for _, broken := range line.Invariants.Violations {
		if broken.Severity == eval.SeverityError && invariant.BlameOf(broken.Name) != invariant.Model && !program {
			violations = append(violations, broken)
		}
	}
	result := v.Judge(
		inject.Run{Response: recorded.Response, Trace: recorded.Trace, Program: program},
		inject.Run{Response: out.Response, Trace: out.Trace, Err: out.Err, Program: program, Violations: violations},
	)
	run.known = run.knownSecrets(append(promptsOf(out.Trace), out.Response.Text)...)
	result.Reason = run.excerpt(result.Reason)
	for i := range result.Violations {
		result.Violations[i].Evidence = run.excerpt(result.Violations[i].Evidence)
	}
	return result
}
