package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/imports"
	"github.com/echoeval/echoeval/harness/imports/promptfoo"
	"github.com/echoeval/echoeval/harness/imports/traces"
	"github.com/echoeval/echoeval/reports/escape"
)

type importOptions struct {
	out                           string
	providers                     []string
	check, asJSON, force, outside bool
}

func newImport(s *State) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use: "import SOURCE... -o FILE", Short: "Make a dataset of a promptfoo configuration or of traces", GroupID: "files",
		Long: "Make a dataset of a configuration of promptfoo, or of traces: trajectories of tau-bench, exports of Langfuse, lists of messages with roles. What SOURCE is, it says itself; several files of traces make one dataset.\n\n" +
			"What cannot be converted is named with its line, stays as a comment where it stood, and is counted. Nothing is run and nothing is dialled. A file that exists and would change is not overwritten without --force.",
		Example: "  echoeval import promptfooconfig.yaml -o datasets/support.yaml\n  echoeval import traces/*.json -o datasets/recorded.yaml\n  echoeval import promptfooconfig.yaml -o datasets/support.yaml --check",
		Args:    atLeast(1, "a source"),
		RunE:    func(_ *cobra.Command, sources []string) error { return runImport(s, sources, o) },
	}
	cmd.Flags().StringVarP(&o.out, "output", "o", "", "the dataset's file")
	cmd.Flags().StringArrayVar(&o.providers, "provider", nil, "a provider to add, vendor:model (repeat)")
	cmd.Flags().BoolVar(&o.check, "check", false, "only compare with the file: 0 the same, 1 another")
	cmd.Flags().BoolVar(&o.force, "force", false, "overwrite files that would change")
	cmd.Flags().BoolVar(&o.outside, "allow-outside", false, "let the source name files outside of its folder")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print JSON")
	return cmd
}

func runImport(s *State, sources []string, o importOptions) error {
	switch ext := strings.ToLower(filepath.Ext(o.out)); {
	case o.out == "":
		return usage("echoeval import "+quote(sources[0])+" -o datasets/imported.yaml", "-o is missing: the file to write")
	case ext != ".yaml" && ext != ".yml":
		return usage("a dataset is written as YAML: -o datasets/imported.yaml", "-o %s: want a name that ends in .yaml", o.out)
	case strings.HasPrefix(sources[0], "langfuse:"):
		return usage("export the traces as JSON and import the file", "%s: data sets are not fetched by this version", sources[0])
	}
	for _, id := range o.providers {
		vendor, model, ok := strings.Cut(id, ":")
		if _, known := vendors[vendor]; !known {
			return unknownVendor(vendor)
		}
		if !ok || model == "" {
			return usage("--provider openai:gpt-4o-mini", "--provider %s: want vendor:model", id)
		}
	}
	result, err := convert(s, sources, o)
	if err != nil {
		if len(result.Report.Notes()) > 0 || len(result.Report.Assertions) > 0 {
			if printErr := printImport(s, result, o, nil); printErr != nil {
				return printErr
			}
		}
		return err
	}
	changed, err := s.changes(o.out, result.Files)
	if err != nil {
		return err
	}
	if o.check {
		if err := printImport(s, result, o, changed); err != nil {
			return err
		}
		if len(changed) > 0 {
			return exit{failure.Gate}
		}
		return nil
	}
	var kept []string
	for _, c := range changed {
		if c.exists && !o.force {
			kept = append(kept, s.show(c.path))
		}
	}
	if len(kept) > 0 {
		return usage("--check shows the difference, --force overwrites", "%s: it exists and would change; nothing was written", strings.Join(kept, ", "))
	}
	for _, c := range changed {
		if err := replaceFile(c.path, c.data); err != nil {
			return failure.WithHint(failure.New(failure.Internal, "%s cannot be written: %s", s.show(c.path), failure.Reason(err)), "check the folder")
		}
	}
	if err := printImport(s, result, o, changed); err != nil {
		return err
	}
	if result.Report.Providers == 0 {
		words := []string{"echoeval import"}
		for _, source := range sources {
			words = append(words, quote(source))
		}
		return usage(strings.Join(append(words, "-o", quote(o.out), "--force --provider openai:gpt-4o-mini"), " ")+", or add one to the dataset", "%s names no provider, so that it cannot run yet", o.out)
	}
	return nil
}

// convert reads the sources and makes files of them, in memory.
func convert(s *State, sources []string, o importOptions) (imports.Result, error) {
	var list []traces.Source
	total := 0
	for _, source := range sources {
		data, err := readSource(s.path(source))
		if err != nil {
			return imports.Result{}, failure.WithHint(failure.New(failure.Input, "%s cannot be read: %s", source, failure.Reason(err)), "check the path")
		}
		if total += len(data); len(data) > strict.MaxDocument || total > 16*strict.MaxDocument {
			return imports.Result{}, usage("import a part of it", "%s is longer than %d MiB", source, strict.MaxDocument>>20)
		}
		name := s.show(s.path(source))
		if filepath.IsAbs(name) {
			name = filepath.Base(name)
		}
		list = append(list, traces.Source{Name: filepath.ToSlash(name), Data: data})
	}
	name := imports.DatasetName(o.out)
	first := list[0]
	if !strings.EqualFold(filepath.Ext(first.Name), ".jsonl") {
		n, err := strict.Parse(first.Name, first.Data)
		switch {
		case n.IsZero():
			return imports.Result{}, err
		case promptfoo.Is(n) && len(sources) > 1:
			return imports.Result{}, usage("import each into a dataset of its own", "%s is a configuration, and a dataset is made of one", sources[0])
		case promptfoo.Is(n):
			return promptfoo.Import(first.Name, first.Data, promptfoo.Options{Name: name, Vendors: vendorNames(), Providers: o.providers, Folder: imports.Folder{Dir: filepath.Dir(s.path(sources[0])), AllowOutside: o.outside}})
		case !traces.Is(n):
			return imports.Result{}, failure.WithHint(failure.At(n.Pos(), failure.Input, "it is neither a configuration of promptfoo nor traces"), "a configuration has prompts, providers and tests; traces are trajectories of tau-bench, exports of Langfuse, or lists of messages with roles")
		}
	}
	return traces.Import(list, traces.Options{Name: name, Providers: o.providers})
}

