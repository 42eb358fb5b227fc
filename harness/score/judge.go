package score

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/strict"
)

// KindJudge is the kind of check that asks models.
const KindJudge = "judge"

// Judge asks a model that scores answers.
type Judge interface {
	// Ask puts a question to the provider of role judge of that id and returns what it says, whatever it is. An error says why there is no answer.
	Ask(ctx context.Context, judge string, q Question) (string, error)
}

// Question is what a judge is asked. Every text that the agent, its user, its tools or the data wrote stands in Material alone.
type Question struct {
	// System are the instructions: what to judge by and how to answer.
	System string
	// Material is one JSON object: quoting is what keeps a text in it from passing for anything else.
	Material string
	// Schema is the JSON Schema of the answer.
	Schema conversation.JSON
}

// JudgeArgs are the arguments of the check judge; a text alone is the rubric.
type JudgeArgs struct {
	Rubric    *string     `yaml:"rubric" schema:"filled_or_null" doc:"what a good answer is, in words"`
	Criteria  []string    `yaml:"criteria" doc:"several things that a good answer does; the score is the mean over them"`
	Prefer    *string     `yaml:"prefer" schema:"filled_or_null" doc:"what makes one answer better than another; asked in both orders"`
	Over      strict.Node `yaml:"over" doc:"the answer to compare with"`
	Reference strict.Node `yaml:"reference" doc:"an answer that is known to be right, such as \"{{expected}}\""`
	Provider  strict.Node `yaml:"provider" schema:"ids" doc:"the id of a provider of role judge, or several for a panel; the only one unless given"`
	Votes     *int        `yaml:"votes" schema:"positive" doc:"how often each judge is asked; 1 unless given"`
	Combine   *string     `yaml:"combine" values:"mean,majority" doc:"how several votes make a score: mean unless given, and majority for verdict: pass"`
	Verdict   *string     `yaml:"verdict" values:"score,pass" doc:"whether a vote is a score from 0 to 1 (unless given) or holds or not"`
}

// UnknownKey implements [strict.UnknownKey].
func (*JudgeArgs) UnknownKey(name string) (message, hint string) {
	if name == "gold" {
		return `key "gold" is not read by this version`, "remove it; reading the file without it would run something else than it says"
	}
	return "", ""
}

// maxVotes bounds how often one judge is asked the same.
const maxVotes = 25

// maxMaterial is how many bytes of material a judge is shown. More is not cut: what is judged is whole.
const maxMaterial = 512 << 10

// judgement is a compiled check of kind judge.
type judgement struct {
	form      basis
	texts     []string // the rubric, the criteria, or what is preferred
	passes    bool     // a vote holds or not
	over      string
	reference string
	panel     []string
	votes     int
	majority  bool
}

// basis is what is asked for.
type basis int

const (
	byRubric basis = iota
	byCriteria
	byPreference
)

func compileJudge(args strict.Node, a at) judge {
	const example = `judge: {rubric: "Courteous, blames nobody"}`
	var in JudgeArgs
	switch args.Kind() {
	case strict.String:
		text := args.Text()
		in.Rubric = &text
	case strict.Mapping:
		a.decode(args, &in, "")
	default:
		a.bad(args, "write "+example, "want a rubric, or a mapping with rubric, criteria or prefer")
		return nil
	}
	j := &judgement{votes: 1}
	j.by(args, in, a)
	if in.Verdict != nil {
		j.passes = *in.Verdict == "pass"
		if j.form == byPreference {
			a.key("verdict").bad(args.Get("verdict"), "leave it out", "a comparison is won, lost or a tie")
		}
	}
	j.asked(args, in, a)
	j.majority = j.passes
	if in.Combine != nil {
		j.majority = *in.Combine == "majority"
	}
	if n := j.total(); j.majority && n > 1 && n%2 == 0 && len(j.panel) > 0 {
		a.bad(args, "ask an odd number of times, or combine: mean", "a majority of %d votes can be a tie", n)
	}
	*a.asks = j.total()
	if j.form == byPreference {
		*a.asks *= 2
	}
	return j.judge
}

