package rule

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/go-json-experiment/json/jsontext"
)

// object is a thing of a story as CEL sees it.
type object struct {
	kind *types.Type
	of   any // *view, *call, *result, *message, *step
}

// ConvertToNative implements ref.Val: nothing of ours becomes a value of Go.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	return nil, errors.New("a " + o.kind.TypeName() + " has no value as " + t.String())
}

// ConvertToType implements ref.Val.
func (o *object) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return o.kind
	}
	return types.NewErr("a %s is no %s", o.kind.TypeName(), t.TypeName())
}

// Equal implements ref.Val: only the same thing is equal.
func (o *object) Equal(other ref.Val) ref.Val {
	x, ok := other.(*object)
	return types.Bool(ok && x.of == o.of)
}

// Type implements ref.Val.
func (o *object) Type() ref.Type { return o.kind }

// Value implements ref.Val.
func (o *object) Value() any { return o.of }

// event is the number of the event that an object stands for, 0 for the trace itself.
func (o *object) event() int {
	switch of := o.of.(type) {
	case *call:
		return of.event
	case *result:
		return of.event
	case *message:
		return of.event
	case *step:
		return of.event
	}
	return 0
}

// view is a story while one rule looks at it.
type view struct {
	*Story
	asked, found bool // a list was asked for, and one had something in it
	traced       bool // lists remember how far they were read
}

func (v *view) list(of ref.Val) ref.Val {
	v.asked = true
	list, ok := of.(traits.Lister)
	if !ok {
		return of
	}
	v.found = v.found || list.Size() != types.IntZero
	if v.traced {
		return &tracked{Lister: list}
	}
	return of
}

// tracked is a list that remembers the element that was read last: the one at which a loop stopped.
type tracked struct {
	traits.Lister
	last ref.Val
}

// Fold implements traits.Foldable, by which CEL runs its loops. An element that the loop does not take any more was not looked at.
func (t *tracked) Fold(f traits.Folder) {
	for it, i := t.Lister.Iterator(), 0; it.HasNext() == types.True; i++ {
		next := it.Next()
		if !f.FoldEntry(types.Int(i), next) {
			return
		}
		t.last = next
	}
}

// lists are what rules ask a story for, made once.
type lists struct {
	calls, results, messages, steps ref.Val
	callsOf, resultsOf, messagesOf  map[string]ref.Val
}

func listOf[T any](all []*T, value func(*T) *object) ref.Val {
	list := make([]ref.Val, len(all))
	for i, one := range all {
		list[i] = value(one)
	}
	return types.NewRefValList(types.DefaultTypeAdapter, list)
}

// byName sorts things by a name.
func byName[T any](all []*T, name func(*T) string, value func(*T) *object) map[string]ref.Val {
	sorted := map[string][]ref.Val{}
	for _, one := range all {
		sorted[name(one)] = append(sorted[name(one)], value(one))
	}
	out := make(map[string]ref.Val, len(sorted))
	for key, list := range sorted {
		out[key] = types.NewRefValList(types.DefaultTypeAdapter, list)
	}
	return out
}

func callValue(c *call) *object       { return &c.self }
func resultValue(r *result) *object   { return &r.self }
func messageValue(m *message) *object { return &m.self }
func stepValue(s *step) *object       { return &s.self }

func (l *lists) allCalls(s *Story) ref.Val {
	if l.calls == nil {
		l.calls = listOf(s.calls, callValue)
	}
	return l.calls
}

func (l *lists) allResults(s *Story) ref.Val {
	if l.results == nil {
		l.results = listOf(s.results, resultValue)
	}
	return l.results
}

func (l *lists) allMessages(s *Story) ref.Val {
	if l.messages == nil {
		l.messages = listOf(s.messages, messageValue)
	}
	return l.messages
}

func (l *lists) allSteps(s *Story) ref.Val {
	if l.steps == nil {
		l.steps = listOf(s.steps, stepValue)
	}
	return l.steps
}

var noValues = types.NewRefValList(types.DefaultTypeAdapter, nil)

