package results

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/harness/stats"
)

// aggregate makes the numbers of the summary from lines that come in the order of the plan. It holds what is common to all items, and of each line only the numbers that quantiles need.
type aggregate struct {
	plan       Plan
	columns    []*column
	parts      [][]*column // by part, column
	index      int         // of the item that is being added
	over       []int       // the k of pass_at_k and pass_hat_k
	pairs      []pair
	invariants []Invariant
	byName     map[string]int // place in invariants
	declared   int            // how many of them the plan knows
	causes     Causes
	cassettes  Cassettes
	served     List[string] // items
	servedLast int
	harness    int
	overhead   money.USD
	spent      money.USD // by lines that asked the vendor
}

type column struct {
	info   ProviderInfo
	counts Counts
	tally  ColumnTally

	// The item whose repeats are being added; index 0 for none.
	item                               eval.Result
	judged, passed                     int
	failed, unavailable, violated, cut bool
	// share is the one that passed of the counted repeats of the item that was closed last, of how many.
	share   float64
	counted int
	group   *string

	passRate, score, itemPass, errorRate, steps, calls, cost, latency, survival mean
	atK, hatK                                                                   []mean // by place in aggregate.over

	latencies, ttfts []int64
	looked           int // lines that ran, so that invariants were looked at and tokens counted
	items            struct{ looked, priced, timed, begun int }
	isLooked         bool // the pending item ran
	isBegun          bool // the pending item's first text is timed
	violations       int
	tokens           int
	costs            money.USD
	priced, unpriced int
	checks           []Check
	scores           []stats.Clusters
	checkByName      map[string]int
	flaky, tolerated List[Flaky]
	faults           []Fault
}

// pair compares two columns of the run.
type pair struct {
	a, b     int
	shares   stats.Pairs
	disagree int
}

func newAggregate(plan Plan) *aggregate {
	a := &aggregate{plan: plan, byName: map[string]int{}, declared: len(plan.Invariants), over: slices.Clone(plan.Over)}
	if plan.Selected.Repeat > 1 {
		a.over = append(a.over, plan.Selected.Repeat)
	}
	slices.Sort(a.over)
	a.over = slices.Compact(a.over)
	a.columns = a.newColumns()
	for range plan.Parts {
		a.parts = append(a.parts, a.newColumns())
	}
	for i := range a.columns {
		for k := i + 1; k < len(a.columns); k++ {
			a.pairs = append(a.pairs, pair{a: i, b: k, shares: stats.Pairs{Scale: 1}})
		}
	}
	for _, inv := range plan.Invariants {
		a.invariant(inv.Name, inv.Severity)
	}
	return a
}

func (a *aggregate) newColumns() []*column {
	var out []*column
	for _, info := range a.plan.Providers {
		c := &column{info: info, checkByName: map[string]int{}, atK: make([]mean, len(a.over)), hatK: make([]mean, len(a.over))}
		for _, f := range a.plan.Faults {
			c.faults = append(c.faults, Fault{Name: f.Name, Kind: f.Kind, Provider: info.ID, Broke: IDs{IDs: []string{}}})
		}
		out = append(out, c)
	}
	return out
}

func (a *aggregate) invariant(name string, severity eval.Severity) *Invariant {
	i, ok := a.byName[name]
	if !ok {
		i = len(a.invariants)
		a.byName[name] = i
		a.invariants = append(a.invariants, Invariant{Name: name, Severity: severity})
	}
	return &a.invariants[i]
}

// add takes the next line.
func (a *aggregate) add(place int, r *eval.Result) error {
	if place >= len(a.columns) || a.columns[place].info.ID != r.Provider {
		return fmt.Errorf("item %q: provider %q is not column %d of the plan", r.Item, r.Provider, place+1)
	}
	c := a.columns[place]
	count := c.counts.of(r.Status)
	if count == nil {
		return fmt.Errorf("item %q: unknown status %q", r.Item, string(r.Status))
	}
	*count++
	if a.index != r.Index {
		a.closeItem()
		a.index = r.Index
	}
	a.causes.Add(r)
	a.addWorld(r)
	a.addInvariants(r)
	a.addLine(c, r)
	for i, columns := range a.parts {
		if seen, ok := a.plan.Parts[i].Of(r); ok {
			a.addLine(columns[place], seen)
		}
	}
	return nil
}