// basis takes what is judged by from the arguments.
func (j *judgement) by(args strict.Node, in JudgeArgs, a at) {
	var given []string
	for _, key := range []string{"rubric", "criteria", "prefer"} {
		if args.Kind() == strict.String || !args.Get(key).IsZero() {
			given = append(given, key)
		}
		if args.Kind() == strict.String {
			break
		}
	}
	if len(given) != 1 {
		a.bad(args, "write one of rubric, criteria and prefer", "a judge judges by one of rubric, criteria and prefer, got %d of them", len(given))
		return
	}
	text := func(key string, s *string) {
		if s == nil {
			return // said already
		}
		if strings.TrimSpace(*s) == "" {
			a.key(key).bad(args.Get(key), "say what a good answer is", "the text is empty")
		}
		j.texts = []string{*s}
	}
	switch given[0] {
	case "rubric":
		text("rubric", in.Rubric)
	case "criteria":
		j.form, j.texts = byCriteria, in.Criteria
		if value := args.Get("criteria"); value.Kind() == strict.Sequence && value.Len() == 0 {
			a.key("criteria").bad(value, "criteria: [Names the price, Is polite]", "the list is empty")
		}
		for i, c := range in.Criteria {
			if strings.TrimSpace(c) == "" {
				a.key("criteria").index(i).bad(args.Get("criteria").Index(i), "say what a good answer does", "the text is empty")
			}
		}
	case "prefer":
		j.form = byPreference
		text("prefer", in.Prefer)
	}
	j.over = j.material(args, "over", in.Over, a)
	switch over := args.Get("over"); {
	case j.form == byPreference && over.IsZero():
		a.bad(args, `over: "{{expected}}"`, "prefer wants an answer to compare with")
	case j.form != byPreference && !over.IsZero():
		a.key("over").bad(over, "judge: {prefer: ..., over: ...}", "over is for prefer")
	}
	j.reference = j.material(args, "reference", in.Reference, a)
}

// material is the text of a value that a judge is shown.
func (j *judgement) material(args strict.Node, key string, n strict.Node, a at) string {
	if n.IsZero() {
		return ""
	}
	text := n.JSON()
	if n.Kind() != strict.Mapping && n.Kind() != strict.Sequence {
		text = n.Text()
	}
	if n.IsNull() || strings.TrimSpace(text) == "" {
		a.key(key).bad(args.Get(key), "give a text", "there is nothing to show to the judge")
	}
	return text
}

// asked finds out who is asked and how often.
func (j *judgement) asked(args strict.Node, in JudgeArgs, a at) {
	known := a.env.Judges
	switch in.Provider.Kind() {
	case strict.Missing:
		j.panel = known
		switch len(known) {
		case 0:
			if a.env.JudgesUnknown {
				break
			}
			a.bad(args, "add one to providers: {id: judge, provider: openai, model: ..., role: judge}", "there is no provider of role judge")
		case 1:
		default:
			a.bad(args, "name one: provider: "+known[0]+"; or a panel: provider: ["+strings.Join(known, ", ")+"]", "there are several providers of role judge")
		}
	case strict.String:
		j.member(in.Provider, a.key("provider"))
	case strict.Sequence:
		if in.Provider.Len() == 0 {
			a.key("provider").bad(in.Provider, "leave it out for the only one", "the panel is empty")
		}
		for i, n := range in.Provider.Items() {
			at := a.key("provider").index(i)
			if n.Kind() != strict.String {
				at.WrongType(n, "the id of a provider of role judge")
				continue
			}
			j.member(n, at)
		}
	default:
		a.key("provider").WrongType(in.Provider, "the id of a provider of role judge, or a list of them")
	}
	if in.Votes != nil {
		j.votes = *in.Votes
		if j.votes < 1 || j.votes > maxVotes {
			a.key("votes").bad(args.Get("votes"), "3 are a good beginning", "want a whole number from 1 to %d, got %d", maxVotes, j.votes)
		}
	}
}

