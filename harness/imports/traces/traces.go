// Package traces makes datasets of recorded conversations: trajectories of tau-bench, exports of Langfuse, lists of messages as OpenAI's API takes them.
//
// Each conversation becomes an item: what the user said is the input (or the turns), the calls that were made, or that the task asks for, a check of tool_calls, the recorded results the answers of the tools. The system message becomes the task of the agent.
package traces

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/imports"
)

// Options say what [Import] knows beside the traces.
type Options struct {
	// Name is the dataset's.
	Name string
	// Providers are the columns, each vendor:model: records name none that could run.
	Providers []string
}

// Source is one file of traces. Name is its path for places; one that ends in .jsonl has a trace a line.
type Source struct {
	Name string
	Data []byte
}

// conversation is one recorded conversation, from whatever source.
type conversation struct {
	id       string // readable, need not be unique
	pos      failure.Position
	system   string
	users    []string
	calls    []call
	parallel bool     // the order of the calls says nothing
	expected []call   // what the task asks for, where it says so
	tasked   bool     // the task says what it asks for
	outputs  []string // what the agent must say
	answer   string   // what was said last
	tags     []string
	metadata imports.Value
}

// call is a tool call and what it gave.
type call struct {
	name   string
	args   strict.Node // a mapping, or zero
	result strict.Node // zero where the record has none
}

// importer is one import at work.
type importer struct {
	Options
	report imports.Report
	list   []conversation
}

// Is reports whether a document looks like traces.
func Is(n strict.Node) bool { return kindOf(n) != "" }

func kindOf(n strict.Node) string {
	first := n
	if n.Kind() == strict.Sequence && n.Len() > 0 {
		first = n.Index(0)
	}
	switch {
	case first.Kind() != strict.Mapping:
		return ""
	case !first.Get("traj").IsZero():
		return "tau-bench"
	case !first.Get("trace").IsZero() && !first.Get("observations").IsZero(), first.Get("observations").Kind() == strict.Sequence && !first.Get("projectId").IsZero():
		return "langfuse"
	case !first.Get("expectedOutput").IsZero() && !first.Get("input").IsZero():
		return "langfuse-items"
	case first.Get("messages").Kind() == strict.Sequence:
		return "messages"
	case n.Kind() == strict.Sequence && !first.Get("role").IsZero():
		return "conversation"
	}
	return ""
}

// Import reads traces, one file or several, and makes one dataset of all. The error says why none can be made; the result then holds the report and no files.
func Import(sources []Source, o Options) (imports.Result, error) {
	im := &importer{Options: o}
	var problems []string
	for _, s := range sources {
		if strings.EqualFold(path.Ext(s.Name), ".jsonl") {
			for n, err := range strict.Lines(s.Name, strings.NewReader(string(s.Data)), strict.MaxDocument) {
				if err != nil {
					im.report.Add(imports.Wrong, place(err), "the line is left out", "%s", failure.Message(err))
					continue
				}
				im.document(n)
			}
			continue
		}
		n, err := strict.Parse(s.Name, s.Data)
		if n.IsZero() {
			return imports.Result{Report: im.report}, err
		}
		if err != nil {
			problems = append(problems, failure.Message(err))
		}
		im.document(n)
	}
	if len(problems) > 0 {
		im.report.Add(imports.Wrong, failure.Position{}, "", "%s", strings.Join(problems, "; "))
	}
	if len(im.list) == 0 {
		return imports.Result{Report: im.report}, failure.WithHint(failure.New(failure.Input, "no conversation in what was given; the report says why"), "traces are trajectories of tau-bench, exports of Langfuse, or lists of messages with roles")
	}
	return imports.Result{Files: im.write(sources), Report: im.report}, nil
}

func place(err error) failure.Position {
	pos, _ := failure.PositionOf(err)
	return pos
}

