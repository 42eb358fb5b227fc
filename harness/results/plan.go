package results

import (
	"iter"

	"github.com/echoeval/echoeval/core/eval"
)

// Head is what is known of a run before its first item: it stands in the manifest, so that also a run that was killed can be reported.
type Head struct {
	Dataset   Dataset        `json:"dataset"`
	Selected  Selected       `json:"selected"`
	Mode      string         `json:"mode"`
	Tools     string         `json:"tools"`
	Providers []ProviderInfo `json:"providers"`
	// Lines is how many result lines a whole run has: items x providers x repeats.
	Lines int `json:"lines"`
	// Inputs is the hash of the folders that items start from, which Dataset.Hash does not cover.
	Inputs string `json:"inputs"`
	// Traces says which traces the fold keeps.
	Traces Keep `json:"traces"`
	// Invariants are those that the run evaluates, in the order of reports.
	Invariants []InvariantInfo `json:"invariants"`
	// Faults are those that are injected into each recording, in the order of the plan; nil, and left out, where none are.
	Faults []FaultInfo `json:"faults,omitzero"`
}

// FaultInfo is a fault of the run: the name that tells it apart, its kind, and a hash of all that its plan says of it.
type FaultInfo struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Hash string `json:"hash"`
}

// InvariantInfo is an invariant of the run. Rule says that a user wrote it, and that one which never triggers deserves a warning.
type InvariantInfo struct {
	Name     string        `json:"name"`
	Severity eval.Severity `json:"severity"`
	Rule     bool          `json:"rule"`
}

// Keep says which traces are kept.
type Keep string

// What --traces takes.
const (
	KeepAll    Keep = "all"
	KeepFailed Keep = "failed" // of the lines that did not pass
)

// Planned is a line that a whole run has, as [Plan.Each] yields it. Line holds what is known without running it: item, index, provider, repeat, group, tags, quarantined and the two hashes.
type Planned struct {
	Line   eval.Result
	Column int
}

// Plan is what [Fold] needs beside the journal.
type Plan struct {
	Head
	// Each yields every line of the run in the order index, column, repeat. It is asked only where the journal has fewer lines than Head.Lines, and may be nil where that cannot happen. Nothing of what it yields is kept.
	Each iter.Seq2[Planned, error]
	// NotRun is the cause of the lines that never finished: eval.CauseInterrupted (the default) or eval.CauseBudget.
	NotRun string
	// Budget is what was left of --max-cost, where NotRun is eval.CauseBudget.
	Budget *Budget
	// PassIf returns the condition that an item sets on the share of its judged repeats that passed, or nil. It is asked once per item and column; nil means that no item sets one.
	PassIf func(index int) func(share float64) bool
	// Over are the k of the metrics pass_at_k and pass_hat_k that the summary holds beside those of Selected.Repeat.
	Over []int
	// Parts are those that gates look at alone.
	Parts []Where
	// Dropped returns the names of the invariants that the item dropped. It is asked only for lines that evaluated fewer than all.
	Dropped func(index int) []string
	// Orphaned counts cassettes that belong to no item.
	Orphaned    int
	Quarantined []Quarantine
	Warnings    []Warning
	// Look is called for every line, in the order of the results and before Judge; nil where nobody wants to. The line is valid until it returns.
	Look func(*eval.Result)
	// Judge fills in the summary's gates and verdict before it is written; nil leaves them empty.
	Judge func(*Summary, Tally)
}

// Tally is what a verdict is made of beyond the numbers of the summary.
type Tally struct {
	// Columns has an entry per provider, in their order.
	Columns []ColumnTally
	// Causes groups the lines that did not get a verdict, see [Causes.List].
	Causes []Cause
	// Harness counts the lines that the harness itself failed.
	Harness int
	// Parts has an entry for each of [Plan.Parts].
	Parts []Part
}

// ColumnTally counts the items of one column. Quarantined items are left out, but for violations.
type ColumnTally struct {
	Failed      int // with a failed line, or whose repeats do not keep pass_if
	Unavailable int // with a line that could not be judged: error, unjudged, not run for the budget
	Violated    int // with a violation of severity error
}
