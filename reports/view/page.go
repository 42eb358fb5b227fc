package view

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/reports/compare"
	"github.com/echoeval/echoeval/reports/escape"
	"github.com/echoeval/echoeval/reports/html"
)

//go:embed assets
var assets embed.FS

func asset(name string) string {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is embedded, and every page is made of all of them
	}
	return string(data)
}

// sheet is the style of the pages: that of the reports, and what is theirs alone.
var sheet = sync.OnceValue(func() string { return html.Sheet() + asset("view.css") })

// policy allows the style by its hash and nothing else. The icon is an empty data URL, which keeps browsers from asking for one.
var policy = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(sheet()))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
})

var markup = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"line":  escape.Line,
		"lines": escape.Block,
		"sheet": func() template.CSS { return template.CSS(sheet()) },
	}).Parse(asset("page.tmpl")))
})

// rowsAtOnce is how many runs of a dataset the overview lists.
const rowsAtOnce = 10

type pageView struct {
	Title    string
	Overview bool
	Datasets []datasetView
	Broken   []brokenView
	Left     int
	Problem  string
}

type brokenView struct{ Name, Why string }

type datasetView struct {
	Name        string
	Tone, Mark  string // of the newest run
	Runs, Whole int
	Charts      []chart
	Legend      []legendEntry
	MoreColumns int
	Rows        []rowView
	More        int
}

type rowView struct {
	ID, Time, Tone, Mark, Text, Mode, Items string
	Columns                                 []columnView
}

type columnView struct{ Provider, PassRate, Interval, Score, Cost, Latency string }

func overviewPage(h *history) pageView {
	p := pageView{Title: "echoeval: runs", Overview: true, Left: h.left}
	for _, d := range h.datasets {
		p.Datasets = append(p.Datasets, viewOf(d, rowsAtOnce))
	}
	for _, b := range h.broken {
		p.Broken = append(p.Broken, brokenView{b.name, b.why})
	}
	return p
}

func datasetPage(d *datasetRuns) pageView {
	return pageView{Title: "echoeval: " + d.name, Datasets: []datasetView{viewOf(d, len(d.runs))}}
}

func viewOf(d *datasetRuns, rows int) datasetView {
	v := datasetView{Name: d.name, Runs: len(d.runs)}
	for i := range d.runs {
		if d.runs[i].whole() {
			v.Whole++
		}
	}
	v.Charts, v.Legend, v.MoreColumns = charts(d.runs)
	rows = min(rows, len(d.runs))
	for i := range rows {
		v.Rows = append(v.Rows, rowOf(&d.runs[i]))
	}
	v.More = len(d.runs) - rows
	v.Tone, v.Mark = v.Rows[0].Tone, v.Rows[0].Mark
	return v
}

func rowOf(r *run) rowView {
	row := rowView{ID: r.id, Time: r.time(), Mode: r.head.Mode}
	selected, all := r.head.Selected.Items, r.head.Dataset.Items
	row.Items = fmt.Sprint(all)
	if selected != all {
		row.Items = fmt.Sprintf("%d of %d", selected, all)
	}
	if r.shard != "" {
		row.Items += ", part " + r.shard
	}
	if r.summary == nil {
		row.Tone, row.Mark = html.Tone(failure.Interrupted)
		row.Mark, row.Text = "incomplete", "it goes on, or was killed"
		for _, p := range r.head.Providers {
			row.Columns = append(row.Columns, columnView{Provider: p.ID})
		}
	} else {
		row.Tone, row.Mark = html.Tone(r.summary.Verdict.Code)
		row.Text = compare.Short(strings.TrimPrefix(r.summary.Verdict.Text, row.Mark+": "), mostText, false)
		for _, p := range r.summary.Providers {
			row.Columns = append(row.Columns, columnOf(&p))
		}
	}
	if len(row.Columns) == 0 {
		row.Columns = []columnView{{}}
	}
	return row
}

// mostText is the length of a verdict in the list.
const mostText = 120

func columnOf(p *results.Provider) columnView {
	number := func(metric string) string { return compare.Number(metric, p.Metrics[metric].Value) }
	c := columnView{Provider: p.ID, PassRate: number("pass_rate"), Score: number("score"), Cost: number("cost_usd"), Latency: number("p95_latency")}
	if m := p.Metrics["pass_rate"]; m.Low != nil && m.High != nil {
		c.Interval = fmt.Sprintf("[%s, %s]", compare.Number("pass_rate", m.Low), compare.Number("pass_rate", m.High))
	}
	return c
}

func (s *site) problem(w http.ResponseWriter, code int, text string) {
	s.page(w, code, pageView{Title: "echoeval", Problem: text})
}

func (s *site) page(w http.ResponseWriter, code int, p pageView) {
	var b bytes.Buffer
	if err := markup().Execute(&b, p); err != nil {
		panic(err) // the template and its values are ours
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy())
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // who has gone away needs no answer
}