func (im *importer) document(n strict.Node) {
	kind := kindOf(n)
	entries := []strict.Node{n}
	if n.Kind() == strict.Sequence && kind != "conversation" {
		entries = entries[:0]
		for _, entry := range n.Items() {
			entries = append(entries, entry)
		}
	}
	for i, entry := range entries {
		var c conversation
		var ok bool
		switch kind {
		case "tau-bench":
			c, ok = im.tau(entry)
		case "langfuse":
			c, ok = im.langfuse(entry)
		case "langfuse-items":
			c, ok = im.datasetItem(entry)
		case "messages":
			c, ok = im.messages(entry.Get("messages"), entry)
		case "conversation":
			c, ok = im.messages(entry, strict.Node{})
		default:
			im.report.Add(imports.Lost, entry.Pos(), "", "what is no trace of a kind that is known")
			continue
		}
		if !ok {
			continue
		}
		c.pos = entry.Pos()
		if c.id == "" {
			base := path.Base(c.pos.File)
			c.id = imports.Slug(strings.TrimSuffix(base, path.Ext(base)), 60)
			if len(entries) > 1 || c.id == "" {
				c.id = strings.TrimPrefix(fmt.Sprintf("%s-%d", c.id, i+1), "-")
			}
		}
		im.list = append(im.list, c)
	}
}

// task is what an agent is told where no record has a system message.
const task = "Answer the user."

// mostItem is how many bytes an item may have: below what a dataset reads.
const mostItem = 900_000

func (im *importer) write(sources []Source) []imports.File {
	systems := map[string]int{}
	best := ""
	for _, c := range im.list {
		systems[c.system]++
		if systems[c.system] > systems[best] {
			best = c.system
		}
	}
	root := imports.Map()
	root.Set("version", imports.Literal("1"))
	root.Set("name", imports.Text(im.Name))
	text := strings.TrimSpace(best)
	if text == "" {
		text = task
		im.report.Add(imports.Changed, failure.Position{}, "write the task of your agent", "no record has a system message: the task of the agent is %q", task)
	}
	agent := imports.Map(imports.Field{Key: "name", Value: imports.Text(im.Name)}, imports.Field{Key: "task", Value: imports.Map(imports.Field{Key: "description", Value: imports.Text(text)}).Block()})
	tools, mocks := im.tools()
	agent.Set("tools", tools)
	file := "agents/" + im.Name + ".yaml"
	root.Set("agent", imports.Text(file))
	if len(im.Providers) > 0 {
		root.Set("providers", imports.Texts(im.Providers).Block())
	} else {
		root.Comment("Name the providers here or with --provider: providers: [openai:gpt-4o-mini].")
		im.report.Add(imports.Todo, failure.Position{}, "import them with --provider openai:gpt-4o-mini, or add one to the dataset", "the dataset has no provider")
	}
	if mocks.Len() > 0 {
		root.Set("defaults", imports.Map(imports.Field{Key: "tool_mocks", Value: mocks.Block()}).Block())
	}
	items := imports.List()
	names := &imports.Names{}
	for _, c := range im.list {
		if c.system != best {
			im.report.Add(imports.Lost, c.pos, "make a dataset of its own of those", "a system message that is not that of most conversations")
		}
		v := im.item(c, names.Unique(c.id))
		if probe := imports.List(imports.Entry{Value: v}); len(imports.Map(imports.Field{Key: "items", Value: probe.Block()}).YAML()) > mostItem {
			im.report.Add(imports.Lost, c.pos, "", "a conversation longer than 0.9 MB")
			continue
		}
		items.Append(v)
	}
	im.report.Items, im.report.Providers = items.Len(), len(im.Providers)
	im.report.Summary = append(im.report.Summary, fmt.Sprintf("%s of %s -> %s", plural(len(im.list), "conversation"), plural(len(sources), "file"), plural(items.Len(), "item")))
	var from []string
	for _, s := range sources {
		from = append(from, path.Base(s.Name))
	}
	head := "Imported from " + strings.Join(from, ", ") + " by echoeval import."
	if len(from) > 4 {
		head = fmt.Sprintf("Imported from %d files by echoeval import.", len(from))
	}
	return append(imports.Dataset(im.Name, root, items, head), imports.File{Path: file, Data: agent.Block().YAML()})
}

