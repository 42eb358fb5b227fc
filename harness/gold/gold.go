// Package gold holds what people say of answers against what a judge said of the same answers: how often the judge is right, and what the rate that it found is worth.
//
// Labels stand in a file of their own, in the repository:
//
//	version: 1
//	labels:
//	  - {item: chest-pain, answer: "Call 112 now.", pass: true}
//	  - {item: refund, answer: "We never refund.", pass: false}
//
// A label is about one answer. Where the agent answers otherwise it says nothing, so that it never stands for an answer that nobody has read.
package gold

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/stats"
)

// Version is the format version of a file of labels.
const Version = 1

// Labels are what people said.
type Labels struct {
	// pass is by item and answer; nil is not labelled yet.
	pass  map[answered]*bool
	order []labelled
	open  int
}

type answered struct{ item, answer string }

// labelled is where a label stands.
type labelled struct {
	item string
	at   failure.Position
}

type wireFile struct {
	Version strict.Node `yaml:"version,required" doc:"1"`
	Labels  strict.Node `yaml:"labels,required" doc:"what people say of answers"`
}

type wireLabel struct {
	Item   string `yaml:"item,required"`
	Answer string `yaml:"answer,required"`
	Pass   *bool  `yaml:"pass,required"`
}

// Decode reads a file of labels, YAML or JSON; name stands in front of its errors, which have code Input and say where. A label whose pass is null is one that is still to be given.
func Decode(name string, data []byte) (*Labels, error) {
	root, err := strict.Parse(name, data)
	if err != nil {
		return nil, failure.WithCode(err, failure.Input)
	}
	var p strict.Problems
	var file wireFile
	strict.Decode(root, &file, &p)
	if v := file.Version; !v.IsZero() && v.Text() != strconv.Itoa(Version) {
		p.Key("version").Add(v.Pos(), "version: 1", "unknown version %s", v.Text())
	}
	l := &Labels{pass: map[answered]*bool{}}
	if n := file.Labels; !n.IsZero() && n.Kind() != strict.Sequence {
		p.Key("labels").WrongType(n, "a list of {item, answer, pass}")
	}
	first := map[answered]failure.Position{}
	for i, n := range file.Labels.Items() {
		at := p.Key("labels").At(i)
		found := at.Len()
		var w wireLabel
		strict.Decode(n, &w, at)
		if at.Len() > found {
			continue
		}
		k := answered{w.Item, w.Answer}
		if before, twice := first[k]; twice {
			at.Add(n.Pos(), "keep one of the two", "this answer of %q is labelled a second time, first at %s", w.Item, before)
			continue
		}
		first[k] = n.Pos()
		l.order = append(l.order, labelled{w.Item, n.Pos()})
		l.pass[k] = w.Pass
		if w.Pass == nil {
			l.open++
		}
	}
	if err := p.Err(); err != nil {
		return nil, failure.WithCode(err, failure.Input)
	}
	return l, nil
}

// strangers are the labels of items that are not there.
func (l *Labels) strangers(items map[string]bool) []Stranger {
	out := []Stranger{}
	known := slices.Sorted(maps.Keys(items))
	for _, label := range l.order {
		if !items[label.item] {
			near, _ := strict.Nearest(label.item, known)
			out = append(out, Stranger{label.item, label.at.String(), near})
		}
	}
	return out
}

// Rate is a share with its interval of 95 %; all are null where there is nothing to tell it by.
type Rate struct {
	Value *results.Number `json:"value"`
	Low   *results.Number `json:"low"`
	High  *results.Number `json:"high"`
	N     int             `json:"n"`
}

// Report is what labels say of a judge. Its JSON is the format of `echoeval gold --json`.
type Report struct {
	V     int    `json:"v"`
	Check string `json:"check"`
	// Matched is how many labels are about an answer of the run that the judge gave a verdict on, Unmatched how many are not, Open how many are still to be given.
	Matched   int `json:"matched"`
	Unmatched int `json:"unmatched"`
	Open      int `json:"open"`
	// Long is how many answers that the judge gave a verdict on are longer than a line of results holds, so that no label can be about them.
	Long int `json:"too_long"`
	// Strangers are the labels of items that the run does not have, in the order of the file.
	Strangers []Stranger `json:"unknown_items"`
	// Agreement is how often the judge says what people say; Sensitivity of what is right, Specificity of what is wrong.
	Agreement   Rate `json:"agreement"`
	Sensitivity Rate `json:"sensitivity"`
	Specificity Rate `json:"specificity"`
	// Floor is the least agreement; below it, or where the labels know of no right answer or of no wrong one, the judge is Advisory: what it says may be read and should decide nothing.
	Floor    results.Number `json:"floor"`
	Advisory bool           `json:"advisory"`
	Columns  []Column       `json:"columns"`
	// Wrong are the labels that the judge contradicts, in the order of the run.
	Wrong []Wrong `json:"wrong"`
}

