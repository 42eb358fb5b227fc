// Package inject derives faulty variants from a recording: the same conversation with a refusal of the vendor in it, a stream that is cut, a call that makes no sense or a tool that fails. Each is replayed through the real chain (provider, retries, agent), and judged: does the agent survive?
//
//	plan, err := inject.Load("faults.yaml", data)      // or inject.Builtin()
//	for _, f := range plan.Faults {
//		for _, v := range inject.Derive(f, file, own) { // file is a *cassette.File
//			// … run the item over a session that serves v.File, its transport within v.Transport, its tools within v.Tool …
//			result := v.Judge(recorded, got)
//		}
//	}
//
// A variant is a cassette of its own, made in memory: a fault on the way is one more attempt before the recorded one, a fault in what the model says is a change of the recorded reply, frame by frame in the vendor's own format. What comes after a changed reply is not recorded and therefore taken out. See docs/faults.md for what counts as survived.
package inject

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// Kind is a kind of fault.
type Kind string

// The kinds.
const (
	RateLimit   Kind = "rate_limit"   // status 429 with Retry-After
	ServerError Kind = "server_error" // status 500
	Overloaded  Kind = "overloaded"   // status 529
	Timeout     Kind = "timeout"      // no reply
	CutStream   Kind = "cut_stream"   // the reply breaks off
	SplitRune   Kind = "split_rune"   // a character comes in two pieces

	MalformedArguments Kind = "malformed_arguments" // arguments that are no JSON object
	UnknownTool        Kind = "unknown_tool"        // a call of a tool that is not there
	DuplicateCallID    Kind = "duplicate_call_id"   // a call comes twice, with one id
	ToolError          Kind = "tool_error"          // a tool fails
	ToolTimeout        Kind = "tool_timeout"        // a tool does not answer

	EmptyAnswer Kind = "empty_answer" // the model says nothing
	Length      Kind = "length"       // the reply ends at its output limit
	Refusal     Kind = "refusal"      // the model, or a filter, declines
)

// expectation is what an agent must make of a fault to survive it.
type expectation int

const (
	heals expectation = iota // ends as the recording did
	fails                    // the same, or an error of the provider and nothing of the broken reply
	told                     // the model is told of it by an error result, in a request that the vendor would take
	stops                    // the agent ends and says why
)

// kindInfo is one row of the table of kinds.
type kindInfo struct {
	Kind
	doc     string
	expects expectation
	// takes are the options of the kind beside at and name.
	takes []string
	// last says that a fault stands in the last place that suits it unless the plan says where, and not in the first.
	last bool
	// status is what the vendor answers, 0 where it answers nothing of its own.
	status int
}

// kinds is the table of all kinds, in the order of reports.
var kinds = []kindInfo{
	{Kind: RateLimit, doc: "status 429 with Retry-After, then the recorded reply", expects: heals, takes: []string{"times", "retry_after"}, status: 429},
	{Kind: ServerError, doc: "status 500, then the recorded reply", expects: heals, takes: []string{"times"}, status: 500},
	{Kind: Overloaded, doc: "status 529, then the recorded reply", expects: heals, takes: []string{"times", "retry_after"}, status: 529},
	{Kind: Timeout, doc: "no reply in time, then the recorded one", expects: heals, takes: []string{"times", "after"}},
	{Kind: CutStream, doc: "the reply breaks off after some frames, then the recorded one for who asks again", expects: fails, takes: []string{"frame", "silent"}},
	{Kind: SplitRune, doc: "characters of more than one byte come in two pieces", expects: heals, last: true},
	{Kind: MalformedArguments, doc: "the arguments of a call break off and are no JSON object", expects: told, takes: []string{"tool"}},
	{Kind: UnknownTool, doc: "a call of a tool that is not there", expects: told, takes: []string{"tool"}},
	{Kind: ToolError, doc: "a tool reports an error", expects: told, takes: []string{"tool"}},
	{Kind: ToolTimeout, doc: "a tool gives up waiting", expects: told, takes: []string{"tool", "after"}},
	{Kind: DuplicateCallID, doc: "the last call of a reply comes twice, with the same id", expects: told, takes: []string{"tool"}},
	{Kind: EmptyAnswer, doc: "the model ends its turn without a word", expects: stops, last: true},
	{Kind: Length, doc: "the reply breaks off at the output limit, within its text or behind the name of the tool that it calls last", expects: stops, last: true, takes: []string{"tool"}},
	{Kind: Refusal, doc: "the model declines", expects: stops, last: true},
}

