package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/echoeval/echoeval/core/agent"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/guard"
	"github.com/echoeval/echoeval/core/policy"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/invariant"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/score"
	"github.com/echoeval/echoeval/harness/target"
)

// ErrNothingSelected is wrapped by the error of [New] where the selection leaves no item, or names one that there is not. It has no text of its own.
var ErrNothingSelected = errors.New("")

// Experiment is a run that has been planned: everything in the dataset was read once and is right. It holds no items.
type Experiment struct {
	opts  Options
	specs []tool.Spec // of all tools there are
	// targets are the programs of the columns, nil for those with an agent, files the hashes of their files.
	targets []*target.Spec
	files   []string
	// head is what the run's folder says of the whole run.
	head  results.Head
	items int // selected
	// questions is how many the run puts to judges and embedders.
	questions int
	owners    owners
	drawn     uint64             // the highest lot of the sample
	bounds    map[int]eval.Bound // by index, of the items that set pass_if
	rules     rules
	// most is the largest number of repeats that every line of an item counts in.
	most int
	// groups are those of the selected items, and alone counts the items without one.
	groups map[string]bool
	alone  int
	// quarantined are the items whose verdict does not count, or did not until lately.
	quarantined []results.Quarantine
	spaces      workspaces
	judges      []string                      // who may judge
	embedders   []string                      // who may turn texts into vectors
	compiled    []atomic.Pointer[compilation] // the last one, by column
	unsure      []bool                        // by column: the agent is wrong, so that nobody knows its tools
	cautions    cautions
	// everyName are the tools that a policy may name, sorted.
	everyName []string
	// normalize are the rules of replay.normalize.
	normalize []cassette.Normalization
}

// New reads the whole dataset once and looks at every item, check, invariant and gate. It reports all problems together; nothing has run yet. A selection that leaves no item is an error too.
func New(opts Options) (*Experiment, error) {
	if len(opts.Columns) == 0 {
		return nil, failure.WithHint(failure.New(failure.Input, "%s names no providers", opts.Dataset.File), "add providers: [openai:gpt-4o-mini], or --provider openai:gpt-4o-mini")
	}
	e := newExperiment(opts)
	var p strict.Problems
	s := e.survey(&p)
	if err := errors.Join(p.Err(), s.looked.err()); err != nil {
		return nil, err
	}
	return e.planned(s)
}

// Look adds to p what is wrong with a dataset that has other problems already, beside what may follow from these.
func Look(opts Options, p *strict.Problems) {
	if len(opts.Columns) == 0 {
		opts.Columns = []Column{{Target: opts.Dataset.Target, any: true}}
	}
	newExperiment(opts).survey(p)
}

func newExperiment(opts Options) *Experiment {
	return &Experiment{opts: opts, owners: owners{}, judges: idsOf(opts.Dataset, dataset.RoleJudge), embedders: idsOf(opts.Dataset, dataset.RoleEmbed), compiled: make([]atomic.Pointer[compilation], len(opts.Columns)), unsure: make([]bool, len(opts.Columns)), spaces: workspaces{temp: opts.Temp, root: opts.Dataset.Root}}
}

// survey is what one reading of the dataset has found.
type survey struct {
	unseen       map[string]bool // ids that were asked for and are not there
	ids          []string        // kept only where an id was asked for and may not be there
	lines, total int
	used         map[string]bool // workspaces
	looked       parts
	picked       draw
}

// count takes in a selected item.
func (e *Experiment) count(s *survey, item *dataset.Item) {
	e.items++
	e.special(item)
	e.most = max(e.most, e.repeats(item))
	e.cluster(item)
	s.used[item.Workspace] = true
	s.lines += e.repeats(item) * len(e.opts.Columns)
	for i := range e.opts.Columns {
		if skipped(item, &e.opts.Columns[i]) == "" {
			e.questions += e.repeats(item) * e.questionsOf(item, i)
		}
	}
}

