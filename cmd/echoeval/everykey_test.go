//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/strict"
)

// A tree is a file as values, in its order. A mapping may have a key twice.
type tree struct {
	scalar string // as JSON, where the tree is neither mapping nor list
	keys   []string
	inside []*tree
	list   bool
}

func treeOf(n strict.Node) *tree {
	t := &tree{list: n.Kind() == strict.Sequence}
	switch n.Kind() {
	case strict.Sequence:
		for _, v := range n.Items() {
			t.inside = append(t.inside, treeOf(v))
		}
	case strict.Mapping:
		t.keys = []string{}
		for key, v := range n.Fields() {
			t.keys, t.inside = append(t.keys, key.Name), append(t.inside, treeOf(v))
		}
	default:
		t.scalar = n.JSON()
	}
	return t
}

// written is a tree as a file: every key on a line of its own. key and value are the places, line:column, of the last key that was written for the mark.
type written struct {
	text       strings.Builder
	json       bool
	mark       *tree // the value whose places are wanted
	key, value [2]int
	last       [2]int // the line and column behind the last line of value
}

func (w *written) at() [2]int {
	text := w.text.String()
	line := strings.LastIndexByte(text, '\n') + 1
	return [2]int{strings.Count(text, "\n") + 1, utf8.RuneCountInString(text[line:]) + 1}
}

func (w *written) tree(t *tree, indent string) {
	if t == w.mark {
		w.value = w.at()
		defer func() { w.last = w.at() }()
	}
	open, shut := "{", "}"
	if t.list {
		open, shut = "[", "]"
	}
	switch {
	case t.scalar != "":
		w.text.WriteString(t.scalar)
		return
	case len(t.inside) == 0:
		w.text.WriteString(open + shut)
		return
	}
	// YAML in blocks, JSON in brackets; either way each entry begins a line.
	if w.json {
		w.text.WriteString(open)
	}
	for i, v := range t.inside {
		if w.json && i > 0 {
			w.text.WriteString(",")
		}
		if w.json || w.text.Len() > 0 && (t.list || i > 0 || !strings.HasSuffix(w.text.String(), "- ")) {
			w.text.WriteString("\n" + indent)
		}
		if t.list && !w.json {
			w.text.WriteString("- ")
		}
		if !t.list {
			if v == w.mark {
				w.key = w.at()
			}
			name := t.keys[i]
			if quoted, _ := json.Marshal(name); w.json || !plainWord.MatchString(name) {
				name = string(quoted)
			}
			w.text.WriteString(name + ": ")
		}
		w.tree(v, indent+"  ")
	}
	if w.json {
		w.text.WriteString("\n" + indent + shut)
	}
}

var plainWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func (t *tree) appendJSON(dst []byte) []byte {
	if t.scalar != "" {
		return append(dst, t.scalar...)
	}
	open, shut := byte('{'), byte('}')
	if t.list {
		open, shut = '[', ']'
	}
	dst = append(dst, open)
	for i, v := range t.inside {
		if i > 0 {
			dst = append(dst, ',')
		}
		if !t.list {
			name, _ := json.Marshal(t.keys[i])
			dst = append(append(dst, name...), ':')
		}
		dst = v.appendJSON(dst)
	}
	return append(dst, shut)
}

// shape is the JSON Schema of a kind of file, and what of it the samples reach.
type shape struct {
	root map[string]any
	// owners are the mappings of the samples by the schema that describes them.
	owners map[string][]*tree
	// properties are all that the schema declares, by the schema that declares them.
	properties map[string]map[string]any
	open       map[string]bool // schemas that take further keys
	docs       []*tree
	of         map[*tree]int // the number of the document that a mapping stands in
}

// resolve follows references. where names the schema; one that is referred to is named by its definition.
func (s *shape) resolve(schema any, where string) (map[string]any, string) {
	m, _ := schema.(map[string]any)
	for m["$ref"] != nil {
		where = strings.TrimPrefix(m["$ref"].(string), "#")
		name := strings.TrimPrefix(where, "/$defs/")
		m = s.root["$defs"].(map[string]any)[name].(map[string]any)
	}
	return m, where
}

// below yields the schemas that a schema is made of, itself first.
func (s *shape) branches(schema any, where string, visit func(m map[string]any, where string)) {
	m, where := s.resolve(schema, where)
	visit(m, where)
	for _, word := range []string{"anyOf", "allOf", "oneOf"} {
		list, _ := m[word].([]any)
		for i, branch := range list {
			s.branches(branch, fmt.Sprintf("%s/%s/%d", where, word, i), visit)
		}
	}
}