func infoOf(k Kind) *kindInfo {
	i := slices.IndexFunc(kinds, func(i kindInfo) bool { return i.Kind == k })
	if i < 0 {
		return nil
	}
	return &kinds[i]
}

// Kinds are all kinds, in the order of reports.
func Kinds() []Kind {
	out := make([]Kind, len(kinds))
	for i, k := range kinds {
		out[i] = k.Kind
	}
	return out
}

// Fault is one entry of a plan.
type Fault struct {
	Kind Kind
	// Name tells the entries of a plan apart; it is the kind where the plan says none.
	Name string
	// At is the place among those that suit the kind, from 1; First, Last and Each are not numbers.
	At Place
	// Times is how many attempts in a row the fault meets.
	Times int
	// RetryAfter is what the vendor asks to wait, 0 for nothing.
	RetryAfter time.Duration
	// After is how long somebody waits in vain, on the item's clock.
	After time.Duration
	// Frame is how many frames of a reply come before the cut; 0 is half of them.
	Frame int
	// Silent cuts a reply as if it were whole: the connection ends in order.
	Silent bool
	// Tool names the tool whose calls suit; "" is any.
	Tool string
}

// OfTool reports that the fault is one of a tool, and not of a model or the way to it.
func (f Fault) OfTool() bool { return f.Kind == ToolError || f.Kind == ToolTimeout }

// Place says where among the places that suit a fault it is injected: a number from 1, or one of the constants.
type Place int

// The places that are no number.
const (
	First Place = 0
	Last  Place = -1
	Each  Place = -2
)

// Plan are the faults to inject into each recording.
type Plan struct {
	Version int     `yaml:"version,required" schema:"version" doc:"1"`
	Faults  []Fault `yaml:"faults,required" schema:"faults" doc:"names of faults, or a mapping of one name to its options"`
}

// The bounds of a plan.
const (
	maxFaults = 100
	maxTimes  = 10
	maxWait   = 10 * time.Minute
)

// Built-in choices.
const (
	defaultRetryAfter = 2 * time.Second
	defaultAfter      = 10 * time.Second
)

// defaults is an entry of which the plan says the kind alone.
func defaults(k *kindInfo) Fault {
	f := Fault{Kind: k.Kind, Name: string(k.Kind), At: First, Times: 1}
	if k.last {
		f.At = Last
	}
	if k.Kind == RateLimit {
		f.RetryAfter = defaultRetryAfter
	}
	if slices.Contains(k.takes, "after") {
		f.After = defaultAfter
	}
	return f
}

// Builtin is the plan of --faults builtin: each kind once, in the place that suits it best, and length within a call as well.
func Builtin() Plan {
	p := Plan{Version: 1}
	for i := range kinds {
		f := defaults(&kinds[i])
		p.Faults = append(p.Faults, f)
		if f.Kind == Length {
			f.At, f.Name = First, "length#first"
			p.Faults = append(p.Faults, f)
		}
	}
	return p
}

