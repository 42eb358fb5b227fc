package promptfoo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/imports"
	"github.com/echoeval/echoeval/harness/score"
)

// judge is a provider of role judge or embed that the dataset needs.
type judge struct {
	column
	role string
	key  string // the grader as the configuration has it, JSON; "" for the one that promptfoo would choose
}

// The rubrics that stand for assertions which bring none.
const (
	// factual lets pass what promptfoo does unless it is told otherwise: answers that say less, more or the same as the reference, and those that differ where it does not matter.
	factual  = "States nothing that disagrees with the facts of the reference. Saying less or more than it is right, and so is every difference of wording."
	relevant = "Answers the question that was asked, and speaks of nothing else."
)

// What is asked for where no threshold is given.
const (
	defaultThreshold = 0.7  // by g-eval
	defaultCosine    = 0.75 // by similar
)

// roles of the providers that judge.
const (
	roleJudge = "judge"
	roleEmbed = "embed"
)

// similar makes an assertion of a cosine a check by vectors. The check's score is (1 + cosine)/2, and so its threshold.
func (im *importer) similar(a assertion, c *check) (why, hint string) {
	text, isText := scalarText(a.value)
	list, many := texts(a.value)
	if (!isText || text == "") && (!many || len(list) == 0 || slices.Contains(list, "")) {
		return "an assertion without a text as its value", ""
	}
	asked, given := im.judgeThreshold(a)
	if !given {
		asked = defaultCosine
	}
	reference := strict.NewString(text)
	if !isText {
		reference = listNode(list)
	}
	id, ok := im.embedderOf(a)
	if !ok {
		return "assertions by an embedder that this version does not have", "add a provider of role embed, then write {embedding_similarity: {reference: ...}, threshold: 0.85}"
	}
	asked = (1 + asked) / 2
	c.kind, c.args, c.threshold = score.KindEmbedding, argument(`{"reference":%s,"provider":%s}`, reference, strict.NewString(id)), &asked
	return "", ""
}

// embedderOf gives the id of the provider whose vectors an assertion compares.
func (im *importer) embedderOf(a assertion) (id string, ok bool) {
	var named strict.Node
	for _, n := range []strict.Node{a.grader, im.grader, im.defaults.grader} {
		if embedding := n.Get("embedding"); n.Kind() == strict.Mapping && !embedding.IsZero() {
			n = embedding
		}
		if source := graderID(n); strings.Contains(source, ":embedding") {
			named = n
			break
		}
	}
	j := judge{role: roleEmbed, column: column{pos: a.pos, vendor: "openai", model: "text-embedding-3-large"}}
	if named.IsZero() {
		return im.addJudge(j, "near", func(*judge) {
			im.note(imports.Changed, a.pos, "name another under providers", "no provider embeds, and promptfoo takes one by the keys that it finds: here openai:text-embedding-3-large embeds")
		})
	}
	j.key, j.pos, j.source = named.JSON(), named.Pos(), graderID(named)
	return im.addJudge(j, "near", func(j *judge) {
		vendor, rest, _ := strings.Cut(j.source, ":")
		_, model, _ := strings.Cut(rest, ":")
		j.vendor, j.model = vendor, model
		if !slices.Contains(im.Vendors, vendor) || model == "" {
			j.problem = "an embedder that this version does not have"
			im.note(imports.Lost, j.pos, "", "embedder %q, which this version does not have", j.source)
		}
	})
}

// graderID is what a grader is called.
func graderID(n strict.Node) string {
	if n.Kind() == strict.Mapping {
		return n.Get("id").Text()
	}
	return n.Text()
}

