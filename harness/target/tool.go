package target

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
)

// ToolRun is a call of a tool that the program asked the recorder about.
type ToolRun struct {
	Name      string
	Arguments conversation.JSON
	Effect    tool.Effect
	Output    tool.Output

	seq int
}

// wrappedTools are the calls of an item.
type wrappedTools struct {
	calls int
	open  map[string]*toolCall // those that the program runs now, by id
	done  []*ToolRun
}

func (t *wrappedTools) finished() []*ToolRun {
	done := t.done
	t.done = nil
	slices.SortFunc(done, func(a, b *ToolRun) int { return a.seq - b.seq })
	return done
}

// toolCall is one call under way.
type toolCall struct {
	spec   tool.Spec
	run    chan struct{}    // closed when the program has to run it
	result chan tool.Output // what the program then gives
	ended  chan struct{}    // closed when output and err are set
	output tool.Output
	err    error
}

// Spec implements [tool.Tool].
func (c *toolCall) Spec() tool.Spec { return c.spec }

// Run implements [tool.Tool]: it has the program run the tool.
func (c *toolCall) Run(ctx context.Context, _ tool.Call) (tool.Output, error) {
	close(c.run)
	select {
	case output := <-c.result:
		return output, nil
	case <-ctx.Done():
		return tool.Output{}, context.Cause(ctx)
	}
}

var effects = []tool.Effect{tool.Pure, tool.Read, tool.Write, tool.Irreversible}

// tool answers POST /tool, and POST /tool/ID with what came of it.
func (u *underWay) tool(ctx context.Context, w http.ResponseWriter, req *http.Request, rest string) {
	if req.Method != http.MethodPost {
		refuse(w, http.StatusMethodNotAllowed, "method", "want POST")
		return
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxRequest+1))
	if err != nil || len(body) > maxRequest {
		refuse(w, http.StatusRequestEntityTooLarge, "too_large", "the body is too long")
		return
	}
	if id, is := strings.CutPrefix(rest, "/"); is {
		u.ran(w, id, body)
		return
	}
	if rest != "" {
		refuse(w, http.StatusNotFound, "unknown_path", "want "+toolPath+"/tool or "+toolPath+"/tool/ID")
		return
	}
	u.call(ctx, w, body)
}

func (u *underWay) call(ctx context.Context, w http.ResponseWriter, body []byte) {
	var in struct {
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
		Effect    string         `json:"effect"`
	}
	err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true))
	effect := tool.Effect(in.Effect)
	if in.Effect == "" {
		effect = tool.Write
	}
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, "bad_call", err.Error())
		return
	case !toolName(in.Name):
		refuse(w, http.StatusBadRequest, "bad_call", "name: want 1 to 64 letters, digits, _ and -")
		return
	case in.Arguments != nil && in.Arguments.Kind() != '{':
		refuse(w, http.StatusBadRequest, "bad_call", "arguments: want an object")
		return
	case !slices.Contains(effects, effect):
		refuse(w, http.StatusBadRequest, "bad_call", "effect: want pure, read, write or irreversible")
		return
	}
	arguments := conversation.JSON("{}")
	if in.Arguments != nil {
		arguments = conversation.JSON(in.Arguments)
	}
	c := &toolCall{
		spec: tool.Spec{Name: in.Name, Parameters: `{"type":"object"}`, Effect: effect, Scope: tool.External},
		run:  make(chan struct{}), result: make(chan tool.Output, 1), ended: make(chan struct{}),
	}
	u.mu.Lock()
	u.tools.calls++
	seq := u.tools.calls
	id := strconv.Itoa(seq)
	if u.tools.open == nil {
		u.tools.open = map[string]*toolCall{}
	}
	u.tools.open[id] = c
	u.mu.Unlock()
	wrapped := u.Wrap(c)
	u.running.Go(func() {
		defer close(c.ended)
		c.output, c.err = wrapped.Run(ctx, tool.Call{ID: id, Name: in.Name, Arguments: arguments, Seq: seq, At: u.Clock.Now()})
		u.mu.Lock()
		defer u.mu.Unlock()
		if c.err == nil {
			u.tools.done = append(u.tools.done, &ToolRun{Name: in.Name, Arguments: arguments, Effect: effect, Output: c.output, seq: seq})
		}
	})
	select {
	case <-c.run:
		answer(w, append(conversation.AppendString([]byte(`{"run":`), id), '}'))
	case <-c.ended:
		u.forget(id)
		u.result(w, c)
	}
}

// ran takes the result of a call that the program ran itself.
func (u *underWay) ran(w http.ResponseWriter, id string, body []byte) {
	c := u.forget(id)
	if c == nil {
		refuse(w, http.StatusNotFound, "unknown_call", fmt.Sprintf("no call %q is under way", id))
		return
	}
	var in struct {
		Result jsontext.Value `json:"result"`
		Error  *string        `json:"error"`
	}
	err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true))
	output := tool.Output{Result: conversation.JSON(in.Result)}
	if in.Error != nil {
		output = tool.Failed(*in.Error)
	}
	if err != nil || (in.Result == nil) == (in.Error == nil) {
		refuse(w, http.StatusBadRequest, "bad_result", `want {"result": ...} or {"error": "..."}`)
		output = tool.Failed("the program gave no result")
		c.result <- output
		return
	}
	c.result <- output
	<-c.ended
	u.result(w, c)
}

func (u *underWay) forget(id string) *toolCall {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.tools.open[id]
	delete(u.tools.open, id)
	return c
}

// result tells the program what a call gave.
func (u *underWay) result(w http.ResponseWriter, c *toolCall) {
	switch {
	case c.err != nil:
		u.fail(c.err)
		refuse(w, http.StatusBadRequest, "stale", c.err.Error())
	case c.output.IsError:
		answer(w, append(conversation.AppendValue([]byte(`{"error":`), c.output.Result), '}'))
	default:
		answer(w, append(conversation.AppendValue([]byte(`{"result":`), c.output.Result), '}'))
	}
}

func answer(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n'))
}

func toolName(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}
