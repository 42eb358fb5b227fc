package replay

import (
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/harness/cassette"
)

// Tool wraps a tool. What it does in Replay, and in Extend before the first miss, depends on effect and scope: pure tools and those of the workspace run again and are compared with the recording, all others are served from it and do not run. In Record a tool runs and is kept; in Live it only runs.
//
// A cassette that was imported holds what was said to models alone. Over such a one pure tools and those of the workspace just run, in no time: what they give stands in the next request, and is compared there.
//
// Recordings hold the model's arguments, never hidden values. In Replay a call that is not recorded, or whose result differs, is a [Miss]: it comes back as an error, and from then on the session answers no request.
func (s *Session) Tool(t tool.Tool) tool.Tool { return &wrapped{s, t} }

type wrapped struct {
	session *Session
	inner   tool.Tool
}

func (w *wrapped) Spec() tool.Spec { return w.inner.Spec() }

func (w *wrapped) Run(ctx context.Context, call tool.Call) (tool.Output, error) {
	s := w.session
	spec := w.inner.Spec()
	began := call.At
	if began.IsZero() {
		began = s.clock.Now()
	}
	request, applied := cassette.Canonical(cassette.Method, cassette.ToolURL(spec.Name), nil, []byte(call.Arguments), s.rules)
	at, place, err := s.find(call, spec, request, applied)
	switch {
	case err != nil:
		return tool.Output{}, err
	case at >= 0:
		return w.replay(ctx, call, spec, request, applied, at, began)
	}
	if s.frozen != nil && !Stays(spec) {
		output, held, err := s.thaw(call, request)
		if err != nil {
			s.release(place)
			return tool.Output{}, err
		}
		if held {
			return w.keep(call, spec, request, place, output, output.Took, began), nil
		}
	}
	start := s.wall.Now()
	output, err := tool.Do(ctx, w.inner, call)
	if err != nil {
		s.release(place)
		return tool.Output{}, err
	}
	took := s.wall.Now().Sub(start)
	if place == nil && s.config.Mode != Live {
		took = 0
	}
	return w.keep(call, spec, request, place, output, took, began), nil
}

// thaw gives the result that a call has in the cassette that tools are frozen from; held is false where it is not there. Once a call that writes was served, one that is not there has no world to run in: that is a miss.
func (s *Session) thaw(call tool.Call, request cassette.Request) (output tool.Output, held bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.miss != nil {
		return output, false, s.miss
	}
	match, _ := s.equal.Request(request)
	at, _ := s.frozen.call(cassette.KeyOf(match), call.Seq)
	if at < 0 {
		if s.frozen.written > 0 {
			return output, false, s.missed(&Miss{Request: call.Seq, Method: request.Method, URL: request.URL, Class: cassette.ClassToolArguments, Note: "the call is not in the recording that tools are frozen from, and what was written there is not in the world"})
		}
		return output, false, nil
	}
	recorded := &s.frozen.file.Interactions[at]
	if output, err = s.unseal(recorded.Response.Body); err != nil {
		return output, false, s.missed(&Miss{Request: call.Seq, Method: request.Method, URL: request.URL, Class: cassette.ClassToolResult, Nearest: at + 1, Note: "the recorded output cannot be read: " + err.Error()})
	}
	output.Took = recorded.Response.Duration
	return output, true, nil
}

// Stays says that a tool runs again in a replay, and that its result is compared: a pure one, and one that touches the item's workspace alone.
func Stays(spec tool.Spec) bool { return spec.Effect == tool.Pure || spec.Scope == tool.Workspace }

// keep moves the item's clock on by the time that a call took, and fills its place in the recording, if it has one.
func (w *wrapped) keep(call tool.Call, spec tool.Spec, request cassette.Request, place *slot, output tool.Output, took time.Duration, began time.Time) tool.Output {
	s := w.session
	output.Source, output.Took = tool.Ran, s.round(took)
	if s.config.Reproducible {
		output.Took = 0
	}
	s.clock.AdvanceTo(began.Add(output.Took))
	if place == nil {
		return output
	}
	body, applied := s.seal(output)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(applied)
	place.interaction = cassette.Interaction{
		Request:  request,
		Response: cassette.Response{Body: body, Status: "200 OK", Code: 200, Duration: output.Took},
		Extra:    cassette.Extra{Seq: call.Seq, Effect: string(spec.Effect), Scope: string(spec.Scope)},
	}
	place.filled = true
	return output
}

func (w *wrapped) replay(ctx context.Context, call tool.Call, spec tool.Spec, request cassette.Request, applied []string, at int, began time.Time) (tool.Output, error) {
	s := w.session
	recorded := &s.tape.file.Interactions[at]
	var output tool.Output
	var err error
	if Stays(spec) {
		start := s.wall.Now()
		if output, err = tool.Do(ctx, w.inner, call); err != nil {
			return tool.Output{}, err
		}
		output.Source = tool.Ran
		same, place, miss := s.compare(call, request, applied, at, output)
		switch {
		case miss != nil:
			return tool.Output{}, miss
		case place != nil: // the recording goes on with what the tool gave now
			return w.keep(call, spec, request, place, output, s.wall.Now().Sub(start), began), nil
		case !same: // served across the drift: the conversation goes on as it was recorded
			output, err = s.unseal(recorded.Response.Body)
		}
	} else {
		output, err = s.unseal(recorded.Response.Body)
	}
	if err != nil {
		return tool.Output{}, s.unreadable(call, request, at, err)
	}
	output.Took = recorded.Response.Duration
	s.clock.AdvanceTo(began.Add(output.Took))
	return output, nil
}

