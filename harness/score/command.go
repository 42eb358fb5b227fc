package score

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/program"
)

// CommandVersion is the version of what a program is told of a case and of what it answers.
const CommandVersion = 1

// Programs runs the programs of command checks; a [program.Pool] does.
type Programs interface {
	// Find looks for the program of a file in dir and starts nothing; an error bears its hint.
	Find(dir, name string) (string, error)
	// Run asks a program. An error says why there is no answer.
	Run(ctx context.Context, c program.Command, question []byte) ([]byte, error)
}

// Item is what a program is told of the item beside what is judged. Values that are hidden from the model are not among it.
type Item struct {
	ID, Provider string
	// Repeat counts from 1.
	Repeat int
	Group  string // "" is the item itself
	Tags   []string
	// Vars and Metadata are mappings or zero nodes.
	Vars, Metadata strict.Node
}

// commandArgs are the arguments of the check command.
type commandArgs struct {
	Run     strict.Node `yaml:"run,required"`
	Workers string      `yaml:"workers"`
	With    strict.Node `yaml:"with"`
}

func compileCommand(args strict.Node, a at) judge {
	const example = "command: [python3, checks/tone.py]"
	in := commandArgs{Run: args}
	where := a
	switch args.Kind() {
	case strict.Sequence:
	case strict.Mapping:
		in = commandArgs{}
		a.decode(args, &in, "")
		where = a.key("run")
	default:
		a.bad(args, "write "+example, "want a list, the program and its arguments, or {run, workers, with}")
		return nil
	}
	if in.Run.IsZero() {
		return nil // said already
	}
	if in.Run.Kind() != strict.Sequence || in.Run.Len() == 0 {
		where.bad(in.Run, "write "+example, "want a list that is not empty: the program and its arguments")
		return nil
	}
	command := program.Command{Dir: path.Dir(in.Run.Pos().File)}
	strict.Decode(in.Run, &command.Run, where.Problems)
	switch workers := args.Get("workers"); {
	case in.Workers == "lines":
		command.Lines = true
	case in.Workers != "once" && workers.Kind() == strict.String:
		a.key("workers").bad(workers, "once (the default) starts it for each case, lines keeps it and gives it a line for each", "unknown way of working %q", in.Workers)
	}
	if !in.With.IsZero() && !in.With.IsNull() && in.With.Kind() != strict.Mapping {
		a.key("with").bad(in.With, "with: {max: 80}", "want a mapping of arguments for the program")
	}
	programs := a.env.Programs
	switch name := in.Run.Index(0); {
	case name.Kind() == strict.String && name.Text() == "":
		where.index(0).bad(name, "write "+example, "the program has no name")
	case name.Kind() == strict.String && programs != nil:
		if _, err := programs.Find(command.Dir, name.Text()); err != nil {
			where.index(0).bad(name, strings.Join(failure.Hints(err), "; "), "%s", err)
		}
	}
	return func(ctx context.Context, c *Case) (Verdict, error) {
		if programs == nil {
			return Verdict{}, errors.New("programs are not run here")
		}
		out, err := programs.Run(ctx, command, appendCase(nil, c, in.With))
		if err != nil {
			return Verdict{}, err
		}
		v, err := readVerdict(out)
		if c.Redact != nil {
			v.Reason = c.Redact(v.Reason)
			if err != nil {
				err = errors.New(c.Redact(err.Error()))
			}
		}
		v.Expected = fmt.Sprintf("a score of at least %s from %s", strconv.FormatFloat(c.check.Threshold, 'f', -1, 64), strings.Join(command.Run, " "))
		v.Actual = around(c.Output, 0)
		return v, err
	}
}

