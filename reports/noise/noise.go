// Package noise shows a noise ledger on a terminal, in markdown, as JSON and as a page.
package noise

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"sync"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/noise"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports"
	"github.com/echoeval/echoeval/reports/escape"
	"github.com/echoeval/echoeval/reports/html"
)

// Format is a way to show a ledger.
type Format struct {
	Name  string
	Write func(w io.Writer, l *noise.Ledger) error
}

// Formats are those that there are.
func Formats() []Format {
	return []Format{{"terminal", Terminal}, {"json", JSON}, {"markdown", Markdown}, {"html", HTML}}
}

// JSON writes the ledger as one line of JSON.
func JSON(w io.Writer, l *noise.Ledger) error {
	return reports.To(w, func(out *bufio.Writer) error {
		data, err := json.Marshal(l)
		if err != nil {
			return failure.WithCode(err, failure.Internal)
		}
		_, _ = out.Write(append(escape.JSON(data), '\n'))
		return nil
	})
}

// Terminal writes the ledger as text.
func Terminal(w io.Writer, l *noise.Ledger) error {
	return reports.To(w, func(out *bufio.Writer) error {
		for i := range l.Columns {
			c := &l.Columns[i]
			fmt.Fprintf(out, "noise of %s on %s: %s\n", escape.Line(l.Dataset), escape.Line(c.Provider), counted(c))
			for _, m := range c.Metrics {
				fmt.Fprintf(out, "  %s: %s\n", m.Name, spread(&m.Total))
				for k := range m.Parts {
					p := &m.Parts[k]
					fmt.Fprintf(out, "    %-22s %s\n", p.Source, measured(p))
				}
			}
			if text := thawed(c); text != "" {
				fmt.Fprintf(out, "  %s\n", text)
			}
			for k := range c.Flaky {
				f := &c.Flaky[k]
				fmt.Fprintf(out, "  flaky: %s (%s) %s\n", escape.Line(f.Item), blamed(f), counts(f))
			}
			if len(c.Flaky) == 0 {
				fmt.Fprintln(out, "  no item comes and goes")
			}
		}
		return nil
	})
}

// Markdown writes the ledger for a comment or a summary.
func Markdown(w io.Writer, l *noise.Ledger) error {
	return reports.To(w, func(out *bufio.Writer) error {
		fmt.Fprintf(out, "### Noise of %s\n", escape.Code(l.Dataset))
		for i := range l.Columns {
			c := &l.Columns[i]
			fmt.Fprintf(out, "\n%s: %s\n", escape.Code(c.Provider), counted(c))
			if len(c.Metrics) > 0 {
				fmt.Fprint(out, "\n| metric | source | spread of a repeat | variance | share |\n|---|---|--:|--:|--:|\n")
			}
			for _, m := range c.Metrics {
				for _, p := range append([]noise.Part{m.Total}, m.Parts...) {
					if !p.Told() {
						fmt.Fprintf(out, "| %s | %s | not told |  |  |\n", m.Name, p.Source)
						continue
					}
					fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", m.Name, p.Source, deviation(&p), interval(&p), share(&p))
				}
			}
			if text := thawed(c); text != "" {
				fmt.Fprintf(out, "\n%s\n", text)
			}
			for k := range c.Flaky {
				f := &c.Flaky[k]
				if k == 0 {
					fmt.Fprint(out, "\n| flaky item | blame | everything | judge alone | tools frozen |\n|---|---|--:|--:|--:|\n")
				}
				fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", escape.Cell(f.Item), blamed(f), count(&f.All), count(f.JudgeAlone), count(f.ToolsFrozen))
			}
			if len(c.Flaky) == 0 {
				fmt.Fprint(out, "\nno item comes and goes\n")
			}
		}
		return nil
	})
}

//go:embed assets
var assets embed.FS

var markup = sync.OnceValue(func() *template.Template {
	data, err := assets.ReadFile("assets/page.tmpl")
	if err != nil {
		panic(err) // it is embedded
	}
	return template.Must(template.New("noise").Funcs(template.FuncMap{
		"line": escape.Line, "counted": counted, "deviation": deviation, "interval": interval, "share": share, "thawed": thawed, "blamed": blamed, "count": count,
		"sheet": func() template.CSS { return template.CSS(html.Sheet()) },
		"parts": func(m noise.Metric) []*noise.Part {
			out := []*noise.Part{&m.Total}
			for i := range m.Parts {
				out = append(out, &m.Parts[i])
			}
			return out
		},
	}).Parse(string(data)))
})

// HTML writes the ledger as one page without a script and without any request; its policy allows its own style by its hash.
func HTML(w io.Writer, l *noise.Ledger) error {
	sum := sha256.Sum256([]byte(html.Sheet()))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src data:; base-uri 'none'; form-action 'none'"
	return reports.To(w, func(out *bufio.Writer) error {
		if err := markup().Execute(out, struct {
			*noise.Ledger
			Policy string
		}{l, policy}); err != nil {
			return failure.WithCode(err, failure.Internal)
		}
		return nil
	})
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func counted(c *noise.Column) string {
	if c.Items == c.All {
		return plural(c.All, "item") + " with repeats"
	}
	return fmt.Sprintf("%d of %s with repeats were repeated, asked and judged alike in every run", c.Items, plural(c.All, "item"))
}

func number(n *results.Number) string {
	return results.UnitFraction.Format(*n)
}

// deviation is the standard deviation, in the unit of the metric.
func deviation(p *noise.Part) string {
	n := results.Number(math.Sqrt(float64(*p.Variance)))
	return "±" + number(&n)
}

func interval(p *noise.Part) string {
	text := number(p.Variance)
	if p.Low != nil && p.High != nil {
		text += fmt.Sprintf(" [%s, %s]", number(p.Low), number(p.High))
	}
	return text
}

func share(p *noise.Part) string {
	if p.Share == nil {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*float64(*p.Share))
}

func spread(p *noise.Part) string {
	return fmt.Sprintf("a repeat differs by %s, variance %s", deviation(p), interval(p))
}

func measured(p *noise.Part) string {
	if !p.Told() {
		return "not told: " + p.Why
	}
	text := fmt.Sprintf("%s, variance %s", deviation(p), interval(p))
	if s := share(p); s != "" {
		text += ", " + s
	}
	return text
}

func thawed(c *noise.Column) string {
	switch {
	case c.Calls == nil:
		return ""
	case *c.Thawed == 0:
		return fmt.Sprintf("frozen tools: %s repeated, all with the same result", plural(*c.Calls, "call"))
	}
	return fmt.Sprintf("frozen tools: %d of %s repeated gave another result, whose noise counts as the agent's", *c.Thawed, plural(*c.Calls, "call"))
}

func blamed(f *noise.Flaky) string {
	text := f.Blame
	if f.Quarantined {
		text += ", in quarantine"
	}
	return text
}

func count(c *noise.Count) string {
	if c == nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d", c.Passed, c.Of)
}

func counts(f *noise.Flaky) string {
	text := []string{count(&f.All)}
	if f.JudgeAlone != nil {
		text = append(text, "judge alone "+count(f.JudgeAlone))
	}
	if f.ToolsFrozen != nil {
		text = append(text, "tools frozen "+count(f.ToolsFrozen))
	}
	if f.Why != "" {
		text = append(text, f.Why)
	}
	return strings.Join(text, ", ")
}
