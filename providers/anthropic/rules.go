package anthropic

import (
	"slices"
	"strconv"
	"strings"
)

// Rule is what a model takes. There is no list of allowed models: a name that does not say a family and a version of Claude is taken to take everything.
type Rule struct {
	// Sampling: temperature and top_p, in the version of the API that has them.
	Sampling bool
	// Budget: thinking with a budget of tokens.
	Budget bool
	// Adaptive: thinking whose length the model chooses.
	Adaptive bool
	// Effort: an effort for the whole reply.
	Effort bool
}

var everything = Rule{Sampling: true, Budget: true, Adaptive: true, Effort: true}

// Efforts are the values that an effort may have.
var Efforts = []string{"low", "medium", "high", "xhigh", "max"}

var families = []string{"opus", "sonnet", "haiku", "fable", "mythos"}

// ruleFor reads family and version from a name, as in claude-opus-4-8, claude-sonnet-4-20250514 or claude-3-7-sonnet-latest, and tells from them what the model takes.
func ruleFor(model string) Rule {
	family, major, minor, ok := parseModel(model)
	if !ok {
		return everything
	}
	strict := major >= 5 || family == "opus" && major == 4 && minor >= 7
	adaptive := strict || major == 4 && minor >= 6 && (family == "opus" || family == "sonnet")
	return Rule{
		Sampling: !strict,
		Budget:   !strict && (major == 4 || major == 3 && minor >= 7),
		Adaptive: adaptive,
		Effort:   strict || major == 4 && (minor >= 6 || family == "opus" && minor >= 5),
	}
}

func parseModel(model string) (family string, major, minor int, ok bool) {
	_, name, found := strings.Cut(model, "claude-")
	if !found {
		return "", 0, 0, false
	}
	var numbers []int
	for word := range strings.SplitSeq(name, "-") {
		switch n, err := strconv.Atoi(word); {
		case slices.Contains(families, word):
			family = word
		case err == nil && len(word) <= 2: // a longer one is a date
			numbers = append(numbers, n)
		}
	}
	if family == "" || len(numbers) == 0 {
		return "", 0, 0, false
	}
	if len(numbers) > 1 {
		minor = numbers[1]
	}
	return family, numbers[0], minor, true
}