// Load reads a plan: version 1 and a list of faults, each a name or a mapping of a name to its options.
//
//	version: 1
//	faults:
//	  - rate_limit
//	  - timeout: {at: each, times: 2}
//	  - tool_error: {tool: book, name: booking-fails}
//
// file is its name for messages. All problems are reported at once, with their places.
func Load(file string, data []byte) (Plan, error) {
	n, err := strict.Parse(file, data)
	if err != nil {
		return Plan{}, err
	}
	var p strict.Problems
	var plan Plan
	strict.Decode(n, &plan, &p)
	if v := n.Get("version"); plan.Version != 1 && v.Kind() == strict.Int {
		p.Key("version").Add(v.Pos(), "this program reads version: 1", "unknown version %d", plan.Version)
	}
	list := n.Get("faults")
	switch at := p.Key("faults"); {
	case list.Kind() == strict.Sequence && list.Len() == 0:
		at.Add(list.Pos(), "name at least one: "+names(), "the list is empty: nothing would be injected")
	case list.Len() > maxFaults:
		at.Add(list.Pos(), "", "%d faults, at most %d", list.Len(), maxFaults)
	}
	seen := map[string]failure.Position{}
	count := map[string]int{}
	for i := range plan.Faults {
		f := &plan.Faults[i]
		if f.Kind == "" {
			continue // it was not understood
		}
		pos := list.Index(i).Pos()
		if f.Name == string(f.Kind) {
			if count[f.Name]++; count[f.Name] > 1 {
				f.Name = fmt.Sprintf("%s#%d", f.Name, count[f.Name])
			}
		}
		if first, twice := seen[f.Name]; twice {
			p.Key("faults").At(i).Add(pos, "give each a name of its own", "another fault is named %q, at %s", f.Name, first)
		}
		seen[f.Name] = pos
	}
	return plan, p.Err()
}

func names() string {
	var out []string
	for _, k := range Kinds() {
		out = append(out, string(k))
	}
	return strings.Join(out, ", ")
}

// options are the keys of an entry.
type options struct {
	Name       *string                 `yaml:"name" schema:"name" doc:"what reports call it, unless given its kind"`
	At         *Place                  `yaml:"at" doc:"first, last or each of the places that suit, or a number from 1; by default the first, and of what ends an answer the last"`
	Times      *int                    `yaml:"times" schema:"times" doc:"how many attempts in a row it meets, 1 unless given"`
	RetryAfter *time.Duration          `yaml:"retry_after" doc:"what the vendor asks to wait; of rate_limit 2s unless given"`
	After      *time.Duration          `yaml:"after" doc:"how long somebody waits in vain, on the item's clock; 10s unless given"`
	Frame      *int                    `yaml:"frame" schema:"frame" doc:"how many frames of the reply come before the cut; half of them unless given"`
	Silent     bool                    `yaml:"silent" doc:"the connection ends in order, as if the reply were whole"`
	Tool       strict.Optional[string] `yaml:"tool" schema:"tool" doc:"only calls of this tool"`
}

// DecodeStrict implements [strict.Decoder].
func (f *Fault) DecodeStrict(n strict.Node, p *strict.Problems) {
	kind, args := n, strict.Node{}
	switch {
	case n.Kind() == strict.Mapping && n.Len() == 1:
		for key, value := range n.Fields() {
			f.entry(key.Name, key.Pos(), value, p.Key(key.Name))
		}
		return
	case n.Kind() == strict.Mapping:
		p.Add(n.Pos(), "one name a mapping: {timeout: {times: 2}}", "want one fault, got %d keys", n.Len())
		return
	case n.Kind() != strict.String:
		p.WrongType(n, "a string, the name of a fault, or a mapping of it to its options")
		return
	}
	f.entry(kind.Text(), n.Pos(), args, p)
}

func (f *Fault) entry(name string, pos failure.Position, args strict.Node, p *strict.Problems) {
	k := infoOf(Kind(name))
	if k == nil {
		all := make([]string, len(kinds))
		for i, known := range kinds {
			all[i] = string(known.Kind)
		}
		p.Add(pos, strict.Suggest(name, all), "unknown fault %q", name)
		return
	}
	*f = defaults(k)
	if args.IsZero() {
		return
	}
	before := p.Len()
	var o options
	strict.Decode(args, &o, p)
	if p.Len() > before {
		return
	}
	for key := range args.Fields() {
		if key.Name != "at" && key.Name != "name" && !slices.Contains(k.takes, key.Name) {
			p.Add(key.Pos(), "it takes "+strings.Join(append([]string{"at", "name"}, k.takes...), ", "), "%s has no %s", k.Kind, key.Name)
		}
	}
	within := func(key string, value, low, high int, what string) {
		if value < low || value > high {
			p.Key(key).Add(args.Get(key).Pos(), "", "want %s from %d to %d", what, low, high)
		}
	}
	wait := func(key string, d *time.Duration, to *time.Duration) {
		if d == nil {
			return
		}
		if *d < 0 || *d > maxWait || key == "after" && *d == 0 {
			p.Key(key).Add(args.Get(key).Pos(), "", "want a duration up to %s", maxWait)
		}
		*to = *d
	}
	if o.Name != nil {
		f.Name = *o.Name
		if !isName(f.Name) {
			p.Key("name").Add(args.Get("name").Pos(), "letters, digits, . _ - and #, beginning with a letter or a digit, at most 80", "%q is no name", f.Name)
		}
	}
	if o.At != nil {
		f.At = *o.At
	}
	if o.Times != nil {
		f.Times = *o.Times
		within("times", f.Times, 1, maxTimes, "a number")
	}
	if o.Frame != nil {
		f.Frame = *o.Frame
		within("frame", f.Frame, 1, 1<<20, "a number")
	}
	wait("retry_after", o.RetryAfter, &f.RetryAfter)
	wait("after", o.After, &f.After)
	f.Silent = o.Silent
	if o.Tool.Set {
		f.Tool = o.Tool.Value
		if f.Tool == "" {
			p.Key("tool").Add(args.Get("tool").Pos(), "leave the key out for any tool", "an empty name")
		}
	}
}