// survey reads the dataset and looks at everything in it.
func (e *Experiment) survey(p *strict.Problems) *survey {
	opts := &e.opts
	for _, t := range opts.Tools(func(guard.Access) (*guard.Workspace, error) { return nil, errNoWorkspace }) {
		e.specs = append(e.specs, t.Spec())
	}
	e.targets, e.files = make([]*target.Spec, len(opts.Columns)), make([]string, len(opts.Columns))
	for i := range opts.Columns {
		if opts.Columns[i].Target != nil {
			e.checkTarget(i, p)
			continue
		}
		e.unsure[i] = !e.checkAgent(&opts.Columns[i], p)
	}
	e.everyName = append(policy.Names(), e.names()...)
	for i := range opts.Columns {
		e.everyName = append(e.everyName, opts.Columns[i].Agent.Tools...)
	}
	slices.Sort(e.everyName)
	e.everyName = slices.Compact(e.everyName)
	e.normalize = normalizations(opts.Dataset.Normalize, p)
	s := &survey{unseen: map[string]bool{}, used: map[string]bool{}, looked: parts{limits: opts.Parts}, picked: draw{sample: opts.Sample, seed: opts.Seed}}
	for _, id := range opts.Items {
		s.unseen[id] = true
	}
	e.drawn = s.picked.bound()
	opts.Dataset.Inspect(func(item *dataset.Item, p *strict.Problems) {
		s.total++
		if len(opts.Items) > 0 && len(s.ids) < 10_000 {
			s.ids = append(s.ids, item.ID)
		}
		e.checkItem(item, p)
		e.own(item)
		s.looked.see(item)
		delete(s.unseen, item.ID)
		if !e.opts.chosen(item) {
			return
		}
		s.picked.see(item)
		if e.opts.Sample.Count == 0 && e.selected(item) {
			e.count(s, item)
		}
	}, p)
	return s
}

// planned ends the planning of a dataset that is right.
func (e *Experiment) planned(s *survey) (*Experiment, error) {
	opts := &e.opts
	if opts.Sample.Count > 0 {
		e.drawn = s.picked.bound()
		for item, err := range e.Selected() {
			if err != nil {
				return nil, err
			}
			e.count(s, item)
		}
	}
	if len(s.unseen) > 0 {
		missing := slices.Min(slices.Collect(maps.Keys(s.unseen)))
		err := failure.New(failure.Input, "--item %s: %s has no such item%w", missing, opts.Dataset.File, ErrNothingSelected)
		if near, ok := strict.Nearest(missing, s.ids); ok {
			return nil, failure.WithHint(err, "did you mean --item %s?", near)
		}
		return nil, failure.WithHint(err, "echoeval cassette ls %s lists the items", opts.Dataset.File)
	}
	if e.items == 0 {
		return nil, failure.WithHint(failure.New(failure.Input, "no item of %s has all that the flags ask for%w", opts.Dataset.File, ErrNothingSelected), "of %d items none is left; drop one of --item, --tag, --filter, --only, --sample, --shard", s.total)
	}
	if need := opts.Needs; need.Repeats > e.most {
		return nil, failure.WithHint(failure.At(need.Pos, failure.Input, "gate %s needs %d repeats of an item, and none has more than %d", need.Metric, need.Repeats, e.most), "--repeat %d", need.Repeats)
	}
	e.fillHead(s.lines)
	var err error
	e.head.Inputs, err = e.inputs(s.used)
	return e, err
}

// own notes the cassettes of an item: those of every provider that the dataset, for a column or in reserve, or the command line names.
func (e *Experiment) own(item *dataset.Item) {
	repeats := max(item.Repeat, e.opts.Repeat, e.opts.RepeatMax)
	e.owners.add(item, e.opts.Dataset.Columns(), repeats)
	for _, c := range e.opts.Columns {
		e.owners.add(item, []dataset.Provider{c.Provider}, repeats)
	}
}

// inputs is one hash over the folders that the selected items start from.
func (e *Experiment) inputs(used map[string]bool) (string, error) {
	var text strings.Builder
	for _, rel := range slices.Sorted(maps.Keys(used)) {
		if rel == "" {
			continue
		}
		sum, err := e.spaces.hash(rel)
		if err != nil {
			return "", failure.New(failure.Input, "workspace %s: %w", rel, err)
		}
		fmt.Fprintf(&text, "%q %s\n", rel, sum)
	}
	return hash(text.String()), nil
}

// cluster counts what the items are observations of.
func (e *Experiment) cluster(item *dataset.Item) {
	if item.Group == "" {
		e.alone++
		return
	}
	if e.groups == nil {
		e.groups = map[string]bool{}
	}
	e.groups[item.Group] = true
}

