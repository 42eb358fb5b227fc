package inject

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/echoeval/echoeval/harness/cassette"
)

// Variant is one recording with one fault in it.
type Variant struct {
	Fault Fault
	// File is the recording as the variant is replayed.
	File *cassette.File
	// Request is the number of the request to a model, from 1, whose reply bears the fault, or holds the call that does. Call is the number of that call within the item, 0 where it is none.
	Request, Call int

	// asked is the recorded request, by which it is told what the vendor takes.
	asked cassette.Request
	// before counts the recorded replies before the one of Request.
	before int
	// said is what the answer must say where the reply was changed; nil where it is as recorded.
	said *string
	// stop is how the run must end, of faults that end it.
	stop string
	// beyond is the number of the first call that the recording says nothing of; 0 for none.
	beyond int

	way way
}

// marker is the header by which a derived reply is told from a recorded one. It is taken off before an agent sees it.
const marker = "X-Echoeval-Fault"

// exchange is a recorded request to a model with a reply.
type exchange struct {
	at     int // its interaction
	number int // among those of the agent, from 1
	format *format
	before int // calls in the replies before
	place  int // among the replies, from 0
	calls  int // in this one
	answer bool
}

// exchanges finds the requests of the agent to a model that were answered. own says which interactions, from 0, are the agent's; nil: all but those of judges.
func exchanges(file *cassette.File, own func(interaction int) bool) []exchange {
	var out []exchange
	number, calls := 0, 0
	for i := range file.Interactions {
		x := &file.Interactions[i]
		if x.Extra.Judge != "" || x.Request.Method != http.MethodPost || own != nil && !own(i) {
			continue
		}
		f := formatOf(x.Request.URL)
		if f == nil {
			continue
		}
		number++
		if x.Response.Code < 200 || x.Response.Code > 299 || x.Extra.Partial {
			continue
		}
		r := &reply{format: f, wire: parse(&x.Response)}
		r.read()
		if len(r.places) == 0 {
			continue
		}
		n := len(r.calls())
		out = append(out, exchange{at: i, number: number, format: f, before: calls, place: len(out), calls: n, answer: n == 0 && r.said(partText, 0) != ""})
		calls += n
	}
	return out
}

// Derive makes the variants of a recording with one fault: one, or with at: each one for each place that suits. None says why there is no such place.
func Derive(f Fault, file *cassette.File, own func(interaction int) bool) (variants []*Variant, none string) {
	all := exchanges(file, own)
	if len(all) == 0 {
		return nil, "no reply of a model is recorded in a format that is known"
	}
	d := deriver{Fault: f, file: file, all: all}
	var suits []func() *Variant
	for i := range all {
		suits = append(suits, d.places(i)...)
	}
	switch {
	case len(suits) == 0:
		return nil, d.none()
	case f.At == Last:
		suits = suits[len(suits)-1:]
	case f.At == First:
		suits = suits[:1]
	case f.At == Each:
	case int(f.At) > len(suits):
		return nil, fmt.Sprintf("there is no place %d, only %d", int(f.At), len(suits))
	default:
		suits = suits[f.At-1 : f.At]
	}
	for _, make := range suits {
		variants = append(variants, make())
	}
	return variants, ""
}

type deriver struct {
	Fault
	file *cassette.File
	all  []exchange
}

// none says which places the fault looked for in vain.
func (d *deriver) none() string {
	switch k := infoOf(d.Kind); {
	case d.Kind == Length && d.Tool != "":
		return fmt.Sprintf("no recorded reply calls %s in a form that can break off", d.Tool)
	case d.Tool != "":
		return fmt.Sprintf("no recorded reply calls %s", d.Tool)
	case k.expects == told:
		return "no recorded reply calls a tool"
	case d.Kind == CutStream:
		return "no recorded reply has more than one frame"
	}
	return "no recorded reply is an answer"
}

// open reads the reply of an exchange, in a copy that may be changed.
func (d *deriver) open(x *exchange) *reply {
	r := &reply{format: x.format, wire: parse(&d.file.Interactions[x.at].Response)}
	r.read()
	return r
}