func (j *judgement) member(n strict.Node, a at) {
	switch known := a.env.Judges; {
	case !slices.Contains(known, n.Text()) && a.env.JudgesUnknown:
	case !slices.Contains(known, n.Text()) && len(known) == 0:
		a.bad(n, "add it to providers: {id: "+n.Text()+", provider: openai, model: ..., role: judge}", "there is no provider of role judge")
	case !slices.Contains(known, n.Text()):
		a.bad(n, strict.Suggest(n.Text(), known), "there is no provider %q of role judge", n.Text())
	case slices.Contains(j.panel, n.Text()):
		a.bad(n, "votes: 2 asks a judge twice", "judge %q stands here a second time", n.Text())
	default:
		j.panel = append(j.panel, n.Text())
	}
}

// total is how many votes there are.
func (j *judgement) total() int { return len(j.panel) * j.votes }

// vote is what one judge said once.
type vote struct {
	judge  string
	score  float64
	reason string
}

func (j *judgement) judge(ctx context.Context, c *Case) (Verdict, error) {
	if c.Judge == nil {
		return Verdict{}, errors.New("no judge is asked here")
	}
	questions, err := j.questions(c)
	if err != nil {
		return Verdict{}, err
	}
	var votes []vote
	var unread []string
	for _, judge := range j.panel {
		for range j.votes {
			v, why, err := j.vote(ctx, c.Judge, judge, questions)
			switch {
			case err != nil:
				return Verdict{}, err
			case why != "":
				unread = append(unread, "judge "+judge+" "+why)
			default:
				votes = append(votes, v)
			}
		}
	}
	v, err := j.combine(votes, unread, c.check.Threshold)
	if c.Redact != nil {
		v.Reason = c.Redact(v.Reason)
		if err != nil {
			err = errors.New(c.Redact(err.Error()))
		}
	}
	v.Expected = j.expects(c.check.Threshold)
	v.Actual = around(c.Output, 0)
	return v, err
}

