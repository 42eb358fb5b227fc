package results

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/money"
)

// Summary is summary.json: every number that a report or gate uses. All keys are always present, in this order; what is not known is null.
type Summary struct {
	V           int              `json:"v"`
	Dataset     Dataset          `json:"dataset"`
	Selected    Selected         `json:"selected"`
	Mode        string           `json:"mode"`
	Tools       string           `json:"tools"`
	Complete    bool             `json:"complete"`
	Verdict     Verdict          `json:"verdict"`
	Counts      Counts           `json:"counts"`
	Providers   []Provider       `json:"providers"`
	Invariants  []Invariant      `json:"invariants"`
	Gates       []Gate           `json:"gates"`
	Regression  *Regression      `json:"regression"`
	Pairs       []Pair           `json:"pairs"`
	Quarantined List[Quarantine] `json:"quarantined"`
	Cassettes   Cassettes        `json:"cassettes"`
	Cost        Cost             `json:"cost"`
	Power       []Power          `json:"power"`
	// Faults has an entry for each fault and column, in the order of the plan; nil, and left out, where none were injected.
	Faults   []Fault   `json:"faults,omitzero"`
	Warnings []Warning `json:"warnings"`
	// Causes are why lines got no verdict, or a program under test failed them, each said once: at most [mostCauses]. It is there only where there are any.
	Causes []Cause `json:"causes,omitzero"`
}

// mostCauses is how many causes a summary holds.
const mostCauses = 50

// Dataset names what was run. Hash covers the file, its libraries, the project's defaults and the items as resolved; Items is all there are.
type Dataset struct {
	Name  string `json:"name"`
	File  string `json:"file"`
	Hash  string `json:"hash"`
	Items int    `json:"items"`
}

// Selected says which items were to run and how often; the texts are as given on the command line. RepeatMax is absent unless items whose verdict is open were to be repeated up to so often; the first Repeat of them are those that rates and comparisons count.
type Selected struct {
	Items     int     `json:"items"`
	Repeat    int     `json:"repeat"`
	RepeatMax *int    `json:"repeat_max,omitzero"`
	Filter    *string `json:"filter"`
	Sample    *string `json:"sample"`
	Only      *string `json:"only"`
}

// Counted is how many repeats of an item, the first ones, rates and comparisons count; 0 is all.
func (s *Selected) Counted() int {
	if s.RepeatMax == nil {
		return 0
	}
	return s.Repeat
}

// Verdict is the outcome in one line, the exit code that goes with it, and every reason that holds, in order of precedence.
type Verdict struct {
	Code    failure.Code `json:"code"`
	Text    string       `json:"text"`
	Reasons []Reason     `json:"reasons"`
}

// Reason is one thing that keeps a run from exit code 0. Items counts the items concerned, where they can be counted.
type Reason struct {
	Code     failure.Code `json:"code"`
	Kind     string       `json:"kind"`
	Gate     *string      `json:"gate"`
	Provider *string      `json:"provider"`
	Items    *int         `json:"items"`
	Text     string       `json:"text"`
	Hint     *string      `json:"hint"`
}

// The kinds of [Reason].
const (
	KindInterrupted  = "interrupted"
	KindInput        = "input"
	KindHarness      = "harness"
	KindCassette     = "cassette"
	KindGate         = "gate"
	KindRegression   = "regression"
	KindUnavailable  = "unavailable"
	KindInconclusive = "inconclusive"
)

// Counts counts lines by status.
type Counts struct {
	Pass     int `json:"pass"`
	Fail     int `json:"fail"`
	Unjudged int `json:"unjudged"`
	Error    int `json:"error"`
	Stale    int `json:"stale"`
	NotRun   int `json:"not_run"`
	Skipped  int `json:"skipped"`
}

// Add adds the counts of another part.
func (c *Counts) Add(more Counts) {
	for _, s := range eval.Statuses {
		*c.of(s) += *more.of(s)
	}
}