// find says where a call goes: to the interaction of the tape that it uses up, or with -1 to the world, where place, if it is set, is its place in the recording.
func (s *Session) find(call tool.Call, spec tool.Spec, request cassette.Request, applied []string) (at int, place *slot, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.miss != nil {
		return 0, nil, s.miss
	}
	if !s.live && s.tape.toolless && Stays(spec) {
		s.untold = true
		return -1, nil, nil
	}
	if !s.live {
		match, _ := s.equal.Request(request)
		at, barred := s.tape.call(cassette.KeyOf(match), call.Seq)
		if at < 0 && !barred {
			at = s.across(match, call.Seq, call.Seq)
		}
		if at >= 0 {
			return at, nil, nil
		}
		var m *Miss
		if barred {
			m = &Miss{Method: request.Method, URL: request.URL, Class: cassette.ClassToolResult, Note: "its recordings lie on the other side of a write, and the world has changed since"}
		} else {
			m = s.tape.explain(match, s.allowed, s.bearable)
		}
		m.Request = call.Seq
		if err := s.lost(m, -1); err != nil {
			return 0, nil, err
		}
	}
	if s.records() {
		place = s.reserve(applied)
	}
	return -1, place, nil
}

// compare holds what a tool gave against the recording. In Extend another result ends the replay: place is then where it is recorded.
func (s *Session) compare(call tool.Call, request cassette.Request, applied []string, at int, output tool.Output) (same bool, place *slot, err error) {
	now, _ := s.seal(output)
	was := s.tape.file.Interactions[at].Response.Body
	if now == was {
		return true, nil, nil
	}
	if now, was = s.equal.Output(now), s.equal.Output(was); now == was {
		return true, nil, nil
	}
	path, old, new := cassette.Diff(cassette.Request{Body: was}, cassette.Request{Body: now})
	m := &Miss{Item: s.config.Expect.Item, Request: call.Seq, Method: request.Method, URL: request.URL, Class: cassette.ClassToolResult, Path: path, Old: old, New: new, Nearest: at + 1}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.allowed(m.Class):
		s.drifted(m)
		return false, nil, nil
	case s.live && s.bearable(m.Class): // a call beside this one has ended the replay; its place is among what was kept
		return false, s.redo(at, applied), nil
	}
	if err := s.lost(m, at); err != nil {
		return false, nil, err
	}
	return false, s.reserve(applied), nil
}

// redo takes the place of an interaction that was kept and is recorded again. The caller holds mu.
func (s *Session) redo(at int, applied []string) *slot {
	kept := &s.tape.file.Interactions[at]
	for _, x := range s.slots[:s.kept] {
		if x.interaction.Request.Method == kept.Request.Method && x.interaction.Extra.Seq == kept.Extra.Seq {
			x.interaction, x.filled = cassette.Interaction{}, false
			s.note(applied)
			return x
		}
	}
	return s.reserve(applied)
}

func (s *Session) unreadable(call tool.Call, request cassette.Request, at int, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missed(&Miss{Request: call.Seq, Method: request.Method, URL: request.URL, Class: cassette.ClassToolResult, Nearest: at + 1, Note: "the recorded output cannot be read: " + err.Error()})
}

// output is the body of a tool's response in a cassette.
type output struct {
	Output jsontext.Value `json:"output"`
	Error  bool           `json:"error"`
	Flow   tool.Flow      `json:"flow"`
	Meta   jsontext.Value `json:"meta"`
	Paths  []string       `json:"paths"`
}

// seal gives the stored form of an output, and the names of the rules that changed something. The JSON of the result keeps its bytes, as the model reads them. What is not set is not written.
func (s *Session) seal(o tool.Output) (string, []string) {
	b := append([]byte(`{"output":`), o.Result...)
	if o.IsError {
		b = append(b, `,"error":true`...)
	}
	if o.Flow != tool.Continue {
		b = conversation.AppendString(append(b, `,"flow":`...), string(o.Flow))
	}
	if o.Meta.Valid() {
		b = append(append(b, `,"meta":`...), o.Meta...)
	}
	for i, path := range slices.Sorted(slices.Values(o.Paths)) {
		if i == 0 {
			b = append(b, `,"paths":[`...)
		} else {
			b = append(b, ',')
		}
		b = conversation.AppendString(b, path)
	}
	if len(o.Paths) > 0 {
		b = append(b, ']')
	}
	_, body, applied := s.rules.Seal(200, nil, string(append(b, '}')))
	return body, applied
}

func (s *Session) unseal(body string) (tool.Output, error) {
	var o output
	if err := json.Unmarshal([]byte(s.rules.Open(body)), &o, json.RejectUnknownMembers(true)); err != nil {
		return tool.Output{}, err
	}
	if len(o.Output) == 0 {
		o.Output = jsontext.Value("null")
	}
	return tool.Output{Result: conversation.JSON(o.Output), IsError: o.Error, Flow: o.Flow, Meta: conversation.JSON(o.Meta), Paths: o.Paths, Source: tool.Served}, nil
}
