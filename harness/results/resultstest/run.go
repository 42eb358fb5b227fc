// Package resultstest makes runs for tests: large regular ones, and one small gallery that holds every status and cause and text of every unpleasant kind.
package resultstest

import (
	"fmt"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/harness/results"
)

// Start is when the runs made here began.
var Start = time.Date(2027, 1, 4, 8, 15, 0, 0, time.UTC)

// Clock returns a clock that stands at [Start].
func Clock() clock.Clock { return clock.NewVirtual(Start) }

// Size is how large a regular run is.
type Size struct{ Items, Providers, Repeats int }

// Provider returns the id of column c, from 0.
func Provider(c int) string { return fmt.Sprintf("p%d", c) }

// Head returns the head of a regular run.
func (s Size) Head() results.Head {
	head := results.Head{
		Dataset:    results.Dataset{Name: "regular", File: "datasets/regular.yaml", Hash: "7a1f0c33d2b94e58", Items: s.Items},
		Selected:   results.Selected{Items: s.Items, Repeat: s.Repeats},
		Mode:       "replay",
		Tools:      "replay",
		Lines:      s.Items * s.Providers * s.Repeats,
		Traces:     results.KeepAll,
		Invariants: []results.InvariantInfo{{Name: "tool-call-pairing", Severity: eval.SeverityError}, {Name: "one-terminal-event", Severity: eval.SeverityError}},
	}
	for c := range s.Providers {
		head.Providers = append(head.Providers, results.ProviderInfo{ID: Provider(c), Vendor: "script", Model: "m", AgentHash: "c2d95e71aa038b64", PromptHash: "90b1f4e2757cd6a3", ToolsHash: "3be86a0d1f94c752"})
	}
	return head
}

// Plan returns the plan of a regular run.
func (s Size) Plan() results.Plan {
	return results.Plan{Head: s.Head(), Each: func(yield func(results.Planned, error) bool) {
		for index := 1; index <= s.Items; index++ {
			for column := range s.Providers {
				for repeat := 1; repeat <= s.Repeats; repeat++ {
					line := Line(index, column, repeat)
					bare := eval.Result{V: eval.Version, Item: line.Item, Index: index, Provider: line.Provider, Repeat: repeat, Tags: line.Tags, ItemHash: line.ItemHash, ChecksHash: line.ChecksHash}
					if !yield(results.Planned{Line: bare, Column: column}, nil) {
						return
					}
				}
			}
		}
	}}
}

func ptr[T any](v T) *T { return &v }

// Line returns a line of a regular run: every tenth item fails, all else passes.
func Line(index, column, repeat int) eval.Result {
	line := eval.Result{
		V: eval.Version, Item: fmt.Sprintf("item-%06d", index), Index: index, Provider: Provider(column), Repeat: repeat, Tags: []string{"regular"},
		ItemHash: "51c0b8a2e97d4f06", ChecksHash: "0e4d2b7a91c3f855", Status: eval.Pass, Score: ptr(eval.Fraction(1)),
		Output: ptr("Call 112 now."), Stop: ptr("end"),
		Checks: []eval.CheckResult{{
			Name: "contains", Status: eval.CheckPass, Score: ptr(eval.Fraction(1)), Threshold: 1, Weight: 1,
			Expected: ptr("112"), Actual: ptr("Call 112 now."), At: "datasets/regular.yaml:31:9",
		}},
		Invariants: eval.Invariants{Held: 2},
		Cassette:   &eval.CassetteInfo{File: fmt.Sprintf("fixtures/cassettes/regular/%s/item-%06d.yaml", Provider(column), index), State: eval.CassetteFresh},
		Usage:      eval.Usage{InputTokens: 812, OutputTokens: 96}, CostUSD: ptr(money.USD(1_292_000)),
		LatencyMS: ptr(int64(1000 + index*7919%1000)), TTFTMS: ptr(int64(100 + index*104729%300)), Turns: 1, Steps: 2, ToolCalls: 1,
	}
	if index%10 == 0 {
		line.Status, line.Cause, line.Score = eval.Fail, ptr(eval.CauseCheck), ptr(eval.Fraction(0))
		line.Output = ptr("Please wait.")
		check := &line.Checks[0]
		check.Status, check.Score, check.Actual, check.Reason = eval.CheckFail, ptr(eval.Fraction(0)), ptr("Please wait."), "not found"
	}
	return line
}

// RawTrace returns the trace of a regular line, about size bytes long.
func RawTrace(line eval.Result, size int) []byte {
	head := fmt.Sprintf(`{"v":1,"item":{"id":%q,"input":"`, line.Item)
	return []byte(head + strings.Repeat("x", max(0, size-len(head)-len(`"},"events":[]}`))) + `"},"events":[]}`)
}
