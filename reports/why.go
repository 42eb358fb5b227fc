package reports

import (
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/eval"
)

// Why says in a few words why a line did not pass: the checks that failed or gave no verdict, the invariants that were broken, or the cause with the code of the error or the class of the drift. It is "" for a line that passed, and untrusted text otherwise.
func Why(line *eval.Result) string {
	if line.Status == eval.Pass {
		return ""
	}
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	cause := ""
	if line.Cause != nil {
		cause = *line.Cause
	}
	switch {
	case line.Status == eval.Fail && cause == eval.CauseCheck:
		for _, c := range line.Checks {
			if c.Status == eval.CheckFail {
				add(c.Name)
			}
		}
	case line.Status == eval.Fail && cause == eval.CauseInvariant:
		for _, v := range line.Invariants.Violations {
			if v.Severity == eval.SeverityError {
				add(v.Name)
			}
		}
	case line.Status == eval.Unjudged:
		for _, c := range line.Checks {
			if c.Status == eval.CheckUnjudged {
				add(c.Name)
			}
		}
	case line.Status == eval.Stale:
		if cause == eval.CauseDrift && line.Cassette != nil && len(line.Cassette.Drift) > 0 {
			add(line.Cassette.Drift[0].Class)
		}
	case line.Error != nil && line.Error.Code != nil:
		add(strings.TrimSpace(cause + " " + *line.Error.Code))
	case line.Error != nil && line.Error.HTTPStatus != nil:
		add(strings.TrimSpace(cause + " HTTP " + strconv.Itoa(*line.Error.HTTPStatus)))
	}
	if len(names) == 0 {
		return cause
	}
	return strings.Join(names, ", ")
}
