package view

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
)

func TestView(t *testing.T) { suite.Run(t, "view") }

// past makes the folder of a finished run of so long ago, without lines: what the overview reads. It returns the run's id.
func past(runs, dataset string, ago int, edit func(*results.Manifest, *results.Summary)) string {
	GinkgoHelper()
	started := resultstest.Start.Add(-time.Duration(ago) * time.Hour)
	number := func(v float64) *results.Number { n := results.Number(math.Round(v*1e6) / 1e6); return &n }
	head := results.Head{Dataset: results.Dataset{Name: dataset, File: "d.yaml", Items: 200}, Selected: results.Selected{Items: 200, Repeat: 1}, Mode: "replay", Tools: "replay", Lines: 400}
	s := &results.Summary{V: results.Version, Dataset: head.Dataset, Selected: head.Selected, Mode: head.Mode, Tools: head.Tools, Complete: true}
	for i, id := range []string{"haiku", "compat:llama3/8b"} {
		info := results.ProviderInfo{ID: id, Vendor: "v", Model: "m"}
		head.Providers = append(head.Providers, info)
		rate := 0.93 - 0.05*float64(i) + 0.02*math.Sin(float64(ago)/3)
		s.Providers = append(s.Providers, results.Provider{ProviderInfo: info, Metrics: results.Metrics{
			"pass_rate":   {Value: number(rate), Low: number(rate - 0.04), High: number(rate + 0.03), N: 200},
			"score":       {Value: number(rate + 0.02), Low: number(rate), High: number(rate + 0.04), N: 200},
			"cost_usd":    {Value: number(0.25 + 0.02*float64(ago%5)), N: 200},
			"p95_latency": {Value: number(2400 - 10*float64(ago%20)), N: 200},
		}})
	}
	s.Verdict = results.Verdict{Text: "passed: 186 of 200 results passed, all gates hold"}
	if ago%7 == 3 {
		s.Verdict = results.Verdict{Code: failure.Gate, Text: "failed: pass_rate of haiku is 0.9, bound >= 0.95"}
	}
	m := results.Manifest{ID: fmt.Sprintf("%s-%s-%04x", started.Format("20060102T150405Z"), dataset, ago), Started: started, Finished: &started, Plan: head}
	if edit != nil {
		edit(&m, s)
	}
	dir := filepath.Join(runs, m.ID)
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	Expect(results.WriteManifest(dir, m)).To(Succeed())
	if s.V > 0 {
		data, err := s.AppendJSON(nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(dir, results.SummaryFile), data, 0o644)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, results.ResultsFile), nil, 0o644)).To(Succeed())
	}
	return m.ID
}