// readSource reads one byte more than a source may have.
func readSource(path string) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, strict.MaxDocument+1))
}

// change is a file that is not there as it would be written.
type change struct {
	path   string
	data   []byte
	exists bool
	old    []byte
}

func (s *State) changes(out string, files []imports.File) ([]change, error) {
	var list []change
	for i, f := range files {
		path := s.path(out)
		if i > 0 {
			path = filepath.Join(filepath.Dir(path), filepath.FromSlash(f.Path))
		}
		old, err := os.ReadFile(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			list = append(list, change{path: path, data: f.Data})
		case err != nil:
			return nil, failure.New(failure.Input, "%s cannot be read: %s", s.show(path), failure.Reason(err))
		case !bytes.Equal(old, f.Data):
			list = append(list, change{path: path, data: f.Data, exists: true, old: old})
		}
	}
	return list, nil
}

// replaceFile writes a file so that it is there whole or not at all.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error before is the one to report
	}
	return err
}

type importJSON struct {
	Items      int             `json:"items"`
	Providers  int             `json:"providers"`
	Summary    []string        `json:"summary"`
	Assertions []imports.Count `json:"assertions"`
	Total      imports.Count   `json:"total"`
	Notes      []importNote    `json:"notes"`
	Files      []string        `json:"files"`
	Changed    []string        `json:"changed"`
}

type importNote struct {
	Class string `json:"class"`
	At    string `json:"at"`
	Text  string `json:"text"`
	Hint  string `json:"hint"`
}

// printImport prints the report, and with --check how the files differ.
func printImport(s *State, result imports.Result, o importOptions, changed []change) error {
	r := &result.Report
	detector := secret.Detector{Values: secret.FromEnviron(s.Environ)}
	if o.asJSON {
		v := importJSON{Items: r.Items, Providers: r.Providers, Summary: append([]string{}, r.Summary...), Assertions: append([]imports.Count{}, r.Assertions...), Total: r.Sum(), Notes: []importNote{}, Files: []string{}, Changed: []string{}}
		for _, n := range r.Notes() {
			v.Notes = append(v.Notes, importNote{string(n.Class), n.Pos.String(), detector.Redact(n.Text), n.Hint})
		}
		for i, f := range result.Files {
			path := s.path(o.out)
			if i > 0 {
				path = filepath.Join(filepath.Dir(path), filepath.FromSlash(f.Path))
			}
			v.Files = append(v.Files, s.show(path))
		}
		for _, c := range changed {
			v.Changed = append(v.Changed, s.show(c.path))
		}
		return printJSON(s, v)
	}
	var b strings.Builder
	if !o.check {
		b.WriteString(r.Text())
	}
	for _, c := range changed {
		switch {
		case !o.check:
			fmt.Fprintf(&b, "wrote %s\n", s.show(c.path))
		case !c.exists:
			fmt.Fprintf(&b, "%s does not exist\n", s.show(c.path))
		default:
			fmt.Fprintf(&b, "%s differs\n%s", s.show(c.path), shortDiff(string(c.old), string(c.data)))
		}
	}
	switch {
	case result.Files == nil:
	case len(changed) == 0:
		fmt.Fprintf(&b, "%s is what the source gives\n", o.out)
	case !o.check:
		fmt.Fprintf(&b, "next: echoeval validate %s\n", quote(o.out))
	}
	_, err := io.WriteString(s.Stdout, escape.Block(detector.Redact(b.String())))
	return unwritable(err)
}

// mostDiff is how many lines of each side a short difference shows.
const mostDiff = 12

// shortDiff shows the lines from the first that differs to the last, those of the old text with -, those of the new one with +.
func shortDiff(before, after string) string {
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	first := 0
	for first < len(a) && first < len(b) && a[first] == b[first] {
		first++
	}
	tail := 0
	for tail < len(a)-first && tail < len(b)-first && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out strings.Builder
	fmt.Fprintf(&out, "@@ line %d @@\n", first+1)
	for _, side := range []struct {
		mark  string
		lines []string
	}{{"-", a[first : len(a)-tail]}, {"+", b[first : len(b)-tail]}} {
		for i, line := range side.lines {
			if i == mostDiff {
				fmt.Fprintf(&out, "%s (and %d more lines)\n", side.mark, len(side.lines)-i)
				break
			}
			if line != "" {
				out.WriteString(side.mark + strings.TrimRight(line, "\r\n") + "\n")
			}
		}
	}
	return out.String()
}