// Clusters is how many independent observations the selected items are: items, or groups where they name one.
func (e *Experiment) Clusters() int { return e.alone + len(e.groups) }

// Items is how many items the run selects, Lines how many lines its results have.
func (e *Experiment) Items() int { return e.items }

// Head is what is known of the run before its first item.
func (e *Experiment) Head() results.Head { return e.head }

// checkTarget looks for the program of a column and takes the hashes of its files.
func (e *Experiment) checkTarget(column int, p *strict.Problems) {
	c := &e.opts.Columns[column]
	e.targets[column] = targetSpec(c)
	at := p.Key("target").Key("command").At(0)
	if c.Scripted {
		at.Add(c.Provider.Pos, "leave providers out: the column is then called target", "provider %s answers by script, and a target asks models itself", c.Provider.ID)
	}
	if e.opts.Targets != nil {
		if err := e.opts.Targets.Find(e.targets[column]); err != nil {
			at.Add(c.Target.Node.Get("command").Index(0).Pos(), strings.Join(failure.Hints(err), "; "), "%s", err)
		}
	}
	var err error
	e.files[column], err = hashFiles(e.opts.Dataset.Root, c.Target)
	p.AddError(err)
}

// checkAgent looks at the agent of a column and reports whether it is right.
func (e *Experiment) checkAgent(c *Column, p *strict.Problems) bool {
	source := c.Provider.Agent
	if source.Node.IsZero() {
		source = e.opts.Dataset.Agent
	}
	if source.Broken || source.Node.IsZero() {
		return false // said already
	}
	var own strict.Problems
	c.Agent = agent.Decode(source.Node, &own)
	if c.Agent.Tools == nil {
		c.Agent.Tools = []string{} // an agent file gets what it lists, and nothing unasked
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"tools", c.Agent.Tools}, {"base_tool_names", deref(c.Agent.BaseToolNames)}} {
		known := e.names()
		for _, own := range c.Agent.CommandTools {
			known = append(known, own.Name)
		}
		if list.key == "base_tool_names" {
			known = c.Agent.Tools
		}
		for i, name := range list.names {
			if slices.Contains(known, name) {
				continue
			}
			at := own.Key(list.key).At(i)
			hint := "choose among " + strings.Join(known, ", ")
			if near, ok := strict.Nearest(name, known); ok {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			at.Add(source.Node.Get(list.key).Index(i).Pos(), hint, "unknown tool %q", name)
		}
	}
	p.AddError(own.Err())
	return own.Len() == 0
}

func deref(p *[]string) []string {
	if p == nil {
		return nil
	}
	return *p
}

func (e *Experiment) names() []string {
	names := make([]string, len(e.specs))
	for i, s := range e.specs {
		names[i] = s.Name
	}
	return names
}

// visible are the tools that the model of a column sees.
func (e *Experiment) visible(c *Column) []tool.Spec {
	names := c.Agent.Tools
	if c.Agent.BaseToolNames != nil {
		names = *c.Agent.BaseToolNames
	}
	var out []tool.Spec
	for _, s := range e.specs {
		if slices.Contains(names, s.Name) {
			out = append(out, s)
		}
	}
	for _, own := range c.Agent.CommandTools {
		if slices.Contains(names, own.Name) {
			out = append(out, commandSpec(own))
		}
	}
	return out
}

// programs are what command checks ask, nil where the run has none.
func (e *Experiment) programs() score.Programs {
	if e.opts.Programs == nil {
		return nil
	}
	return e.opts.Programs
}

// compilation is what the checks of one item or turn were made into.
type compilation struct {
	of     []dataset.Check
	tools  []string
	turn   bool
	checks []score.Check
}