// named gives what has one name, or one of several in the order of the trace.
func (v *view) named(name ref.Val, sorted *map[string]ref.Val, make func() map[string]ref.Val, all func(*Story) ref.Val, nameOf func(any) string) ref.Val {
	if *sorted == nil {
		*sorted = make()
	}
	if text, ok := name.(types.String); ok {
		if list := (*sorted)[string(text)]; list != nil {
			return v.list(list)
		}
		return v.list(noValues)
	}
	names, ok := name.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(name)
	}
	var out []ref.Val
	for it := all(v.Story).(traits.Lister).Iterator(); it.HasNext() == types.True; {
		one := it.Next()
		if names.Contains(types.String(nameOf(one.Value()))) == types.True {
			out = append(out, one)
		}
	}
	return v.list(types.NewRefValList(types.DefaultTypeAdapter, out))
}

// The types that expressions know.
var (
	traceType   = types.NewObjectType("Trace")
	callType    = types.NewObjectType("Call")
	resultType  = types.NewObjectType("Result")
	messageType = types.NewObjectType("Message")
	stepType    = types.NewObjectType("Step")
)

// field is a field of a type. get has its value, and whether it is there at all.
type field struct {
	of  *types.Type
	get func(any) (ref.Val, bool)
	doc string
}

func text[T any](get func(*T) string) func(any) (ref.Val, bool) {
	return func(of any) (ref.Val, bool) { return types.String(get(of.(*T))), true }
}

func number[T any](get func(*T) int) func(any) (ref.Val, bool) {
	return func(of any) (ref.Val, bool) { return types.Int(get(of.(*T))), true }
}

func truth[T any](get func(*T) bool) func(any) (ref.Val, bool) {
	return func(of any) (ref.Val, bool) { return types.Bool(get(of.(*T))), true }
}

var texts = types.NewListType(types.StringType)

func textList(list []string) ref.Val { return types.NewStringList(types.DefaultTypeAdapter, list) }

