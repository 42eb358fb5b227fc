package score

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/spec"
	"golang.org/x/text/unicode/norm"

	"github.com/echoeval/echoeval/core/strict"
)

// jsonEqualArgs are the arguments of the check json_equal.
type jsonEqualArgs struct {
	Value   strict.Node `yaml:"value,required" doc:"what the answer must be, save what is ignored"`
	Ignore  []string    `yaml:"ignore" doc:"RFC 9535 paths of what does not count, on either side"`
	Unicode *string     `yaml:"unicode" values:"nfc" doc:"nfc: texts and keys are compared composed"`
	Fence   bool        `yaml:"fence" doc:"take the JSON from the only code block where there is one"`
}

func compileJSONEqual(args strict.Node, a at) judge {
	var in jsonEqualArgs
	a.decode(args, &in, `json_equal: {value: {total: 3}, ignore: ["$..id"]}`)
	if args.Kind() != strict.Mapping {
		return nil
	}
	paths := make([]*jsonpath.Path, 0, len(in.Ignore))
	for i, n := range args.Get("ignore").Items() {
		if n.Kind() != strict.String {
			continue
		}
		at := a.key("ignore").index(i)
		path := parsePath(n, at)
		if path == nil {
			continue
		}
		paths = append(paths, path)
		for _, l := range path.SelectLocated(in.Value.Any()) {
			if len(l.Path) == 0 {
				at.bad(n, "then every answer is equal", "the whole value is ignored")
			}
		}
	}
	d := jsonDifference{ignore: paths, nfc: in.Unicode != nil}
	expected := cut(in.Value.JSON())
	return func(_ context.Context, c *Case) (Verdict, error) {
		v := Verdict{Expected: expected, Actual: around(c.Output, 0)}
		n, why := parse(c.Output, in.Fence)
		if why != "" {
			v.void, v.Reason = true, why
			return v, nil
		}
		found := d.of(in.Value, n)
		if len(found) == 0 {
			v.Score, v.Reason = 1, "equal"
			return v, nil
		}
		const shown = 5
		v.Reason = strings.Join(found[:min(shown, len(found))], "; ")
		if more := len(found) - shown; more > 0 {
			v.Reason += fmt.Sprintf("; and %d more differences", more)
		}
		if composed := (jsonDifference{ignore: paths, nfc: true}); !d.nfc && len(composed.of(in.Value, n)) == 0 {
			v.Reason += "; only Unicode normalisation differs ({unicode: nfc} ignores it)"
		}
		v.Reason = cut(v.Reason)
		return v, nil
	}
}

// jsonDifference finds what differs between two JSON values.
type jsonDifference struct {
	ignore []*jsonpath.Path
	nfc    bool
}

// of lists the differences, each with its normalized path.
func (d jsonDifference) of(want, got strict.Node) []string {
	ignored := map[string]bool{}
	for _, side := range []strict.Node{want, got} {
		for _, path := range d.ignore {
			for _, l := range path.SelectLocated(side.Any()) {
				ignored[l.Path.String()] = true
			}
		}
	}
	var found []string
	var walk func(path spec.NormalizedPath, want, got strict.Node)
	walk = func(path spec.NormalizedPath, want, got strict.Node) {
		if len(ignored) > 0 && ignored[path.String()] {
			return
		}
		say := func(format string, args ...any) {
			found = append(found, excerpt(path.String(), 0, 120)+" "+fmt.Sprintf(format, args...))
		}
		switch {
		case got.IsZero():
			say("is missing, want %s", show(want))
		case want.IsZero():
			say("is %s and not expected", show(got))
		case want.Kind() == strict.Mapping && got.Kind() == strict.Mapping:
			theirs := d.fields(got)
			for key, value := range want.Fields() {
				name := d.text(key.Name)
				walk(append(path[:len(path):len(path)], spec.Name(key.Name)), value, theirs[name])
			}
			ours := d.fields(want)
			for key, value := range got.Fields() {
				if _, both := ours[d.text(key.Name)]; !both {
					walk(append(path[:len(path):len(path)], spec.Name(key.Name)), strict.Node{}, value)
				}
			}
		case want.Kind() == strict.Sequence && got.Kind() == strict.Sequence:
			for i := range max(want.Len(), got.Len()) {
				walk(append(path[:len(path):len(path)], spec.Index(i)), entry(want, i), entry(got, i))
			}
		case d.nfc && want.Kind() == strict.String && got.Kind() == strict.String && d.text(want.Text()) == d.text(got.Text()):
		case !same(want, got):
			say("is %s, want %s", show(got), show(want))
		}
	}
	walk(nil, want, got)
	return found
}