// compile makes the checks of an item, or of a turn of it, ready for a column and the tools that the item lets its agent have. Most items have the checks of the dataset and nothing of their own, so that the last ones serve again.
func (e *Experiment) compile(column int, tools []string, turn bool, checks []dataset.Check, p *strict.Problems) []score.Check {
	if last := e.compiled[column].Load(); last != nil && last.turn == turn && slices.Equal(last.of, checks) && slices.Equal(last.tools, tools) {
		return last.checks
	}
	before := p.Len()
	out := score.Compile(specsOf(checks), score.Env{Tools: tools, ToolsUnknown: e.opts.Columns[column].Target != nil || e.unsure[column], Programs: e.programs(), Judges: e.judges, Embedders: e.embedders, RolesUnknown: e.opts.Dataset.Unsure(), Turn: turn}, p)
	if p.Len() == before {
		e.compiled[column].Store(&compilation{of: checks, tools: tools, turn: turn, checks: out})
	}
	return out
}

func specsOf(checks []dataset.Check) []score.Spec {
	specs := make([]score.Spec, len(checks))
	for i, c := range checks {
		specs[i] = score.Spec{Kind: c.Kind, Args: c.Args, Name: c.Name, Not: c.Not, Weight: c.Weight, Threshold: c.Threshold, Required: c.Required, Pos: c.Pos}
	}
	return specs
}

func invariantSpecs(item *dataset.Item) []invariant.Spec {
	specs := make([]invariant.Spec, len(item.Invariants))
	for i, v := range item.Invariants {
		specs[i] = invariant.Spec{Name: v.Name, Severity: v.Severity, Params: v.Params, Rule: v.Rule, Pos: v.Pos}
	}
	return specs
}

// checkItem adds what is wrong with an item beyond its form.
func (e *Experiment) checkItem(item *dataset.Item, p *strict.Problems) {
	var seen [][]string
	program := false // of programs under test nobody knows the tools, so that one is like another
	for i := range e.opts.Columns {
		c := &e.opts.Columns[i]
		tools := permitted(item, c.Agent.Tools)
		if !runsOn(item, c) || c.Target != nil && program || c.Target == nil && slices.ContainsFunc(seen, func(s []string) bool { return slices.Equal(s, tools) }) {
			continue
		}
		if program = program || c.Target != nil; c.Target == nil {
			seen = append(seen, tools)
		}
		e.compile(i, tools, false, item.Checks, p)
		for _, turn := range item.Turns {
			e.compile(i, tools, true, turn.Checks, p)
		}
	}
	if item.Partial {
		return
	}
	invariant.Select(invariantSpecs(item), item.Drop, p)
	e.rules.check(item, e, p)
	e.checkNeeds(item, p)
	e.checkWorld(item, p)
	e.checkPolicy(item, p)
	if names := hiddenNames(e.specs, item); len(names) > 0 && e.agentRuns(item) {
		p.Key("tool_context").Add(item.ToolContext.KeyPos(names[0]), "rename it: what tools take from the model and what they get hidden must not share a name", "%q is the name of a parameter of a tool", names[0])
	}
	for i := range e.opts.Columns {
		c := &e.opts.Columns[i]
		if c.Scripted && runsOn(item, c) && item.Skip == "" && len(item.Script) == 0 {
			p.Add(item.Pos, "add script: [{text: ...}]", "provider %s answers by script, and the item has none", c.Provider.ID)
		}
	}
}