// addLine counts a line in a column. A repeat that was added for what came of the first ones tells of its item and of money, but counts in no rate.
func (a *aggregate) addLine(c *column, r *eval.Result) {
	if c.item.Index == 0 {
		c.item = *r
	}
	counted := a.plan.Selected.Counted() == 0 || r.Repeat <= a.plan.Selected.Counted()
	c.addViolations(r)
	c.addVerdict(r, counted)
	c.addChecks(r)
	c.addNumbers(r, counted)
	if counted {
		c.addFaults(r)
	}
}

// addFaults counts what came of the faults of a line.
func (c *column) addFaults(r *eval.Result) {
	if r.Quarantined {
		return
	}
	for i := range r.Faults {
		f := &r.Faults[i]
		at := slices.IndexFunc(c.faults, func(sum Fault) bool { return sum.Name == f.Name })
		if at < 0 {
			continue
		}
		sum := &c.faults[at]
		if f.Status == eval.FaultNotInjected {
			sum.Absent++
			continue
		}
		survived := f.Status == eval.FaultSurvived
		c.survival.add(truth(survived))
		sum.Injected++
		if survived {
			sum.Survived++
			continue
		}
		if sum.Reason == nil {
			reason := f.Reason
			sum.Reason = &reason
		}
		if n := len(sum.Broke.IDs); n == 0 || sum.Broke.IDs[n-1] != r.Item {
			sum.Broke.Count++
			if n < ListLimit {
				sum.Broke.IDs = append(sum.Broke.IDs, r.Item)
			}
		}
	}
}

// closeItem closes the item whose lines were added, on all columns, and pairs the columns.
func (a *aggregate) closeItem() {
	for _, c := range a.columns {
		a.flush(c)
	}
	for _, columns := range a.parts {
		for _, c := range columns {
			a.flush(c)
		}
	}
	for i := range a.pairs {
		p := &a.pairs[i]
		x, y := a.columns[p.a], a.columns[p.b]
		if x.counted == 0 || y.counted == 0 {
			continue
		}
		p.shares.Add(x.share, y.share, x.group, x.counted == 1 && y.counted == 1)
		if x.share != y.share {
			p.disagree++
		}
	}
	for _, c := range a.columns {
		c.counted = 0
	}
}

// Paid is what a line of a run that is no replay cost when it ran, as far as that is known; nothing where it was served from its cassette.
func Paid(r *eval.Result) money.USD {
	if r.Cassette != nil && r.Cassette.State != eval.CassetteRecorded && r.Cassette.State != eval.CassetteExtended {
		return 0
	}
	sum := r.OverheadUSD
	if r.CostUSD != nil {
		sum += *r.CostUSD
	}
	return sum
}

// addWorld counts what does not belong to a column: cassettes, money, the harness.
func (a *aggregate) addWorld(r *eval.Result) {
	a.overhead += r.OverheadUSD
	if a.plan.Mode != replayMode {
		a.spent += Paid(r)
	}
	if r.Status == eval.Error && r.Cause != nil && *r.Cause == string(eval.ErrHarness) {
		a.harness++
	}
	if r.Cassette == nil {
		return
	}
	switch r.Cassette.State {
	case eval.CassetteFresh:
		a.cassettes.Fresh++
	case eval.CassetteStale:
		a.cassettes.Stale++
	case eval.CassetteMissing:
		a.cassettes.Missing++
	}
	served, classes := false, map[string]bool{}
	for _, d := range r.Cassette.Drift {
		switch {
		case Served(d):
			served = true
		case r.Status == eval.Stale && !classes[d.Class]:
			classes[d.Class] = true
			if a.cassettes.ByClass == nil {
				a.cassettes.ByClass = map[string]int{}
			}
			a.cassettes.ByClass[d.Class]++
		}
	}
	if served {
		a.cassettes.ServedAcrossDrift++
		if a.servedLast != r.Index {
			a.servedLast = r.Index
			a.served.Add(r.Item)
		}
	}
}

