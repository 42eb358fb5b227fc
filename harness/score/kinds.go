package score

import (
	"slices"

	"github.com/echoeval/echoeval/core/strict"
)

// kind is one row of the table: its name, whether its score is a matter of degree that only the dataset can put a bound on, and how its arguments become a judge.
type kind struct {
	name    string
	graded  bool
	compile func(args strict.Node, a at) judge
	doc     string
}

// kinds is the table of all checks.
var kinds = []kind{
	{name: "equals", compile: compileEquals, doc: "the answer is the text; also {value, ignore_case, trim, collapse_space, ignore_punctuation, unicode: nfc}"},
	{name: "contains", compile: compileContains, doc: "the answer holds the text; options as for equals"},
	{name: "contains_all", compile: compileContainsAll, doc: "the answer holds each text of a list; also {values, ...}; the score is the share that it holds"},
	{name: "contains_any", compile: compileContainsAny, doc: "the answer holds a text of a list; also {values, ...}"},
	{name: "starts_with", compile: compileStartsWith, doc: "the answer begins with the text; options as for equals"},
	{name: "regex", compile: compileRegex, doc: "an RE2 expression matches somewhere in the answer; (?i), (?s), (?m) inside it, ^ and $ to anchor it"},
	{name: "similarity", graded: true, compile: compileSimilarity, doc: "how like the text the answer is: 1 less the Levenshtein distance over the length of the longer; also {value or values, ...} with the options of equals"},
	{name: "rouge_l", graded: true, compile: compileRougeL, doc: "ROUGE-L: the longest common subsequence of words; also {value or values, measure: f1, precision or recall, ...}"},
	{name: "bleu", graded: true, compile: compileBLEU, doc: "BLEU of the one answer, up to four words in a row, smoothed; also {value or values, ...}"},
	{name: "length", compile: compileLength, doc: "{min, max, unit: characters, words or lines}: how long the answer is"},
	{name: "refusal", compile: compileRefusal, doc: "the model refused: it says so itself, or the answer begins as refusals do; {phrases: [...]} adds beginnings"},
	{name: "json", compile: compileJSON, doc: "the answer is one JSON value; {fence: true} takes it from the only code block where there is one"},
	{name: "json_schema", compile: compileJSONSchema, doc: "the answer is JSON and satisfies the schema (draft 2020-12 or 07, references within it only, format only annotates); also {schema, fence}"},
	{name: "json_equal", compile: compileJSONEqual, doc: "{value, ignore: [paths], unicode: nfc, fence}: the answer is JSON and that value, save what the RFC 9535 paths select"},
	{name: "json_path", compile: compileJSONPath, doc: "{path, equals, contains, matches, min, max, exists, count, fence}: what an RFC 9535 path selects in a JSON answer; every selected value must pass every test, and there must be one"},
	{name: "numeric", compile: compileNumeric, doc: "{value, abs, rel} or {min, max}: the only number in the answer; {take: first} or last where there may be several"},
	{name: "tool_calls", compile: compileToolCalls, doc: "{match: exact, unordered, subset or superset, calls: [{name, args, status, times} or {any_of} or groups {ordered or unordered, same_turn}], same_turn}: the calls that the model made"},
	{name: "no_tool_calls", compile: compileNoToolCalls, doc: "the model called no tool, or none of a list"},
	{name: "tool_result", compile: compileToolResult, doc: "{name, args, take: all, any, first or last, status, path and tests as in json_path}: what a tool returned"},
	{name: "steps", compile: compileSteps, doc: "{min, max}: how often the model was asked"},
	{name: "final_state", compile: compileFinalState, doc: "{files: {path: text, or exists, equals, contains, matches, json, unchanged}, others: unchanged}: the workspace as the run left it"},
	{name: "latency", compile: compileLatency, doc: "{max: 2s}: the agent's waiting for models and tools, retries excluded"},
	{name: "cost", compile: compileCost, doc: "{max_usd: 0.01}: what the agent's model calls cost"},
	{name: "tokens", compile: compileTokens, doc: "{max: 1000}: input and output tokens of all model steps"},
	{name: KindJudge, graded: true, compile: compileJudge, doc: "a model of role judge scores the answer: a rubric, or {rubric, criteria or prefer with over, reference, provider, votes, combine, verdict}"},
	{name: KindEmbedding, graded: true, compile: compileEmbedding, doc: "a provider of role embed says how near the meaning of the answer is to a reference: a text, or {reference (one or several), provider, dimensions}"},
	{name: "cel", compile: compileCEL, doc: "an expression in CEL over answer, expected, vars, metadata and trace; true holds, a double is a score"},
	{name: kindAll, compile: compileAll, doc: "a list of checks that must all pass; the score is the share that does"},
	{name: kindAny, compile: compileAny, doc: "a list of checks of which one must pass"},
	{name: "command", compile: compileCommand, doc: "a program and its arguments, also {run, workers: lines, with}: the program is told of the case in JSON and answers {score, reason} or {unjudged}"},
}

