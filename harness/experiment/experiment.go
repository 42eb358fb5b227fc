// Package experiment runs a dataset: it plans which items run on which providers, runs them side by side, writes each finished item into the journal at once and folds the journal into results, traces and summary at the end.
//
// Whatever the concurrency, and however often a run was interrupted and resumed, the folded files have the same bytes.
package experiment

import (
	"net/http"
	"time"

	"github.com/echoeval/echoeval/core/agent"
	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/guard"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/inject"
	"github.com/echoeval/echoeval/harness/program"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/target"
)

// Column is one provider of a run with all that is needed to ask it.
type Column struct {
	Provider dataset.Provider
	Agent    agent.Config
	// Target is the program under test in place of the agent; nil where there is none. Such a column has no Model and no Live.
	Target *dataset.Target
	// Model builds the model of one item over the transport and on the clock of that item.
	Model func(item *dataset.Item, transport http.RoundTripper, c clock.Clock) (llm.Model, error)
	// Embedder builds, in place of Model, what turns texts into vectors; set in columns of [Options.Embedders] alone.
	Embedder func(transport http.RoundTripper, c clock.Clock) (llm.Embedder, error)
	// Live is the transport below the recorder; nil where the run must not dial.
	Live http.RoundTripper
	// Scripted models send no requests: there is nothing to record or replay but tools.
	Scripted bool
	Settings llm.Settings
	// Cost gives what tokens cost on this column; false where no price is known.
	Cost func(llm.Response) (money.USD, bool)
	// CostOf gives what tokens of a model of a vendor cost that a program under test asked; false where no price is known.
	CostOf func(vendor, model string, u conversation.Usage) (money.USD, bool)

	any bool // it stands for all that are wrong, and every item is for it
}

// Tools builds the tools of one item.
type Tools func(workspace Workspace) []tool.Tool

// Workspace gives the folder that the tools of one item see: the original while they only read, and from the first write on a copy of the item's own.
type Workspace = func(guard.Access) (*guard.Workspace, error)

// Options are what a run needs.
type Options struct {
	Dataset *dataset.Dataset
	Columns []Column
	// Users are the providers that play users, by id, made like columns.
	Users map[string]*Column
	// Judges are the providers that score answers, by id, made like columns.
	Judges map[string]*Column
	// Embedders are the providers that turn texts into vectors, by id.
	Embedders map[string]*Column
	Tools     Tools
	Mode      replay.Mode
	// OnlyStale records, in mode record, only what a replay finds missing or stale; what is fresh stays and is judged from its cassette.
	OnlyStale bool
	// Freeze, in mode record, holds a part of the world fixed to repeat 1 of each item, whose cassettes lie below Frozen.
	Freeze Freeze
	Frozen string
	// Repeat and Timeout override the items' own where they are set.
	Repeat  int
	Timeout time.Duration
	// RepeatMax is how often an item whose verdict is open is repeated at most, beyond Repeat, which is then set; 0 is never. It is at most [MaxRepeats].
	RepeatMax int
	// Parts are those that gates look at alone, Over the k of metrics over k repeats, Needs the gate that needs most repeats.
	Parts []gate.Limit
	Over  []int
	Needs Need
	Selection
	// Budget bounds what the run spends; nil is no bound. It is not asked in replay.
	Budget *Budget
	// Concurrency is how many items run at the same time; 0 means twice the processors in replay and 8 otherwise.
	Concurrency int
	Seed        uint64
	// RecordedAt begins the clock of a recording and makes it reproducible; zero means the time of the recording itself.
	RecordedAt    time.Time
	AllowLeftover bool
	// Drift says what is done about each class of drift; a class that is absent fails, but transport is served.
	Drift map[cassette.Class]replay.Action
	// Traces says which traces are kept.
	Traces results.Keep
	// Temp is the folder in which fresh workspaces are made.
	Temp string
	// Cassettes and Quarantine are absolute folders.
	Cassettes  string
	Quarantine string
	// Secrets finds what must never be written.
	Secrets secret.Detector
	Clock   clock.Clock
	// Programs runs the programs of command checks and of tools that an agent file describes; its workers end with the run. Nil where none may run.
	Programs *program.Pool
	// Targets runs the programs under test; its workers end with the run. Nil where no column has one.
	Targets *target.Pool
	// RecordCommand gives the command that records one item anew.
	RecordCommand func(item, provider string) string
	// ReplayOnly asks no invariant, and of the checks only those that ask a judge: the run is for what it says of the cassettes.
	ReplayOnly bool
	// Faults are injected into each recording, one at a time, in mode replay; nil for none.
	Faults *inject.Plan
	// Look is called for every line of the results, in their order, when they are put in order; nil for none.
	Look func(*eval.Result)
	// Progress is called after each item, from one goroutine at a time; nil for none.
	Progress func(Progress)
}

// Freeze is what a recording of noise holds fixed.
type Freeze string

// The parts. FreezeAgent leaves judges alone to be asked, FreezeTools the models.
const (
	FreezeNothing Freeze = ""
	FreezeAgent   Freeze = "agent"
	FreezeTools   Freeze = "tools"
)

// Need is a gate that has no data without so many repeats of an item.
type Need struct {
	Repeats int
	Metric  string
	Pos     failure.Position
}

// Progress is how far a run is.
type Progress struct {
	Done, Total int
	Counts      map[eval.Status]int
	Last        eval.Result
}