// appendCase appends what a program is told: one JSON object in one line.
func appendCase(dst []byte, c *Case, with strict.Node) []byte {
	dst = append(dst, `{"v":`...)
	dst = strconv.AppendInt(dst, CommandVersion, 10)
	dst = append(dst, `,"check":{"name":`...)
	dst = conversation.AppendString(dst, c.check.Name)
	dst = append(dst, `,"turn":`...)
	if c.Turn == nil {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, int64(*c.Turn), 10)
	}
	dst = append(dst, `,"threshold":`...)
	dst = eval.Fraction(c.check.Threshold).AppendJSON(dst)
	dst = append(dst, `,"with":`...)
	dst = appendMapping(dst, with)
	dst = append(dst, `},"item":`...)
	dst = c.Item.append(dst)
	dst = append(dst, `,"output":`...)
	dst = conversation.AppendString(dst, c.Output)
	dst = append(dst, `,"expected":`...)
	dst = c.Expected.AppendJSON(dst)
	dst = append(dst, `,"messages":[`...)
	first := true
	add := func(m conversation.Message) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = m.AppendJSON(dst)
	}
	for _, e := range c.Trace.Events {
		switch {
		case e.Start != nil:
			for _, m := range e.Start.Input {
				add(m)
			}
		case e.Reply != nil:
			add(e.Reply.Message)
		case e.Results != nil:
			add(e.Results.Message)
		}
	}
	dst = append(dst, `],"trace":{"v":1,"events":`...)
	dst = c.Trace.AppendJSON(dst)
	return append(dst, "}}"...)
}

func (i *Item) append(dst []byte) []byte {
	dst = append(dst, `{"id":`...)
	dst = conversation.AppendString(dst, i.ID)
	dst = append(dst, `,"provider":`...)
	dst = conversation.AppendString(dst, i.Provider)
	dst = append(dst, `,"repeat":`...)
	dst = strconv.AppendInt(dst, int64(i.Repeat), 10)
	dst = append(dst, `,"group":`...)
	if i.Group == "" {
		dst = append(dst, "null"...)
	} else {
		dst = conversation.AppendString(dst, i.Group)
	}
	dst = append(dst, `,"tags":[`...)
	for n, tag := range i.Tags {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = conversation.AppendString(dst, tag)
	}
	dst = append(dst, `],"vars":`...)
	dst = appendMapping(dst, i.Vars)
	dst = append(dst, `,"metadata":`...)
	dst = appendMapping(dst, i.Metadata)
	return append(dst, '}')
}

func appendMapping(dst []byte, n strict.Node) []byte {
	if n.Kind() != strict.Mapping {
		return append(dst, "{}"...)
	}
	return n.AppendJSON(dst)
}

// readVerdict reads what a program answered: {"score": 0.8, "reason": "..."} or {"unjudged": "why"}, and nothing else. An error says why that is no verdict.
func readVerdict(out []byte) (Verdict, error) {
	if len(strings.TrimSpace(string(out))) == 0 {
		return Verdict{}, errors.New("the program answered nothing")
	}
	const wrong = "the program's answer is no verdict"
	n, err := strict.ParseJSON("answer", 1, out)
	if err != nil {
		return Verdict{}, fmt.Errorf("%s: %w", wrong, err)
	}
	var in struct {
		Score    strict.Node `yaml:"score"`
		Reason   *string     `yaml:"reason"`
		Unjudged *string     `yaml:"unjudged"`
	}
	var p strict.Problems
	strict.Decode(n, &in, &p)
	if err := p.Err(); err != nil {
		return Verdict{}, fmt.Errorf("%s: %w", wrong, err)
	}
	scored := !in.Score.IsZero() && !in.Score.IsNull()
	switch {
	case scored && in.Unjudged != nil:
		return Verdict{}, errors.New(wrong + ": it holds a score and says that it is unjudged")
	case in.Unjudged != nil && strings.TrimSpace(*in.Unjudged) == "":
		return Verdict{}, errors.New("the program does not judge this case and does not say why")
	case in.Unjudged != nil:
		return Verdict{}, errors.New(*in.Unjudged)
	case !scored:
		return Verdict{}, errors.New(wrong + `: it holds neither "score" nor "unjudged"`)
	}
	if !number(in.Score) {
		return Verdict{}, fmt.Errorf("%s: the score is %s, want a number", wrong, in.Score.Kind())
	}
	score, err := strconv.ParseFloat(in.Score.Text(), 64)
	if err != nil || score < 0 || score > 1 {
		return Verdict{}, fmt.Errorf("%s: the score %s is outside [0,1]", wrong, excerpt(in.Score.Text(), 0, 40))
	}
	v := Verdict{Score: score, Reason: "the program scored " + in.Score.Text()}
	if in.Reason != nil && *in.Reason != "" {
		v.Reason = *in.Reason
	}
	return v, nil
}
