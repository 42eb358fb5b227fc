package cli

import (
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/results"
)

// maxChoices bounds what a shell is offered at once, and maxLooked the items that are read for it: a key was pressed, and somebody waits.
const (
	maxChoices = 200
	maxLooked  = 20_000
)

// choices gives what may stand in a place of the command line, given the arguments before it and what is typed already.
type choices func(args []string, typed string) []string

// completeAll makes every command below root complete its arguments and flags. Flags that a command does not have are passed over.
func completeAll(s *State, root *cobra.Command) {
	flags, arguments := flagChoices(s), argumentChoices(s)
	for cmd := range commands(root) {
		for name, list := range flags {
			if cmd.Flags().Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, offer(list)) // the flag is there, and nobody else registers
			}
		}
		if list, ok := arguments[cmd.CommandPath()]; ok {
			cmd.ValidArgsFunction = list
		}
	}
}

// refuseUnknownShell lets the command completion, which cobra makes, say which shells there are where it is given another.
func refuseUnknownShell(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			var shells []string
			for _, shell := range cmd.Commands() {
				shells = append(shells, shell.Name())
			}
			return failure.WithHint(failure.New(failure.Input, "completion: unknown shell %q", args[0]), "%s", strict.Suggest(args[0], shells))
		}
	}
}

// commands yields a command and all below it.
func commands(cmd *cobra.Command) func(yield func(*cobra.Command) bool) {
	return func(yield func(*cobra.Command) bool) {
		if !yield(cmd) {
			return
		}
		for _, child := range cmd.Commands() {
			for c := range commands(child) {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// offer filters choices by what is typed and takes out what a shell cannot be given.
func offer(list choices) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var out []string
		for _, choice := range list(args, typed) {
			if strings.HasPrefix(choice, typed) && !strings.ContainsFunc(choice, unicode.IsControl) && len(out) < maxChoices {
				out = append(out, choice)
			}
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if len(out) == 1 && strings.ContainsAny(out[0][len(out[0])-1:], ":=") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return out, directive
	}
}

func fixedChoices(list ...string) choices { return func([]string, string) []string { return list } }

// datasetFiles lets the shell offer files that may be datasets.
func datasetFiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// runsAndFiles offers runs, and lets the shell offer files where none fits.
func runsAndFiles(runs choices) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if list, directive := offer(runs)(cmd, args, typed); len(list) > 0 {
			return list, directive
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
}

func argumentChoices(s *State) map[string]cobra.CompletionFunc {
	runs := func(args []string, _ string) []string { return runChoices(s) }
	firstRun := func(args []string, typed string) []string {
		switch len(args) {
		case 0:
			return runs(args, typed)
		case 1:
			return itemsOfRun(s, args[0])
		}
		return nil
	}
	return map[string]cobra.CompletionFunc{
		"echoeval run":             datasetFiles,
		"echoeval record":          datasetFiles,
		"echoeval replay":          datasetFiles,
		"echoeval mutate":          datasetFiles,
		"echoeval validate":        datasetFiles,
		"echoeval cassette ls":     datasetFiles,
		"echoeval cassette verify": datasetFiles,
		"echoeval show":            offer(firstRun),
		"echoeval report":          offer(runs),
		"echoeval compare":         offer(runs),
		"echoeval baseline accept": offer(runs),
		"echoeval merge":           offer(runs),
		"echoeval check":           runsAndFiles(runs),
		"echoeval invariants explain": offer(func(args []string, _ string) []string {
			if len(args) > 0 {
				return nil
			}
			return invariantNames()
		}),
	}
}

func flagChoices(s *State) map[string]choices {
	return map[string]choices{
		"item":     func(args []string, typed string) []string { return itemChoices(s, args, typed) },
		"tag":      func(args []string, _ string) []string { return tagChoices(s, args) },
		"provider": func(args []string, _ string) []string { return providerChoices(s, args) },
		"resume":   func([]string, string) []string { return runChoices(s) },
		"format":   func([]string, string) []string { return reportNames() },
		"mode":     func([]string, string) []string { return modeNames() },
		"operator": func([]string, string) []string { return operatorNames() },
		"traces":   fixedChoices(string(results.KeepAll), string(results.KeepFailed)),
		"faults":   func(_ []string, typed string) []string { return faultChoices(s, typed) },
		"drift":    func([]string, string) []string { return driftChoices() },
		"upstream": func([]string, string) []string { return suffixed(vendorNames(), "=") },
	}
}

func modeNames() []string {
	var names []string
	for _, m := range modes {
		names = append(names, string(m))
	}
	return names
}

func suffixed(names []string, end string) []string {
	var out []string
	for _, name := range names {
		out = append(out, name+end)
	}
	return out
}

func driftChoices() []string {
	var out []string
	for _, c := range cassette.Classes {
		for _, action := range []string{"serve", "warn", "fail"} {
			out = append(out, string(c)+"="+action)
		}
	}
	return out
}

// named opens the datasets among the arguments. What cannot be read offers nothing.
func named(s *State, args []string) []*dataset.Dataset {
	var out []*dataset.Dataset
	for _, file := range args {
		if d, err := openDataset(s, file, nil); err == nil {
			out = append(out, d)
		}
	}
	return out
}

// items yields the items of the datasets, as far as a person waits for them.
func items(s *State, args []string, yield func(*dataset.Item) bool) {
	looked := 0
	for _, d := range named(s, args) {
		for item, err := range d.Items() {
			if looked++; err != nil || looked > maxLooked || !yield(item) {
				return
			}
		}
	}
}

func itemChoices(s *State, args []string, typed string) []string {
	var ids []string
	items(s, args, func(item *dataset.Item) bool {
		if strings.HasPrefix(item.ID, typed) {
			ids = append(ids, item.ID)
		}
		return len(ids) < maxChoices
	})
	return ids
}

func tagChoices(s *State, args []string) []string {
	seen := map[string]bool{}
	items(s, args, func(item *dataset.Item) bool {
		for _, tag := range item.Tags {
			seen[tag], seen["!"+tag] = true, true
		}
		return len(seen) < maxChoices
	})
	return sorted(seen)
}

func providerChoices(s *State, args []string) []string {
	seen := map[string]bool{}
	for _, d := range named(s, args) {
		for _, p := range d.Columns() {
			seen[p.ID] = true
		}
	}
	for _, name := range suffixed(vendorNames(), ":") {
		seen[name] = true
	}
	return sorted(seen)
}

func sorted(set map[string]bool) []string {
	return slices.Sorted(maps.Keys(set))
}

// runChoices are latest and the ids of the project's runs, newest first.
func runChoices(s *State) []string {
	entries, err := os.ReadDir(runsFolder(s, ""))
	if err != nil {
		return nil
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return append([]string{results.LatestName}, ids...)
}

// itemsOfRun are the ids in a run's results.
func itemsOfRun(s *State, name string) []string {
	run, err := openRun(s, "", name)
	if err != nil {
		return nil
	}
	defer run.Close()
	var ids []string
	for line, err := range run.Lines() {
		if err != nil || len(ids) >= maxLooked {
			break
		}
		if !slices.Contains(ids[max(0, len(ids)-1):], line.Item) {
			ids = append(ids, line.Item)
		}
	}
	return ids
}