// fields are what expressions know of each type; the documentation lists them too.
var fields = map[string]map[string]field{
	"Trace": {
		"calls":    {types.NewListType(callType), func(of any) (ref.Val, bool) { v := of.(*view); return v.list(v.allCalls(v.Story)), true }, "the calls of tools, in order"},
		"results":  {types.NewListType(resultType), func(of any) (ref.Val, bool) { v := of.(*view); return v.list(v.allResults(v.Story)), true }, "what tools gave back"},
		"messages": {types.NewListType(messageType), func(of any) (ref.Val, bool) { v := of.(*view); return v.list(v.allMessages(v.Story)), true }, "the messages of user, assistant and tool"},
		"steps":    {types.NewListType(stepType), func(of any) (ref.Val, bool) { v := of.(*view); return v.list(v.allSteps(v.Story)), true }, "the answers of the model"},
		"agent":    {types.StringType, text(func(v *view) string { return v.agent }), "the agent's name"},
		"model":    {types.StringType, text(func(v *view) string { return v.model }), "the model that was asked"},
		"stop":     {types.StringType, text(func(v *view) string { return v.stop }), "how the run ended: end, max_iterations, paused, refused, length, error; empty where the trace does not say"},
		"error":    {types.StringType, text(func(v *view) string { return v.err }), "why it ended in an error"},
		"output":   {types.StringType, text(func(v *view) string { return v.output() }), "the last text of the assistant"},
	},
	"Call": {
		"tool":     {types.StringType, text(func(c *call) string { return c.tool }), "the tool's name"},
		"id":       {types.StringType, text(func(c *call) string { return c.id }), "the id of the call"},
		"args":     {types.NewMapType(types.StringType, types.DynType), func(of any) (ref.Val, bool) { return of.(*call).arguments(), true }, "the arguments; empty where they are malformed"},
		"raw":      {types.StringType, text(func(c *call) string { return string(c.input) }), "the arguments as the model wrote them"},
		"index":    {types.IntType, number(func(c *call) int { return c.index }), "its number among the calls, from 0"},
		"step":     {types.IntType, number(func(c *call) int { return c.step }), "the step of the model that made it, from 1"},
		"event":    {types.IntType, number(func(c *call) int { return c.event }), "the number of its event"},
		"executed": {types.BoolType, truth((*call).executed), "the tool ran"},
		"approved": {types.BoolType, truth(func(c *call) bool { return c.approved }), "the run waited for the host with it, and then it ran"},
		"outcome":  {types.StringType, text((*call).outcome), "executed, unknown, invalid, paused, cut_off; empty where nobody saw"},
		"result": {resultType, func(of any) (ref.Val, bool) {
			if r := of.(*call).result; r != nil {
				return resultValue(r), true
			}
			return nil, false
		}, "what it gave; has(c.result) asks whether there is one"},
	},
	"Result": {
		"tool":  {types.StringType, text((*result).tool), "the name of the tool that was called"},
		"id":    {types.StringType, text(func(r *result) string { return r.id }), "the id of the call"},
		"text":  {types.StringType, text((*result).text), "as the model reads it"},
		"value": {types.DynType, func(of any) (ref.Val, bool) { return of.(*result).structured(), true }, "the value, of a string with JSON in it that JSON"},
		"error": {types.BoolType, truth(func(r *result) bool { return r.isError }), "it is an error"},
		"step":  {types.IntType, number(func(r *result) int { return r.step }), "the step after which it came, from 1"},
		"event": {types.IntType, number(func(r *result) int { return r.event }), "the number of its event"},
		"call": {callType, func(of any) (ref.Val, bool) {
			if c := of.(*result).call; c != nil {
				return callValue(c), true
			}
			return nil, false
		}, "the call; has(r.call) asks whether there is one"},
	},
	"Message": {
		"role":  {types.StringType, text(func(m *message) string { return string(m.role) }), "system, user, assistant or tool"},
		"text":  {types.StringType, text(func(m *message) string { return m.text }), "its text"},
		"given": {types.BoolType, truth(func(m *message) bool { return m.given }), "it stood in the conversation that the run was given"},
		"step":  {types.IntType, number(func(m *message) int { return m.step }), "the step of the model, 0 before the first"},
		"event": {types.IntType, number(func(m *message) int { return m.event }), "the number of its event"},
	},
	"Step": {
		"n":    {types.IntType, number(func(s *step) int { return s.n }), "its number, from 1"},
		"text": {types.StringType, text(func(s *step) string { return s.text }), "what the model said"},
		"calls": {types.NewListType(callType), func(of any) (ref.Val, bool) {
			return &tracked{Lister: listOf(of.(*step).calls, callValue).(traits.Lister)}, true
		}, "the calls that it made"},
		"tools": {texts, func(of any) (ref.Val, bool) { return textList(of.(*step).shown), true }, "the names of the tools that it was shown"},
		"stop":  {types.StringType, text(func(s *step) string { return s.stop }), "end, tool_calls, length, refused, other"},
		"model": {types.StringType, text(func(s *step) string { return s.model }), "the model that answered"},
		"event": {types.IntType, number(func(s *step) int { return s.event }), "the number of its event"},
	},
}

func (s *Story) output() string {
	for _, one := range slices.Backward(s.steps) {
		if strings.TrimSpace(one.text) != "" {
			return one.text
		}
	}
	return ""
}

func (c *call) outcome() string {
	if c.run == nil {
		return ""
	}
	return string(c.run.Outcome)
}

var errAbsent = errors.New("there is none; has() asks")

// provider knows our types beside those of CEL.
type provider struct{ *types.Registry }

