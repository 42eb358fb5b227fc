// Package eval is what every backend of an experiment shares: the line that one item leaves behind in results.jsonl, with its status, checks, invariants, cost and place in the traces.
//
// Shapes follow the results contract: fractions have at most six decimals, money nine, durations are whole milliseconds, counts are integers, what is not known is null, and every key is always present and in order.
package eval

import (
	"math"
	"strconv"

	"github.com/echoeval/echoeval/core/money"
)

// Version is the format version of a result line.
const Version = 1

// Status is the verdict on one item, provider and repeat.
type Status string

// The statuses, in the order in which they are decided: the first that holds counts.
const (
	Skipped  Status = "skipped"
	NotRun   Status = "not_run"
	Stale    Status = "stale"
	Error    Status = "error"
	Fail     Status = "fail"
	Unjudged Status = "unjudged"
	Pass     Status = "pass"
)

// Statuses lists all of them in the order in which counts are shown.
var Statuses = []Status{Pass, Fail, Unjudged, Error, Stale, NotRun, Skipped}

// Causes of a status other than pass. The cause of an error is its kind; see [ErrorKind].
const (
	CauseDataset     = "dataset"
	CauseInterrupted = "interrupted"
	CauseBudget      = "budget"
	CauseMissing     = "missing"
	CauseDrift       = "drift"
	CauseLeftOver    = "left_over"
	CauseUnreadable  = "unreadable"
	CauseSecret      = "secret" // what was recorded held one and was put aside
	CauseTimeout     = "timeout"
	CauseCheck       = "check"
	CauseInvariant   = "invariant"
	CauseAgent       = "agent"
	CauseIterations  = "iterations"
	CauseLimit       = "limit"
	CauseJudgeAnswer = "judge_answer"
	CauseCheckCrash  = "check_crash"
)

// ErrorKind says which part of the world failed an item.
type ErrorKind string

// The kinds.
const (
	ErrProvider ErrorKind = "provider"
	ErrTool     ErrorKind = "tool"
	ErrJudge    ErrorKind = "judge"
	ErrTarget   ErrorKind = "target" // the program under test; its failure is a verdict unless it never started
	ErrHarness  ErrorKind = "harness"
	ErrBudget   ErrorKind = "budget" // of a line that was not run because --max-cost does not cover it
)

// Fraction is a share or score in [0,1], written with at most six decimals.
type Fraction float64

// MarshalJSON writes at most six decimals.
func (f Fraction) MarshalJSON() ([]byte, error) { return f.AppendJSON(nil), nil }

// AppendJSON appends the fraction, rounded to six decimals; NaN and infinities become null.
func (f Fraction) AppendJSON(dst []byte) []byte {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(dst, "null"...)
	}
	v = math.Round(v*1e6) / 1e6
	return strconv.AppendFloat(dst, v+0, 'f', -1, 64)
}

// Result is one line of results.jsonl: one item on one provider, one repeat.
type Result struct {
	V           int           `json:"v"`
	Item        string        `json:"item"`
	Index       int           `json:"index"`
	Provider    string        `json:"provider"`
	Repeat      int           `json:"repeat"`
	Group       *string       `json:"group"`
	Tags        []string      `json:"tags"`
	Quarantined bool          `json:"quarantined"`
	ItemHash    string        `json:"item_hash"`
	ChecksHash  string        `json:"checks_hash"`
	Status      Status        `json:"status"`
	Cause       *string       `json:"cause"`
	Score       *Fraction     `json:"score"`
	Output      *string       `json:"output"`
	OutputCut   bool          `json:"output_cut"`
	Stop        *string       `json:"stop"`
	Checks      []CheckResult `json:"checks"`
	Invariants  Invariants    `json:"invariants"`
	Error       *ErrorInfo    `json:"error"`
	Cassette    *CassetteInfo `json:"cassette"`
	Usage       Usage         `json:"usage"`
	CostUSD     *money.USD    `json:"cost_usd"`
	OverheadUSD money.USD     `json:"overhead_usd"`
	LatencyMS   *int64        `json:"latency_ms"`
	TTFTMS      *int64        `json:"ttft_ms"`
	Turns       int           `json:"turns"`
	Steps       int           `json:"steps"`
	ToolCalls   int           `json:"tool_calls"`
	Retries     int           `json:"retries"`
	// Faults are the faults that were injected into the item's recording, in the order of the plan; nil, and left out, where none were to be.
	Faults []FaultResult `json:"faults,omitzero"`
	Trace  *TracePlace   `json:"trace"`
}

// Key tells result lines apart.
type Key struct {
	Item     string
	Provider string
	Repeat   int
}

// Key returns the line's key.
func (r Result) Key() Key { return Key{Item: r.Item, Provider: r.Provider, Repeat: r.Repeat} }

// FaultStatus says whether the agent survived a fault.
type FaultStatus string