// checkWorld looks at what answers an item's tools and who speaks to its agent.
func (e *Experiment) checkWorld(item *dataset.Item, p *strict.Problems) {
	known := map[string]bool{}
	unsure := false // there may be other tools
	for i := range e.opts.Columns {
		c := &e.opts.Columns[i]
		unsure = unsure || e.unsure[i]
		if c.Target != nil || !runsOn(item, c) {
			continue
		}
		for _, name := range c.Agent.Tools {
			known[name] = true
		}
		for _, own := range c.Agent.CommandTools {
			_, mock := item.ToolMocks[own.Name]
			switch {
			case len(own.Command) == 0 && !mock:
				p.Add(item.Pos, "tool_mocks: {"+own.Name+": ...}", "tool %s of agent %s has no command, and the item does not mock it", own.Name, c.Agent.Name)
			case len(own.Command) > 0 && !mock && e.opts.Programs == nil && e.opts.Mode != replay.Replay:
				p.Add(own.Pos, "mock it: tool_mocks", "tool %s is a program, and this run may start none", own.Name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.ToolMocks)) {
		mock := item.ToolMocks[name]
		if !known[name] && !unsure && !e.programRuns(item) {
			p.Add(mock.Pos, strict.Suggest(name, slices.Sorted(maps.Keys(known))), "tool_mocks: the agent has no tool %q", name)
		}
		for _, c := range mock.Cases {
			score.CompileArguments(c.Args, p)
		}
	}
	if !unsure {
		e.checkAsked(item, slices.Sorted(maps.Keys(known)), p)
	}
	if item.User != nil && !e.opts.Dataset.Unsure() {
		if _, err := e.user(item); err != nil {
			p.AddError(err)
		}
	}
}

// programRuns reports that an item is asked of a program, whose tools nobody knows before.
func (e *Experiment) programRuns(item *dataset.Item) bool {
	return slices.ContainsFunc(e.opts.Columns, func(c Column) bool { return c.Target != nil && runsOn(item, &c) })
}

// agentRuns reports that an item is asked of the built-in agent.
func (e *Experiment) agentRuns(item *dataset.Item) bool {
	return slices.ContainsFunc(e.opts.Columns, func(c Column) bool { return c.Target == nil && runsOn(item, &c) })
}

// user is the provider that plays an item's user.
func (e *Experiment) user(item *dataset.Item) (*Column, error) {
	provider, err := e.opts.Dataset.Role(dataset.RoleUser, item.User.Provider)
	if err != nil {
		return nil, failure.At(item.User.Pos, failure.Input, "%w", err)
	}
	column := e.opts.Users[provider.ID]
	if column == nil {
		return nil, failure.At(item.User.Pos, failure.Input, "provider %s cannot play a user in this run", provider.ID)
	}
	return column, nil
}

// checkNeeds refuses invariants that the item names and that can never apply to it.
func (e *Experiment) checkNeeds(item *dataset.Item, p *strict.Problems) {
	hasTools := false
	for i := range e.opts.Columns {
		c := &e.opts.Columns[i]
		hasTools = hasTools || runsOn(item, c) && (len(permitted(item, c.Agent.Tools)) > 0 || c.Target != nil || e.unsure[i])
	}
	for _, v := range item.Invariants {
		switch need := invariant.NeedOf(v.Name); {
		case need == invariant.Tools && !hasTools:
			p.Add(v.Pos, "drop it, or give the agent tools", "invariant %s can never apply: the agent has no tools", v.Name)
		case need == invariant.ToolContext && item.ToolContext.Len() == 0:
			p.Add(v.Pos, "drop it, or give the item a tool_context", "invariant %s can never apply: the item has no tool_context", v.Name)
		}
	}
}

func hiddenNames(specs []tool.Spec, item *dataset.Item) []string {
	if item.ToolContext.Len() == 0 {
		return nil
	}
	hidden := tool.NewHidden(hiddenValues(item))
	var names []string
	for _, s := range specs {
		names = append(names, tool.HiddenNames(s.Parameters, hidden)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// hiddenValues are the item's tool_context as JSON texts.
func hiddenValues(item *dataset.Item) conversation.Hidden {
	hidden := conversation.Hidden{}
	for key, value := range item.ToolContext.Fields() {
		hidden[key.Name] = conversation.JSON(value.JSON())
	}
	return hidden
}

func (e *Experiment) selected(item *dataset.Item) bool {
	return e.opts.chosen(item) && e.opts.Shard.has(item) && (e.drawn == math.MaxUint64 || lot(e.opts.Seed, item.ID) <= e.drawn)
}

func (e *Experiment) repeats(item *dataset.Item) int {
	if e.opts.Repeat > 0 {
		return e.opts.Repeat
	}
	return item.Repeat
}

// runsOn says whether an item is for a column.
func runsOn(item *dataset.Item, c *Column) bool {
	return item.Providers == nil || c.any || slices.Contains(item.Providers, c.Provider.ID)
}

// Selected streams the selected items in the order of the dataset.
func (e *Experiment) Selected() iter.Seq2[*dataset.Item, error] {
	return func(yield func(*dataset.Item, error) bool) {
		for item, err := range e.opts.Dataset.Items() {
			if err != nil {
				yield(nil, fmt.Errorf("the dataset changed while it ran: %w", err))
				return
			}
			if e.selected(item) && !yield(item, nil) {
				return
			}
		}
	}
}

// special notes what the summary needs to know of single items.
func (e *Experiment) special(item *dataset.Item) {
	e.rules.see(item)
	if item.PassIf != nil {
		if e.bounds == nil {
			e.bounds = map[int]eval.Bound{}
		}
		e.bounds[item.Index] = *item.PassIf
	}
	if q := item.Quarantine; q != nil {
		e.quarantined = append(e.quarantined, results.Quarantine{Item: item.ID, Owner: q.Owner, Until: q.Until.Format(time.DateOnly), Reason: q.Reason, Over: q.Over(e.opts.Clock.Now())})
	}
}

// passIf gives the bound that an item sets on the share of its repeats; nil where no item sets one.
func (e *Experiment) passIf() func(int) func(float64) bool {
	if len(e.bounds) == 0 {
		return nil
	}
	return func(index int) func(float64) bool {
		if bound, ok := e.bounds[index]; ok {
			return bound.Holds
		}
		return nil
	}
}

// line is a result line as far as it is known without running the item.
func (e *Experiment) line(item *dataset.Item, c *Column, repeat int) eval.Result {
	line := eval.Result{V: eval.Version, Item: item.ID, Index: item.Index, Provider: c.Provider.ID, Repeat: repeat, Tags: item.Tags, ItemHash: item.ItemHash, ChecksHash: item.ChecksHash}
	if item.Group != "" {
		line.Group = &item.Group
	}
	line.Quarantined = item.Quarantine != nil && !item.Quarantine.Over(e.opts.Clock.Now())
	return line
}

func (e *Experiment) fillHead(lines int) {
	d := e.opts.Dataset
	e.head = results.Head{
		Dataset:  results.Dataset{Name: d.Name, File: d.File, Hash: d.Hash, Items: d.Count},
		Selected: results.Selected{Items: e.items, Repeat: max(e.opts.Repeat, 1), RepeatMax: given(e.opts.RepeatMax), Filter: e.opts.flags(), Sample: given(e.opts.Sample.Text), Only: given(e.opts.OnlyText)},
		Mode:     string(e.opts.Mode),
		Tools:    "live",
		Lines:    lines,
		Traces:   e.opts.Traces,
		Faults:   faultInfos(e.opts.Faults),
	}
	if e.opts.Mode == replay.Replay {
		e.head.Tools = "replay"
	}
	for i := range e.opts.Columns {
		c := &e.opts.Columns[i]
		if c.Target != nil {
			e.head.Providers = append(e.head.Providers, results.ProviderInfo{ID: c.Provider.ID, Vendor: c.Provider.Vendor, Model: c.Provider.Model, AgentHash: hash(string(c.Target.Node.AppendCanonical(nil)) + e.files[i])})
			continue
		}
		e.head.Providers = append(e.head.Providers, results.ProviderInfo{
			ID: c.Provider.ID, Vendor: c.Provider.Vendor, Model: c.Provider.Model,
			AgentHash: hash(configText(c.Agent)), PromptHash: hash(string(conversation.String(c.Agent.Prompt()))), ToolsHash: hash(toolsText(e.visible(c))),
		})
	}
	for _, v := range invariant.Catalogue() {
		if v.Standard {
			e.head.Invariants = append(e.head.Invariants, results.InvariantInfo{Name: v.Name, Severity: v.Severity})
		}
	}
	e.head.Invariants = append(e.head.Invariants, e.rules.infos()...)
}

func given[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func configText(c agent.Config) string {
	tools := "all"
	if c.Tools != nil {
		tools = fmt.Sprintf("%q", c.Tools)
	}
	base := "all"
	if c.BaseToolNames != nil {
		base = fmt.Sprintf("%q", *c.BaseToolNames)
	}
	return fmt.Sprintf("%q %q %q %q %q %q %s %s %d", c.Name, c.Persona.Role, c.Persona.Goal, c.Persona.Backstory, c.Task.Description, c.Task.ExpectedOutput, tools, base, c.MaxIterations)
}

func toolsText(specs []tool.Spec) string {
	var dst []byte
	for _, s := range specs {
		dst = conversation.AppendString(dst, s.Name)
		dst = conversation.AppendString(dst, s.Description)
		dst = append(dst, s.Parameters...)
	}
	return string(dst)
}

var errNoWorkspace = failure.New(failure.Internal, "no tool may run while a run is planned")
