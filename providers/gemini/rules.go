package gemini

import "strings"

// Rule is what is known about the models whose names begin with Prefix. Models without a rule of their own are sent everything: there is no list of allowed models.
type Rule struct {
	Prefix string
	// NoBudget: the model takes no budget of tokens for its thinking.
	NoBudget bool
	// NoLevel: the model takes no level of thinking.
	NoLevel bool
	// Signed: the model refuses a call of an earlier reply that has no signature.
	Signed bool
}

// Rules are those of Google's models.
var Rules = []Rule{
	{Prefix: "gemini-1", NoBudget: true, NoLevel: true},
	{Prefix: "gemini-2", NoBudget: true, NoLevel: true},
	{Prefix: "gemini-2.5", NoLevel: true},
	{Prefix: "gemini-3", Signed: true},
}

// ruleFor returns the rule with the longest prefix of model.
func ruleFor(rules []Rule, model string) Rule {
	var best Rule
	for _, r := range rules {
		if strings.HasPrefix(model, r.Prefix) && len(r.Prefix) >= len(best.Prefix) {
			best = r
		}
	}
	return best
}
