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

// Tool wraps a tool. What it does in Replay depends on effect and scope: pure tools and those of the workspace run again and are compared with the recording, all others are served from it and do not run. In Record a tool runs and is kept; in Live it only runs.
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
	if s.config.Mode == Replay {
		return w.replay(ctx, call, spec, request, began)
	}
	var place *slot
	if s.config.Mode == Record {
		place = s.reserve(applied)
	}
	start := s.wall.Now()
	output := w.run(ctx, call)
	output.Source, output.Took = tool.Ran, s.round(s.wall.Now().Sub(start))
	if s.config.Reproducible {
		output.Took = 0
	}
	s.clock.AdvanceTo(began.Add(output.Took))
	if place == nil {
		return output, nil
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
	return output, nil
}

// run runs the tool and turns what is no output into one, in the words that a model reads without a session, so that the recording holds what the model saw.
func (w *wrapped) run(ctx context.Context, call tool.Call) (output tool.Output) {
	const problem = "Error running tool: "
	defer func() {
		if recover() != nil {
			output = tool.Failed(problem + "it crashed")
		}
	}()
	output, err := w.inner.Run(ctx, call)
	switch {
	case err != nil:
		return tool.Failed(problem + err.Error())
	case output.Result == "":
		output.Result = "null"
	case !output.Result.Valid():
		return tool.Failed(problem + "its result is not valid JSON")
	}
	return output
}

func (w *wrapped) replay(ctx context.Context, call tool.Call, spec tool.Spec, request cassette.Request, began time.Time) (tool.Output, error) {
	s := w.session
	at, err := s.find(call, request)
	if err != nil {
		return tool.Output{}, err
	}
	recorded := &s.tape.file.Interactions[at]
	var output tool.Output
	if spec.Effect == tool.Pure || spec.Scope == tool.Workspace {
		output = w.run(ctx, call)
		output.Source = tool.Ran
		same, miss := s.compare(call, request, at, output)
		if miss != nil {
			return tool.Output{}, miss
		}
		if !same { // served across the drift: the conversation goes on as it was recorded
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

// find uses up the interaction of a call.
func (s *Session) find(call tool.Call, request cassette.Request) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.miss != nil {
		return 0, s.miss
	}
	at, barred := s.tape.call(cassette.KeyOf(request), call.Seq)
	if at < 0 && !barred {
		at = s.across(request, call.Seq, call.Seq)
	}
	if at >= 0 {
		return at, nil
	}
	var m *Miss
	if barred {
		m = &Miss{Method: request.Method, URL: request.URL, Class: cassette.ClassToolResult, Note: "its recordings lie on the other side of a write, and the world has changed since"}
	} else {
		m = s.tape.explain(request, s.allowed)
	}
	m.Request = call.Seq
	return 0, s.missed(m)
}

// compare holds what a tool gave against the recording.
func (s *Session) compare(call tool.Call, request cassette.Request, at int, output tool.Output) (same bool, err error) {
	now, _ := s.seal(output)
	was := s.tape.file.Interactions[at].Response.Body
	if now == was {
		return true, nil
	}
	path, old, new := cassette.Diff(cassette.Request{Body: was}, cassette.Request{Body: now})
	m := &Miss{Item: s.config.Expect.Item, Request: call.Seq, Method: request.Method, URL: request.URL, Class: cassette.ClassToolResult, Path: path, Old: old, New: new, Nearest: at + 1}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.allowed(m.Class) {
		s.drifted(m)
		return false, nil
	}
	return false, s.missed(m)
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