// places gives, for each place in a reply that suits the fault, what makes the variant.
func (d *deriver) places(i int) []func() *Variant {
	x := &d.all[i]
	one := func(make func() *Variant) []func() *Variant { return []func() *Variant{make} }
	switch d.Kind {
	case RateLimit, ServerError, Overloaded, Timeout:
		return one(func() *Variant { return d.attempts(x) })
	case CutStream:
		if len(d.open(x).frames) > 1 {
			return one(func() *Variant { return d.cut(x) })
		}
	case SplitRune:
		last := i == len(d.all)-1
		if x.answer && (last || manyBytes(d.file.Interactions[x.at].Response.Body)) {
			return one(func() *Variant { return d.split(x, last) })
		}
	case MalformedArguments, UnknownTool, DuplicateCallID:
		r := d.open(x)
		var out []func() *Variant
		calls := r.calls()
		if d.Kind == DuplicateCallID && len(calls) > 0 {
			calls = calls[len(calls)-1:]
		}
		for _, call := range calls {
			if d.Tool == "" || r.first(partName, call) == d.Tool {
				out = append(out, func() *Variant { return d.call(x, call) })
			}
		}
		return out
	case ToolError, ToolTimeout:
		r := d.open(x)
		var out []func() *Variant
		for n, call := range r.calls() {
			if d.Tool == "" || r.first(partName, call) == d.Tool {
				out = append(out, func() *Variant { return d.tool(x, n) })
			}
		}
		return out
	case EmptyAnswer, Refusal:
		if x.answer {
			return one(func() *Variant { return d.answer(x) })
		}
	case Length:
		r := d.open(x)
		calls := r.calls()
		switch {
		case len(calls) > 0:
			call := calls[len(calls)-1]
			inText := !slices.ContainsFunc(r.of(partArgs, call), func(p place) bool { _, is := p.get().(string); return !is })
			if inText && (d.Tool == "" || r.first(partName, call) == d.Tool) {
				return one(func() *Variant { return d.call(x, call) })
			}
		case x.answer && d.Tool == "":
			return one(func() *Variant { return d.answer(x) })
		}
	}
	return nil
}

// variant begins a variant of an exchange: its recording is a copy that may be added to.
func (d *deriver) variant(x *exchange) *Variant {
	return &Variant{
		Fault: d.Fault, Request: x.number, before: x.place, asked: d.file.Interactions[x.at].Request,
		File: &cassette.File{Header: d.file.Header, Interactions: slices.Clone(d.file.Interactions)},
	}
}

// marked is a reply that bears the fault.
func (d *deriver) marked(x *exchange, response cassette.Response) cassette.Interaction {
	i := d.file.Interactions[x.at]
	response.Headers = response.Headers.Clone()
	if response.Headers == nil {
		response.Headers = http.Header{}
	}
	response.Headers.Set(marker, string(d.Kind))
	return cassette.Interaction{Request: i.Request, Response: response, Extra: cassette.Extra{TTFT: i.Extra.TTFT}}
}

// refusedAfter is how long a vendor takes to refuse a request.
const refusedAfter = 50 * time.Millisecond

// attempts puts attempts before the recorded one that are refused, or not answered.
func (d *deriver) attempts(x *exchange) *Variant {
	v := d.variant(x)
	status := infoOf(d.Kind).status
	response := cassette.Response{Duration: d.After}
	if status != 0 {
		header, body := x.format.refusal(status)
		response = cassette.Response{Code: status, Status: strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status)), Body: writeValue(body), Headers: http.Header{"Content-Type": {"application/json"}}, Duration: refusedAfter}
		for name, value := range header {
			response.Headers.Set(name, value)
		}
		if d.RetryAfter > 0 {
			// Whole seconds are all that the header of RFC 9110 can say.
			response.Headers.Set("Retry-After", strconv.Itoa(int((d.RetryAfter+time.Second-1)/time.Second)))
		}
	}
	refused := d.marked(x, response)
	refused.Extra = cassette.Extra{Partial: status == 0}
	for range d.Times {
		v.File.Interactions = slices.Insert(v.File.Interactions, x.at, refused)
	}
	return v
}

// cut puts an attempt before the recorded one whose reply breaks off.
func (d *deriver) cut(x *exchange) *Variant {
	v := d.variant(x)
	recorded := &d.file.Interactions[x.at]
	r := d.open(x)
	n := len(r.frames) / 2
	if d.Frame > 0 {
		n = d.Frame
	}
	n = min(n, len(r.frames)-1)
	response := recorded.Response
	response.Body = r.body(n)
	torn := d.marked(x, response)
	torn.Extra.Partial = !d.Silent
	v.File.Interactions = slices.Insert(v.File.Interactions, x.at, torn)
	return v
}

// rune4 is a character of four bytes in UTF-8 and two units in UTF-16.
const rune4 = "\U0001F50E"

// manyBytes reports whether a text has a character of more than one byte.
func manyBytes(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool { return c >= utf8.RuneSelf })
}