// ask gets a page as a browser on this machine does.
func ask(handler http.Handler, target string, edit func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = "127.0.0.1:4711"
	if edit != nil {
		edit(r)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func get(runs, target string) string {
	GinkgoHelper()
	w := ask(Handler(runs), target, nil)
	Expect(w.Code).To(Equal(http.StatusOK), w.Body.String())
	return w.Body.String()
}

var tags = regexp.MustCompile(`<[^>]*>`)

// said is the text of a page.
func said(page string) string {
	_, body, _ := strings.Cut(page, "</style>")
	return strings.Join(strings.Fields(tags.ReplaceAllString(body, " ")), " ")
}

var _ = Describe("the site over the runs", func() {
	It("says that there are none", func() {
		Expect(said(get(GinkgoT().TempDir(), "/"))).To(ContainSubstring("No runs yet"))
	})

	It("shows of each dataset the trend and the runs, the newest first", func() {
		runs := GinkgoT().TempDir()
		var ids []string
		for ago := range 30 {
			ids = append(ids, past(runs, "clinic", ago, nil))
		}
		past(runs, "other", 1, nil)
		page := get(runs, "/")
		Expect(strings.Count(page, `<figure class="trend">`)).To(Equal(4), "one dataset has a trend, four figures")
		Expect(page).To(MatchRegexp(`aria-label="Pass rate over 30 runs: haiku from 0\.\d+ to 0\.\d+; compat:llama3/8b from `))
		Expect(page).To(ContainSubstring(`aria-label="Cost over 30 runs`))
		Expect(strings.Index(page, ids[0])).To(BeNumerically(">", 0))
		text := said(page)
		Expect(text).To(And(ContainSubstring("20 more runs"), ContainSubstring("A trend needs two runs of all items that came to their end; there is one."), ContainSubstring("failed pass_rate of haiku is 0.9, bound &gt;= 0.95")))
		Expect(strings.Index(text, "clinic")).To(BeNumerically("<", strings.Index(text, "other")))
		all := get(runs, "/?dataset=clinic")
		for _, id := range ids {
			Expect(all).To(ContainSubstring(`<a href="/run/` + id + `" title`))
		}
		Expect(said(all)).NotTo(ContainSubstring("other"))
		Expect(ask(Handler(runs), "/?dataset=none", nil).Code).To(Equal(http.StatusNotFound))
	})

	It("draws what was measured: a value lies where it belongs, and a gap is a gap", func() {
		number := func(v float64) *results.Number { n := results.Number(v); return &n }
		rates := []*results.Number{number(0), number(0.5), nil, number(1), number(0.25)}
		var runs []run
		for i, rate := range rates {
			s := &results.Summary{Complete: true, Providers: []results.Provider{{ProviderInfo: results.ProviderInfo{ID: "a"}, Metrics: results.Metrics{"pass_rate": {Value: rate}}}}}
			runs = append([]run{{id: fmt.Sprint(i), started: resultstest.Start.Add(time.Duration(i) * time.Hour), summary: s}}, runs...)
		}
		all, legend, more := charts(runs)
		Expect(all).To(HaveLen(1), "what nothing was measured of is not drawn")
		Expect(legend).To(Equal([]legendEntry{{"s1", "a"}}))
		Expect(more).To(BeZero())
		l := all[0].Lines[0]
		// The ground is 170-22 = 148, the top 10; x from 64 to 310 in four steps.
		Expect(l.Paths).To(Equal([]string{"M64.0 148.0L125.5 79.0", "M248.5 10.0L310.0 113.5"}))
		Expect(all[0].Ticks).To(Equal([]tick{{"148.0", "0"}, {"79.0", "0.5"}, {"10.0", "1"}}))
		Expect(l.Dots).To(HaveLen(4))
		Expect(all[0].Spoken).To(Equal("over 5 runs: a from 0 to 0.25"))
	})

	It("takes only whole runs into a trend", func() {
		runs := GinkgoT().TempDir()
		shard := "1/2"
		past(runs, "clinic", 1, nil)
		past(runs, "clinic", 2, nil)
		past(runs, "clinic", 3, func(_ *results.Manifest, s *results.Summary) { s.Selected.Items = 3 })
		past(runs, "clinic", 4, func(m *results.Manifest, _ *results.Summary) { m.Shard = &shard })
		past(runs, "clinic", 5, func(_ *results.Manifest, s *results.Summary) { s.Complete = false })
		page := get(runs, "/")
		Expect(page).To(ContainSubstring(`aria-label="Pass rate over 2 runs`))
		Expect(said(page)).To(And(ContainSubstring("3 of 200"), ContainSubstring("200, part 1/2"), ContainSubstring("5 runs")))
	})

	It("makes the report of a run when it is asked for, finished or not", func() {
		runs := GinkgoT().TempDir()
		dir, err := resultstest.Gallery(runs, false)
		Expect(err).NotTo(HaveOccurred())
		w := ask(Handler(runs), "/run/"+filepath.Base(dir), nil)
		Expect(w.Code).To(Equal(http.StatusOK))
		Expect(w.Body.String()).To(And(HavePrefix("<!doctype html>"), ContainSubstring("<title>gallery: ")))
		Expect(w.Header().Get("Content-Security-Policy")).To(ContainSubstring("connect-src 'none'"))
		Expect(get(runs, "/")).To(ContainSubstring(filepath.Base(dir)))

		unfinished := GinkgoT().TempDir()
		dir, err = resultstest.Gallery(unfinished, true)
		Expect(err).NotTo(HaveOccurred())
		Expect(said(get(unfinished, "/"))).To(ContainSubstring("incomplete it goes on, or was killed"))
		Expect(get(unfinished, "/run/"+filepath.Base(dir))).To(ContainSubstring("incomplete"))
	})

	It("shows a report that was made, and no file that lies in a run's folder", func() {
		runs := GinkgoT().TempDir()
		dir, err := resultstest.Gallery(runs, false)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.MkdirAll(filepath.Join(dir, "reports"), 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "reports", "report.html"), []byte("<p>planted"), 0o644)).To(Succeed())
		Expect(get(runs, "/run/"+filepath.Base(dir))).NotTo(ContainSubstring("planted"))
	})

	It("has headers that keep others out", func() {
		runs := GinkgoT().TempDir()
		past(runs, "clinic", 1, nil)
		w := ask(Handler(runs), "/", nil)
		for name, value := range map[string]string{
			"X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Content-Type": "text/html; charset=utf-8",
		} {
			Expect(w.Header().Get(name)).To(Equal(value), name)
		}
		policy := w.Header().Get("Content-Security-Policy")
		Expect(policy).To(And(HavePrefix("default-src 'none'; style-src 'sha256-"), ContainSubstring("frame-ancestors 'none'"), Not(ContainSubstring("script")), Not(ContainSubstring("unsafe"))))
		Expect(w.Body.String()).NotTo(MatchRegexp(`(?i)<script|\son[a-z]+=|\sstyle=|https?://`))
	})

	DescribeTable("refuses", func(code int, target string, edit func(*http.Request)) {
		runs := GinkgoT().TempDir()
		past(runs, "clinic", 1, nil)
		Expect(os.WriteFile(filepath.Join(filepath.Dir(runs), "secret.txt"), []byte("hidden text"), 0o600)).To(Succeed())
		w := ask(Handler(runs), target, edit)
		Expect(w.Code).To(Equal(code), w.Body.String())
		Expect(w.Body.String()).NotTo(Or(ContainSubstring("clinic-"), ContainSubstring("hidden text")))
	},
		Entry("a name that leads here (DNS rebinding)", 403, "/", func(r *http.Request) { r.Host = "evil.example:4711" }),
		Entry("no name", 403, "/", func(r *http.Request) { r.Host = "" }),
		Entry("another site's script", 403, "/", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }),
		Entry("to be written to", 405, "/", func(r *http.Request) { r.Method = http.MethodPost }),
		Entry("to be deleted from", 405, "/run/x", func(r *http.Request) { r.Method = http.MethodDelete }),
		Entry("another page", 404, "/etc/passwd", nil),
		Entry("a way out", 404, "/run/..%2fsecret.txt", nil),
		Entry("the folder itself, whose name is no name", 307, "/run/.", nil),
		Entry("its parent", 404, "/run/%2e%2e", nil),
		Entry("an absolute path", 404, "/run/%2fetc", nil),
		Entry("a NUL", 404, "/run/a%00b", nil),
		Entry("an unknown run", 404, "/run/20260101T000000Z-a-0000", nil),
	)

	It("names what cannot be read, and shows the rest", func() {
		runs := GinkgoT().TempDir()
		good := past(runs, "clinic", 1, nil)
		id := func(n int) string { return fmt.Sprintf("20260101T00000%dZ-bad-000%d", n, n) }
		make := func(n int, files map[string]string) {
			Expect(os.MkdirAll(filepath.Join(runs, id(n)), 0o755)).To(Succeed())
			for name, text := range files {
				Expect(os.WriteFile(filepath.Join(runs, id(n), name), []byte(text), 0o644)).To(Succeed())
			}
		}
		whole, err := os.ReadFile(filepath.Join(runs, good, results.ManifestFile))
		Expect(err).NotTo(HaveOccurred())
		summary, err := os.ReadFile(filepath.Join(runs, good, results.SummaryFile))
		Expect(err).NotTo(HaveOccurred())
		make(0, nil)
		make(1, map[string]string{results.ManifestFile: string(whole[:len(whole)/2])})
		make(2, map[string]string{results.ManifestFile: string(whole), results.SummaryFile: string(summary[:len(summary)/2])})
		make(3, map[string]string{results.ManifestFile: `{"v":99}`})
		make(4, map[string]string{results.ManifestFile: ""})
		make(5, map[string]string{results.ManifestFile: string(whole)})
		Expect(os.Mkdir(filepath.Join(runs, id(5), results.SummaryFile), 0o755)).To(Succeed())
		make(6, nil)
		Expect(os.Symlink(filepath.Join(runs, good, results.ManifestFile), filepath.Join(runs, id(6), results.ManifestFile))).To(Succeed())
		make(8, map[string]string{results.ManifestFile: string(whole), results.SummaryFile: string(summary)})
		outside := GinkgoT().TempDir()
		past(outside, "outside", 1, nil)
		Expect(os.Symlink(outside, filepath.Join(runs, id(7)))).To(Succeed())
		Expect(os.WriteFile(filepath.Join(runs, "notes.txt"), []byte("x"), 0o644)).To(Succeed())
		Expect(os.Mkdir(filepath.Join(runs, "notes"), 0o755)).To(Succeed())
		Expect(results.SetLatest(runs, good)).To(Succeed())

		text := said(get(runs, "/"))
		Expect(text).To(ContainSubstring("clinic passed 1 run "))
		for n, why := range map[int]string{0: "it has no manifest.json", 1: "manifest.json", 2: "summary.json", 3: "99", 4: "manifest.json", 5: "its summary.json is no file", 6: "its manifest.json is no file", 8: "no results.jsonl: files were lost"} {
			Expect(text).To(MatchRegexp(id(n) + " : .{0,70}" + regexp.QuoteMeta(why)))
		}
		Expect(text).NotTo(Or(ContainSubstring("outside"), ContainSubstring("notes"), ContainSubstring(id(7))))
		for n := range 7 {
			Expect(ask(Handler(runs), "/run/"+id(n), nil).Code).To(BeElementOf(404, 500), id(n))
		}
	})

	It("shows hostile text as text", func() {
		runs := GinkgoT().TempDir()
		const harm = "<script>alert(1)</script>\x1b[31m\u202egnp\"'{{.}}"
		past(runs, "clinic", 1, func(m *results.Manifest, s *results.Summary) {
			m.Plan.Dataset.Name, s.Dataset.Name = harm, harm
			s.Verdict.Text, s.Mode, s.Providers[0].ID = harm, harm, harm
		})
		past(runs, "clinic", 2, func(m *results.Manifest, s *results.Summary) {
			m.Plan.Dataset.Name, s.Dataset.Name = harm, harm
			s.Providers[0].ID = harm
		})
		page := get(runs, "/")
		Expect(page).NotTo(Or(ContainSubstring("<script"), ContainSubstring("\x1b"), ContainSubstring("\u202e")))
		Expect(page).To(ContainSubstring("&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m"))
		href := regexp.MustCompile(`<a href="(/\?dataset=[^"]*)">`).FindStringSubmatch(page)
		Expect(href).NotTo(BeNil())
		Expect(said(get(runs, href[1]))).To(ContainSubstring("alert(1)"), "the link leads to the dataset")
		Expect(ask(Handler(runs), "/?dataset=%3Cscript%3E", nil).Body.String()).NotTo(ContainSubstring("<script"))
	})

	It("does with 1,000 runs", func() {
		runs := GinkgoT().TempDir()
		for ago := range 1_000 {
			past(runs, fmt.Sprintf("d%d", ago%3), ago, nil)
		}
		page := get(runs, "/")
		Expect(page).To(ContainSubstring("Pass rate over 100 runs"))
		Expect(len(page)).To(BeNumerically("<", 3_000_000))
		Expect(strings.Count(get(runs, "/?dataset=d1"), "<tbody>")).To(Equal(333))
	})

	It("sees a run that came since", func() {
		runs := GinkgoT().TempDir()
		handler := Handler(runs)
		Expect(said(ask(handler, "/", nil).Body.String())).To(ContainSubstring("No runs yet"))
		past(runs, "clinic", 1, nil)
		Expect(said(ask(handler, "/", nil).Body.String())).To(ContainSubstring("clinic"))
		Expect(os.RemoveAll(runs)).To(Succeed())
		Expect(ask(handler, "/", nil).Code).To(Equal(http.StatusInternalServerError))
	})
})

var _ = DescribeTable("a scale ends above what it shows", func(most, want float64) {
	Expect(round(most)).To(BeNumerically("~", want, want*1e-9))
},
	Entry(nil, 0.0, 1.0), Entry(nil, -3.0, 1.0), Entry(nil, 0.0033, 0.004), Entry(nil, 2410.0, 4000.0), Entry(nil, 1.0, 1.0), Entry(nil, 9.7, 10.0), Entry(nil, 1e300, 1e300),
)
