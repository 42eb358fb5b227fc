package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports/escape"
)

func newCassette(s *State) *cobra.Command {
	return group("cassette", "Look at recordings and check them", "files", newCassetteLs(s), newCassetteShow(s), newCassetteVerify(s))
}

func newCassetteLs(s *State) *cobra.Command {
	var folder string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls DATASET...", Short: "List the cassettes of datasets: what is there, what is missing, what belongs to nobody", Args: atLeast(1, "a dataset"),
		RunE: func(_ *cobra.Command, files []string) error {
			for _, file := range files {
				p, err := plan(s, &runOptions{mode: "replay", traces: "all", quiet: true, cassettes: folder}, file)
				if err != nil {
					return err
				}
				if err := listCassettes(s, p, asJSON); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&folder, "cassettes", "", "folder of the cassettes (default: fixtures/cassettes below the project's root)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a line")
	return cmd
}

// listed is one cassette of a dataset.
type listed struct {
	File         string  `json:"file"`
	State        string  `json:"state"` // recorded, missing, unreadable, orphaned
	Item         string  `json:"item"`
	Provider     string  `json:"provider"`
	Repeat       int     `json:"repeat"`
	Interactions int     `json:"interactions"`
	RecordedAt   *string `json:"recorded_at"`
	Upstream     string  `json:"upstream"`
	Problem      string  `json:"problem"`
}

func listCassettes(s *State, p *planned, asJSON bool) error {
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
		_, err := fmt.Fprintf(s.Stdout, "%-10s %s  %s\n", l.State, escape.Line(l.File), escape.Line(detail))
		return err
	}
	for owned, err := range p.experiment.Cassettes() {
		if err != nil {
			return err
		}
		l := listed{File: owned.File, Item: owned.Item, Provider: owned.Provider, Repeat: owned.Repeat, State: "recorded"}
		file, err := cassette.Load(owned.Path, owned.File)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			l.State = "missing"
		case err != nil:
			l.State, l.Problem = "unreadable", err.Error()
		default:
			at := file.Header.RecordedAt.Format(time.RFC3339)
			l.Interactions, l.RecordedAt, l.Upstream = len(file.Interactions), &at, file.Header.Upstream
		}
		if err := write(l); err != nil {
			return failure.WithCode(err, failure.Internal)
		}
	}
	orphans, err := p.experiment.Orphans()
	if err != nil {
		return err
	}
	for _, file := range orphans {
		if err := write(listed{File: p.dataset.Name + "/" + file, State: "orphaned"}); err != nil {
			return failure.WithCode(err, failure.Internal)
		}
	}
	return nil
}