// Stranger is a label of an item that the run does not have. Near is the item that may have been meant, "" where none is like it.
type Stranger struct {
	Item string `json:"item"`
	At   string `json:"at"`
	Near string `json:"near"`
}

// Column is what the judge found on a provider: the share of items that it passed, and what that is worth.
type Column struct {
	Provider  string `json:"provider"`
	Found     Rate   `json:"found"`
	Corrected Rate   `json:"corrected"`
}

// Wrong is an answer on which people and judge do not agree.
type Wrong struct {
	Item     string `json:"item"`
	Provider string `json:"provider"`
	Repeat   int    `json:"repeat"`
	// Pass is what people say.
	Pass   bool   `json:"pass"`
	Reason string `json:"reason"`
}

// Measure holds the labels against the verdicts of a check in a run. Each label counts once, by the first repeat that gave its answer. A check that the run does not have is an error of code Input.
func Measure(run *results.Run, check string, l *Labels, floor float64) (*Report, error) {
	r := &Report{V: Version, Check: check, Open: l.open, Floor: results.Number(floor), Strangers: []Stranger{}, Columns: []Column{}, Wrong: []Wrong{}}
	seen, items := map[answered]bool{}, map[string]bool{}
	var t stats.Tested
	agreed := 0
	columns := map[string]*stats.Clusters{}
	var item shares
	found := false
	where := results.Where{Check: check}
	for line, err := range run.Lines() {
		if err != nil {
			return nil, err
		}
		items[line.Item] = true
		judged, ok := where.Of(&line)
		if !ok {
			continue
		}
		found = true
		if judged.Status != eval.Pass && judged.Status != eval.Fail {
			continue
		}
		passed := judged.Status == eval.Pass
		if counted := run.Summary.Selected.Counted(); !line.Quarantined && (counted == 0 || line.Repeat <= counted) {
			item.add(columns, line.Index, line.Provider, passed)
		}
		if line.OutputCut {
			r.Long++
		}
		if line.Output == nil || line.OutputCut {
			continue
		}
		k := answered{line.Item, *line.Output}
		said := l.pass[k]
		if said == nil || seen[k] {
			continue
		}
		seen[k] = true
		switch {
		case *said:
			t.Positives++
			if passed {
				t.Found++
			}
		default:
			t.Negatives++
			if !passed {
				t.Rejected++
			}
		}
		if *said == passed {
			agreed++
			continue
		}
		reason := ""
		for i := range judged.Checks {
			reason = judged.Checks[i].Reason
		}
		r.Wrong = append(r.Wrong, Wrong{line.Item, line.Provider, line.Repeat, *said, reason})
	}
	item.close(columns)
	if !found {
		return nil, failure.WithHint(failure.New(failure.Input, "the run %s has no check %q", run.Manifest.ID, check), "the checks are in its summary")
	}
	r.Matched, r.Strangers = len(seen), l.strangers(items)
	r.Unmatched = len(l.pass) - l.open - r.Matched
	r.Agreement, r.Sensitivity, r.Specificity = rate(agreed, r.Matched), rate(t.Found, t.Positives), rate(t.Rejected, t.Negatives)
	r.Advisory = t.Positives == 0 || t.Negatives == 0 || float64(*r.Agreement.Value) < floor
	for _, p := range run.Summary.Providers {
		c := Column{Provider: p.ID}
		if clusters := columns[p.ID]; clusters != nil {
			mean, _ := clusters.Mean()
			c.Found = Rate{Value: number(mean), N: clusters.Len()}
			if low, high, ok := stats.Wilson(mean, clusters.Len(), stats.Confidence); ok {
				c.Found.Low, c.Found.High = number(low), number(high)
			}
			if value, low, high, ok := stats.RoganGladen(mean, clusters.Len(), t, stats.Confidence); ok {
				c.Corrected = Rate{Value: number(value), Low: number(low), High: number(high), N: clusters.Len()}
			}
		}
		r.Columns = append(r.Columns, c)
	}
	return r, nil
}

// shares makes one observation of the repeats of an item.
type shares struct {
	index    int
	provider string
	passed   int
	of       int
}

func (s *shares) add(columns map[string]*stats.Clusters, index int, provider string, passed bool) {
	if s.index != index || s.provider != provider {
		s.close(columns)
		*s = shares{index: index, provider: provider}
	}
	s.of++
	if passed {
		s.passed++
	}
}

func (s *shares) close(columns map[string]*stats.Clusters) {
	if s.of == 0 {
		return
	}
	if columns[s.provider] == nil {
		columns[s.provider] = &stats.Clusters{}
	}
	columns[s.provider].Add(float64(s.passed)/float64(s.of), 1)
}

func rate(k, n int) Rate {
	r := Rate{N: n}
	if n == 0 {
		return r
	}
	p := float64(k) / float64(n)
	low, high, _ := stats.Wilson(p, n, stats.Confidence)
	r.Value, r.Low, r.High = number(p), number(low), number(high)
	return r
}

func number(v float64) *results.Number {
	n := results.Number(math.Round(v*1e6) / 1e6)
	return &n
}
