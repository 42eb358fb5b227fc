package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/gold"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports/escape"
)

type goldOptions struct {
	labels, check, out      string
	floor                   float64
	asJSON, gated, template bool
}

func newGold(s *State) *cobra.Command {
	var o goldOptions
	cmd := &cobra.Command{
		Use: "gold RUN --check NAME --labels FILE", Short: "Hold a judge against what people say, and correct what it found", GroupID: "look", Args: between(1, 1, "a run"),
		Long: "Hold the verdicts of a check, a judge's say, against the labels that people gave to the same answers: how often they agree, sensitivity and specificity, and the rate that the judge found corrected for its errors (Rogan-Gladen), with an interval that counts the doubt about the judge. Below --floor the judge is advisory. Nothing is asked again.\n\n" +
			"--template prints a file of labels to fill in. The exit code is 0; with --gate it is 1 where the judge is advisory.",
		Example: "  echoeval gold latest --check polite --template > gold/polite.yaml\n  echoeval gold latest --check polite --labels gold/polite.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case o.check == "":
				return usage("--check polite", "which check is held against the labels?")
			case o.template == (o.labels != ""):
				return usage("--labels FILE, or --template to begin one", "want one of --labels and --template")
			case !(o.floor >= 0 && o.floor <= 1):
				return usage("--floor 0.8", "--floor %v: want a share from 0 to 1", o.floor)
			}
			run, err := openRun(s, o.out, args[0])
			if err != nil {
				return err
			}
			defer run.Close()
			if o.template {
				return goldTemplate(s, run, o.check)
			}
			data, err := os.ReadFile(s.path(o.labels))
			if err != nil {
				return failure.WithHint(failure.New(failure.Input, "%s cannot be read: %s", o.labels, failure.Reason(err)), "echoeval gold %s --check %s --template begins one", args[0], quote(o.check))
			}
			labels, err := gold.Decode(o.labels, data)
			if err != nil {
				return err
			}
			r, err := gold.Measure(run, o.check, labels, o.floor)
			if err != nil {
				return err
			}
			for _, label := range r.Strangers {
				text := fmt.Sprintf("%s: the run has no item %q", label.At, label.Item)
				if label.Near != "" {
					text += fmt.Sprintf("; did you mean %q?", label.Near)
				}
				fmt.Fprintf(s.Stderr, "warning: %s\n", escape.Line(text))
			}
			if o.asJSON {
				err = printJSON(s, r)
			} else {
				_, err = s.Stdout.Write([]byte(goldText(r)))
				err = unwritable(err)
			}
			if err == nil && o.gated && r.Advisory {
				return exit{failure.Gate}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.labels, "labels", "", "the file of labels (YAML)")
	f.StringVar(&o.check, "check", "", "the check whose verdicts are held against them")
	f.Float64Var(&o.floor, "floor", 0.8, "the least agreement; below it the judge is advisory")
	f.BoolVar(&o.gated, "gate", false, "exit code 1 where the judge is advisory")
	f.BoolVar(&o.template, "template", false, "print a file of labels for the answers of the run, to fill in")
	f.BoolVar(&o.asJSON, "json", false, "print the report as JSON")
	f.StringVar(&o.out, "out", "", "folder of the runs (default: .echoeval/runs below the project's root)")
	return cmd
}

// goldTemplate prints a label to fill in for each answer that the check gave a verdict on, without the verdict: who labels should not be led.
func goldTemplate(s *State, run *results.Run, check string) error {
	var b strings.Builder
	b.WriteString("version: 1\nlabels:\n")
	seen, long := map[[2]string]bool{}, 0
	for line, err := range run.Lines() {
		if err != nil {
			return err
		}
		_, judged := (results.Where{Check: check}).Of(&line)
		if judged && line.OutputCut {
			long++
		}
		if !judged || line.Output == nil || line.OutputCut || seen[[2]string{line.Item, *line.Output}] {
			continue
		}
		seen[[2]string{line.Item, *line.Output}] = true
		item, err := json.Marshal(line.Item)
		if err != nil {
			return failure.WithCode(err, failure.Internal)
		}
		answer, err := json.Marshal(*line.Output)
		if err != nil {
			return failure.WithCode(err, failure.Internal)
		}
		fmt.Fprintf(&b, "  - {item: %s, answer: %s, pass: null}\n", escape.JSON(item), escape.JSON(answer))
	}
	if long > 0 {
		fmt.Fprintf(s.Stderr, "warning: %s left out: a line of results holds the first 16 KiB of an answer, and a label is about a whole one\n", count(long, "answer"))
	}
	if len(seen) == 0 && long == 0 {
		return usage("the checks are in its summary", "the run %s has no answer that a check %q judged", run.Manifest.ID, check)
	}
	_, err := s.Stdout.Write([]byte(b.String()))
	return unwritable(err)
}

func goldText(r *gold.Report) string {
	var b strings.Builder
	share := func(x gold.Rate) string {
		if x.Value == nil {
			return "not told"
		}
		text := results.UnitFraction.Format(*x.Value)
		if x.Low != nil && x.High != nil {
			text += fmt.Sprintf(" [%s, %s]", results.UnitFraction.Format(*x.Low), results.UnitFraction.Format(*x.High))
		}
		return text
	}
	fmt.Fprintf(&b, "%s against %s", escape.Line(r.Check), count(r.Matched, "label"))
	if r.Unmatched > 0 {
		fmt.Fprintf(&b, "; %d more are about other answers", r.Unmatched)
	}
	if r.Open > 0 {
		fmt.Fprintf(&b, "; %d still to be given", r.Open)
	}
	if r.Long > 0 {
		fmt.Fprintf(&b, "; %s too long to be labelled", count(r.Long, "answer"))
	}
	fmt.Fprintf(&b, "\n  agreement   %s\n  sensitivity %s of %d that pass\n  specificity %s of %d that do not\n", share(r.Agreement), share(r.Sensitivity), r.Sensitivity.N, share(r.Specificity), r.Specificity.N)
	for _, c := range r.Columns {
		fmt.Fprintf(&b, "  pass rate of %s: found %s, corrected %s\n", escape.Line(c.Provider), share(c.Found), share(c.Corrected))
	}
	for _, w := range r.Wrong {
		verdict := "passed, people do not"
		if w.Pass {
			verdict = "failed, people pass it"
		}
		fmt.Fprintf(&b, "  %s on %s: %s: %s\n", escape.Line(w.Item), escape.Line(w.Provider), verdict, escape.Line(w.Reason))
	}
	if r.Advisory {
		why := "agreement is below " + results.UnitFraction.Format(r.Floor)
		switch {
		case r.Agreement.Value == nil:
			why = "no label is about an answer that it judged"
		case r.Specificity.N == 0:
			why = "no label says that an answer is wrong, so that nobody knows whether it would notice"
		case r.Sensitivity.N == 0:
			why = "no label says that an answer is right, so that nobody knows whether it would pass one"
		}
		fmt.Fprintf(&b, "advisory: %s; what this judge says should decide nothing\n", why)
	}
	return b.String()
}