// declare collects all properties.
func (s *shape) declare(schema any, where string) {
	s.branches(schema, where, func(m map[string]any, where string) {
		if _, done := s.properties[where]; done {
			return
		}
		if items := m["items"]; items != nil {
			s.declare(items, where+"/items")
		}
		if more, ok := m["additionalProperties"].(map[string]any); ok {
			s.declare(more, where+"/*")
		}
		properties, ok := m["properties"].(map[string]any)
		if !ok {
			return
		}
		s.properties[where] = properties
		if _, closed := m["additionalProperties"]; !closed {
			s.open[where] = true
		}
		for name, of := range properties {
			s.declare(of, where+"/"+name)
		}
	})
}

// reach notes which schemas describe which mappings of a sample.
func (s *shape) reach(schema any, where string, t *tree) {
	s.branches(schema, where, func(m map[string]any, where string) {
		switch {
		case t.list:
			for _, v := range t.inside {
				if m["items"] != nil {
					s.reach(m["items"], where+"/items", v)
				}
			}
		case t.keys != nil:
			properties, _ := m["properties"].(map[string]any)
			more, open := m["additionalProperties"]
			if more == false && slices.ContainsFunc(t.keys, func(key string) bool { return properties[key] == nil }) {
				return // another branch
			}
			if properties != nil {
				s.owners[where] = append(s.owners[where], t)
			}
			for i, key := range t.keys {
				if of, ok := properties[key]; ok {
					s.reach(of, where+"/"+key, t.inside[i])
				} else if of, ok := more.(map[string]any); open && ok {
					s.reach(of, where+"/*", t.inside[i])
				}
			}
		}
	})
}

// trial is a file with one thing that is wrong, or that may be.
type trial struct {
	what     string
	text     string
	accepted bool   // by the schema
	at       string // LINE:COLUMN where the problem must be told; "" for anywhere from from to to
	from, to [2]int
	message  string // a part of the message; "" for any
	agree    bool   // the reader must accept what the schema accepts, unless it is a matter of meaning
}

// meaning is what readers refuse and no schema can: names of what is elsewhere, and what one key says of another.
var meaning = regexp.MustCompile(strings.Join([]string{
	`does not exist$`, `has an unknown extension$`, `no library defines a (check|policy) `, `nothing inherited is named `, `the agent has no tool `, `unknown (provider|check|invariant|tool) "`,
	`has no provider (".*" )?of role user$`, `key "(model|goal)" is missing$`, `nobody asks anything`, `the last message is not the user's`, `Syntax error`, `items.jsonl:1:`,
	`no provider ".*" of role (judge|embed)$`, `the (reference|list) is empty`, `takes a (temperature|seed) `, `knows no effort "`, `a judge judges by one of`, `unknown api_version "`, `want a whole number from 1024$`, `there is no folder `, `there is no file `, `leaves nothing of max_tokens`, `a gate looks at (tag|check) .* and no item has it$`,
	`the conversation matches everything`, `the step answers nothing`, `repeat is 7, the items have up to 1$`, `1 entries, and scores has 0$`, `a text part without text$`,
}, "|"))

// probes are values of every type.
var probes = []string{`null`, `true`, `7`, `-1`, `2.5`, `"some text"`, `""`, `[[5]]`, `{"zz": 1}`, `[]`, `{}`}

func anything(schema any) bool {
	m, _ := schema.(map[string]any)
	for key := range m {
		if key != "description" {
			return false
		}
	}
	return true
}

// keyKind is a kind of files with its samples.
type keyKind struct {
	kind    string
	samples []string
	// name gives the file of a trial.
	name func(n int) string
}

func inRoot(ext string) func(int) string {
	return func(n int) string { return fmt.Sprintf("m%05d%s", n, ext) }
}

var keyKinds = []keyKind{
	{"dataset", []string{"dataset.yaml", "dataset-source.yaml", "dataset-gates.yaml", "dataset-target.yaml"}, inRoot(".yaml")},
	{"agent", []string{"agent.yaml"}, inRoot(".yaml")},
	{"library", []string{"library.yaml"}, inRoot(".yaml")},
	{"project", []string{"project.yaml"}, func(n int) string { return fmt.Sprintf("m%05d/echoeval.yaml", n) }},
	{"script", []string{"script.yaml"}, inRoot(".yaml")},
	{"prices", []string{"prices.yaml"}, inRoot(".yaml")},
	{"baseline", []string{"baseline.json"}, inRoot(".json")},
	{"faults", []string{"faults.yaml"}, inRoot(".yaml")},
}