// later are kinds that a dataset may name one day, and that this version refuses.
var later = []string{"skill_active", "sql_equal"}

// Later are the kinds of checks of the format that are not in this version.
func Later() []string { return slices.Clone(later) }

// Kind describes a kind of check for listings.
type Kind struct{ Name, Doc string }

// Kinds lists the kinds of checks with their arguments, in the order of the docs.
//
// Text checks compare exactly unless options say otherwise: ignore_case folds letters one by one (Unicode simple folding), ignore_punctuation drops what Unicode calls punctuation, collapse_space makes one space of each run of white space, trim drops white
// space at both ends, unicode: nfc composes characters.
//
// In tool_calls, exact wants the expected calls and no others, in order; unordered in any order; subset: the expected calls are among those made; superset: the calls made are among the expected. Calls pair one to one, so that a call expected twice must be made twice.
// An entry of calls is a call ({name, args, status: ok or error, times: 2 or {min, max}}), {any_of: [...]}, or a group: {ordered: [...]} or {unordered: [...]}. Groups follow one another. same_turn: true, of a group or of a list without groups, wants its calls in one reply of the model, false each in a reply of its own.
// args names arguments and what each must be; arguments that it does not name are free. A plain value means equal, at any depth: 1 equals 1.0, a mapping has exactly these keys, a list these entries in order.
// {$regex: ...}, {$any: true}, {$numeric: {value, abs, rel} or {min, max}}, {$date: ...}, {$one_of: [...]}, {$schema: {...}}, {$text: {value, options of equals}}, {$partial: {...}} (other keys are free) and {$equal: ...} stand for a value, or for args as a whole: args: {$equal: {a: 1}} allows no other argument.
// Beside $equal and $partial, $ignore lists keys that do not count and $defaults the values that missing keys have and further ones may have. A key that begins with $ is written with $$.
//
// A judge is asked for a score in [0,1] (verdict: pass asks whether it holds) with a reason. Several votes, of one judge or of a panel, are combined by their mean or their majority, which is what is stated beside the score. prefer compares the answer with that of over in both orders: 1 where it is better in both, 0 where it is worse in
// both, else 0.5. An answer that is not the JSON that was asked for is no vote; where half of the votes or more are none, the check could not judge.
//
// embedding_similarity is (1 + cosine)/2 of the vectors of answer and reference, so that it is in [0,1]: 1 where they point the same way, 0.5 where they have nothing in common. Of several references the nearest counts. An empty answer has no vector and scores 0, negated or not.
//
// A program of command is started in the folder of the file that names it. It answers a score in [0,1]; the check passes from its threshold on, 1 where none is stated. A program that ends with another code than 0, answers anything else or takes too long has not judged: that is never a failure.
//
// The score of tool_calls is the share that pairs, where a call with its name right counts at least half: twice the sum of the pairs over the number of calls expected and made (exact, unordered), the sum over those expected (subset) or made (superset).
func Kinds() []Kind {
	list := make([]Kind, len(kinds))
	for i, k := range kinds {
		list[i] = Kind{k.name, k.doc}
	}
	return list
}

func find(table []kind, name string) (kind, bool) {
	i := slices.IndexFunc(table, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return table[i], true
}

func names(table []kind) []string {
	list := make([]string, len(table))
	for i, k := range table {
		list[i] = k.name
	}
	return list
}