// rubric makes an assertion that asks a model a check by a judge. why says that there is none.
func (im *importer) rubric(a assertion, c *check) (why, hint string) {
	text, isText := scalarText(a.value)
	if !isText && (a.value.Kind() == strict.Mapping || a.value.Kind() == strict.Sequence) && a.kind == "llm-rubric" {
		text, isText = a.value.JSON(), true
	}
	asked, given := im.judgeThreshold(a)
	var args []string
	add := func(key string, value strict.Node) { args = append(args, strconv.Quote(key)+":"+value.JSON()) }
	switch list, many := texts(a.value); {
	case a.kind == "answer-relevance":
		if !given || asked == 0 {
			return "an assertion that cannot fail: it has no threshold", "write threshold: 0.7"
		}
		add("rubric", strict.NewString(relevant))
		im.note(imports.Changed, a.pos, "look at the threshold again", "answer-relevance: promptfoo compares embeddings of questions that a model makes of the answer; here a judge says how well it answers")
	case a.kind == "g-eval" && many && len(list) > 0:
		add("criteria", listNode(list))
	case !isText || text == "":
		return "an assertion without a text as its value", ""
	case a.kind == "factuality" || a.kind == "model-graded-factuality":
		add("rubric", strict.NewString(factual))
		add("reference", strict.NewString(text))
	default:
		add("rubric", strict.NewString(text))
	}
	if a.kind == "g-eval" && !given {
		asked, given = defaultThreshold, true
	}
	if a.kind != "g-eval" && a.kind != "answer-relevance" && (!given || a.kind != "llm-rubric" || asked == 0) {
		asked = 1
		add("verdict", strict.NewString("pass"))
	}
	id, ok := im.judgeOf(a)
	if !ok {
		return "assertions by a grader that this version does not have", "add a provider of role judge, then write {judge: {rubric: ...}, threshold: 0.7}"
	}
	add("provider", strict.NewString(id))
	n, err := strict.ParseJSON("", 1, []byte("{"+strings.Join(args, ",")+"}"))
	if err != nil {
		return "an assertion whose text cannot be read", ""
	}
	c.kind, c.args, c.threshold = score.KindJudge, n, &asked
	im.note(imports.Changed, a.pos, "", "%s: the judge has instructions of its own, not promptfoo's prompt", a.kind)
	return "", ""
}

// judgeThreshold reads the threshold of a judged assertion.
func (im *importer) judgeThreshold(a assertion) (asked float64, given bool) {
	if a.threshold.IsZero() || a.threshold.IsNull() {
		return 0, false
	}
	f, err := strconv.ParseFloat(a.threshold.Text(), 64)
	if err != nil || !(f >= 0 && f <= 1) {
		im.note(imports.Wrong, a.threshold.Pos(), "a fraction from 0 to 1", "a threshold that no score can be compared with")
		return 0, false
	}
	return f, true
}

// judgeOf gives the id of the provider that judges an assertion: its own grader, the test's, that of all tests, or the one that promptfoo would choose.
func (im *importer) judgeOf(a assertion) (id string, ok bool) {
	grader := a.grader
	for _, n := range []strict.Node{im.grader, im.defaults.grader} {
		if grader.IsZero() {
			grader = n
		}
	}
	if text := grader.Get("text"); grader.Kind() == strict.Mapping && grader.Get("id").IsZero() && !text.IsZero() {
		grader = text // one model for texts, another for embeddings
	}
	j := judge{role: roleJudge, column: column{pos: a.pos, vendor: "openai", model: "gpt-4o"}}
	if grader.IsZero() {
		return im.addJudge(j, roleJudge, func(*judge) {
			im.note(imports.Changed, a.pos, "name another under providers", "no provider grades, and promptfoo takes one by the keys that it finds: here openai:gpt-4o judges")
		})
	}
	j.key, j.pos, j.source = grader.JSON(), grader.Pos(), graderID(grader)
	return im.addJudge(j, roleJudge, func(j *judge) {
		im.target(&j.column)
		if j.problem == "" {
			im.settings(&j.column, grader.Get("config"))
		}
	})
}

// addJudge takes a judge up, once for all that name it alike, and gives its id; it is filled in where it is new.
func (im *importer) addJudge(j judge, name string, fill func(*judge)) (id string, ok bool) {
	if i := slices.IndexFunc(im.judges, func(known judge) bool { return known.role == j.role && known.key == j.key }); i >= 0 {
		return im.judges[i].id, im.judges[i].problem == ""
	}
	fill(&j)
	taken := func(id string) bool {
		return slices.ContainsFunc(im.columns, func(c column) bool { return c.id == id }) || slices.ContainsFunc(im.judges, func(j judge) bool { return j.id == id })
	}
	j.id = name
	for n := 2; taken(j.id); n++ {
		j.id = fmt.Sprintf("%s-%d", name, n)
	}
	im.judges = append(im.judges, j)
	return j.id, j.problem == ""
}

// judgeIDs are the judges of a role that there are, for looking at a check.
func (im *importer) judgeIDs(role string) []string {
	var ids []string
	for _, j := range im.judges {
		if j.problem == "" && j.role == role {
			ids = append(ids, j.id)
		}
	}
	return ids
}

// entry is a provider as the dataset has it, by that id.
func (c *column) entry(id string) imports.Value {
	v := imports.Map()
	if id != c.vendor+":"+c.model {
		v.Set("id", imports.Text(id))
	}
	v.Set("provider", imports.Text(c.vendor))
	v.Set("model", imports.Text(c.model))
	for _, f := range c.fields {
		v.Set(f.Key, f.Value)
	}
	return v
}