func (d jsonDifference) text(s string) string {
	if d.nfc {
		return norm.NFC.String(s)
	}
	return s
}

func (d jsonDifference) fields(n strict.Node) map[string]strict.Node {
	fields := make(map[string]strict.Node, n.Len())
	for key, value := range n.Fields() {
		fields[d.text(key.Name)] = value
	}
	return fields
}

// entry is an entry of a list, the zero node beyond its end.
func entry(n strict.Node, i int) strict.Node {
	if i < n.Len() {
		return n.Index(i)
	}
	return strict.Node{}
}

// toolResultArgs are the arguments of the check tool_result.
type toolResultArgs struct {
	Name   string      `yaml:"name,required" schema:"text" doc:"the tool"`
	Args   strict.Node `yaml:"args" schema:"values" doc:"only calls with these arguments, as in tool_calls"`
	Take   string      `yaml:"take" values:"all,any,first,last" doc:"which of several calls; all unless given"`
	Status *string     `yaml:"status" values:"ok,error" doc:"whether the tool succeeded"`
	Path   *string     `yaml:"path" doc:"what of the result is tested, RFC 9535; all of it unless given"`
	valueTests
}

func compileToolResult(args strict.Node, a at) judge {
	in := toolResultArgs{Take: "all"}
	a.decode(args, &in, "tool_result: {name: search, status: ok}")
	if args.Kind() != strict.Mapping {
		return nil
	}
	known(args.Get("name"), a.key("name"))
	var wanted matcher = anything{}
	switch {
	case in.Args.IsZero():
	case in.Args.Kind() != strict.Mapping:
		a.Problems.Key("args").WrongType(in.Args, "a mapping")
	default:
		wanted = compileMatcher(in.Args, false, a.key("args"))
	}
	in.source = "$"
	if in.Path != nil {
		in.source = *in.Path
		in.path = parsePath(args.Get("path"), a.key("path"))
	} else {
		in.path = jsonpath.MustParse("$")
	}
	tested := in.compile(args, a)
	switch {
	case !tested && in.Path != nil:
		a.key("path").bad(args.Get("path"), "add one of equals, contains, matches, min, max, exists, count", "no test on what the path selects")
	case !tested && in.Status == nil:
		a.bad(args, "add status, or one of equals, contains, matches, min, max, exists, count", "no test on the result")
	}
	expected := cut(args.JSON())
	return func(_ context.Context, c *Case) (Verdict, error) {
		calls, err := made(c.Trace)
		if err != nil {
			return Verdict{}, err
		}
		v := Verdict{Expected: expected}
		var asked []int
		seen := false
		for i := range calls {
			seen = seen || calls[i].status != ""
			if calls[i].name != in.Name {
				continue
			}
			calls[i].parse()
			if calls[i].bad == "" && wanted.holds(calls[i].args) || in.Args.IsZero() {
				asked = append(asked, i)
			}
		}
		switch {
		case len(asked) == 0:
			v.void, v.Actual, v.Reason = true, "no such call", in.Name+" was not called"
			if !in.Args.IsZero() {
				v.Reason += " with these arguments"
			}
			return v, nil
		case !seen:
			return Verdict{}, fmt.Errorf("the trace holds no result of any call, so nobody knows what %s returned", in.Name)
		case in.Take == "first":
			asked = asked[:1]
		case in.Take == "last":
			asked = asked[len(asked)-1:]
		}
		for n, i := range asked {
			why := in.wrong(&calls[i], tested)
			v.Actual = cut(string(calls[i].result))
			v.Reason = cut("call " + strconv.Itoa(i+1) + ", " + excerpt(in.Name, 0, 64) + ": " + why)
			switch {
			case why == "" && (in.Take == "any" || n == len(asked)-1):
				v.Score, v.Reason = 1, fmt.Sprintf("call %d, %s: as expected", i+1, excerpt(in.Name, 0, 64))
				return v, nil
			case why != "" && in.Take != "any":
				return v, nil
			}
		}
		return v, nil
	}
}

// wrong says in what a result fails, or "".
func (in *toolResultArgs) wrong(call *madeCall, tested bool) string {
	switch {
	case call.status == "":
		return "it has no result"
	case in.Status != nil && *in.Status != call.status:
		return "it ended " + call.status + ", want " + *in.Status
	case !tested:
		return ""
	}
	n, err := strict.ParseJSON("result", 1, []byte(call.result))
	if err != nil {
		n = strict.NewString(string(call.result)) // what a tool in another language sent
	}
	if v := in.judge(n); v.Score < 1 {
		return v.Reason
	}
	return ""
}
