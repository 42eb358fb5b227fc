package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/inject"
)

// builtinFaults is the plan that needs no file.
const builtinFaults = "builtin"

// faultPlan reads what --faults names; nil for "".
func faultPlan(s *State, name string) (*inject.Plan, error) {
	switch name {
	case "":
		return nil, nil
	case builtinFaults:
		plan := inject.Builtin()
		return &plan, nil
	}
	data, err := readPlan(s, name)
	if err != nil {
		return nil, err
	}
	plan, err := inject.Load(name, data)
	if err != nil {
		return nil, err
	}
	return &plan, nil
}

// faultChoices are the built-in plan, and the YAML files that a path may go on to.
func faultChoices(s *State, typed string) []string {
	out := []string{builtinFaults}
	folder, begun := filepath.Split(typed)
	entries, err := os.ReadDir(s.path(cmp.Or(folder, ".")))
	if err != nil {
		return out
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, begun) && strings.HasSuffix(name, ".yaml") && len(out) < maxChoices {
			out = append(out, folder+name)
		}
	}
	return out
}

func readPlan(s *State, name string) ([]byte, error) {
	info, err := os.Stat(s.path(name))
	if err == nil && info.Size() > strict.MaxDocument {
		return nil, failure.New(failure.Input, "--faults %s: the file is larger than %d MiB", name, strict.MaxDocument>>20)
	}
	if err == nil {
		var data []byte
		if data, err = os.ReadFile(s.path(name)); err == nil {
			return data, nil
		}
	}
	return nil, failure.WithHint(failure.New(failure.Input, "--faults %s: the file cannot be read: %s", name, failure.Reason(err)), "--faults builtin needs no file")
}
