package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/agent"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/harness/inject"
	"github.com/echoeval/echoeval/reports/escape"
)

func newValidate(s *State) *cobra.Command {
	var asJSON bool
	var item string
	var set []string
	cmd := &cobra.Command{
		Use: "validate [FILE...]", Short: "Check files of every kind; run nothing", GroupID: "files",
		Long: "Check files of every kind and report all problems with file, line and column. Nothing is run and nothing is dialled. What a file is, its keys say. Without a file: the project file, its libraries and its datasets.\n\n" +
			"With --item: print an item as it will run, each value with the place and the layer that it comes from.",
		Example: "  echoeval validate datasets/*.yaml datasets/agents/*.yaml\n  echoeval validate datasets/quickstart.yaml --item mends-a-typo",
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, files []string) error {
			if item != "" {
				return explainItem(s, files, item, set, asJSON)
			}
			if len(set) > 0 {
				return usage("echoeval validate FILE --item ID --set KEY=VALUE", "--set is for --item")
			}
			if len(files) == 0 {
				var err error
				if files, err = filesOfProject(s); err != nil {
					return err
				}
			}
			return validateFiles(s, files, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&item, "item", "", "print this item of a dataset as it will run")
	cmd.Flags().StringArrayVar(&set, "set", nil, "with --item: KEY=VALUE over the dataset, as run takes it (repeat)")
	return cmd
}

// filesOfProject are the project file and the datasets that it names.
func filesOfProject(s *State) ([]string, error) {
	root := dataset.Root(filepath.Join(s.Dir, dataset.ProjectFile), s.Dir)
	project, err := dataset.OpenProject(root, datasetOptions(s))
	if err != nil {
		return nil, err
	}
	if project.File == "" {
		return nil, usage("echoeval validate FILE...", "no file is named, and there is no %s", dataset.ProjectFile)
	}
	files := []string{s.show(filepath.Join(root, project.File))}
	for _, file := range project.Datasets {
		files = append(files, s.show(filepath.Join(root, filepath.FromSlash(file))))
	}
	return files, nil
}

func validateFiles(s *State, files []string, asJSON bool) error {
	var errs []error
	var reports []validated
	for _, file := range files {
		v, err := validateFile(s, file)
		v.File, v.OK, v.Problems = file, err == nil, problemsOf(err)
		reports = append(reports, v)
		if err != nil {
			errs = append(errs, err)
		}
		if asJSON {
			continue
		}
		if err == nil {
			if _, err := fmt.Fprintf(s.Stdout, "%s: %s\n", escape.Line(file), escape.Line(v.text)); err != nil {
				return unwritable(err)
			}
		}
		for _, w := range v.Warnings {
			fmt.Fprintf(s.Stderr, "warning: %s: %s\n", escape.Line(w.At), escape.Line(w.Message))
			for _, hint := range w.Hints {
				fmt.Fprintf(s.Stderr, "hint: %s\n", escape.Line(hint))
			}
		}
	}
	err := errors.Join(errs...)
	if !asJSON {
		return err
	}
	if printErr := printJSON(s, reports); printErr != nil {
		return printErr
	}
	if err != nil {
		return exit{failure.CodeOf(err)}
	}
	return nil
}

// explainItem prints an item as it will run.
func explainItem(s *State, files []string, id string, set []string, asJSON bool) error {
	if len(files) != 1 {
		return usage("echoeval validate datasets/quickstart.yaml --item "+quote(id), "--item wants one dataset, got %d", len(files))
	}
	options := datasetOptions(s)
	options.Set = set
	d, err := dataset.Open(s.path(files[0]), options)
	if err != nil {
		return err
	}
	values, err := d.Explain(id)
	if err != nil {
		return err
	}
	if asJSON {
		_, err = s.Stdout.Write(append(escape.JSON(dataset.AppendJSON(nil, values)), '\n'))
	} else {
		_, err = s.Stdout.Write([]byte(escape.Block(string(dataset.AppendYAML(nil, values)))))
	}
	return unwritable(err)
}

type validated struct {
	File     string    `json:"file"`
	Kind     string    `json:"kind"`
	OK       bool      `json:"ok"`
	Problems []problem `json:"problems"`
	Warnings []problem `json:"warnings"`

	text string // what the file is, for people
}

type problem struct {
	At      string   `json:"at"`
	Message string   `json:"message"`
	Hints   []string `json:"hints"`
}

func problemsOf(err error) []problem {
	out := []problem{}
	var walk func(err error, more []string)
	walk = func(err error, more []string) {
		if err == nil {
			return
		}
		if all, hints := failure.Split(err); all != nil {
			for _, e := range all {
				walk(e, append(hints, more...))
			}
			return
		}
		pos, _ := failure.PositionOf(err)
		out = append(out, problem{At: pos.String(), Message: err.Error(), Hints: append(failure.Hints(err), more...)})
	}
	walk(err, nil)
	return out
}

// validateFile checks one file and says what it is.
func validateFile(s *State, file string) (validated, error) {
	v := validated{Kind: "unknown", Warnings: []problem{}}
	in, err := os.Open(s.path(file))
	if err != nil {
		hint := "check the path"
		if errors.Is(err, fs.ErrNotExist) {
			hint = strings.Join(failure.Hints(noDataset(s, file)), "; ")
		}
		return v, failure.WithHint(failure.New(failure.Input, "%s cannot be read: %s", file, failure.Reason(err)), "%s", hint)
	}
	defer in.Close()
	if info, err := in.Stat(); err == nil && info.IsDir() {
		return v, failure.WithHint(failure.New(failure.Input, "%s is no file", file), "name its files: %s/*.yaml", strings.TrimSuffix(file, "/"))
	}
	// A list of items may be too long for a tree. What is wrong with it is told by who reads it.
	n, _, err := strict.Split(file, in, "items")
	if n.IsZero() {
		if filepath.Base(file) == dataset.ProjectFile {
			return validateProject(s, file, v)
		}
		return v, err
	}
	has := func(keys ...string) bool {
		return n.Kind() == strict.Mapping && slices.ContainsFunc(keys, func(key string) bool { return !n.Get(key).IsZero() })
	}
	switch {
	case filepath.Base(file) == dataset.ProjectFile:
		return validateProject(s, file, v)
	case has("dataset_hash", "v") && has("items", "repeat", "providers"):
		v.Kind = "baseline"
		data, err := os.ReadFile(s.path(file))
		if err != nil {
			return v, failure.WithCode(err, failure.Internal)
		}
		b, err := baseline.Decode(file, data)
		if err == nil {
			v.text = "baseline of " + b.Dataset
		}
		return v, err
	case has("items", "gates", "overrides") || has("name") && has("providers", "defaults"):
		return validateDataset(s, file, v)
	case has("conversations", "default"):
		v.Kind = "emulator script"
		data, err := os.ReadFile(s.path(file))
		if err != nil {
			return v, failure.WithCode(err, failure.Internal)
		}
		script, err := emulator.Load(file, data)
		v.text = fmt.Sprintf("an emulator script of %s", count(len(script.Conversations), "conversation"))
		return v, err
	case has("faults") || n.Len() == 2 && n.Misspells([]string{"version", "faults"}, "faults"):
		v.Kind = "faults"
		data, err := readPlan(s, file)
		if err != nil {
			return v, err
		}
		plan, err := inject.Load(file, data)
		v.text = "a plan of " + count(len(plan.Faults), "fault")
		return v, err
	case has("task", "persona"):
		v.Kind = "agent"
		var p strict.Problems
		p.AddError(err)
		c := agent.Decode(n, &p)
		v.text = "agent " + c.Name
		return v, p.Err()
	case has("prices") || has("date") && has("source"):
		v.Kind, v.text = "prices", "prices"
		data, err := os.ReadFile(s.path(file))
		if err != nil {
			return v, failure.WithCode(err, failure.Internal)
		}
		_, err = llm.LoadPrices(file, data)
		return v, err
	case has("tests"):
		v.Kind = "rule tests"
		f, err := loadCases(s, file)
		if err == nil {
			v.text = "tests of " + count(len(f.Rules), "rule")
		}
		return v, err
	case has("checks", "invariants", "policies", "providers"):
		v.Kind, v.text = "library", "library"
		return v, dataset.OpenLibrary(s.path(file), datasetOptions(s))
	case err != nil:
		return v, err
	}
	return v, failure.WithHint(failure.At(n.Pos(), failure.Input, "it is no dataset, no agent, no library, no tests of rules, no emulator script, no prices, no baseline and no plan of faults"), "a dataset has items, an agent a task, a library checks, invariants, policies or providers, tests of rules tests, a script conversations, a plan faults")
}

func validateProject(s *State, file string, v validated) (validated, error) {
	v.Kind = "project"
	project, err := dataset.OpenProject(filepath.Dir(s.path(file)), datasetOptions(s))
	if err == nil {
		v.text = "project with " + count(len(project.Datasets), "dataset")
	}
	return v, err
}

func validateDataset(s *State, file string, v validated) (validated, error) {
	v.Kind = "dataset"
	p, err := plan(s, &runOptions{mode: "replay", traces: "all", quiet: true}, file)
	if err != nil {
		return v, err
	}
	v.text = fmt.Sprintf("dataset %s, %s on %s", p.dataset.Name, count(p.dataset.Count, "item"), count(len(p.experiment.Head().Providers), "provider"))
	for _, w := range p.experiment.Warnings() {
		v.Warnings = append(v.Warnings, problem{At: w.At.String(), Message: w.Text, Hints: []string{w.Hint}})
	}
	return v, nil
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