func (c *Counts) of(s eval.Status) *int {
	switch s {
	case eval.Pass:
		return &c.Pass
	case eval.Fail:
		return &c.Fail
	case eval.Unjudged:
		return &c.Unjudged
	case eval.Error:
		return &c.Error
	case eval.Stale:
		return &c.Stale
	case eval.NotRun:
		return &c.NotRun
	case eval.Skipped:
		return &c.Skipped
	}
	return nil
}

// Of returns the number of lines with the status; 0 for one that does not exist.
func (c Counts) Of(s eval.Status) int {
	if n := c.of(s); n != nil {
		return *n
	}
	return 0
}

// Total is the number of all lines.
func (c Counts) Total() int {
	return c.Pass + c.Fail + c.Unjudged + c.Error + c.Stale + c.NotRun + c.Skipped
}

// Provider is one column: what it is and what came of it. Unpriced counts lines whose cost is not known; they are left out of sums.
//
// Flaky are the items whose repeats disagree and that set no pass_if; Tolerated, absent where there are none, those that set one, keep it, and failed at least once.
type Provider struct {
	ProviderInfo
	Counts    Counts      `json:"counts"`
	Metrics   Metrics     `json:"metrics"`
	Checks    []Check     `json:"checks"`
	Flaky     List[Flaky] `json:"flaky"`
	Tolerated List[Flaky] `json:"tolerated,omitzero"`
	Unpriced  int         `json:"unpriced"`
}

// ProviderInfo identifies a column.
type ProviderInfo struct {
	ID         string `json:"id"`
	Vendor     string `json:"vendor"`
	Model      string `json:"model"`
	AgentHash  string `json:"agent_hash"`
	PromptHash string `json:"prompt_hash"`
	ToolsHash  string `json:"tools_hash"`
}

// Number is the value of a metric, already rounded to what its unit allows. It is written without an exponent.
type Number float64

// MarshalJSON writes the shortest decimal, and null for what is no number.
func (n Number) MarshalJSON() ([]byte, error) { return n.AppendJSON(nil), nil }

// AppendJSON appends what [Number.MarshalJSON] writes.
func (n Number) AppendJSON(dst []byte) []byte {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return append(dst, "null"...)
	}
	return strconv.AppendFloat(dst, float64(n)+0, 'f', -1, 64)
}

// String is the text of [Number.AppendJSON].
func (n Number) String() string { return string(n.AppendJSON(nil)) }

// Metric is one number about a column with its interval of 95 %: from N lines in Clusters clusters (items or groups), by the Method.
type Metric struct {
	Value    *Number `json:"value"`
	Low      *Number `json:"low"`
	High     *Number `json:"high"`
	N        int     `json:"n"`
	Clusters int     `json:"clusters"`
	Method   string  `json:"method"`
}

// The methods of a [Metric].
const (
	MethodWilson     = "wilson"      // the interval of a rate
	MethodT          = "t"           // the interval of a mean, each item once
	MethodClusteredT = "clustered-t" // the same over item means or groups
	MethodQuantile   = "quantile"    // nearest rank, no interval
	MethodTotal      = "total"       // a sum, no interval
)

// Metrics are a column's metrics by name. They are written in the order of [MetricTable].
type Metrics map[string]Metric