func newCassetteShow(s *State) *cobra.Command {
	var bodies bool
	cmd := &cobra.Command{
		Use: "show FILE", Short: "Show what a cassette holds, request by request", Args: between(1, 1, "a cassette file"),
		Example: "  echoeval cassette show fixtures/cassettes/quickstart/openai_gpt-4o-mini/mends-a-typo.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := cassette.Load(s.path(args[0]), args[0])
			if errors.Is(err, fs.ErrNotExist) {
				return failure.WithHint(failure.New(failure.Input, "%s: there is no such file", args[0]), "echoeval cassette ls DATASET lists them")
			}
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

func describeCassette(file *cassette.File, bodies bool) string {
	var b strings.Builder
	h := file.Header
	fmt.Fprintf(&b, "%s / %s / %s, repeat %d\nmodel %s, recorded %s", escape.Line(h.Dataset), escape.Line(h.Item), escape.Line(h.Provider), h.Repeat, escape.Line(h.Model), h.RecordedAt.Format(time.RFC3339))
	if h.Upstream != "" {
		fmt.Fprintf(&b, " against %s", escape.Line(h.Upstream))
	}
	b.WriteString("\n")
	for i, x := range file.Interactions {
		fmt.Fprintf(&b, "\n%d. %s %s -> %s, %s", i+1, escape.Line(x.Request.Method), escape.Line(x.Request.URL), escape.Line(x.Response.Status), x.Response.Duration)
		if x.Extra.Partial {
			b.WriteString(", cut short")
		}
		b.WriteString("\n")
		limit := 240
		if bodies {
			limit = 1 << 30
		}
		for _, body := range []struct{ mark, text string }{{"> ", x.Request.Body}, {"< ", x.Response.Body}} {
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

func newCassetteVerify(s *State) *cobra.Command {
	var folder string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "verify DATASET...", Short: "Replay datasets without judging them: fresh, stale by class, missing, orphaned", Args: atLeast(1, "a dataset"),
		Long: "Replay datasets without judging them and tell which cassettes still fit. The exit code is 0 where all do, and 4 where one is stale, missing or unreadable; orphans are only named.",
		RunE: func(cmd *cobra.Command, files []string) error {
			code := failure.OK
			for _, file := range files {
				c, err := verify(cmd.Context(), s, folder, file, asJSON)
				if err != nil {
					return err
				}
				code = failure.Worse(code, c)
			}
			if code != failure.OK {
				return exit{code}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&folder, "cassettes", "", "folder of the cassettes (default: fixtures/cassettes below the project's root)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func verify(ctx context.Context, s *State, folder, file string, asJSON bool) (failure.Code, error) {
	p, err := plan(s, &runOptions{mode: "replay", traces: "all", quiet: true, cassettes: folder}, file)
	if err != nil {
		return failure.Input, err
	}
	dir, err := os.MkdirTemp(s.temp(), "echoeval-verify-")
	if err != nil {
		return failure.Internal, failure.New(failure.Internal, "making a temporary folder: %s", failure.Reason(err))
	}
	defer os.RemoveAll(dir)
	ctx, stop := s.interruptible(ctx)
	defer stop()
	if err := results.WriteManifest(dir, results.Manifest{ID: "verify", Started: s.Clock.Now(), Plan: p.experiment.Head()}); err != nil {
		return failure.Internal, err
	}
	journal, err := results.Create(dir, s.Clock)
	if err != nil {
		return failure.Internal, err
	}
	summary, _, err := p.experiment.Run(ctx, dir, journal, &results.Finished{}, nil)
	if err != nil {
		return failure.Internal, err
	}
	c := summary.Cassettes
	if asJSON {
		err = printJSON(s, struct {
			Dataset string `json:"dataset"`
			results.Cassettes
		}{p.dataset.Name, c})
	} else {
		err = printVerified(s, p, dir, summary)
	}
	if err != nil {
		return failure.Internal, failure.WithCode(err, failure.Internal)
	}
	switch {
	case !summary.Complete:
		return failure.Interrupted, nil
	case summary.Counts.Stale > 0:
		return failure.Cassette, nil
	}
	return failure.OK, nil
}

func printVerified(s *State, p *planned, dir string, summary *results.Summary) error {
	c := summary.Cassettes
	if _, err := fmt.Fprintf(s.Stdout, "%s: %d fresh, %d stale, %d missing, %d orphaned\n", p.dataset.Name, c.Fresh, c.Stale, c.Missing, c.Orphaned); err != nil {
		return err
	}
	run, err := results.Open(dir)
	if err != nil {
		return err
	}
	defer run.Close()
	if err := writeCauses(s.Stdout, run); err != nil {
		return err
	}
	orphans, err := p.experiment.Orphans()
	for _, file := range orphans {
		fmt.Fprintf(s.Stdout, "orphaned: %s\n", escape.Line(p.dataset.Name+"/"+file))
	}
	if c.Stale+c.Missing > 0 {
		fmt.Fprintf(s.Stderr, "hint: echoeval record %s\n", quote(s.show(filepath.Join(p.dataset.Root, filepath.FromSlash(p.dataset.File)))))
	}
	return err
}