// replayMode is the mode in which nothing is paid.
const replayMode = "replay"

// ran reports whether the line's item was begun.
func ran(r *eval.Result) bool { return r.Status != eval.Skipped && r.Status != eval.NotRun }

func (c *column) addViolations(r *eval.Result) {
	if !ran(r) {
		return
	}
	for _, v := range r.Invariants.Violations {
		if v.Severity == eval.SeverityError {
			c.violations++
			c.violated = true
		}
	}
}

func (a *aggregate) addInvariants(r *eval.Result) {
	if !ran(r) {
		return
	}
	inv := &r.Invariants
	violated := map[string]bool{}
	for _, v := range inv.Violations {
		if entry := a.invariant(v.Name, v.Severity); !violated[v.Name] {
			violated[v.Name] = true
			entry.Violated++
		}
	}
	for _, name := range inv.Triggered {
		a.invariant(name, eval.SeverityError).Triggered++
	}
	for _, name := range inv.NotApplicable {
		a.invariant(name, eval.SeverityError).NotApplicable++
	}
	looked := inv.Held + len(violated) + len(inv.NotApplicable)
	if looked == 0 {
		return
	}
	var dropped []string
	if looked < a.declared && a.plan.Dropped != nil {
		dropped = a.plan.Dropped(r.Index)
	}
	for i := range a.declared {
		name := a.invariants[i].Name
		if !slices.Contains(inv.NotApplicable, name) && !slices.Contains(dropped, name) {
			a.invariants[i].Evaluated++
		}
	}
	for i := a.declared; i < len(a.invariants); i++ {
		if violated[a.invariants[i].Name] {
			a.invariants[i].Evaluated++
		}
	}
}

func (c *column) addVerdict(r *eval.Result, counted bool) {
	judged := r.Status == eval.Pass || r.Status == eval.Fail
	passed := r.Status == eval.Pass
	if judged {
		c.judged++
		if passed {
			c.passed++
		}
	}
	c.cut = c.cut || r.Status == eval.NotRun
	if r.Quarantined {
		return
	}
	c.failed = c.failed || judged && !passed
	if judged && counted {
		c.passRate.add(truth(passed))
		if r.Score != nil {
			c.score.add(float64(*r.Score))
		}
	}
	if r.Status != eval.Skipped {
		unavailable := r.Status == eval.Error || r.Status == eval.Unjudged ||
			r.Status == eval.NotRun && r.Cause != nil && *r.Cause == eval.CauseBudget
		c.errorRate.add(truth(unavailable))
		c.unavailable = c.unavailable || unavailable
	}
}

func (c *column) addChecks(r *eval.Result) {
	if r.Quarantined {
		return
	}
	for i := range r.Checks {
		check := &r.Checks[i]
		at, ok := c.checkByName[check.Name]
		if !ok {
			at = len(c.checks)
			c.checkByName[check.Name] = at
			c.checks = append(c.checks, Check{Name: check.Name})
			c.scores = append(c.scores, stats.Clusters{})
		}
		sum := &c.checks[at]
		sum.N++
		switch check.Status {
		case eval.CheckPass:
			sum.Pass++
		case eval.CheckFail:
			sum.Fail++
		case eval.CheckUnjudged:
			sum.Unjudged++
			continue
		}
		if check.Score != nil {
			c.scores[at].Add(float64(*check.Score), 1)
		}
	}
}

func (c *column) addNumbers(r *eval.Result, counted bool) {
	if !ran(r) {
		return
	}
	c.looked++
	c.isLooked = true
	c.tokens += r.Usage.InputTokens + r.Usage.OutputTokens
	switch {
	case r.CostUSD != nil:
		c.costs += *r.CostUSD
		c.priced++
		if counted {
			c.cost.add(r.CostUSD.Float())
		}
	case r.Steps > 0:
		c.unpriced++
	}
	// How long and how many says something only of an agent that came to its end.
	if r.Status == eval.Error || r.Status == eval.Stale || !counted {
		return
	}
	c.steps.add(float64(r.Steps))
	c.calls.add(float64(r.ToolCalls))
	if r.LatencyMS != nil {
		c.latency.add(float64(*r.LatencyMS))
		c.latencies = append(c.latencies, *r.LatencyMS)
	}
	if r.TTFTMS != nil {
		c.ttfts = append(c.ttfts, *r.TTFTMS)
		c.isBegun = true
	}
}