// split lets the characters of a reply come in pieces; an answer that has none of more than one byte gets one.
func (d *deriver) split(x *exchange, last bool) *Variant {
	v := d.variant(x)
	response := d.file.Interactions[x.at].Response
	if last {
		r := d.open(x)
		if texts := r.of(partText, 0); !manyBytes(r.said(partText, 0)) {
			// The last piece gets it, and every whole.
			end := slices.IndexFunc(texts, func(p place) bool { return !p.whole })
			for i, p := range texts {
				if !p.whole {
					end = i
				}
			}
			for i, p := range texts {
				if s, _ := p.get().(string); p.whole || i == end {
					p.set(s + rune4)
				}
			}
			said := r.said(partText, 0)
			v.said, response.Body = &said, r.body(-1)
		}
	}
	v.File.Interactions[x.at] = d.marked(x, response)
	return v
}

// until cuts a recording off behind the calls of the reply of an exchange: what follows answers another conversation.
func (v *Variant) until(x *exchange) {
	at := x.at + 1
	for at < len(v.File.Interactions) && v.File.Interactions[at].Request.Method == cassette.Method {
		at++
	}
	v.File.Interactions = v.File.Interactions[:at]
}

// call changes a call of a reply.
func (d *deriver) call(x *exchange, call int) *Variant {
	v := d.variant(x)
	r := d.open(x)
	response := d.file.Interactions[x.at].Response
	v.Call = x.before + slices.Index(r.calls(), call) + 1
	switch d.Kind {
	case UnknownTool:
		r.say(partName, call, r.first(partName, call)+"_2")
	case MalformedArguments:
		r.say(partArgs, call, broken(r.said(partArgs, call)))
	case Length:
		// Behind the tool's name: what is left looks like a call without arguments.
		r.say(partArgs, call, "")
		r.end(byLength)
	case DuplicateCallID:
		r.format.repeat(r.wire, call)
	}
	response.Body = r.body(-1)
	v.File.Interactions[x.at] = d.marked(x, response)
	v.until(x)
	v.beyond = x.before + 1
	if d.Kind == DuplicateCallID {
		v.again(x)
	}
	return v
}

// again records the last call of a reply a second time, as it was, for tools whose calls are served.
func (v *Variant) again(x *exchange) {
	last := x.before + x.calls
	i := slices.IndexFunc(v.File.Interactions, func(i cassette.Interaction) bool {
		return i.Request.Method == cassette.Method && i.Extra.Seq == last
	})
	if i < 0 {
		return
	}
	more := v.File.Interactions[i]
	more.Extra.Seq++
	more.Extra.Occurrence++
	v.File.Interactions = append(v.File.Interactions, more)
}

// broken is the beginning of a JSON object, within its first string.
func broken(arguments string) string {
	if len(arguments) > 2 && strings.HasPrefix(arguments, `{"`) {
		cut := len(arguments) / 2
		for cut > 2 && !utf8.RuneStart(arguments[cut]) {
			cut--
		}
		if cut > 2 {
			return arguments[:cut]
		}
	}
	return `{"`
}

// tool lets a call of a reply fail, the nth from 0.
func (d *deriver) tool(x *exchange, n int) *Variant {
	v := d.variant(x)
	v.Call, v.beyond = x.before+n+1, x.before+1
	v.until(x)
	return v
}

// refused is what a model says that declines.
const refused = "I cannot help with that."

// answer changes what the model says in the end.
func (d *deriver) answer(x *exchange) *Variant {
	v := d.variant(x)
	r := d.open(x)
	response := d.file.Interactions[x.at].Response
	said := ""
	switch d.Kind {
	case EmptyAnswer:
		v.stop = "end"
	case Length:
		said = r.said(partText, 0)
		cut := len(said) / 2
		for cut > 0 && !utf8.RuneStart(said[cut]) {
			cut--
		}
		said, v.stop = said[:cut], "length"
		r.end(byLength)
	case Refusal:
		said, v.stop = refused, "refused"
	}
	r.say(partText, 0, said)
	if d.Kind == Refusal {
		r.declines()
	}
	v.said, response.Body = &said, r.body(-1)
	v.File.Interactions[x.at] = d.marked(x, response)
	v.until(x)
	v.beyond = x.before + 1
	return v
}

// declines makes the answer a refusal, in the format's own word where it has one.
func (r *reply) declines() {
	if r.refuse == nil {
		r.end(byRefusal)
		return
	}
	for _, p := range r.of(partText, 0) {
		r.refuse(p)
	}
}
