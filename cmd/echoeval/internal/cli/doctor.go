package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/program"
	"github.com/echoeval/echoeval/reports/escape"
)

// The states of a finding.
const (
	ready   = "ok"      // set up
	absent  = "missing" // what it would enable does not work; a replay does
	defunct = "broken"  // not even a replay works
)

// finding is one thing that doctor looked at.
type finding struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	// Enables says what works with it, Fix what to do about a state that is not ok; null where there is nothing to do.
	Enables string  `json:"enables"`
	Fix     *string `json:"fix"`
}

func newDoctor(s *State) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Say what is set up on this machine, and what each missing thing would enable", GroupID: "more", Args: between(0, 0, "no arguments"),
		Long: "Look at this machine and the current project: what is set up, and what each missing thing would enable. Variables are named, their values are never shown, and nothing is dialled.\n\n" +
			"The exit code is 0, unless something is broken that even a replay needs.",
		RunE: func(*cobra.Command, []string) error {
			findings := examine(s)
			broken := slices.ContainsFunc(findings, func(f finding) bool { return f.State == defunct })
			if err := printFindings(s, findings, !broken, asJSON); err != nil {
				return err
			}
			if broken {
				return exit{failure.Internal}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printFindings(s *State, findings []finding, ok, asJSON bool) error {
	if asJSON {
		return printJSON(s, struct {
			OK       bool      `json:"ok"`
			Version  string    `json:"version"`
			Go       string    `json:"go"`
			Platform string    `json:"platform"`
			Findings []finding `json:"findings"`
		}{ok, version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, findings})
	}
	if _, err := fmt.Fprintf(s.Stdout, "echoeval %s (%s, %s/%s)\n\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH); err != nil {
		return unwritable(err)
	}
	for _, f := range findings {
		text := fmt.Sprintf("%-8s %-18s %s\n", f.State, escape.Line(f.Name), escape.Line(f.Detail))
		if f.State != ready {
			text += fmt.Sprintf("%-27s enables: %s\n", "", escape.Line(f.Enables))
		}
		if f.Fix != nil {
			text += fmt.Sprintf("%-27s fix: %s\n", "", escape.Line(*f.Fix))
		}
		if _, err := fmt.Fprint(s.Stdout, text); err != nil {
			return unwritable(err)
		}
	}
	return nil
}

// examine looks at everything, in the order in which it is shown.
func examine(s *State) []finding {
	root := dataset.Root(filepath.Join(s.Dir, "dataset.yaml"), s.Dir)
	findings := []finding{
		examineProject(s, root),
		examineFolder(s, "temporary folder", s.temp(), defunct, "workspaces of items", "set TMPDIR to a folder that can be written"),
		examineFolder(s, "runs", filepath.Join(root, ".echoeval", "runs"), defunct, "results of runs", "make the folder writable, or name another: echoeval run DATASET --out DIR"),
		examineCassettes(s, filepath.Join(root, "fixtures", "cassettes")),
		examineTime(s.Clock.Now()),
	}
	for _, p := range listProviders(s) {
		if p.KeyEnv == nil {
			continue
		}
		f := finding{Name: *p.KeyEnv, State: ready, Detail: "is set", Enables: "recording and live runs of " + p.Name}
		if !*p.KeySet {
			f.State, f.Detail, f.Fix = absent, "is not set", fixed("export "+*p.KeyEnv+"=...")
		}
		findings = append(findings, f)
	}
	return append(findings, examineGit(s), examineCI(s), examineProxy(s), examineTerminal(s))
}

func fixed(text string) *string { return &text }

func examineProject(s *State, root string) finding {
	f := finding{Name: "project", State: ready, Enables: "runs without a dataset's name; one root for everything below"}
	_, err := os.Stat(filepath.Join(root, "echoeval.yaml"))
	switch {
	case err == nil:
		f.Detail = "echoeval.yaml in " + s.show(root)
	default:
		f.State, f.Detail, f.Fix = absent, "no echoeval.yaml at or above this folder; the root is "+s.show(root), fixed("echoeval init DIR")
	}
	return f
}

// examineFolder looks whether a folder, or the nearest one above that exists, can be written.
func examineFolder(s *State, name, dir, state, enables, fix string) finding {
	f := finding{Name: name, State: ready, Detail: s.show(dir), Enables: enables}
	if err := writable(dir); err != nil {
		f.State, f.Detail, f.Fix = state, s.show(dir)+" cannot be written: "+failure.Reason(err), fixed(fix)
	}
	return f
}

// writable makes a file in the folder, or in the nearest one above that exists, and takes it away again.
func writable(dir string) error {
	for {
		info, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
			continue
		}
		if err == nil && !info.IsDir() {
			return fs.ErrExist // a file stands in its place
		}
		if err != nil {
			return err
		}
		break
	}
	probe, err := os.CreateTemp(dir, ".echoeval-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

func examineCassettes(s *State, dir string) finding {
	f := examineFolder(s, "cassettes", dir, absent, "recording", "make the folder writable, or name another: echoeval record DATASET --cassettes DIR")
	_, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Detail = "none yet; they go to " + s.show(dir)
		if f.State == ready {
			return f
		}
	case err != nil:
		f.State, f.Detail, f.Enables, f.Fix = defunct, s.show(dir)+" cannot be read: "+failure.Reason(err), "replay", fixed("make the folder readable")
	}
	return f
}

func examineTime(now time.Time) finding {
	f := finding{Name: "time", State: ready, Detail: now.UTC().Format(time.RFC3339), Enables: "encrypted connections, and run ids in order"}
	if now.Year() < 2025 || now.Year() > 2100 {
		f.State, f.Fix = absent, fixed("set the machine's clock")
	}
	return f
}

func examineGit(s *State) finding {
	f := finding{Name: "git", State: ready, Enables: "baselines of another commit"}
	if _, err := program.NewPool(program.Options{Root: s.Dir, Environ: s.Environ}).Find(".", "git"); err != nil {
		f.State, f.Detail, f.Fix = absent, "is not on the PATH", fixed("install git")
		return f
	}
	f.Detail = "is installed; no repository here"
	if commit := gitCommit(s.Dir); commit != nil {
		f.Detail = "is installed; the commit is " + commit.Commit
	}
	return f
}

func examineCI(s *State) finding {
	f := finding{Name: "CI", State: ready, Detail: "is not set", Enables: "recording and live runs"}
	if s.ci() {
		f.Detail = "is set: recording and live runs dial only with --allow-network"
	}
	return f
}

func examineProxy(s *State) finding {
	f := finding{Name: "proxy", State: ready, Detail: "none", Enables: "recording through a proxy"}
	var set []string
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"} {
		if s.Getenv(name) != "" {
			set = append(set, name)
		}
	}
	if len(set) > 0 {
		f.Detail = "set: " + strings.Join(set, ", ")
	}
	return f
}

func examineTerminal(s *State) finding {
	f := finding{Name: "terminal", State: ready, Detail: "stdout is none: plain tables, no colours", Enables: "a live bar and colours"}
	if s.StdoutWidth > 0 {
		colours := "with colours"
		if !s.color(false) {
			colours = "without colours"
		}
		f.Detail = fmt.Sprintf("%d columns, %s", s.StdoutWidth, colours)
	}
	return f
}