// FindStructType implements types.Provider.
func (p provider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := fields[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Registry.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (p provider) FindStructFieldNames(name string) ([]string, bool) {
	if _, ok := fields[name]; ok {
		return fieldNames(name), true
	}
	return p.Registry.FindStructFieldNames(name)
}

// FindStructFieldType implements types.Provider.
func (p provider) FindStructFieldType(name, of string) (*types.FieldType, bool) {
	known, ok := fields[name]
	if !ok {
		return p.Registry.FindStructFieldType(name, of)
	}
	f, ok := known[of]
	if !ok {
		return nil, false
	}
	return &types.FieldType{
		Type:  f.of,
		IsSet: func(target any) bool { _, there := f.get(target); return there },
		GetFrom: func(target any) (any, error) {
			v, there := f.get(target)
			if !there {
				return nil, errAbsent
			}
			return v, nil
		},
	}, true
}

// functions are the methods of Trace: the same as its lists, of one name or of several.
func functions() []cel.EnvOption {
	method := func(name string, of *types.Type, get func(v *view, name ref.Val) ref.Val) cel.EnvOption {
		binding := cel.BinaryBinding(func(trace, name ref.Val) ref.Val {
			v, ok := trace.Value().(*view)
			if !ok {
				return types.MaybeNoSuchOverloadErr(trace)
			}
			return get(v, name)
		})
		list := types.NewListType(of)
		return cel.Function(name,
			cel.MemberOverload("trace_"+name+"_string", []*cel.Type{traceType, cel.StringType}, list, binding),
			cel.MemberOverload("trace_"+name+"_list", []*cel.Type{traceType, cel.ListType(cel.StringType)}, list, binding))
	}
	return []cel.EnvOption{
		method("calls", callType, func(v *view, name ref.Val) ref.Val {
			return v.named(name, &v.callsOf, func() map[string]ref.Val {
				return byName(v.Story.calls, func(c *call) string { return c.tool }, callValue)
			}, v.allCalls, func(of any) string { return of.(*call).tool })
		}),
		method("results", resultType, func(v *view, name ref.Val) ref.Val {
			return v.named(name, &v.resultsOf, func() map[string]ref.Val { return byName(v.Story.results, (*result).tool, resultValue) }, v.allResults, func(of any) string { return of.(*result).tool() })
		}),
		method("messages", messageType, func(v *view, name ref.Val) ref.Val {
			return v.named(name, &v.messagesOf, func() map[string]ref.Val {
				return byName(v.Story.messages, func(m *message) string { return string(m.role) }, messageValue)
			}, v.allMessages, func(of any) string { return string(of.(*message).role) })
		}),
	}
}

func (c *call) arguments() ref.Val {
	if c.args == nil {
		c.args = valueOf(string(c.input))
		if _, ok := c.args.(traits.Mapper); !ok {
			c.args = emptyMap
		}
	}
	return c.args
}

var emptyMap = types.NewRefValMap(types.DefaultTypeAdapter, map[ref.Val]ref.Val{})

// structured is the value of a result; a string that holds a list or mapping in JSON is that.
func (r *result) structured() ref.Val {
	if r.json != nil {
		return r.json
	}
	r.json = valueOf(string(r.value))
	if s, ok := r.json.(types.String); ok {
		inner := strings.TrimSpace(string(s))
		if inner != "" && (inner[0] == '{' || inner[0] == '[') && jsontext.Value(inner).IsValid() {
			r.json = valueOf(inner)
		}
	}
	return r.json
}

// valueOf is a JSON text as CEL sees it, a string where it is none. Of two members of one name the last counts, as for most readers.
func valueOf(text string) ref.Val {
	dec := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	v, err := decode(dec)
	if err != nil {
		return types.String(text)
	}
	return v
}

func decode(dec *jsontext.Decoder) (ref.Val, error) {
	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		return types.NullValue, nil
	case 't', 'f':
		return types.Bool(token.Bool()), nil
	case '"':
		return types.String(token.String()), nil
	case '0':
		if n, err := strconv.ParseInt(token.String(), 10, 64); err == nil {
			return types.Int(n), nil
		}
		f, _ := strconv.ParseFloat(token.String(), 64) // beyond the range it is infinite
		return types.Double(f), nil
	case '[':
		var list []ref.Val
		for dec.PeekKind() != ']' {
			v, err := decode(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = dec.ReadToken()
		return types.NewRefValList(types.DefaultTypeAdapter, list), err
	default:
		members := map[ref.Val]ref.Val{}
		for dec.PeekKind() != '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			key := types.String(name.String())
			v, err := decode(dec)
			if err != nil {
				return nil, err
			}
			members[key] = v
		}
		_, err = dec.ReadToken()
		return types.NewRefValMap(types.DefaultTypeAdapter, members), err
	}
}

// fieldNames are the fields of a type, sorted.
func fieldNames(of string) []string {
	var names []string
	for name := range fields[of] {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
