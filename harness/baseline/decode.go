package baseline

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
)

// ErrLater is wrapped by the error of a file of a later format.
var ErrLater = errors.New("written by a later echoeval")

// maxLine bounds a line of the file, in bytes.
const maxLine = 4 << 20

// remedy is the hint where a file was damaged: it is made anew from a run.
const remedy = "make it anew from a run: echoeval baseline accept RUN"

type wireHead struct {
	V           int         `yaml:"v,required" schema:"version"`
	Dataset     string      `yaml:"dataset,required" schema:"filled"`
	DatasetHash string      `yaml:"dataset_hash,required"`
	Repeat      int         `yaml:"repeat,required" schema:"repeat"`
	Providers   strict.Node `yaml:"providers,required" schema:"providers"`
	Items       strict.Node `yaml:"items,required" schema:"items"`
}

type wireProvider struct {
	Model      string `yaml:"model,required"`
	AgentHash  string `yaml:"agent_hash,required"`
	PromptHash string `yaml:"prompt_hash,required"`
	ToolsHash  string `yaml:"tools_hash,required"`
}

type wireItem struct {
	Item       string                    `yaml:"item,required" schema:"filled"`
	Provider   string                    `yaml:"provider,required"`
	ItemHash   string                    `yaml:"item_hash,required"`
	ChecksHash string                    `yaml:"checks_hash,required"`
	Passed     []*bool                   `yaml:"passed,required" schema:"passed"`
	Scores     []strict.Node             `yaml:"scores,required" schema:"scores"`
	Failed     []string                  `yaml:"failed,required"`
	Violations []string                  `yaml:"violations,required"`
	Calls      strict.Optional[[]string] `yaml:"calls,required"`
	CostUSD    strict.Node               `yaml:"cost_usd,required" schema:"amount"`
	LatencyMS  *int64                    `yaml:"latency_ms,required" schema:"duration"`
	Answer     *string                   `yaml:"answer,required"`
	Checks     strict.Node               `yaml:"checks" schema:"verdicts"`
}

type wireVerdicts struct {
	Passed []*bool       `yaml:"passed,required" schema:"passed"`
	Scores []strict.Node `yaml:"scores,required" schema:"scores"`
}

// Decode reads a baseline; name stands in front of its errors, which have code Input and say where. It is as strict as files that people edit deserve: unknown and missing keys, lines out of order or twice, providers that are not declared, numbers out of their range are all refused, at most a few dozen at once.
//
// What it accepts and [File.Append] wrote comes out of Append again byte by byte. Line ends and spaces between values do not count.
func Decode(name string, data []byte) (*File, error) {
	if at := bytes.Index(data, []byte("\n<<<<<<< ")); at >= 0 {
		line := 2 + bytes.Count(data[:at], []byte("\n"))
		return nil, failure.WithHint(failure.At(failure.Position{File: name, Line: line}, failure.Input, "an unresolved merge"), "take either side, or "+remedy)
	}
	root, list, err := strict.Split(name, bytes.NewReader(data), "items")
	if err != nil {
		return nil, failure.WithHint(failure.WithCode(err, failure.Input), remedy)
	}
	var p strict.Problems
	if v := root.Get("v"); v.Kind() == strict.Int {
		n, err := strconv.Atoi(v.Text())
		if err != nil || n > Version {
			return nil, failure.WithHint(failure.At(v.Pos(), failure.Input, "format version %s was %w; this one reads up to %d", v.Text(), ErrLater, Version), "install the echoeval that wrote it; `echoeval version --json` prints the formats")
		}
		if n < 1 {
			return nil, failure.WithHint(failure.At(v.Pos(), failure.Input, "there is no format version %d", n), remedy)
		}
	}
	var head wireHead
	strict.Decode(root, &head, &p)
	f := &File{Dataset: head.Dataset, DatasetHash: head.DatasetHash, Repeat: head.Repeat}
	f.decodeProviders(head.Providers, p.Key("providers"))
	if items := head.Items; list == nil && !items.IsZero() && items.Kind() != strict.Sequence {
		p.Key("items").WrongType(items, "a list")
	}
	if root.Get("dataset").Kind() == strict.String && head.Dataset == "" {
		p.Key("dataset").Add(root.Get("dataset").Pos(), "", "the dataset has no name")
	}
	if list != nil && p.Len() == 0 {
		n := 0
		for node, err := range list.Entries(bytes.NewReader(data), maxLine) {
			at := p.Key("items").At(n)
			n++
			if err != nil {
				p.AddError(err)
				continue
			}
			f.decodeItem(node, at)
			if p.Len() >= strict.MaxProblems {
				break
			}
		}
		most := 0
		for i := range f.Items {
			most = max(most, len(f.Items[i].Passed))
		}
		if p.Len() == 0 && most != f.Repeat {
			p.Key("repeat").Add(root.Get("repeat").Pos(), "write "+strconv.Itoa(most), "repeat is %d, the items have up to %d", f.Repeat, most)
		}
	}
	if err := p.Err(); err != nil {
		return nil, failure.WithHint(failure.WithCode(err, failure.Input), remedy)
	}
	return f, nil
}