// maxName is the length of the longest name of an entry.
const maxName = 80

// isName reports whether a text can name an entry: it may become part of a file's name.
func isName(text string) bool {
	const first = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return text != "" && len(text) <= maxName && strings.Trim(text, first+"._-#") == "" && strings.Contains(first, text[:1])
}

// DecodeStrict implements [strict.Decoder].
func (a *Place) DecodeStrict(n strict.Node, p *strict.Problems) {
	const hint = "first, last, each, or a number from 1"
	words := map[string]Place{"first": First, "last": Last, "each": Each}
	switch n.Kind() {
	case strict.String:
		place, ok := words[n.Text()]
		if !ok {
			p.Add(n.Pos(), hint, "%q is no place", n.Text())
		}
		*a = place
	case strict.Int:
		var i int
		strict.Decode(n, &i, p)
		if i < 1 || i > 1<<20 {
			p.Add(n.Pos(), hint, "want a number from 1")
		}
		*a = Place(i)
	default:
		p.WrongType(n, "a place: "+hint)
	}
}

// Schema returns the JSON Schema of a plan's file. It is made of the types that read it.
func Schema() strict.Schema {
	number := func(high int) func() strict.Schema {
		return func() strict.Schema {
			return strict.OrNull(strict.Schema{"type": "integer", "minimum": 1, "maximum": high})
		}
	}
	s := &strict.Schemas{Named: map[string]func() strict.Schema{
		"version": func() strict.Schema { return strict.Schema{"const": 1} },
		"name": func() strict.Schema {
			return strict.OrNull(strict.Schema{"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._#-]*$", "maxLength": maxName})
		},
		"tool":  func() strict.Schema { return strict.Schema{"type": "string", "minLength": 1} },
		"times": number(maxTimes),
		"frame": number(1 << 20),
	}}
	s.Types = map[reflect.Type]func() strict.Schema{
		reflect.TypeFor[Place](): func() strict.Schema {
			return strict.Schema{"anyOf": []any{strict.Enum("first", "last", "each"), strict.Schema{"type": "integer", "minimum": 1}}}
		},
	}
	s.Named["faults"] = func() strict.Schema {
		var all []string
		whole := s.Of(reflect.TypeFor[options]())["properties"].(strict.Schema)
		properties := strict.Schema{}
		for _, k := range kinds {
			all = append(all, string(k.Kind))
			own := strict.Schema{}
			for _, key := range append([]string{"at", "name"}, k.takes...) {
				own[key] = whole[key]
			}
			properties[string(k.Kind)] = strict.Schema{"type": "object", "description": k.doc, "properties": own, "additionalProperties": false}
		}
		one := strict.Schema{"type": "object", "properties": properties, "additionalProperties": false, "minProperties": 1, "maxProperties": 1}
		return strict.Schema{"type": "array", "minItems": 1, "maxItems": maxFaults, "items": strict.Schema{"anyOf": []any{strict.Enum(all...), one}}}
	}
	return s.Root(Plan{}, "echoeval faults")
}