// The statuses. A fault that was not injected counts in no rate.
const (
	FaultSurvived    FaultStatus = "survived"
	FaultBroke       FaultStatus = "broke"
	FaultNotInjected FaultStatus = "not_injected"
)

// FaultResult is one fault that was injected into the recording of an item, or was to be. Name is that of the plan's entry, Kind its kind. Request is the number of the request to a model, from 1, whose reply bore the fault or held the call that did, and Call the number of that call; 0 for none.
// Ending says how the run ended: recorded, unrecorded (where the recording ends), error, broken, or else as Stop does. Violations are those that the agent or the harness is to blame for.
type FaultResult struct {
	Name       string      `json:"name"`
	Kind       string      `json:"kind"`
	Request    int         `json:"request"`
	Call       int         `json:"call"`
	Status     FaultStatus `json:"status"`
	Ending     string      `json:"ending"`
	Stop       string      `json:"stop"`
	Retries    int         `json:"retries"`
	Reason     string      `json:"reason"`
	Violations []Violation `json:"violations"`
}

// CheckStatus is the verdict of one check.
type CheckStatus string

// The verdicts of a check.
const (
	CheckPass     CheckStatus = "pass"
	CheckFail     CheckStatus = "fail"
	CheckUnjudged CheckStatus = "unjudged"
)

// CheckResult is one check on one item. Expected, Actual, Reason and each of the Edits are at most 500 characters.
type CheckResult struct {
	Name      string      `json:"name"`
	Turn      *int        `json:"turn"`
	Status    CheckStatus `json:"status"`
	Score     *Fraction   `json:"score"`
	Threshold Fraction    `json:"threshold"`
	Weight    Number      `json:"weight"`
	Required  bool        `json:"required"`
	Expected  *string     `json:"expected"`
	Actual    *string     `json:"actual"`
	Reason    string      `json:"reason"`
	At        string      `json:"at"`
	// Edits is the edit script of a check of tool calls that failed, at most 101 lines in the order of the calls made: "= 1 name{...}" as expected, "~ 1 name{...}: what differs", "+ 1 name{...}" not expected, "- 1: name{...}" expected and not made, and "  1 name{...}" free to be there. It is written only where there is one.
	Edits []string `json:"edits,omitempty"`
}

// Number is a weight, written with at most six decimals.
type Number float64

// MarshalJSON writes at most six decimals.
func (n Number) MarshalJSON() ([]byte, error) { return Fraction(n).AppendJSON(nil), nil }

// Invariants is what the invariants say of one item.
type Invariants struct {
	Held          int         `json:"held"`
	NotApplicable []string    `json:"not_applicable"`
	Triggered     []string    `json:"triggered"`
	Violations    []Violation `json:"violations"`
}

// Severity says whether a violation fails the item.
type Severity string

// The severities.
const (
	SeverityError Severity = "error"
	SeverityWarn  Severity = "warn"
)

// Violation is a broken invariant with the smallest witness: the numbers of the events that show it and what they hold.
type Violation struct {
	Name     string   `json:"name"`
	Severity Severity `json:"severity"`
	Events   []int    `json:"events"`
	Evidence string   `json:"evidence"`
	At       string   `json:"at"`
}

// ErrorInfo is why an item could not be judged.
type ErrorInfo struct {
	Kind       ErrorKind `json:"kind"`
	Code       *string   `json:"code"`
	HTTPStatus *int      `json:"http_status"`
	Message    string    `json:"message"`
	Retries    int       `json:"retries"`
	Hint       *string   `json:"hint"`
}

// CassetteState says how an item's recording fits.
type CassetteState string

// The states of a cassette.
const (
	CassetteFresh    CassetteState = "fresh"
	CassetteStale    CassetteState = "stale"
	CassetteMissing  CassetteState = "missing"
	CassetteRecorded CassetteState = "recorded"
	// CassetteExtended is a recording whose beginning was kept.
	CassetteExtended CassetteState = "extended"
)

// CassetteInfo is the recording that an item used. File is relative to the project root.
type CassetteInfo struct {
	File     string        `json:"file"`
	State    CassetteState `json:"state"`
	Drift    []Drift       `json:"drift"`
	LeftOver int           `json:"left_over"`
}

// Drift is one request that differs from the recording. Request counts the item's requests from 1; Path is a JSON path.
type Drift struct {
	Class   string `json:"class"`
	Request int    `json:"request"`
	Path    string `json:"path"`
	Old     string `json:"old"`
	New     string `json:"new"`
	Action  string `json:"action"`
}

// Usage counts an item's tokens.
type Usage struct {
	InputTokens       int `json:"input_tokens"`
	CachedInputTokens int `json:"cached_input_tokens"`
	OutputTokens      int `json:"output_tokens"`
	ReasoningTokens   int `json:"reasoning_tokens"`
}

// TracePlace is where in traces/ the item's trace stands: segment from 1, offset and length in bytes.
type TracePlace struct {
	Segment int   `json:"segment"`
	Offset  int64 `json:"offset"`
	Length  int64 `json:"length"`
}
