package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports/escape"
)

func newCassette(s *State) *cobra.Command {
	return group("cassette", "Look at recordings, check and mend them", "files", newCassetteLs(s), newCassetteShow(s), newCassetteVerify(s), newCassetteDiff(s), newCassettePrune(s), newCassetteScrub(s), newCassetteImport(s))
}

func newCassetteLs(s *State) *cobra.Command {
	var folder string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls DATASET...", Short: "List the cassettes of datasets: what is there, what is missing, what belongs to nobody, what was put aside", Args: atLeast(1, "a dataset"),
		RunE: func(_ *cobra.Command, files []string) error {
			for _, file := range files {
				p, err := plan(s, &runOptions{mode: "replay", traces: "all", quiet: true, cassettes: folder}, file)
				if err != nil {
					return err
				}
				if err := listCassettes(s, p, folder, asJSON); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cassettesFlag(cmd, &folder)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a line")
	return cmd
}

// listed is one cassette of a dataset.
type listed struct {
	File         string  `json:"file"`
	State        string  `json:"state"` // recorded, missing, unreadable, setup, orphaned, quarantined
	Item         string  `json:"item"`
	Provider     string  `json:"provider"`
	Repeat       int     `json:"repeat"`
	Interactions int     `json:"interactions"`
	RecordedAt   *string `json:"recorded_at"`
	Upstream     string  `json:"upstream"`
	Problem      string  `json:"problem"`
}

func listCassettes(s *State, p *planned, folder string, asJSON bool) error {
	write := func(l listed) error {
		if asJSON {
			return printJSON(s, l)
		}
		detail := l.Problem
		if l.RecordedAt != nil {
			detail = count(l.Interactions, "interaction") + ", recorded " + *l.RecordedAt
			if l.Upstream != "" {
				detail += " against " + l.Upstream
			}
		}
		_, err := fmt.Fprintf(s.Stdout, "%-11s %s  %s\n", l.State, escape.Line(l.File), escape.Line(detail))
		return unwritable(err)
	}
	read := func(l listed, path string) listed {
		file, err := cassette.Load(path, l.File)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			l.State = "missing"
		case err != nil:
			l.State, l.Problem = "unreadable", err.Error()
		default:
			at := file.Header.RecordedAt.Format(time.RFC3339)
			l.Interactions, l.RecordedAt, l.Upstream = len(file.Interactions), &at, file.Header.Upstream
		}
		return l
	}
	base := p.cassettes(s, folder)
	setup := read(listed{File: p.dataset.Name + "/" + cassette.SetupFile, State: "setup"}, filepath.Join(base, p.dataset.Name, cassette.SetupFile))
	if setup.State != "missing" {
		if err := write(setup); err != nil {
			return err
		}
	}
	aside := filepath.Join(p.dataset.Root, ".echoeval", "quarantine")
	var quarantined []listed
	for owned, err := range p.experiment.Cassettes() {
		if err != nil {
			return err
		}
		l := listed{File: owned.File, Item: owned.Item, Provider: owned.Provider, Repeat: owned.Repeat, State: "recorded"}
		if err := write(read(l, owned.Path)); err != nil {
			return err
		}
		if info, err := os.Lstat(filepath.Join(aside, filepath.FromSlash(owned.File))); err == nil && info.Mode().IsRegular() {
			l.File, l.State, l.Problem = ".echoeval/quarantine/"+owned.File, "quarantined", "a recording with a secret, redacted; not replayed"
			quarantined = append(quarantined, l)
		}
	}
	orphans, err := p.experiment.Orphans()
	if err != nil {
		return err
	}
	for _, file := range orphans {
		if err := write(listed{File: p.dataset.Name + "/" + file, State: "orphaned"}); err != nil {
			return err
		}
	}
	for _, l := range quarantined {
		if err := write(l); err != nil {
			return err
		}
	}
	return nil
}

// cassettesFlag is --cassettes of the commands that look at recordings.
func cassettesFlag(cmd *cobra.Command, folder *string) {
	cmd.Flags().StringVar(folder, "cassettes", "", "folder of the cassettes (default: fixtures/cassettes below the project's root)")
}

// cassettes is the folder of all cassettes.
func (p *planned) cassettes(s *State, flag string) string { return cassetteFolder(s, p.dataset, flag) }

func newCassetteShow(s *State) *cobra.Command {
	var bodies bool
	cmd := &cobra.Command{
		Use: "show FILE", Short: "Show what a cassette holds, request by request", Args: between(1, 1, "a cassette file"),
		Example: "  echoeval cassette show fixtures/cassettes/quickstart/openai_gpt-4o-mini/mends-a-typo.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := loadCassette(s.path(args[0]), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(s.Stdout, describeCassette(file, bodies))
			return failure.WithCode(err, failure.Internal)
		},
	}
	cmd.Flags().BoolVar(&bodies, "bodies", false, "print requests and responses whole")
	return cmd
}