// combine makes one score of the votes. Where half of them or more could not be read, or a majority is a tie, there is none.
func (j *judgement) combine(votes []vote, unread []string, threshold float64) (Verdict, error) {
	switch {
	case len(unread) > 0 && j.total() == 1:
		return Verdict{}, errors.New(unread[0])
	case 2*len(unread) >= j.total():
		return Verdict{}, fmt.Errorf("%d of %d votes could not be read: %s", len(unread), j.total(), unread[0])
	}
	var sum float64
	holding := 0
	var scores, reasons []string
	for _, v := range votes {
		sum += v.score
		if reaches(v.score, threshold) {
			holding++
		}
		scores = append(scores, points(v.score))
		reason := v.reason
		if len(j.panel) > 1 && reason != "" {
			reason = v.judge + ": " + reason
		}
		if reason != "" && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	v := Verdict{Score: sum / float64(len(votes)), Reason: strings.Join(reasons, " | ")}
	how := "mean"
	if j.majority {
		how = "majority"
		if 2*holding == len(votes) {
			return Verdict{}, fmt.Errorf("the votes are tied, %d to %d", holding, holding)
		}
		v.Score = hold(2*holding > len(votes))
	}
	if j.total() > 1 {
		head := fmt.Sprintf("%s of %d votes (%s)", how, len(votes), strings.Join(scores, ", "))
		if len(unread) > 0 {
			head += fmt.Sprintf(", %d more could not be read", len(unread))
		}
		v.Reason = strings.TrimSuffix(head+": "+v.Reason, ": ")
	}
	if v.Reason == "" {
		v.Reason = "judge " + votes[0].judge + " scored " + scores[0]
	}
	return v, nil
}

func points(f float64) string { return strconv.FormatFloat(f, 'g', 4, 64) }

func (j *judgement) expects(threshold float64) string {
	who := "judge " + strings.Join(j.panel, ", ")
	if n := j.total(); n > 1 {
		how := "mean"
		if j.majority {
			how = "majority"
		}
		who += fmt.Sprintf(" (%s of %d votes)", how, n)
	}
	return fmt.Sprintf("a score of at least %s from %s: %s", strconv.FormatFloat(threshold, 'f', -1, 64), who, strings.Join(j.texts, "; "))
}

// vote asks once. why says that an answer cannot be read.
func (j *judgement) vote(ctx context.Context, ask Judge, judge string, questions []Question) (v vote, why string, err error) {
	v.judge = judge
	var better []string
	for _, q := range questions {
		text, err := ask.Ask(ctx, judge, q)
		if err != nil {
			return v, "", err
		}
		answer, wrong := readAnswer(text)
		var side string
		if wrong == "" {
			side, wrong = j.read(&v, answer)
		}
		if wrong != "" && why == "" {
			why = "gave no verdict: " + wrong
		}
		better = append(better, side)
	}
	if why != "" || j.form != byPreference {
		return v, why, nil
	}
	var how string
	switch first, second := better[0], better[1]; {
	case first == "first" && second == "second":
		v.score, how = 1, "better in both orders"
	case first == "second" && second == "first":
		how = "worse in both orders"
	case first == second && first != "neither":
		v.score, how = 0.5, "a tie, as the judge prefers what stands "+first
	default:
		v.score, how = 0.5, "a tie"
	}
	v.reason = strings.TrimSuffix(how+"; with the answer first: "+v.reason, "; with the answer first: ")
	return v, "", nil
}

// readAnswer reads the JSON that a judge was asked for, also where it stands in the answer's only code block.
func readAnswer(text string) (strict.Node, string) {
	n, why := parse(text, false)
	if why != "" && len(fenced(text)) == 1 {
		n, why = parse(text, true)
	}
	if why == "" && n.Kind() != strict.Mapping {
		why = "want a JSON object, got " + n.Kind().String()
	}
	if why != "" {
		return n, fmt.Sprintf("%s; it says %s", why, quote(strings.TrimSpace(text), 0))
	}
	return n, ""
}

// read takes a vote from an answer; side is which of two answers it prefers.
func (j *judgement) read(v *vote, answer strict.Node) (side, why string) {
	switch j.form {
	case byPreference:
		side = answer.Get("better").Text()
		if !slices.Contains(sides, side) {
			return "", `"better" is none of first, second and neither`
		}
		if reason := answer.Get("reason"); v.reason == "" && reason.Kind() == strict.String {
			v.reason = reason.Text()
		}
		return side, ""
	case byRubric:
		v.score, v.reason, why = j.one(answer)
		return "", why
	}
	list := answer.Get("verdicts")
	if list.Kind() != strict.Sequence || list.Len() != len(j.texts) {
		return "", fmt.Sprintf("want %d verdicts, one for each criterion", len(j.texts))
	}
	var missed []string
	for i, n := range list.Items() {
		score, reason, why := j.one(n)
		if why != "" {
			return "", fmt.Sprintf("criterion %d: %s", i+1, why)
		}
		v.score += score / float64(len(j.texts))
		if score < 1 {
			missed = append(missed, fmt.Sprintf("%q %s: %s", excerpt(j.texts[i], 0, 60), points(score), reason))
		}
	}
	v.score = min(v.score, 1)
	v.reason = strings.Join(missed, "; ")
	if len(missed) == 0 {
		v.reason = fmt.Sprintf("all %d criteria are met", len(j.texts))
	}
	return "", ""
}

// one reads one verdict, a score or whether it holds, with its reason.
func (j *judgement) one(n strict.Node) (score float64, reason, why string) {
	if r := n.Get("reason"); r.Kind() == strict.String {
		reason = r.Text()
	}
	if j.passes {
		pass := n.Get("pass")
		if pass.Kind() != strict.Bool {
			return 0, "", `"pass" is neither true nor false`
		}
		return hold(pass.Text() == "true"), reason, ""
	}
	value := n.Get("score")
	if !number(value) {
		return 0, "", `"score" is no number`
	}
	score, err := strconv.ParseFloat(value.Text(), 64)
	if err != nil || !(score >= 0 && score <= 1) {
		return 0, "", fmt.Sprintf("the score %s is outside [0,1]", excerpt(value.Text(), 0, 40))
	}
	return score, reason, ""
}

var sides = []string{"first", "second", "neither"}