// unanswered is what a tool says where the record has no answer.
const unanswered = "no answer was recorded for these arguments"

// tools describes the tools that the conversations call or ask for, as far as their calls tell, and gives the answer of each to calls that nobody recorded.
func (im *importer) tools() (tools, mocks imports.Value) {
	calls := map[string][]call{}
	for _, c := range im.list {
		for _, call := range slices.Concat(c.calls, c.expected) {
			calls[call.name] = append(calls[call.name], call)
		}
	}
	if len(calls) == 0 {
		return imports.Value{}, imports.Value{}
	}
	tools, mocks = imports.List(), imports.Map()
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		tools.Append(imports.Map(
			imports.Field{Key: "name", Value: imports.Text(name)},
			imports.Field{Key: "description", Value: imports.Text("The tool " + name + " of the record.")},
			imports.Field{Key: "parameters", Value: parameters(calls[name]).Block()},
		).Block())
		mocks.Set(name, imports.List(imports.Entry{Value: imports.Map(imports.Field{Key: "error", Value: imports.Text(unanswered)})}))
	}
	im.report.Add(imports.Todo, failure.Position{}, "a model is told what stands there: write what the tools do, and the schemas of their arguments", "what the agent's file says of %s is made of the calls", plural(len(calls), "tool"))
	return tools.Block(), mocks
}

// parameters is a schema of the arguments that calls have: required is what all of them have.
func parameters(calls []call) imports.Value {
	type property struct {
		kinds []string
		n     int
	}
	properties := map[string]*property{}
	for _, c := range calls {
		for key, v := range c.args.Fields() {
			p := properties[key.Name]
			if p == nil {
				p = &property{}
				properties[key.Name] = p
			}
			p.n++
			kind := map[strict.Kind]string{strict.String: "string", strict.Int: "number", strict.Float: "number", strict.Bool: "boolean", strict.Sequence: "array", strict.Mapping: "object", strict.Null: "null"}[v.Kind()]
			if !slices.Contains(p.kinds, kind) {
				p.kinds = append(p.kinds, kind)
			}
		}
	}
	list, required := imports.Map(), []string(nil)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p := properties[name]
		slices.Sort(p.kinds)
		kind := imports.Texts(p.kinds)
		if len(p.kinds) == 1 {
			kind = imports.Text(p.kinds[0])
		}
		schema := imports.Map(imports.Field{Key: "type", Value: kind})
		if slices.Contains(p.kinds, "array") {
			schema.Set("items", imports.Map()) // vendors refuse a list of nobody knows what
		}
		list.Set(name, schema)
		if p.n == len(calls) {
			required = append(required, name)
		}
	}
	schema := imports.Map(imports.Field{Key: "type", Value: imports.Text("object")})
	if list.Len() > 0 {
		schema.Set("properties", list)
	}
	if required != nil {
		schema.Set("required", imports.Texts(required))
	}
	return schema
}

// answers are the recorded results of an item's tools. Of calls with the same arguments each result serves once, the last one without end.
func (c conversation) answers() imports.Value {
	cases := map[string]*imports.Value{}
	var order []string
	for i, made := range c.calls {
		if made.result.IsZero() {
			continue
		}
		list := cases[made.name]
		if list == nil {
			list = &imports.Value{}
			*list = imports.List()
			cases[made.name] = list
			order = append(order, made.name)
		}
		one := imports.Map()
		if made.args.Len() > 0 {
			one.Set("args", matching(made.args, true))
		}
		one.Set("result", matching(made.result, false))
		for _, later := range c.calls[i+1:] {
			if later.name == made.name && !later.result.IsZero() && sameArguments(later.args, made.args) {
				one.Set("times", imports.Literal("1"))
				break
			}
		}
		list.Append(one)
	}
	slices.Sort(order)
	all := imports.Map()
	for _, name := range order {
		all.Set(name, cases[name].Block())
	}
	return all
}

