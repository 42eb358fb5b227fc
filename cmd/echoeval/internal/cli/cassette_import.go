package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/imports"
	"github.com/echoeval/echoeval/harness/imports/recordings"
	"github.com/echoeval/echoeval/reports/escape"
)

type cassetteImport struct {
	out                               string
	dataset, provider, item, cassette string
	repeat                            int
	values                            []string
	check, force, asJSON              bool
}

func newCassetteImport(s *State) *cobra.Command {
	var o cassetteImport
	cmd := &cobra.Command{
		Use: "import FILE... -o DIR|FILE", Short: "Make cassettes of the recordings of other programs", Args: atLeast(1, "a recording"),
		Long: "Make cassettes of recordings of go-vcr, VCR.py, VCR of Ruby and R, Polly, nock and httprr, of HAR files, and of JSON files with a request and a response, compressed with gzip or not. What a FILE is, its content says.\n\n" +
			"With --dataset, --provider and --item a recording becomes the cassette of that item, where a replay finds it. Otherwise the cassettes lie below -o, as the FILEs lie below the folder that they share.\n\n" +
			"Bodies are stored decoded. What a cassette cannot hold is named with its place and counted; keys, and values that --value names, are replaced by placeholders before anything is written. A file that exists and would change is not overwritten without --force.",
		Example: "  echoeval cassette import old/*.yaml -o imported\n  echoeval cassette import old/search.har --dataset datasets/quickstart.yaml --provider openai:gpt-4o-mini --item lists-two-files",
		RunE:    func(_ *cobra.Command, files []string) error { return o.run(s, files) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.out, "output", "o", "", "a folder for the cassettes, or for one FILE the cassette itself")
	f.StringVar(&o.dataset, "dataset", "", "the dataset's file: the recording becomes the cassette of one of its items")
	f.StringVar(&o.provider, "provider", "", "with --dataset: an id of the dataset or VENDOR:MODEL")
	f.StringVar(&o.item, "item", "", "with --dataset: the item")
	f.IntVar(&o.repeat, "repeat", 1, "with --dataset: the repeat")
	cassettesFlag(cmd, &o.cassette)
	f.StringArrayVar(&o.values, "value", nil, "NAME=ENV: replace the value of the environment variable ENV by the placeholder NAME (repeat)")
	f.BoolVar(&o.check, "check", false, "only compare with the files: 0 the same, 1 another")
	f.BoolVar(&o.force, "force", false, "overwrite files that would change")
	f.BoolVar(&o.asJSON, "json", false, "print a JSON object a line")
	return cmd
}

// importing is one recording on its way to a cassette.
type importing struct {
	source    string // as it was typed
	recording *recordings.Recording
	file      *cassette.File
	header    cassette.Header
	target    string // absolute
	aside     string // where it goes if it holds a secret that stays
	data      []byte
	state     string // written, the same, differs, does not exist, failed
	err       error
}

func (o *cassetteImport) run(s *State, files []string) error {
	redactions, err := scrubValues(s, o.values)
	if err != nil {
		return err
	}
	list, detector, err := o.targets(s, files)
	if err != nil {
		return err
	}
	for _, i := range list {
		i.err = o.convert(s, i, &detector, redactions)
	}
	var kept []string
	changed := 0
	for _, i := range list {
		if i.err != nil {
			i.state = "failed"
			continue
		}
		old, err := os.ReadFile(i.target)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			i.state = "does not exist"
		case err != nil:
			i.state, i.err = "failed", failure.New(failure.Input, "%s cannot be read: %s", s.show(i.target), failure.Reason(err))
			continue
		case bytes.Equal(old, i.data):
			i.state = "the same"
			continue
		default:
			i.state = "differs"
			kept = append(kept, s.show(i.target))
		}
		changed++
	}
	if !o.check && !o.force && len(kept) > 0 {
		return usage("--check compares, --force overwrites", "%s: it exists and would change; nothing was written", strings.Join(kept, ", "))
	}
	for _, i := range list {
		if !o.check && (i.state == "differs" || i.state == "does not exist") {
			i.state = "written"
			if err := cassette.Write(i.target, s.show(i.target), i.data, 0o644); err != nil {
				i.state, i.err = "failed", err
			}
		}
	}
	if err := o.print(s, list, &detector); err != nil {
		return err
	}
	var errs []error
	for _, i := range list {
		errs = append(errs, i.err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if o.check && changed > 0 {
		return exit{failure.Gate}
	}
	return nil
}

// targets says where the cassette of each file belongs, and what counts as a secret there.
func (o *cassetteImport) targets(s *State, files []string) ([]*importing, secret.Detector, error) {
	none := secret.Detector{}
	ext := strings.ToLower(filepath.Ext(o.out))
	named := ext == ".yaml" || ext == ".yml"
	if info, err := os.Stat(s.path(o.out)); err == nil && o.out != "" {
		named = named && !info.IsDir()
	}
	switch {
	case o.dataset != "" && o.out != "":
		return nil, none, usage("leave out -o, or --dataset; --cassettes says where the cassettes of a dataset lie", "-o and --dataset both say where the cassette goes")
	case o.dataset != "" && (o.provider == "" || o.item == ""):
		return nil, none, usage("echoeval cassette import FILE --dataset DATASET --provider VENDOR:MODEL --item ID", "--dataset wants --provider and --item too")
	case o.dataset != "" && len(files) > 1:
		return nil, none, usage("import each for its item", "one recording becomes the cassette of an item, not %d", len(files))
	case o.dataset != "" && o.repeat < 1:
		return nil, none, usage("repeats count from 1", "--repeat %d", o.repeat)
	case o.dataset == "" && (o.provider != "" || o.item != "" || o.cassette != "" || o.repeat != 1):
		return nil, none, usage("--dataset says whose they are", "--provider, --item, --repeat and --cassettes go with --dataset")
	case o.dataset == "" && o.out == "":
		return nil, none, usage("echoeval cassette import "+quote(files[0])+" -o imported", "-o is missing: where the cassettes go")
	case named && len(files) > 1:
		return nil, none, usage("name a folder: -o imported", "-o %s is one file, for %d recordings", o.out, len(files))
	case o.dataset != "":
		return o.owned(s, files[0])
	}
	project, err := currentProject(s)
	if err != nil {
		return nil, none, err
	}
	rel := beside(s, files)
	taken := map[string]string{}
	var list []*importing
	for n, file := range files {
		if other, is := taken[rel[n]]; is {
			return nil, none, usage("give each once, or import them one by one", "%s and %s would both become %s", other, file, rel[n])
		}
		taken[rel[n]] = file
		i := &importing{source: file, target: s.path(o.out)}
		if !named {
			i.target = filepath.Join(i.target, rel[n])
		}
		i.aside = filepath.Join(project.Root, ".echoeval", "quarantine", "imported", rel[n])
		list = append(list, i)
	}
	return list, detectorOf(s, project), nil
}

// owned is the place of the cassette of an item.
func (o *cassetteImport) owned(s *State, file string) ([]*importing, secret.Detector, error) {
	p, err := plan(s, &runOptions{mode: "replay", traces: "all", quiet: true, cassettes: o.cassette, providers: []string{o.provider}, items: []string{o.item}, repeat: strconv.Itoa(o.repeat)}, o.dataset)
	if err != nil {
		return nil, secret.Detector{}, err
	}
	detector := detectorOf(s, p.dataset.Project)
	chosen, err := chooseProviders(p.dataset, []string{o.provider})
	if err != nil {
		return nil, detector, err
	}
	for place, err := range p.experiment.Cassettes() {
		if err != nil {
			return nil, detector, err
		}
		if place.Repeat != o.repeat {
			continue
		}
		return []*importing{{
			source: file, target: place.Path, aside: filepath.Join(p.dataset.Root, ".echoeval", "quarantine", filepath.FromSlash(place.File)),
			header: cassette.Header{Dataset: p.dataset.Name, Item: place.Item, Repeat: place.Repeat, Provider: place.Provider, Vendor: chosen[0].Vendor, Model: chosen[0].Model, Seed: 1},
		}}, detector, nil
	}
	return nil, detector, failure.New(failure.Internal, "item %s has no repeat %d", o.item, o.repeat)
}

// beside gives each file the path of its cassette: as the files lie below the folder that they share, with the ending .yaml in the place of their own, or after it where two would be the same.
func beside(s *State, files []string) []string {
	shared := ""
	for i, file := range files {
		dir := filepath.Dir(s.path(file))
		if i == 0 {
			shared = dir
		}
		for !within(shared, dir) && filepath.Dir(shared) != shared {
			shared = filepath.Dir(shared)
		}
	}
	names := make([]string, len(files))
	count := map[string]int{}
	short := func(rel string) string {
		rel = strings.TrimSuffix(rel, ".gz")
		return strings.TrimSuffix(rel, filepath.Ext(rel)) + ".yaml"
	}
	for i, file := range files {
		rel, err := filepath.Rel(shared, s.path(file))
		if err != nil || !filepath.IsLocal(rel) { // on another volume
			rel = filepath.Base(file)
		}
		names[i] = rel
		count[strings.ToLower(short(rel))]++
	}
	for i, rel := range names {
		names[i] = short(rel)
		if count[strings.ToLower(names[i])] > 1 {
			names[i] = rel + ".yaml"
		}
	}
	return names
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func (o *cassetteImport) convert(s *State, i *importing, detector *secret.Detector, redactions []cassette.Redaction) error {
	data, err := readRecording(s.path(i.source))
	if err != nil {
		return failure.WithHint(failure.New(failure.Input, "%s cannot be read: %w", i.source, err), "check the path")
	}
	if i.recording, err = recordings.Read(i.source, data); err != nil {
		return err
	}
	if i.file, err = i.recording.Cassette(i.header, detector, redactions); err != nil {
		if i.file == nil || o.check {
			return err
		}
		aside, problem := cassette.Encode(i.file)
		if problem == nil {
			problem = cassette.Write(i.aside, "the quarantine of "+filepath.Base(i.target), aside, 0o600)
		}
		if problem != nil {
			return errors.Join(err, problem)
		}
		return failure.WithHint(err, "it is in .echoeval/quarantine, redacted; take the secret out of the recording, or list it under redact_allow if it is none")
	}
	if i.data, err = cassette.Encode(i.file); err != nil {
		return failure.At(failure.Position{File: i.source}, failure.Cassette, "not imported: %w", err)
	}
	again, err := cassette.Decode(i.data, s.show(i.target))
	if err == nil {
		var twice []byte
		if twice, err = cassette.Encode(again); err == nil && !bytes.Equal(twice, i.data) {
			err = errors.New("it is not read as it was written")
		}
	}
	if err != nil {
		return failure.At(failure.Position{File: i.source}, failure.Internal, "not imported: %w", err)
	}
	return nil
}

// readRecording reads one byte more than a recording may have. It opens regular files alone, as a pipe could block for ever.
func readRecording(path string) (data []byte, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, errors.New(failure.Reason(err))
	case info.IsDir():
		return nil, errors.New("it is a folder")
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	}
	in, err := os.Open(path)
	if err == nil {
		defer in.Close()
		data, err = io.ReadAll(io.LimitReader(in, recordings.MaxFile+1))
	}
	if err != nil {
		return nil, errors.New(failure.Reason(err)) // the path in it may be absolute
	}
	return data, nil
}

type cassetteImportJSON struct {
	File      string       `json:"file"`
	Format    string       `json:"format"`
	Exchanges int          `json:"exchanges"`
	Vendor    string       `json:"vendor"`
	Model     string       `json:"model"`
	Cassette  string       `json:"cassette"`
	State     string       `json:"state"`
	Lost      int          `json:"lost"`
	Changed   int          `json:"changed"`
	Notes     []importNote `json:"notes"`
	Problem   string       `json:"problem"`
}

// print prints a row for each file, and below them what was lost and changed, what is alike together.
func (o *cassetteImport) print(s *State, list []*importing, detector *secret.Detector) error {
	var all imports.Report
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(rows, "format\texchanges\tlost\tchanged\tstate\tcassette")
	exchanges, failed := 0, 0
	for _, i := range list {
		v := cassetteImportJSON{File: i.source, Cassette: s.show(i.target), State: i.state, Notes: []importNote{}}
		if i.err != nil {
			v.Problem = detector.Redact(failure.Message(i.err))
			failed++
		}
		if r := i.recording; r != nil {
			v.Format, v.Exchanges = r.Format, len(r.Exchanges)
			exchanges += v.Exchanges
			said := map[string]bool{}
			for _, n := range r.Report.Notes() {
				n.Text = detector.Redact(n.Text)
				all.Add(n.Class, n.Pos, n.Hint, "%s", n.Text)
				v.Notes = append(v.Notes, importNote{string(n.Class), n.Pos.String(), n.Text, n.Hint})
				switch {
				case said[n.Text]:
				case n.Class == imports.Lost:
					v.Lost++
				default:
					v.Changed++
				}
				said[n.Text] = true
			}
		}
		if i.file != nil {
			v.Vendor, v.Model = detector.Redact(i.file.Header.Vendor), detector.Redact(i.file.Header.Model)
		}
		if o.asJSON {
			if err := printJSON(s, v); err != nil {
				return err
			}
			continue
		}
		format := v.Format
		if format == "" {
			format = "-"
		}
		name := v.Cassette
		if i.err != nil {
			name = "- (" + v.File + ")"
		}
		fmt.Fprintf(rows, "%s\t%d\t%d\t%d\t%s\t%s\n", format, v.Exchanges, v.Lost, v.Changed, v.State, escape.Line(name))
	}
	if o.asJSON {
		return nil
	}
	if err := rows.Flush(); err != nil {
		return failure.WithCode(err, failure.Internal)
	}
	sum := count(len(list)-failed, "cassette") + ", " + count(exchanges, "exchange")
	if failed > 0 {
		sum += ", " + count(failed, "file") + " failed"
	}
	out := table.String() + sum + "\n" + all.Text()
	switch {
	case o.check || failed == len(list):
	case o.dataset != "":
		out += fmt.Sprintf("next: echoeval run %s --provider %s --item %s\n", quote(o.dataset), quote(o.provider), quote(o.item))
	default:
		for _, i := range list {
			if i.err == nil {
				out += fmt.Sprintf("next: echoeval cassette show %s\n", quote(s.show(i.target)))
				break
			}
		}
	}
	_, err := io.WriteString(s.Stdout, escape.Block(out))
	return unwritable(err)
}