// shape reads the schema and the samples of a kind.
func (p *project) shape(k keyKind) *shape {
	GinkgoHelper()
	s := &shape{owners: map[string][]*tree{}, properties: map[string]map[string]any{}, of: map[*tree]int{}, open: map[string]bool{}}
	Expect(json.Unmarshal([]byte(p.succeed("schema", k.kind).stdout), &s.root)).To(Succeed())
	s.declare(s.root, "")
	for i, sample := range k.samples {
		data, err := os.ReadFile(filepath.Join("testdata", "keys", sample))
		Expect(err).NotTo(HaveOccurred())
		n, err := strict.Parse(sample, data)
		Expect(err).NotTo(HaveOccurred())
		doc := treeOf(n)
		s.docs = append(s.docs, doc)
		s.reach(s.root, "", doc)
		for _, list := range s.owners {
			for _, t := range list {
				if _, known := s.of[t]; !known {
					s.of[t] = i
				}
			}
		}
	}
	return s
}

// text is what a schema declares, to find the same elsewhere.
func (s *shape) text(where string) string {
	text, err := json.Marshal(s.properties[where])
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// trials makes the trials of a kind from its schema and samples. What no sample reaches must be declared likewise where one does, be it for another kind: it is read by the same code.
func (p *project) trials(k keyKind, reached map[string]bool) (all []trial, keys int) {
	GinkgoHelper()
	resolved, s := p.schema(k.kind), p.shape(k)
	docs := s.docs
	add := func(doc, mark *tree, t trial) {
		w := &written{json: strings.HasSuffix(k.samples[0], ".json"), mark: mark}
		w.tree(doc, "")
		t.text = w.text.String() + "\n"
		var plain any
		Expect(json.Unmarshal(doc.appendJSON(nil), &plain)).To(Succeed())
		t.accepted = resolved.Validate(plain) == nil
		switch t.at {
		case "key":
			t.at = strconv.Itoa(w.key[0]) + ":" + strconv.Itoa(w.key[1])
		case "value":
			t.at, t.from, t.to = "", w.key, w.last
		}
		all = append(all, t)
	}
	for i, doc := range docs {
		add(doc, nil, trial{what: k.samples[i], agree: true})
		Expect(all[i].accepted).To(BeTrue(), "the schema does not take %s", k.samples[i])
	}
	for _, where := range slices.Sorted(maps.Keys(s.properties)) {
		owners := s.owners[where]
		if len(owners) == 0 {
			Expect(reached).To(HaveKey(s.text(where)), "no sample reaches %s of %s", where, k.kind)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(s.properties[where])) {
			keys++
			schema := s.properties[where][name]
			t, at := owners[0], -1
			for _, owner := range owners {
				if at = slices.Index(owner.keys, name); at >= 0 {
					t = owner
					break
				}
			}
			written := at >= 0
			if !written { // a key that the samples do not have yet
				at = len(t.keys)
				t.keys, t.inside = append(t.keys, name), append(t.inside, &tree{scalar: "null"})
			}
			doc, own := docs[s.of[t]], t.inside[at]
			what := where + "/" + name
			t.keys[at] = "x" + name
			message := "unknown"
			if s.open[where] { // the key could be a name of the user's
				message = fmt.Sprintf("key %q is missing", name)
			}
			add(doc, own, trial{what: what + " misspelt", at: "key", message: message})
			t.keys[at] = name
			second := &tree{scalar: "1"}
			t.keys, t.inside = append(t.keys, name), append(t.inside, second)
			add(doc, second, trial{what: what + " twice", at: "key", message: "a second time"})
			all[len(all)-1].accepted = false // JSON has no way to say it
			t.keys, t.inside = t.keys[:len(t.keys)-1], t.inside[:len(t.inside)-1]
			refused := 0
			for _, probe := range probes {
				n, err := strict.ParseJSON("x", 1, []byte(probe))
				Expect(err).NotTo(HaveOccurred())
				t.inside[at] = treeOf(n)
				add(doc, t.inside[at], trial{what: what + ": " + probe, at: "value", agree: written && !anything(schema)})
				if last := &all[len(all)-1]; !last.accepted {
					refused++
					if !written { // beside what it excludes, maybe
						last.from, last.to = [2]int{}, [2]int{len(last.text), 0}
					}
				}
			}
			Expect(refused > 0 || anything(schema)).To(BeTrue(), "%s takes every value", what)
			t.inside[at] = own
			if !written {
				t.keys, t.inside = t.keys[:at], t.inside[:at]
			}
		}
	}
	return all, keys
}

// verdict is what validate says of a file.
type verdict struct {
	File     string
	Kind     string
	OK       bool
	Problems []struct{ At, Message string }
}

var _ = Describe("every key of every schema", func() {
	// reached is what the samples of all kinds reach.
	var reached map[string]bool
	BeforeEach(func() {
		if reached != nil {
			return
		}
		reached = map[string]bool{}
		p := emptyProject()
		for _, k := range keyKinds {
			s := p.shape(k)
			for where := range s.owners {
				reached[s.text(where)] = true
			}
		}
	})

	for _, k := range keyKinds {
		It("is found wrong in its place, and as the schema says: "+k.kind, func() {
			p := emptyProject()
			support := map[string]string{"desk/README.md": "A desk.\n", "x.png": "\x89PNG\r\n\x1a\n", "x.pdf": "%PDF-1.4\n", "adapter.py": "pass\n", "items.jsonl": "{\"nr\":\"a\",\"input\":\"b\",\"skip\":\"x\"}\n", "d.yaml": small}
			for file, sample := range map[string]string{"agent.yaml": "agent.yaml", "lib.yaml": "library.yaml", "prices.yaml": "prices.yaml"} {
				text, err := os.ReadFile(filepath.Join("testdata", "keys", sample))
				Expect(err).NotTo(HaveOccurred())
				support[file] = string(text)
			}
			for file, text := range support {
				p.write(file, text)
			}
			all, keys := p.trials(k, reached)
			Expect(keys).To(BeNumerically(">", 5), "the schema has no keys")
			names := make([]string, len(all))
			for i, t := range all {
				names[i] = k.name(i)
				p.write(names[i], t.text)
				if dir := filepath.Dir(names[i]); dir != "." {
					for _, file := range []string{"d.yaml", "lib.yaml", "prices.yaml"} {
						p.write(dir+"/"+file, support[file])
					}
				}
			}
			var verdicts []verdict
			for chunk := range slices.Chunk(names, 400) {
				o := p.expect(2, append([]string{"validate", "--json"}, chunk...)...)
				var some []verdict
				Expect(json.Unmarshal([]byte(o.stdout), &some)).To(Succeed())
				verdicts = append(verdicts, some...)
			}
			Expect(verdicts).To(HaveLen(len(all)))
			var wrong []string
			for i, t := range all {
				if why := t.judge(verdicts[i]); why != "" {
					wrong = append(wrong, fmt.Sprintf("%s (%s): %s", t.what, names[i], why))
				}
			}
			fmt.Fprintf(GinkgoWriter, "%s: %d keys, %d trials\n", k.kind, keys, len(all))
			if len(wrong) > 0 {
				Fail(fmt.Sprintf("%d of %d:\n%s", len(wrong), len(all), strings.Join(wrong, "\n")))
			}
		})
	}
})

// judge says what is wrong with the verdict on a trial; "" for nothing.
func (t *trial) judge(v verdict) string {
	var said []string
	for _, problem := range v.Problems {
		said = append(said, problem.At+": "+problem.Message)
	}
	told := strings.Join(said, "; ")
	if t.accepted {
		for _, problem := range v.Problems {
			if t.agree && !meaning.MatchString(problem.Message) {
				return "the schema takes it, and the reader says " + told
			}
		}
		return ""
	}
	if v.OK {
		return "the schema does not take it, and the reader does"
	}
	for _, problem := range v.Problems {
		place := strings.TrimPrefix(problem.At, filepath.Base(v.File)+":") // a project file is named from its own folder
		if t.at != "" && place == t.at && strings.Contains(problem.Message, t.message) {
			return ""
		}
		if line, column, ok := strings.Cut(place, ":"); t.at == "" && ok {
			l, _ := strconv.Atoi(line)
			c, _ := strconv.Atoi(column)
			if at := [2]int{l, c}; slices.Compare(at[:], t.from[:]) >= 0 && slices.Compare(at[:], t.to[:]) <= 0 {
				return ""
			}
		}
	}
	return fmt.Sprintf("nothing is said at %s%v-%v, but %s", t.at, t.from, t.to, told)
}