// loadCassette reads a cassette that a user names. A dataset or a folder is no cassette that cannot be read, but the wrong name.
func loadCassette(path, name string) (*cassette.File, error) {
	file, err := cassette.Load(path, name)
	const list = "echoeval cassette ls DATASET lists the cassettes"
	switch info, statErr := os.Stat(path); {
	case err == nil:
		return file, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, failure.WithHint(failure.New(failure.Input, "%s: there is no such file", name), list)
	case statErr == nil && info.IsDir():
		return nil, failure.WithHint(failure.New(failure.Input, "%s is a folder", name), "name the files in it: %s/*.yaml", strings.TrimSuffix(name, "/"))
	}
	data, readErr := os.ReadFile(path)
	if readErr != nil {
		return nil, err
	}
	if n, parseErr := strict.Parse(name, data); parseErr == nil && !n.Get("items").IsZero() && n.Get("interactions").IsZero() {
		return nil, failure.WithHint(failure.New(failure.Input, "%s is a dataset and no cassette", name), "%s", results.Command("echoeval", "cassette", "ls", name))
	}
	return nil, err
}

func describeCassette(file *cassette.File, bodies bool) string {
	var b strings.Builder
	h := file.Header
	if h.Dataset == "" {
		b.WriteString("a recording of no dataset\n")
	} else {
		fmt.Fprintf(&b, "%s / %s / %s, repeat %d\n", escape.Line(h.Dataset), escape.Line(h.Item), escape.Line(h.Provider), h.Repeat)
	}
	fmt.Fprintf(&b, "model %s, recorded %s", escape.Line(cmp.Or(h.Model, "unknown")), h.RecordedAt.Format(time.RFC3339))
	if h.Upstream != "" {
		fmt.Fprintf(&b, " against %s", escape.Line(h.Upstream))
	}
	if h.Imported != "" {
		fmt.Fprintf(&b, ", imported from %s", escape.Line(h.Imported))
	}
	b.WriteString("\n")
	for i, x := range file.Interactions {
		fmt.Fprintf(&b, "\n%d. %s %s -> %s, %s", i+1, escape.Line(x.Request.Method), escape.Line(x.Request.URL), escape.Line(x.Response.Status), x.Response.Duration)
		if x.Extra.Partial {
			b.WriteString(", cut short")
		}
		if x.Extra.Judge != "" {
			b.WriteString(", asked by a check: " + escape.Line(x.Extra.Judge))
		}
		if x.Extra.Encoding != "" {
			fmt.Fprintf(&b, ", came as %s", escape.Line(x.Extra.Encoding))
		}
		b.WriteString("\n")
		limit := 240
		if bodies {
			limit = 1 << 30
		}
		for _, body := range []struct{ mark, text string }{{"> ", x.Request.Body}, {"< ", cassette.Readable(x.Response.Body)}} {
			text := strings.TrimRight(body.text, "\n")
			if len(text) > limit {
				text = strings.ToValidUTF8(text[:limit], "") + fmt.Sprintf(" ... (%d bytes)", len(body.text))
			}
			for line := range strings.Lines(text) {
				b.WriteString("   " + body.mark + escape.Line(strings.TrimRight(line, "\r\n")) + "\n")
			}
		}
	}
	return b.String()
}