func sameArguments(a, b strict.Node) bool {
	if a.Len() == 0 || b.Len() == 0 {
		return a.Len() == b.Len()
	}
	return a.Equal(b)
}

func (im *importer) item(c conversation, id string) imports.Value {
	v := imports.Map()
	v.Set("id", imports.Text(id))
	if len(c.users) == 1 {
		v.Set("input", imports.Text(literal(c.users[0])))
	} else {
		turns := imports.List()
		for _, text := range c.users {
			turns.Append(imports.Map(imports.Field{Key: "input", Value: imports.Text(literal(text))}))
		}
		v.Set("turns", turns.Block())
		im.report.Add(imports.Changed, c.pos, "a simulated user would answer to the point: user: {goal: ...}", "the user says in every run what was said in the record")
	}
	if c.answer != "" {
		v.Set("expected", imports.Text(c.answer))
	}
	checks := imports.List()
	calls, match := c.calls, "exact"
	if c.parallel {
		match = "unordered"
	}
	if c.tasked {
		calls, match = c.expected, "subset"
	}
	if len(calls) > 0 {
		list := imports.List()
		for _, call := range calls {
			one := imports.Map(imports.Field{Key: "name", Value: imports.Text(call.name)})
			if call.args.Len() > 0 {
				one.Set("args", matching(call.args, true))
			}
			list.Append(one)
		}
		checks.Append(imports.Map(imports.Field{Key: "tool_calls", Value: imports.Map(imports.Field{Key: "match", Value: imports.Text(match)}, imports.Field{Key: "calls", Value: list.Block()}).Block()}))
		im.report.Count("tool calls", imports.Changed)
	}
	if len(c.outputs) > 0 {
		var texts []string
		for _, text := range c.outputs {
			texts = append(texts, literal(text))
		}
		checks.Append(imports.Map(imports.Field{Key: "contains_all", Value: imports.Texts(texts)}))
		im.report.Count("outputs", imports.Changed)
		if len(c.users) > 1 {
			im.report.Add(imports.Changed, c.pos, "", "the outputs of a task must stand in the last answer; tau-bench takes them from any")
		}
	}
	if checks.Len() > 0 {
		v.Set("checks", checks.Block())
	} else {
		im.report.Add(imports.Todo, c.pos, "write checks: [...]", "a conversation that nothing is asked of: no calls to expect")
	}
	if mocks := c.answers(); mocks.Len() > 0 {
		v.Set("tool_mocks", mocks.Block())
	}
	if c.metadata.Len() > 0 {
		v.Set("metadata", c.metadata)
	}
	if len(c.tags) > 0 {
		v.Set("tags", imports.Texts(c.tags))
	}
	return v.Block()
}

// literal writes a text so that nothing in it is taken for a template.
func literal(text string) string { return strings.ReplaceAll(text, "{{", `\{{`) }

// matching writes a value so that nothing in it is taken for a template. Keys that begin with $ are doubled where the value is compared with arguments.
func matching(n strict.Node, compared bool) imports.Value {
	switch n.Kind() {
	case strict.Mapping:
		v := imports.Map()
		for key, value := range n.Fields() {
			name := key.Name
			if compared && strings.HasPrefix(name, "$") {
				name = "$" + name
			}
			v.Set(name, matching(value, compared))
		}
		return v
	case strict.Sequence:
		v := imports.List()
		for _, item := range n.Items() {
			v.Append(matching(item, compared))
		}
		return v
	case strict.String:
		return imports.Text(literal(n.Text()))
	}
	return imports.Of(n)
}

// tag makes one word of a text; "" where nothing is left.
func tag(text string) string {
	return strings.TrimLeft(strings.Map(func(r rune) rune {
		if r == ' ' || r == ',' || r == '\t' || r == '\n' || r < ' ' {
			return '-'
		}
		return r
	}, text), "!-")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
