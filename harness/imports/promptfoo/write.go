package promptfoo

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/imports"
	"github.com/echoeval/echoeval/harness/score"
)

// row is a test with one value for each variable.
type row struct {
	*test
	nth  int // among those that the lists of variables make of the test, from 1
	vars map[string]strict.Node
	own  []string // names of variables that the item states itself, in order
	skip string
	gaps []string // variables that the prompt uses and nobody defines
}

// question is an input, and the prompts that ask it.
type question struct {
	prompt  prompt
	prompts []int
}

// expand takes the lists of variables of all tests apart, each value with each: the last variable changes fastest.
func (im *importer) expand() ([]row, error) {
	d := &im.defaults
	// A default that is a list makes several tests of each, and one that is structured would be merged and not replaced: both are stated by each item.
	apart := map[string]bool{}
	for _, v := range d.vars {
		apart[v.name] = v.value.Kind() != strict.String
	}
	inside := im.dotted()
	var rows []row
	for i := range im.tests {
		t := &im.tests[i]
		var merged test
		for _, v := range slices.Concat(d.vars, t.vars) {
			merged.set(v.name, v.value)
		}
		var own []string
		for _, v := range merged.vars {
			if !t.get(v.name).IsZero() || apart[v.name] {
				own = append(own, v.name)
			}
		}
		combinations := []map[string]strict.Node{{}}
		for _, v := range merged.vars {
			values := []strict.Node{v.value}
			if v.value.Kind() == strict.Sequence && v.value.Len() > 0 && v.value.Index(0).Kind() == strict.String && !t.whole && !d.whole {
				values = values[:0]
				for _, item := range v.value.Items() {
					values = append(values, im.variable(item, t))
				}
			}
			if (len(combinations)*len(values))+len(rows) > mostItems {
				return nil, tooMany(t.pos)
			}
			next := make([]map[string]strict.Node, 0, len(combinations)*len(values))
			for _, c := range combinations {
				for k, value := range values {
					with := c
					if k < len(values)-1 {
						with = make(map[string]strict.Node, len(c)+1)
						for name, n := range c {
							with[name] = n
						}
					}
					with[v.name] = value
					next = append(next, with)
				}
			}
			combinations = next
		}
		skip := t.skip
		if skip == "" {
			skip = d.skip
		}
		for k, vars := range combinations {
			for name, v := range vars {
				if (v.Kind() == strict.Sequence || v.Kind() == strict.Mapping) && !inside[name] {
					vars[name] = v.WithText(v.JSON()) // as it stands in a prompt; a template that is nothing but its name would keep the type
				}
			}
			r := row{test: t, nth: k + 1, vars: vars, own: own, skip: skip}
			im.nested(&r)
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// dotted are the variables that some template reaches into.
func (im *importer) dotted() map[string]bool {
	var names []string
	for _, p := range im.prompts {
		names = append(names, p.names()...)
	}
	for _, t := range append([]test{im.defaults}, im.tests...) {
		for _, c := range t.checks {
			names = append(names, c.names...)
		}
		for _, v := range t.vars {
			if v.value.Kind() == strict.String && isTemplate(v.value.Text()) {
				names = append(names, parseTemplate(v.value.Text()).names()...)
			}
		}
	}
	roots := map[string]bool{}
	for _, name := range names {
		if root, _, ok := strings.Cut(name, "."); ok {
			roots[root] = true
		}
	}
	return roots
}

// nested fills in variables that are templates of others, as promptfoo does before it fills in the prompt.
func (im *importer) nested(r *row) {
	for _, name := range r.names() {
		v := r.vars[name]
		if v.Kind() != strict.String || !isTemplate(v.Text()) {
			continue
		}
		t := parseTemplate(v.Text())
		if t.problem != "" {
			im.note(imports.Lost, r.pos, "write the value out", "a variable with %s", t.problem)
			continue
		}
		if t.plain() {
			r.vars[name] = v.WithText(t.render(func(string) (string, bool) { return "", false }))
			continue
		}
		known := true
		text := t.render(func(other string) (string, bool) {
			value := follow(r.vars, other)
			if value.IsZero() || other == name || value.Kind() == strict.String && isTemplate(value.Text()) {
				known = false
			}
			return shown(value), true
		})
		if !known {
			im.note(imports.Wrong, r.pos, "it stays as it is written", "a variable that is a template of something undefined")
			continue
		}
		r.vars[name] = v.WithText(text)
		if !slices.Contains(r.own, name) {
			r.own = append(r.own, name)
		}
	}
}

// names are the variables of the row in a fixed order: those of the defaults first.
func (r *row) names() []string {
	names := make([]string, 0, len(r.vars))
	for name := range r.vars {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// systems makes the system texts of the prompts static, as the task of an agent is: one that is the same for all tests is filled in, another is put before what the user says.
func (im *importer) systems(rows []row) {
	for i := range im.prompts {
		p := &im.prompts[i]
		if p.problem != "" || p.system.plain() {
			continue
		}
		texts := map[string]bool{}
		for k := range rows {
			texts[p.system.render(func(name string) (string, bool) { return shown(follow(rows[k].vars, name)), true })] = true
			if len(texts) > 1 {
				break
			}
		}
		if len(texts) == 1 {
			for _, name := range p.system.names() {
				if follow(rows[0].vars, name).IsZero() {
					im.note(imports.Wrong, p.pos, "promptfoo puts nothing in its place, and so does the agent's task", "variable %q of a system message is not defined", name)
				}
			}
			for text := range texts {
				p.system = template{pieces: []piece{{text: text}}}
			}
			continue
		}
		im.note(imports.Changed, p.pos, "the task of an agent holds no variables", "a system message that differs between tests stands before what the user says")
		system := p.system
		p.system = template{}
		first := &p.input[0]
		if first.kind != "text" {
			p.input = slices.Insert(p.input, 0, part{"text", system})
			continue
		}
		first.text = template{pieces: slices.Concat(system.pieces, []piece{{text: "\n\n"}}, first.text.pieces)}
	}
}

func (im *importer) questions() []question {
	var list []question
	index := map[string]int{}
	for i, p := range im.prompts {
		key := p.key()
		k, ok := index[key]
		if !ok {
			k = len(list)
			index[key] = k
			list = append(list, question{prompt: p})
		}
		list[k].prompts = append(list[k].prompts, i)
	}
	return list
}

// outcome is what write puts together.
type outcome struct {
	*importer
	rows      []row
	questions []question
	agents    []string                  // system texts, each once
	columns   []outColumn               // the columns of the dataset
	lost      []column                  // those that cannot run
	defaults  imports.Value             // of the dataset
	items     imports.Value             // of the dataset
	names     []string                  // of default checks; "" for those that became a comment
	files     []imports.File            // beside the dataset
	used      map[failure.Position]bool // assertions that are a check of some item
}

type outColumn struct {
	column
	prompt int
	id     string
}

// write makes the dataset.
func (im *importer) write(n strict.Node) ([]imports.File, error) {
	rows, err := im.expand()
	if err != nil {
		return nil, err
	}
	im.systems(rows)
	o := &outcome{importer: im, rows: rows, questions: im.questions(), defaults: imports.Map(), items: imports.List(), used: map[failure.Position]bool{}}
	o.makeColumns()
	o.undefined()
	o.makeDefaults()
	o.makeItems()
	o.recount()
	root := imports.Map()
	root.Set("version", imports.Literal("1"))
	root.Set("name", imports.Text(im.Name))
	if d := strings.TrimSpace(n.Get("description").Text()); d != "" {
		root.Set("description", imports.Text(d))
	}
	o.makeAgents(&root)
	o.makeProviders(&root)
	if o.defaults.Len() > 0 {
		root.Set("defaults", o.defaults.Block())
	}
	base := im.file[strings.LastIndex(im.file, "/")+1:]
	files := imports.Dataset(im.Name, root, o.items, "Imported from "+base+" of promptfoo by echoeval import.")
	o.summary()
	return append(files, o.files...), nil
}

func (o *outcome) summary() {
	r := &o.report
	r.Items, r.Providers = o.items.Len(), len(o.columns)
	line := plural(o.sources, "test") + " -> " + plural(r.Items, "item")
	line += fmt.Sprintf("; prompts %d x providers %d -> %s", len(o.prompts), len(o.importer.columns), plural(r.Providers, "provider"))
	if len(o.importer.defaults.vars)+len(o.importer.defaults.checks) > 0 {
		line += "; defaultTest -> defaults"
	}
	r.Summary = append(r.Summary, line)
}

func (o *outcome) makeColumns() {
	systems := map[string]bool{}
	for _, p := range o.prompts {
		text := p.system.render(func(string) (string, bool) { return "", false })
		if !systems[text] {
			systems[text] = true
			o.agents = append(o.agents, text)
		}
	}
	var ids imports.Names
	for _, c := range o.importer.columns {
		if c.problem != "" {
			o.lost = append(o.lost, c)
			continue
		}
		taken := false
		for i, p := range o.prompts {
			if !c.takes(p) {
				continue
			}
			taken = true
			id := c.id
			if len(o.prompts) > 1 {
				id += "@" + p.name
			}
			o.columns = append(o.columns, outColumn{c, i, ids.Unique(id)})
		}
		if !taken {
			o.note(imports.Wrong, c.pos, "", "a provider whose prompts are none of the configuration's")
		}
	}
	if len(o.columns) == 0 {
		o.note(imports.Lost, failure.Position{File: o.file, Line: 1, Column: 1}, "import it with --provider openai:gpt-4o-mini, or add one to the dataset", "no provider of the source can run: the dataset has none")
	}
}

// task is what an agent is told where the prompt has no system message: an agent must have a task.
const task = "Answer the user."

func (o *outcome) agentOf(system string) imports.Value {
	text := strings.TrimSpace(system)
	if text == "" {
		text = task
	}
	return imports.Map(imports.Field{Key: "task", Value: imports.Map(imports.Field{Key: "description", Value: imports.Text(text)}).Block()}).Block()
}

func (o *outcome) system(prompt int) string {
	return o.prompts[prompt].system.render(func(string) (string, bool) { return "", false })
}

// agentFile is the file of the agent of a prompt.
func (o *outcome) agentFile(system string) string {
	for i, p := range o.prompts {
		if o.system(i) == system {
			return "agents/" + o.Name + "-" + p.name + ".yaml"
		}
	}
	return ""
}

func (o *outcome) makeAgents(root *imports.Value) {
	if slices.ContainsFunc(o.agents, func(s string) bool { return strings.TrimSpace(s) == "" }) {
		o.note(imports.Changed, o.prompts[0].pos, "", "an agent has a task, which models get as the system message %q; promptfoo sends none", task)
	}
	if len(o.agents) == 1 || len(o.columns) == 0 {
		root.Set("agent", o.agentOf(o.agents[0]))
		if len(o.agents) > 1 {
			o.note(imports.Lost, o.prompts[1].pos, "give each provider an agent of its own", "further prompts, for want of a provider")
		}
		return
	}
	for _, system := range o.agents {
		o.files = append(o.files, imports.File{Path: o.agentFile(system), Data: o.agentOf(system).YAML()})
	}
}

func (o *outcome) makeProviders(root *imports.Value) {
	list := imports.List()
	for _, c := range o.columns {
		if c.bare && len(o.prompts) == 1 {
			list.Append(imports.Text(c.id))
			continue
		}
		v := c.entry(c.id)
		if len(o.agents) > 1 {
			v.Set("agent", imports.Text(o.agentFile(o.system(c.prompt))))
		}
		list.Append(v)
	}
	var lines []string
	for _, c := range o.lost {
		line := fmt.Sprintf("lost (%s): %s", o.place(c.pos), c.source)
		if c.label != "" {
			line += ", labelled " + c.label
		}
		lines = append(lines, line)
	}
	columns := list.Len()
	for i := range o.judges {
		if j := &o.judges[i]; j.problem == "" {
			v := j.entry(j.id)
			v.Set("role", imports.Text(j.role))
			list.Append(v)
		}
	}
	if columns == 0 {
		if list.Len() > 0 {
			root.Set("providers", list.Block())
		}
		for _, line := range append(lines, "No provider: add one, such as providers: [openai:gpt-4o-mini], or name one with --provider.") {
			root.Comment(line)
		}
		return
	}
	for _, line := range lines {
		list.Comment(line)
	}
	root.Set("providers", list.Block())
}

// undefined finds the variables that prompts use and a test does not define. promptfoo puts nothing in their place.
func (o *outcome) undefined() {
	for i := range o.rows {
		r := &o.rows[i]
		for _, p := range o.prompts {
			if p.problem != "" {
				continue
			}
			for _, name := range p.names() {
				if !follow(r.vars, name).IsZero() || slices.Contains(r.gaps, name) {
					continue
				}
				root, _, dotted := strings.Cut(name, ".")
				if r.skip == "" {
					hint := "promptfoo puts nothing in its place, and so does the dataset"
					if near, ok := strict.Nearest(name, r.names()); ok {
						hint = fmt.Sprintf("did you mean %q? ", near) + hint
					}
					o.note(imports.Wrong, r.pos, hint, "variable %q of the prompt is not defined", name)
				}
				if dotted {
					r.skip = "its prompt uses {{" + name + "}}, which is not defined"
					continue
				}
				r.gaps = append(r.gaps, root)
			}
		}
	}
}

func (o *outcome) makeDefaults() {
	d := &o.importer.defaults
	v := &o.defaults
	if len(o.questions) == 1 {
		q := o.questions[0]
		if q.prompt.problem == "" {
			v.Set("messages", q.prompt.messages())
			v.Set("input", input(q.prompt, d.prefix, d.suffix))
		} else {
			v.Set("input", placeholder(q.prompt.problem))
			v.Set("skip", imports.Text(q.prompt.problem))
		}
	}
	vars := imports.Map()
	// What is undefined everywhere is empty by default.
	counts := map[string]int{}
	for _, r := range o.rows {
		for _, name := range r.gaps {
			counts[name]++
		}
	}
	for _, variable := range d.vars {
		if variable.value.Kind() == strict.String {
			vars.Set(variable.name, imports.Of(variable.value))
		}
	}
	var everywhere []string
	for name, n := range counts {
		if n == len(o.rows) {
			everywhere = append(everywhere, name)
		}
	}
	slices.Sort(everywhere)
	for _, name := range everywhere {
		vars.Set(name, imports.Text(""), "not defined by the source")
	}
	for i := range o.rows {
		o.rows[i].gaps = slices.DeleteFunc(o.rows[i].gaps, func(name string) bool { return slices.Contains(everywhere, name) })
	}
	if vars.Len() > 0 {
		v.Set("vars", vars)
	}
	checks := imports.List()
	names := checkNames(nil)
	unnamed := map[string]int{}
	for i := range d.checks {
		c := &d.checks[i]
		if c.comment != "" {
			checks.Comment(c.comment)
			o.names = append(o.names, "")
			continue
		}
		name := c.kind
		if c.name != "" {
			c.name = names.Unique(c.name)
			name = c.name
		} else if unnamed[c.kind]++; unnamed[c.kind] > 1 {
			name = fmt.Sprintf("%s#%d", c.kind, unnamed[c.kind])
		}
		o.names = append(o.names, name)
		checks.Append(c.write())
	}
	setChecks(v, checks)
	if d.threshold != nil {
		v.Set("threshold", imports.Number(*d.threshold))
	}
	if !d.metadata.IsZero() {
		v.Set("metadata", imports.Of(d.metadata))
	}
	if len(o.tags) > 0 {
		v.Set("tags", imports.Texts(o.tags))
	}
	if o.repeat != "" {
		v.Set("repeat", imports.Literal(o.repeat))
	}
	if o.timeout != "" {
		v.Set("timeout", imports.Text(o.timeout))
	}
}

// checkNames gives out names of checks that are neither among those taken nor those that checks have by their kind.
func checkNames(taken []string) *imports.Names {
	names := &imports.Names{}
	for _, kind := range score.Kinds() {
		names.Unique(kind.Name)
	}
	for _, name := range taken {
		names.Unique(name)
	}
	return names
}

// setChecks sets the checks of a layer; where there are only comments they stand alone.
func setChecks(v *imports.Value, checks imports.Value) {
	if checks.Len() > 0 {
		v.Set("checks", checks.Block())
		return
	}
	for _, line := range checks.Comments() {
		v.Comment(line)
	}
}

// messages writes the conversation so far; missing where there is none.
func (p prompt) messages() imports.Value {
	if len(p.before) == 0 {
		return imports.Value{}
	}
	list := imports.List()
	for _, m := range p.before {
		list.Append(imports.Map(imports.Field{Key: "role", Value: imports.Text(m.role)}, imports.Field{Key: "content", Value: imports.Text(m.text.ours())}))
	}
	return list.Block()
}

// input writes what the user says; missing where that is nothing.
func input(p prompt, prefix, suffix string) imports.Value {
	parts := slices.Clone(p.input)
	fixed := func(s string) template { return parseTemplate(s) }
	if prefix != "" {
		parts = slices.Insert(parts, 0, part{"text", fixed(prefix)})
	}
	if suffix != "" {
		parts = append(parts, part{"text", fixed(suffix)})
	}
	if !slices.ContainsFunc(parts, func(p part) bool { return p.kind != "text" }) {
		var text strings.Builder
		for _, part := range parts {
			text.WriteString(part.text.ours())
		}
		if text.Len() == 0 {
			return imports.Value{}
		}
		return imports.Text(text.String())
	}
	list := imports.List()
	for _, part := range parts {
		if text := part.text.ours(); text != "" {
			list.Append(imports.Map(imports.Field{Key: part.kind, Value: imports.Text(text)}))
		}
	}
	return list
}

// placeholder stands for an input that cannot be asked; its item is skipped.
func placeholder(why string) imports.Value {
	return imports.Text("(" + strings.ReplaceAll(why, "{{", `\{{`) + ")")
}

// unfit says why the prompt cannot be asked with these variables; "" where it can. around is what options put around it.
func (p prompt) unfit(vars map[string]strict.Node, around string) string {
	fill := func(t template) string {
		return t.render(func(name string) (string, bool) { return shown(follow(vars, name)), true })
	}
	structured := func(t template) bool {
		return len(t.pieces) == 1 && t.pieces[0].name != "" && follow(vars, t.pieces[0].name).Len() > 0
	}
	parts, text := false, around
	for _, part := range p.input {
		parts = parts || part.kind != "text"
		text += fill(part.text)
		if structured(part.text) {
			return "its prompt is a structure"
		}
	}
	for _, m := range p.before {
		if fill(m.text) == "" || structured(m.text) {
			return "a message of its prompt is empty"
		}
	}
	if text == "" {
		return "its prompt is empty"
	}
	for _, part := range p.input {
		switch filled := fill(part.text); {
		case parts && filled == "" && len(part.text.pieces) > 0:
			return "a part of its prompt is empty"
		case part.kind == "image":
			u, err := url.Parse(filled)
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return "an image of its prompt is no address"
			}
		}
	}
	return ""
}

// mostItem is how many bytes of variables an item may hold: below what a dataset reads.
const mostItem = 900_000

func (o *outcome) makeItems() {
	var ids imports.Names
	descriptions := map[string]failure.Position{}
	bodies := map[string]bool{}
	for i := range o.rows {
		r := &o.rows[i]
		if r.nth == 1 {
			o.duplicates(r, descriptions, bodies)
		}
		size := 0
		for _, v := range r.vars {
			size += len(shown(v))
		}
		if size > mostItem {
			o.note(imports.Lost, r.pos, "move the text into a file of the item's workspace", "a test whose variables are longer than 0.9 MB")
			continue
		}
		id := o.id(r)
		var group string
		if len(o.questions) > 1 {
			group = ids.Unique(id)
		}
		for _, q := range o.questions {
			name := id
			if group != "" {
				name = group + "@" + o.prompts[q.prompts[0]].name
			}
			o.item(r, q, ids.Unique(name), group)
		}
	}
}

// recount takes back what was counted as converted and is a check of no item.
func (o *outcome) recount() {
	seen := map[failure.Position]bool{}
	lists := [][]check{o.importer.defaults.checks}
	for i := range o.tests {
		lists = append(lists, o.tests[i].checks)
	}
	for _, list := range lists {
		for _, c := range list {
			if c.comment == "" && !o.used[c.pos] && !seen[c.pos] {
				seen[c.pos] = true
				o.report.Lose(c.label)
			}
		}
	}
}

// duplicates notes tests that bear the same description, or that are the same.
func (o *outcome) duplicates(r *row, descriptions map[string]failure.Position, bodies map[string]bool) {
	if d := r.description; d != "" {
		if _, twice := descriptions[d]; twice {
			o.note(imports.Wrong, r.pos, "give each test its own", "a description that stands twice")
		}
		descriptions[d] = r.pos
	}
	var b strings.Builder
	for _, v := range r.test.vars {
		b.WriteString(v.name + "\x00" + v.value.JSON() + "\x00")
	}
	for _, c := range r.test.checks {
		b.WriteString(c.kind + c.args.JSON() + fmt.Sprint(c.not))
		if c.comment != "" {
			_, rest, _ := strings.Cut(c.comment, "): ")
			b.WriteString(rest)
		}
		b.WriteByte(1)
	}
	if bodies[b.String()] {
		o.note(imports.Wrong, r.pos, "remove one of the two", "a test that stands twice")
	}
	bodies[b.String()] = true
	if !r.asserted && !o.importer.defaults.asserted {
		o.note(imports.Wrong, r.pos, "say what the answer must be", "a test without assertions, which passes whatever the answer is")
	}
}

// id makes an id of the description, else of the first variable that says something, else of the place.
func (o *outcome) id(r *row) string {
	if id := imports.Slug(r.description, 60); id != "" {
		return id
	}
	for _, v := range r.test.vars {
		value := r.vars[v.name]
		if value.Kind() != strict.String || strings.Contains(value.Text(), "://") {
			continue
		}
		if id := imports.Slug(value.Text(), 48); strings.Contains(id, "-") || len(id) > 2 {
			return id
		}
	}
	return r.number
}

func (o *outcome) item(r *row, q question, id, group string) {
	d := &o.importer.defaults
	v := imports.Map()
	v.Set("id", imports.Text(id))
	skip := r.skip
	if skip == "" {
		skip = q.prompt.problem
	}
	prefix, suffix := r.prefix, r.suffix
	if prefix == "" {
		prefix = d.prefix
	}
	if suffix == "" {
		suffix = d.suffix
	}
	many := len(o.questions) > 1
	switch {
	case q.prompt.problem != "":
		if many {
			v.Set("input", placeholder(q.prompt.problem))
		}
	case q.prompt.unfit(r.vars, prefix+suffix) != "":
		why := q.prompt.unfit(r.vars, prefix+suffix)
		if skip == "" {
			skip = why
		}
		v.Set("input", placeholder(why))
		if len(q.prompt.before) > 0 && !many {
			v.Set("messages", imports.Literal("null"))
		}
	case many || prefix != d.prefix || suffix != d.suffix:
		if many {
			v.Set("messages", q.prompt.messages())
		}
		v.Set("input", input(q.prompt, prefix, suffix))
	}
	if skip != "" && (many || skip != q.prompt.problem) {
		v.Set("skip", imports.Text(skip))
	}
	vars := imports.Map()
	for _, name := range r.own {
		vars.Set(name, imports.Of(r.vars[name]))
	}
	for _, name := range r.gaps {
		vars.Set(name, imports.Text(""), "not defined by the source")
	}
	if vars.Len() > 0 {
		v.Set("vars", vars)
	}
	o.providersOf(r, q, many, &v)
	o.checks(r, &v)
	if r.threshold != nil {
		v.Set("threshold", imports.Number(*r.threshold))
	}
	if r.repeat != "" {
		v.Set("repeat", imports.Literal(r.repeat))
	}
	if !r.metadata.IsZero() {
		v.Set("metadata", imports.Of(r.metadata))
	}
	if group != "" {
		v.Set("group", imports.Text(group))
		v.Set("tags", imports.Texts([]string{o.prompts[q.prompts[0]].name}))
	}
	var comments []string
	if d := strings.ToLower(r.description); d != "" && r.nth == 1 && d != strings.ReplaceAll(id, "-", " ") {
		comments = append(comments, r.description)
	}
	o.items.Append(v.Block(), comments...)
}

// providersOf says which columns an item is for, where it is not for all.
func (o *outcome) providersOf(r *row, q question, many bool, v *imports.Value) {
	if len(o.columns) == 0 || !many && r.providers == nil && r.prompts == nil {
		return
	}
	var ids []string
	for _, c := range o.columns {
		if many && !slices.Contains(q.prompts, c.prompt) {
			continue
		}
		if r.providers != nil && !slices.ContainsFunc(r.providers, c.matches) {
			continue
		}
		if r.prompts != nil && !slices.ContainsFunc(o.prompts[c.prompt].labels, func(l string) bool { return slices.Contains(r.prompts, l) }) {
			continue
		}
		ids = append(ids, c.id)
	}
	switch {
	case len(ids) == 0 && v.Has("skip"):
	case len(ids) == 0:
		v.Set("skip", imports.Text("none of its providers is in the dataset"))
		o.note(imports.Lost, r.pos, "", "a test for providers that are not in the dataset")
	case len(ids) < len(o.columns):
		v.Set("providers", imports.Texts(ids))
	}
}

// checks writes the checks of an item, and drops those of the defaults that cannot be made with its variables.
func (o *outcome) checks(r *row, v *imports.Value) {
	d := &o.importer.defaults
	var drop []string
	for i := range d.checks {
		c := &d.checks[i]
		if o.names[i] == "" {
			continue
		}
		if r.noDefaults || o.unfit(r, c) {
			drop = append(drop, o.names[i])
			continue
		}
		o.used[c.pos] = true
	}
	checks := imports.List()
	var names *imports.Names
	for i := range r.test.checks {
		c := r.test.checks[i]
		switch {
		case c.comment != "":
			checks.Comment(c.comment)
			continue
		case o.unfit(r, &c):
			checks.Comment(fmt.Sprintf("wrong (%s): %s: %s", o.place(c.pos), c.label, c.args.JSON()))
			continue
		}
		o.used[c.pos] = true
		if c.name != "" {
			if names == nil {
				names = checkNames(o.names)
			}
			c.name = names.Unique(c.name)
		}
		checks.Append(c.write())
	}
	setChecks(v, checks)
	if len(drop) > 0 {
		v.Set("drop", imports.Texts(drop))
	}
}

// unfit reports whether a check cannot be made with the variables of a row, and notes why.
func (o *outcome) unfit(r *row, c *check) bool {
	if len(c.names) == 0 {
		return false
	}
	args, missing := c.filled(r.vars)
	for _, name := range missing {
		o.note(imports.Wrong, r.pos, "promptfoo puts nothing in its place; the check is left out", "variable %q of an assertion is not defined", name)
	}
	if len(missing) > 0 {
		return true
	}
	if why := c.wrong(args, o.importer); why != "" {
		o.note(imports.Wrong, r.pos, "the check is left out", "%s: %s", c.kind, why)
		return true
	}
	return false
}