// flush closes the item whose repeats were added.
func (a *aggregate) flush(c *column) {
	if c.item.Index == 0 {
		return
	}
	group := c.item.Group
	var passIf func(share float64) bool
	if a.plan.PassIf != nil {
		passIf = a.plan.PassIf(c.item.Index)
	}
	// What was to be repeated until its verdict is settled, and was cut off, has none.
	open := passIf != nil && c.cut && a.plan.Selected.RepeatMax != nil
	kept := passIf != nil && c.judged > 0 && passIf(float64(c.passed)/float64(c.judged))
	if n := c.passRate.n; n > 0 {
		c.share, c.counted, c.group = c.passRate.sum/float64(n), n, group
		c.itemPass.once(truth(c.share == 1), n, group)
		for i, k := range a.over {
			if p, ok := stats.PassAtK(n, int(c.passRate.sum), k); ok {
				c.atK[i].once(p, n, group)
			}
			if p, ok := stats.PassHatK(n, int(c.passRate.sum), k); ok {
				c.hatK[i].once(p, n, group)
			}
		}
		switch {
		case open:
			c.passRate.leave()
		case passIf != nil:
			c.passRate.once(truth(kept), n, group)
			c.passRate.lines -= n // they were counted when they were added
		}
	}
	c.items.looked += int(truth(c.isLooked))
	c.items.begun += int(truth(c.isBegun))
	c.items.priced += int(truth(c.cost.n > 0))
	c.items.timed += int(truth(c.latency.n > 0))
	for _, m := range []*mean{&c.passRate, &c.score, &c.errorRate, &c.steps, &c.calls, &c.cost, &c.latency, &c.survival} {
		m.flush(group)
	}
	entry := Flaky{Item: c.item.Item, Passed: c.passed, Of: c.judged}
	switch {
	case c.passed == c.judged || open:
	case kept:
		c.tolerated.Add(entry)
	case passIf == nil && c.passed > 0:
		c.flaky.Add(entry)
	}
	c.tally.Failed += int(truth(c.failed && !kept && !open))
	c.tally.Unavailable += int(truth(c.unavailable))
	c.tally.Violated += int(truth(c.violated))
	c.item, c.judged, c.passed = eval.Result{}, 0, 0
	c.failed, c.unavailable, c.violated, c.cut, c.isLooked, c.isBegun = false, false, false, false, false, false
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// finish returns the summary without gates and verdict, and what these are made of.
func (a *aggregate) finish() (*Summary, Tally) {
	s := &Summary{
		V: Version, Dataset: a.plan.Dataset, Selected: a.plan.Selected, Mode: a.plan.Mode, Tools: a.plan.Tools,
		Invariants: a.invariants, Cassettes: a.cassettes, Warnings: slices.Clone(a.plan.Warnings),
	}
	tally := Tally{Causes: a.causes.List(), Harness: a.harness}
	if n := min(len(tally.Causes), mostCauses); n > 0 {
		s.Causes = tally.Causes[:n]
	}
	s.Cassettes.Orphaned = a.plan.Orphaned
	s.Cost.OverheadUSD, s.Cost.SpentNowUSD, s.Cost.Budget = a.overhead, a.spent, a.plan.Budget
	for _, q := range a.plan.Quarantined {
		s.Quarantined.Add(q)
	}
	a.closeItem()
	for _, c := range a.columns {
		s.Providers = append(s.Providers, c.finish(a.over))
		for _, m := range []struct {
			name string
			of   *mean
		}{{"pass_rate", &c.passRate}, {"score", &c.score}} {
			s.Power = append(s.Power, Power{Provider: c.info.ID, Metric: m.name, DetectableDrop: m.of.detectable()})
		}
		s.Cost.AgentUSD += c.costs
		for _, status := range eval.Statuses {
			*s.Counts.of(status) += c.counts.Of(status)
		}
		tally.Columns = append(tally.Columns, c.tally)
	}
	for i, columns := range a.parts {
		part := Part{Where: a.plan.Parts[i]}
		for _, c := range columns {
			part.Columns = append(part.Columns, PartColumn{Metrics: c.finish(a.over).Metrics, ColumnTally: c.tally})
		}
		tally.Parts = append(tally.Parts, part)
	}
	for i := range a.plan.Faults {
		for _, c := range a.columns {
			s.Faults = append(s.Faults, c.faults[i])
		}
	}
	s.Pairs = a.paired()
	s.Complete = s.Counts.NotRun == 0
	a.warn(s)
	return s, tally
}

// paired compares every two columns.
func (a *aggregate) paired() []Pair {
	out := make([]Pair, len(a.pairs))
	var tested []int
	var ps []float64
	for i := range a.pairs {
		p := &a.pairs[i]
		out[i] = Pair{A: a.columns[p.a].info.ID, B: a.columns[p.b].info.ID, Metric: "pass_rate", Disagree: p.disagree}
		c, ok := p.shares.Compare(stats.Confidence)
		if !ok {
			continue
		}
		out[i].Pairs, out[i].Method, out[i].Difference = c.Pairs, c.Method, round(c.Difference, UnitFraction)
		if c.Bounded {
			out[i].Low, out[i].High = round(c.Low, UnitFraction), round(c.High, UnitFraction)
		}
		if c.Tested {
			out[i].P = round(c.P, UnitFraction)
			tested, ps = append(tested, i), append(ps, c.P)
		}
	}
	for k, p := range stats.Holm(ps) {
		out[tested[k]].PAdjusted = round(p, UnitFraction)
	}
	return out
}

func (c *column) finish(over []int) Provider {
	for i := range c.checks {
		if m, ok := c.scores[i].Mean(); ok {
			score := eval.Fraction(m)
			c.checks[i].Score = &score
		}
	}
	slices.Sort(c.latencies)
	slices.Sort(c.ttfts)
	out := Provider{
		ProviderInfo: c.info,
		Counts:       c.counts,
		Metrics: Metrics{
			"pass_rate":            c.passRate.rate(),
			"score":                c.score.mean(UnitFraction),
			"item_pass_rate":       c.itemPass.rate(),
			"error_rate":           c.errorRate.rate(),
			"invariant_violations": total(float64(c.violations), UnitCount, c.looked, c.items.looked),
			"tokens":               total(float64(c.tokens), UnitCount, c.looked, c.items.looked),
			"steps":                c.steps.mean(UnitCount),
			"tool_calls":           c.calls.mean(UnitCount),
			"cost_usd":             total(c.costs.Float(), UnitUSD, c.priced, c.items.priced),
			"cost_usd_per_item":    c.cost.mean(UnitUSD),
			"p50_latency":          quantile(c.latencies, c.items.timed, 0.50),
			"p95_latency":          quantile(c.latencies, c.items.timed, 0.95),
			"mean_latency":         c.latency.mean(UnitMS),
			"p50_ttft":             quantile(c.ttfts, c.items.begun, 0.50),
		},
		Checks:    c.checks,
		Flaky:     c.flaky,
		Tolerated: c.tolerated,
		Unpriced:  c.unpriced,
	}
	if c.faults != nil {
		out.Metrics[FaultSurvival] = c.survival.mean(UnitFraction)
	}
	for i, k := range over {
		out.Metrics[passAt+strconv.Itoa(k)] = c.atK[i].mean(UnitFraction)
		out.Metrics[passHat+strconv.Itoa(k)] = c.hatK[i].mean(UnitFraction)
	}
	return out
}

// warn adds what the lines themselves give reason to say.
func (a *aggregate) warn(s *Summary) {
	add := func(code, hint, format string, args ...any) {
		w := Warning{Code: code, Text: fmt.Sprintf(format, args...)}
		if hint != "" {
			w.Hint = &hint
		}
		s.Warnings = append(s.Warnings, w)
	}
	if n := a.served.Count; n > 0 {
		add("served-across-drift", Command("echoeval", "cassette", "verify", s.Dataset.File), "%s served across drift: these answers were given to other requests", plural(n, "item"))
	}
	if n := s.Cassettes.Orphaned; n > 0 {
		verb := "belong"
		if n == 1 {
			verb = "belongs"
		}
		add("orphaned-cassettes", Command("echoeval", "cassette", "prune", s.Dataset.File), "%s %s to no item", plural(n, "cassette"), verb)
	}
	for _, p := range s.Providers {
		if p.Unpriced > 0 {
			add("unpriced", "give the model a price under prices: in echoeval.yaml", "%s of %s without a price: sums leave them out", plural(p.Unpriced, "line"), p.ID)
		}
	}
	for i := range s.Faults {
		if f := &s.Faults[i]; f.Injected == 0 && f.Absent > 0 {
			add("fault-not-injected", "", "fault %s was never injected on %s: no recording has a place for it", f.Name, f.Provider)
		}
	}
	for _, info := range a.plan.Invariants {
		if inv := a.invariants[a.byName[info.Name]]; info.Rule && inv.Triggered == 0 && inv.Violated == 0 {
			add("never-triggered", "", "rule %s: its condition never occurred, so it has proven nothing", inv.Name)
		}
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// mean is the mean over items of the means of their repeats, by clusters: a group where items name one, else the item.
type mean struct {
	sum, squares float64 // of the item that is being added
	n            int
	lines        int
	spread       spread
	// graded says that an observation was neither 0 nor 1.
	graded bool
	// repeated says that an item has more than one observation.
	repeated bool
	// grouped says that an item names a group.
	grouped  bool
	clusters stats.Clusters
	groups   map[string]*groupSum
}

type groupSum struct {
	sum float64
	n   int
}

// spread is what is known of how much an item's value would differ if it were measured again.
type spread struct {
	items        int
	sum, squares float64 // of the items' means
	repeated     int     // items with several observations
	observations int     // of these
	within       float64 // sum of their variances
	shares       float64 // sum over items of the share that one observation has in the item's mean
}

// detectable is the smallest drop that a second run of the same items could show: its observations are taken to depend on those of this run through the item alone, as the repeats of an item do. Without repeats all spread counts as that of repetition, which it is at most. One more item that may fall either way is always added, so that a run without failures is not taken for one that sees everything.
func (m *mean) detectable() *Number {
	m.close()
	s := m.spread
	variance := 0.0
	switch {
	case s.items == 0:
		return nil
	case s.repeated > 0:
		variance = (s.within + 0.5) / float64(s.repeated+2) * float64(s.repeated) / float64(s.observations)
	default:
		variance = Spread(s.sum, s.squares, s.items)
	}
	d := stats.Design{Spread: math.Sqrt(2 * variance), Pairs: m.clusters.Len(), Clusters: m.clusters.Len()}
	if !m.graded {
		d.Verdict, d.Rate = s.shares/float64(s.items), s.sum/float64(s.items)
	}
	drop, ok := stats.DetectableDrop(d, stats.Confidence)
	if !ok {
		return nil
	}
	return round(drop, UnitFraction)
}

// Spread is the variance of one observation, by the sum and the sum of the squares of n in [0,1], with one more item that may fall either way.
func Spread(sum, squares float64, n int) float64 {
	p := (sum + 1) / float64(n+2)
	return max(0, (squares+1)/float64(n+2)-p*p)
}

// Detectable is the smallest drop, in [0,1], that a second run of so many clusters and repeats would show at 80 % power, where variance is that of one observation of an item and rate the share that passes; see [stats.DetectableDrop]. It is 1 for fewer than two clusters.
func Detectable(variance, rate float64, clusters int, repeats float64) float64 {
	drop, ok := stats.DetectableDrop(stats.Design{Spread: math.Sqrt(2 * variance / repeats), Pairs: clusters, Clusters: clusters, Verdict: 1 / repeats, Rate: rate}, stats.Confidence)
	if !ok {
		return 1
	}
	return drop
}

func (m *mean) add(x float64) {
	m.sum += x
	m.squares += x * x
	m.n++
	m.lines++
	m.graded = m.graded || x != 0 && x != 1
}

// leave drops the item that is being added.
func (m *mean) leave() {
	m.lines -= m.n
	m.sum, m.squares, m.n = 0, 0, 0
}

func (m *mean) flush(group *string) {
	if n := float64(m.n); m.n > 0 {
		if m.n > 1 {
			m.repeated = true
			m.spread.repeated++
			m.spread.observations += m.n
			m.spread.within += max(0, m.squares-m.sum*m.sum/n) / (n - 1)
		}
		m.spread.shares += 1 / n
		m.item(m.sum/n, group)
	}
	m.sum, m.squares, m.n = 0, 0, 0
}

// once adds an item with one observation that stands for several lines.
func (m *mean) once(x float64, lines int, group *string) {
	m.lines += lines
	m.spread.shares++
	m.item(x, group)
	m.sum, m.squares, m.n = 0, 0, 0
}

func (m *mean) item(x float64, group *string) {
	m.spread.items++
	m.spread.sum += x
	m.spread.squares += x * x
	if group == nil {
		m.clusters.Add(x, 1)
		return
	}
	if m.groups == nil {
		m.groups, m.grouped = map[string]*groupSum{}, true
	}
	g := m.groups[*group]
	if g == nil {
		g = &groupSum{}
		m.groups[*group] = g
	}
	g.sum += x
	g.n++
}

// close adds the groups, in the order of their names. No item is added after it.
func (m *mean) close() {
	for _, name := range slices.Sorted(maps.Keys(m.groups)) {
		m.clusters.Add(m.groups[name].sum, m.groups[name].n)
	}
	m.groups = nil
}

// rate is the metric of observations that are yes or no: Wilson's interval where every item was observed once and no groups are set, else that of the clustered mean.
func (m *mean) rate() Metric {
	if m.repeated || m.grouped {
		return m.mean(UnitFraction)
	}
	out := Metric{N: m.lines, Clusters: m.clusters.Len(), Method: MethodWilson}
	value, ok := m.clusters.Mean()
	if !ok {
		return out
	}
	out.Value = round(share(value), UnitFraction)
	if low, high, ok := stats.Wilson(value, m.clusters.Len(), stats.Confidence); ok {
		out.Low, out.High = round(low, UnitFraction), round(high, UnitFraction)
	}
	return out
}

func (m *mean) mean(unit Unit) Metric {
	m.close()
	out := Metric{N: m.lines, Clusters: m.clusters.Len(), Method: MethodT}
	if m.repeated || m.grouped {
		out.Method = MethodClusteredT
	}
	value, ok := m.clusters.Mean()
	if !ok {
		return out
	}
	low, high, ok := m.clusters.Interval(stats.Confidence)
	if unit == UnitFraction {
		value = share(value)
		// Without any spread Student's interval would claim to know everything.
		if low == high {
			low, high, ok = stats.Wilson(value, m.clusters.Len(), stats.Confidence)
			out.Method = MethodWilson
		}
		high = min(high, 1)
	}
	out.Value = round(value, unit)
	if ok {
		out.Low, out.High = round(max(low, 0), unit), round(high, unit)
	}
	return out
}

// share keeps a share that is neither 0 nor 1 from being rounded to it: one failure among millions must not read as none.
func share(x float64) float64 {
	const least = 1e-6
	switch {
	case x > 0 && x < least:
		return least
	case x < 1 && x > 1-least:
		return 1 - least
	}
	return x
}

func round(x float64, unit Unit) *Number {
	scale := 1e6
	switch unit {
	case UnitUSD:
		scale = 1e9
	case UnitMS:
		scale = 1
	}
	n := Number(math.Round(x*scale) / scale)
	return &n
}

func total(sum float64, unit Unit, lines, clusters int) Metric {
	out := Metric{N: lines, Clusters: clusters, Method: MethodTotal}
	if lines > 0 {
		out.Value = round(sum, unit)
	}
	return out
}

func quantile(sorted []int64, items int, p float64) Metric {
	out := Metric{N: len(sorted), Clusters: items, Method: MethodQuantile}
	if v, ok := stats.Quantile(sorted, p); ok {
		out.Value = round(float64(v), UnitMS)
	}
	return out
}