// MarshalJSONTo writes the metrics in the order of the table, then those it does not have by name.
func (m Metrics) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, name := range m.Names() {
		if err := enc.WriteToken(jsontext.String(name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, m[name]); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// Names returns the names in the order in which they are written.
func (m Metrics) Names() []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	place := func(name string) int {
		if i := slices.IndexFunc(MetricTable, func(k MetricKind) bool { return k.Name == name }); i >= 0 {
			return i
		}
		return len(MetricTable)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := place(a) - place(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return names
}

// Unit is what a metric counts.
type Unit string

// The units. A fraction lies in [0,1].
const (
	UnitFraction Unit = "fraction"
	UnitCount    Unit = "count"
	UnitUSD      Unit = "USD"
	UnitMS       Unit = "ms"
)

// Format writes a value for people: fractions with three decimals, unless that would make one of a value that is less, or nothing of one that is more; money with a dollar sign; durations in ms.
func (u Unit) Format(n Number) string {
	v := float64(n)
	short := func(decimals int) string {
		scale := math.Pow(10, float64(decimals))
		return Number(math.Round(v*scale) / scale).String()
	}
	switch u {
	case UnitFraction:
		if text := short(3); v == 0 || v == 1 || text != "0" && text != "1" {
			return text
		}
		return short(6)
	case UnitUSD:
		if text := short(4); v == 0 || text != "0" {
			return "$" + text
		}
		return "$" + short(9)
	case UnitMS:
		return short(0) + " ms"
	}
	return short(2)
}

// MetricKind is a metric that this version computes and gates may bound.
type MetricKind struct {
	Name string
	Unit Unit
	// Doc says in a few words what it is.
	Doc string
}

// MetricTable lists the metrics in the order of reports and summaries.
var MetricTable = []MetricKind{
	{"pass_rate", UnitFraction, "mean over items of the share of judged repeats that passed"},
	{"score", UnitFraction, "mean over items of their mean score"},
	{"item_pass_rate", UnitFraction, "share of items all of whose judged repeats passed"},
	{"error_rate", UnitFraction, "share of lines that could not be judged: error, unjudged, not run for the budget"},
	{"invariant_violations", UnitCount, "violations of severity error, in all"},
	{"tokens", UnitCount, "input and output tokens, in all"},
	{"steps", UnitCount, "model steps, mean over items"},
	{"tool_calls", UnitCount, "executed tool calls, mean over items"},
	{"cost_usd", UnitUSD, "cost of the agent, in all"},
	{"cost_usd_per_item", UnitUSD, "cost of the agent, mean over items"},
	{"p50_latency", UnitMS, "median of the agent's waiting for models and tools"},
	{"p95_latency", UnitMS, "95th percentile of it"},
	{"mean_latency", UnitMS, "mean over items of it"},
	{"p50_ttft", UnitMS, "median time to the first text"},
	{FaultSurvival, UnitFraction, "mean over items of the share of injected faults that the agent survived; with --faults alone"},
}

// FaultSurvival is the metric of runs that inject faults.
const FaultSurvival = "fault_survival"

// FindMetric returns the metric of that name: one of [MetricTable], or pass_at_K and pass_hat_K for any K.
func FindMetric(name string) (MetricKind, bool) {
	for _, kind := range MetricTable {
		if kind.Name == name {
			return kind, true
		}
	}
	switch k := RepeatsOf(name); {
	case k == 0:
	case strings.HasPrefix(name, passAt):
		return MetricKind{name, UnitFraction, "probability that at least one of " + strconv.Itoa(k) + " repeats passes"}, true
	default:
		return MetricKind{name, UnitFraction, "probability that all of " + strconv.Itoa(k) + " repeats pass"}, true
	}
	return MetricKind{}, false
}

// Check is one check of a column over all lines that are not quarantined. Score is the mean over the verdicts.
type Check struct {
	Name     string         `json:"name"`
	N        int            `json:"n"`
	Pass     int            `json:"pass"`
	Fail     int            `json:"fail"`
	Unjudged int            `json:"unjudged"`
	Score    *eval.Fraction `json:"score"`
}

// Flaky is an item whose repeats disagree.
type Flaky struct {
	Item   string `json:"item"`
	Passed int    `json:"passed"`
	Of     int    `json:"of"`
}

// Key is an item on a provider.
type Key struct{ Item, Provider string }

// Apart are the items whose repeats disagree and that are therefore no failures: Flaky and Tolerated, as far as they are listed.
func (s *Summary) Apart() map[Key]bool {
	out := map[Key]bool{}
	for i := range s.Providers {
		p := &s.Providers[i]
		for _, list := range [][]Flaky{p.Flaky.Items, p.Tolerated.Items} {
			for _, f := range list {
				out[Key{f.Item, p.ID}] = true
			}
		}
	}
	return out
}

// ListLimit is how many entries a list of items in the summary holds at most.
const ListLimit = 1_000

// List is a list of items: Count is how many there are, Items the first [ListLimit] in the dataset's order.
type List[T any] struct {
	Count int `json:"count"`
	Items []T `json:"items"`
}

// Add counts an entry and keeps it if there is room.
func (l *List[T]) Add(entry T) {
	l.Count++
	if len(l.Items) < ListLimit {
		l.Items = append(l.Items, entry)
	}
}

// IDs is a list of item ids, see [List].
type IDs struct {
	Count int      `json:"count"`
	IDs   []string `json:"ids"`
}

// Invariant is one invariant over the lines of all columns. Evaluated leaves out the lines where it was not applicable.
type Invariant struct {
	Name          string        `json:"name"`
	Severity      eval.Severity `json:"severity"`
	Evaluated     int           `json:"evaluated"`
	Triggered     int           `json:"triggered"`
	Violated      int           `json:"violated"`
	NotApplicable int           `json:"not_applicable"`
}

// Gate is a bound on a column's metric and whether it holds. Bound is null where the dataset switched the gate off; Default says that the dataset does not name it.
type Gate struct {
	Metric   string     `json:"metric"`
	Provider string     `json:"provider"`
	Where    *string    `json:"where"`
	Bound    *string    `json:"bound"`
	Value    *Number    `json:"value"`
	N        int        `json:"n"`
	Status   GateStatus `json:"status"`
	Default  bool       `json:"default"`
}

// GateStatus says whether a gate holds.
type GateStatus string

// The states of a gate. NoData counts as failed.
const (
	GateHolds        GateStatus = "holds"
	GateFailed       GateStatus = "failed"
	GateNoData       GateStatus = "no_data"
	GateOff          GateStatus = "off"
	GateInconclusive GateStatus = "inconclusive"
)

// Regression compares the run with a baseline.
type Regression struct {
	Baseline    Baseline     `json:"baseline"`
	Changed     []string     `json:"changed"`
	Comparisons []Comparison `json:"comparisons"`
	Items       Moved        `json:"items"`
}

// Baseline names what a run was compared with. From is "file", or "git:REV" where it was read at the merge base with that revision. Hash is null where there is no such file there. EditedHere says that the file of the working tree differs from the one at the merge base; it is null where git was not asked.
type Baseline struct {
	File       string  `json:"file"`
	From       string  `json:"from"`
	Hash       *string `json:"hash"`
	EditedHere *bool   `json:"edited_here"`
}

// Comparison is one metric of one column against the baseline, in the metric's unit. Tag and Check limit it as they limit the gate that asks for it; nil does not.
type Comparison struct {
	Provider       string  `json:"provider"`
	Metric         string  `json:"metric"`
	Tag            *string `json:"tag,omitempty"`
	Check          *string `json:"check,omitempty"`
	Pairs          int     `json:"pairs"`
	Before         *Number `json:"before"`
	Now            *Number `json:"now"`
	Difference     *Number `json:"difference"`
	Low            *Number `json:"low"`
	High           *Number `json:"high"`
	P              *Number `json:"p"`
	PAdjusted      *Number `json:"p_adjusted"`
	Method         string  `json:"method"`
	MaxDrop        *Number `json:"max_drop"`
	Status         string  `json:"status"`
	DetectableDrop *Number `json:"detectable_drop"`
	ItemsNeeded    *int    `json:"items_needed"`
}

// Where is what the comparison looks at; the zero value is everything.
func (c *Comparison) Where() (w Where) {
	if c.Tag != nil {
		w.Tag = *c.Tag
	}
	if c.Check != nil {
		w.Check = *c.Check
	}
	return w
}

// The states of a [Comparison]. NoBaseline counts as inconclusive.
const (
	CompareRegressed    = "regressed"
	CompareNotWorse     = "not_worse"
	CompareInconclusive = "inconclusive"
	CompareNoBaseline   = "no_baseline"
)

// Moved lists the items by their verdict against the baseline.
type Moved struct {
	Worse         IDs `json:"worse"`
	Better        IDs `json:"better"`
	New           IDs `json:"new"`
	Removed       IDs `json:"removed"`
	Changed       IDs `json:"changed"`
	NewViolations IDs `json:"new_violations"`
}

// Pair compares two columns of the run.
type Pair struct {
	A          string  `json:"a"`
	B          string  `json:"b"`
	Metric     string  `json:"metric"`
	Pairs      int     `json:"pairs"`
	Difference *Number `json:"difference"`
	Low        *Number `json:"low"`
	High       *Number `json:"high"`
	P          *Number `json:"p"`
	PAdjusted  *Number `json:"p_adjusted"`
	Method     string  `json:"method"`
	Disagree   int     `json:"disagree"`
}

// Quarantine is an item whose verdict does not count until a day; Over says that the day has passed.
type Quarantine struct {
	Item   string `json:"item"`
	Owner  string `json:"owner"`
	Until  string `json:"until"`
	Reason string `json:"reason"`
	Over   bool   `json:"over"`
}

// Cassettes counts lines by the state of their recording. ByClass counts stale lines by drift class.
type Cassettes struct {
	Fresh             int            `json:"fresh"`
	Stale             int            `json:"stale"`
	Missing           int            `json:"missing"`
	Orphaned          int            `json:"orphaned"`
	ByClass           map[string]int `json:"by_class"`
	ServedAcrossDrift int            `json:"served_across_drift"`
}

// Cost is money as recorded; SpentNowUSD is what this run paid itself.
type Cost struct {
	AgentUSD    money.USD `json:"agent_usd"`
	OverheadUSD money.USD `json:"overhead_usd"`
	SpentNowUSD money.USD `json:"spent_now_usd"`
	// Budget is there only where the budget left lines out.
	Budget *Budget `json:"budget,omitzero"`
}

// Budget is what a run did with --max-cost that left lines out. SpentUSD counts items that were cut off too, and what the run paid before it was resumed. NextUSD is what the call may have cost that was refused.
type Budget struct {
	LimitUSD money.USD `json:"limit_usd"`
	SpentUSD money.USD `json:"spent_usd"`
	NextUSD  money.USD `json:"next_usd"`
}

// String gives the three figures.
func (b *Budget) String() string {
	return fmt.Sprintf("--max-cost %s USD does not cover the next call: %s are spent, and it may cost %s", b.LimitUSD, b.SpentUSD, b.NextUSD)
}

// Power is the smallest drop that the dataset can see at 80 % power.
type Power struct {
	Provider       string  `json:"provider"`
	Metric         string  `json:"metric"`
	DetectableDrop *Number `json:"detectable_drop"`
}

// Fault is what came of one fault on one column, over all lines that count. Injected is how often there was a place for it, Survived how often the agent bore it, Absent how often a recording had no place for it or none that could be compared. Broke are the items on which it did not, Reason is why on the first of them.
type Fault struct {
	Name     string  `json:"name"`
	Kind     string  `json:"kind"`
	Provider string  `json:"provider"`
	Injected int     `json:"injected"`
	Survived int     `json:"survived"`
	Absent   int     `json:"absent"`
	Broke    IDs     `json:"broke"`
	Reason   *string `json:"reason"`
}

// Warning is something legitimate that a reader should know. At is file:line:column.
type Warning struct {
	Code string  `json:"code"`
	Text string  `json:"text"`
	At   *string `json:"at"`
	Hint *string `json:"hint"`
}

// encodeOptions make every file of a run: deterministic, and never refusing text that is not UTF-8.
var encodeOptions = json.JoinOptions(json.Deterministic(true), jsontext.AllowInvalidUTF8(true))

// AppendJSON appends the summary as one line without its end.
func (s *Summary) AppendJSON(dst []byte) ([]byte, error) {
	data, err := json.Marshal(s, encodeOptions)
	return append(dst, data...), err
}