func (f *File) decodeProviders(n strict.Node, p *strict.Problems) {
	if n.IsZero() {
		return
	}
	if n.Kind() != strict.Mapping {
		p.WrongType(n, "a mapping of providers")
		return
	}
	for id, node := range n.Fields() {
		var w wireProvider
		at := p.Key(id.Name)
		strict.Decode(node, &w, at)
		if last := len(f.Providers) - 1; last >= 0 && f.Providers[last].ID >= id.Name {
			at.Add(id.Pos(), "sort them by id", "the provider %q stands behind %q", id.Name, f.Providers[last].ID)
		}
		f.Providers = append(f.Providers, Provider{ID: id.Name, Model: w.Model, AgentHash: w.AgentHash, PromptHash: w.PromptHash, ToolsHash: w.ToolsHash})
	}
}

func (f *File) decodeItem(n strict.Node, p *strict.Problems) {
	var w wireItem
	found := p.Len()
	strict.Decode(n, &w, p)
	if p.Len() > found {
		return
	}
	item := Item{Item: w.Item, Provider: w.Provider, ItemHash: w.ItemHash, ChecksHash: w.ChecksHash, Passed: w.Passed, Failed: w.Failed, Violations: w.Violations, LatencyMS: w.LatencyMS, Answer: w.Answer}
	if !w.Calls.Null {
		item.Calls = w.Calls.Value
	}
	if item.Item == "" {
		p.Key("item").Add(n.Get("item").Pos(), "", "the item has no id")
	}
	if _, ok := f.Provider(item.Provider); !ok {
		p.Key("provider").Add(n.Get("provider").Pos(), "declare it under providers", "unknown provider %q", item.Provider)
	}
	item.Scores = scores(n, w.Passed, w.Scores, p)
	item.decodeChecks(w.Checks, p.Key("checks"))
	if !w.CostUSD.IsNull() {
		cost := new(money.USD)
		if kind := w.CostUSD.Kind(); kind != strict.Int && kind != strict.Float || cost.UnmarshalJSON([]byte(w.CostUSD.Text())) != nil || *cost < 0 {
			p.Key("cost_usd").WrongType(w.CostUSD, "US dollars, or null")
		}
		item.CostUSD = cost
	}
	if item.LatencyMS != nil && *item.LatencyMS < 0 {
		p.Key("latency_ms").Add(n.Get("latency_ms").Pos(), "", "a duration is not negative")
	}
	if last := len(f.Items) - 1; last >= 0 {
		switch c := f.Items[last].key().compare(item.key()); {
		case c == 0:
			p.Add(n.Pos(), "keep one of the two", "the item %q on %q stands here a second time", item.Item, item.Provider)
		case c > 0:
			p.Add(n.Pos(), "sort the lines by item, then provider", "the item %q on %q stands behind %q on %q", item.Item, item.Provider, f.Items[last].Item, f.Items[last].Provider)
		}
	}
	f.Items = append(f.Items, item)
}

// scores reads those that stand beside verdicts, an entry for each.
func scores(n strict.Node, passed []*bool, nodes []strict.Node, p *strict.Problems) []*eval.Fraction {
	if len(passed) == 0 || len(passed) != len(nodes) {
		p.Key("passed").Add(n.Get("passed").Pos(), "one entry per repeat in both", "%d entries, and scores has %d", len(passed), len(nodes))
	}
	var out []*eval.Fraction
	for i, node := range nodes {
		score, ok := fraction(node)
		if !ok {
			p.Key("scores").At(i).WrongType(node, "a number from 0 to 1, or null")
		}
		out = append(out, score)
	}
	return out
}

func (i *Item) decodeChecks(n strict.Node, p *strict.Problems) {
	if n.IsZero() {
		return
	}
	if n.Kind() != strict.Mapping || n.Len() == 0 {
		p.WrongType(n, "a mapping of checks")
		return
	}
	last := ""
	i.Checks = map[string]Verdicts{}
	for name, node := range n.Fields() {
		at := p.Key(name.Name)
		if name.Name <= last && len(i.Checks) > 0 {
			at.Add(name.Pos(), "sort them by name", "the check %q stands behind %q", name.Name, last)
		}
		last = name.Name
		var w wireVerdicts
		found := at.Len()
		strict.Decode(node, &w, at)
		v := Verdicts{Passed: w.Passed}
		if at.Len() == found {
			v.Scores = scores(node, w.Passed, w.Scores, at)
		}
		if at.Len() == found && len(v.Passed) > len(i.Passed) {
			at.Key("passed").Add(node.Get("passed").Pos(), "one entry per repeat of the item", "%d entries, the item has %d", len(v.Passed), len(i.Passed))
		}
		i.Checks[name.Name] = v
	}
}

func fraction(n strict.Node) (*eval.Fraction, bool) {
	switch n.Kind() {
	case strict.Null:
		return nil, true
	case strict.Int, strict.Float:
		v, err := strconv.ParseFloat(n.Text(), 64)
		if err != nil || v < 0 || v > 1 {
			return nil, false
		}
		f := eval.Fraction(math.Round(v*1e6) / 1e6)
		return &f, true
	}
	return nil, false
}
