package html

import (
	"bufio"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/baseline/baselinetest"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
	"github.com/echoeval/echoeval/reports"
)

func TestHTML(t *testing.T) { suite.Run(t, "html report") }

func ptr[T any](v T) *T { return &v }

func open(dir string) *results.Run {
	GinkgoHelper()
	run, err := results.Open(dir)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(run.Close)
	return run
}

func gallery(unfinished bool) *results.Run {
	GinkgoHelper()
	dir, err := resultstest.Gallery(GinkgoT().TempDir(), unfinished)
	Expect(err).NotTo(HaveOccurred())
	return open(dir)
}

// compared is the gallery, compared with a baseline in which something of each kind was otherwise.
func compared() *results.Run {
	GinkgoHelper()
	dir, err := resultstest.Gallery(GinkgoT().TempDir(), false)
	Expect(err).NotTo(HaveOccurred())
	Expect(baselinetest.Compare(dir, func(i *baseline.Item) {
		yes, no := ptr(true), ptr(false)
		switch i.Item {
		case "wrong answer 🩺":
			i.Passed, i.Failed, i.Calls, i.Answer = []*bool{yes, yes}, []string{}, []string{"contacts", "call_ward"}, ptr("Call 112 at once.\n</script><script>alert(1)</script>")
		case "all-is-well":
			i.Passed = []*bool{no, no}
		case "web-before-exec":
			i.Violations = []string{}
		case "too-dear":
			i.ItemHash = "otherwise"
		case "too-slow":
			i.Item = "gone"
		}
	})).To(Succeed())
	return open(dir)
}

func written(runs ...*results.Run) string {
	GinkgoHelper()
	var out bytes.Buffer
	Expect(Several(&out, runs, reports.Options{})).To(Succeed())
	return out.String()
}

var element = regexp.MustCompile(`(?s)<(script|style)([^>]*)>(.*?)</(?:script|style)>\n`)

// bare is a page without its scripts, styles and their hashes, as golden files have it.
func bare(page string) string {
	page = element.ReplaceAllString(page, "")
	return regexp.MustCompile(`sha256-(?:[^&]|&#43;)+`).ReplaceAllString(page, "sha256-X")
}

// block are the values of a block, nil where there is none of that id.
func block(page, id string) []json.RawMessage {
	GinkgoHelper()
	_, rest, found := strings.Cut(page, `<script type="application/octet-stream" id="`+id+`">`)
	if !found {
		return nil
	}
	packed, _, _ := strings.Cut(rest, "</script>")
	data, err := base64.StdEncoding.DecodeString(packed)
	Expect(err).NotTo(HaveOccurred())
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(data)))
	Expect(err).NotTo(HaveOccurred())
	Expect(utf8.Valid(text)).To(BeTrue())
	var values []json.RawMessage
	Expect(json.Unmarshal(text, &values)).To(Succeed())
	Expect(values).NotTo(BeEmpty())
	return values
}

// blocksOf are the values of all blocks of a kind, d or i, of the run of that number.
func blocksOf(page string, run int, kind string) []json.RawMessage {
	GinkgoHelper()
	var all []json.RawMessage
	for n := 0; ; n++ {
		values := block(page, fmt.Sprintf("r%d%s%d", run, kind, n))
		if values == nil {
			Expect(n).To(BeNumerically(">", 0), "no block")
			return all
		}
		all = append(all, values...)
	}
}

// blockCount is how many blocks a page has.
func blockCount(page string) int {
	return strings.Count(page, `<script type="application/octet-stream"`)
}

func rowsOf(page string, run int) map[string]row {
	GinkgoHelper()
	rows := map[string]row{}
	for _, raw := range blocksOf(page, run, "i") {
		var r row
		Expect(json.Unmarshal(raw, &r)).To(Succeed())
		rows[r.ID] = r
	}
	return rows
}

func detailsOf(page string) []detail {
	GinkgoHelper()
	var all []detail
	for _, raw := range blocksOf(page, 0, "d") {
		var d detail
		Expect(json.Unmarshal(raw, &d)).To(Succeed())
		all = append(all, d)
	}
	return all
}

var _ = Describe("the page", func() {
	It("of a run with every status and cause is the golden one", func() {
		page := written(gallery(false))
		suite.Golden("gallery.html", []byte(bare(page)))
		Expect(written(gallery(false))).To(Equal(page), "equal runs give equal bytes")
	})

	It("against a baseline is the golden one", func() {
		page := written(compared())
		suite.Golden("compared.html", []byte(bare(page)))
		Expect(written(compared())).To(Equal(page))
	})

	It("holds each result where the index says, and the golden details", func() {
		page := written(compared())
		details, rows := blocksOf(page, 0, "d"), rowsOf(page, 0)
		first := []int{0} // of each block, in details
		for n := 0; strings.Contains(page, fmt.Sprintf(`id="r0d%d"`, n)); n++ {
			first = append(first, first[n]+len(block(page, fmt.Sprintf("r0d%d", n))))
		}
		Expect(rows).To(HaveLen(len(resultstest.GalleryItems())))
		lines, seen := 0, map[int]bool{}
		for _, r := range rows {
			Expect(r.Cells).To(HaveLen(len(resultstest.GalleryProviders)))
			for _, c := range r.Cells {
				for _, l := range c.Lines {
					lines++
					seen[first[l.Block]+l.Position] = true
				}
			}
		}
		Expect(lines).To(Equal(len(resultstest.GalleryItems()) * len(resultstest.GalleryProviders) * 2))
		Expect(seen).To(HaveLen(lines), "no two results have one place")
		Expect(details).To(HaveLen(lines))
		worse := rows["wrong answer 🩺"].Cells[0]
		Expect(worse.Move).To(Equal("worse"))
		Expect(rows["web-before-exec"].Cells[1].Violations).To(Equal(1))
		Expect(rows["all-is-well"].Cells[0].Move).To(Equal("better"))
		var shown bytes.Buffer
		Expect(json.Indent(&shown, details[first[worse.Lines[0].Block]+worse.Lines[0].Position], "", "  ")).To(Succeed())
		suite.Golden("detail.json", append(shown.Bytes(), '\n'))
	})

	It("of several runs has a section and data for each", func() {
		a, b := gallery(false), compared()
		page := written(a, b)
		Expect(strings.Count(page, `<section class="run"`)).To(Equal(2))
		Expect(strings.Count(page, `data-run-link=`)).To(Equal(2))
		Expect(rowsOf(page, 0)).To(HaveLen(len(rowsOf(page, 1))))
		Expect(rowsOf(page, 0)["wrong answer 🩺"].Cells[0].Move).To(BeEmpty())
		Expect(rowsOf(page, 1)["wrong answer 🩺"].Cells[0].Move).To(Equal("worse"))
	})

	It("holds nothing that two runs of the same thing differ in", func() {
		run := gallery(false)
		page := written(run)
		Expect(page).NotTo(ContainSubstring(run.Manifest.ID))
		Expect(page).NotTo(ContainSubstring(run.Dir))
		Expect(bare(page)).NotTo(ContainSubstring("2027-01-04"))
	})

	It("says that a run is incomplete", func() {
		Expect(written(gallery(true))).To(ContainSubstring("Incomplete: read from the journal"))
	})

	It("gives the error of the sink, and of a run that cannot be read", func() {
		err := Write(failing{}, gallery(false), reports.Options{})
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		Expect(err).To(MatchError(ContainSubstring("writing the report")))
		run := compared()
		Expect(os.Remove(filepath.Join(run.Dir, baseline.RunFile))).To(Succeed())
		Expect(Write(io.Discard, run, reports.Options{})).To(MatchError(ContainSubstring("baseline of the run")))
		run = gallery(false)
		Expect(os.Truncate(filepath.Join(run.Dir, results.ResultsFile), 4_000)).To(Succeed())
		Expect(Write(io.Discard, run, reports.Options{})).To(MatchError(ContainSubstring("cut off")))
	})
})

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space") }

var _ = Describe("text of models", func() {
	It("is never markup", func() {
		page := written(compared())
		kinds := map[string]int{}
		for _, m := range element.FindAllStringSubmatch(page, -1) {
			kinds[m[1]+regexp.MustCompile(` type="[^"]*"`).FindString(m[2])]++
		}
		Expect(kinds).To(Equal(map[string]int{"style": len(styles), "script": len(scripts), `script type="application/json"`: 1, `script type="application/octet-stream"`: blockCount(page)}))
		Expect(strings.Count(strings.ToLower(page), "<script")).To(Equal(len(scripts) + 1 + blockCount(page)))
		Expect(page).NotTo(ContainSubstring("alert(1)"))
		text := bare(page)
		Expect(text).NotTo(ContainSubstring("<b>&amp;"))
		Expect(utf8.ValidString(page)).To(BeTrue())
		Expect(strings.IndexFunc(text, func(r rune) bool {
			return unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
		})).To(Equal(-1), "nothing that cannot be seen")
	})

	It("shows what cannot be seen", func() {
		for _, d := range detailsOf(written(compared())) {
			data, err := json.Marshal(d)
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.IndexFunc(string(data), func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) || r < 0x20 || r >= 0x7f && r <= 0x9f })).To(Equal(-1))
		}
		checks := 0
		for _, d := range detailsOf(written(compared())) {
			for _, c := range d.Checks {
				if c.Actual != nil && strings.Contains(*c.Actual, `\u202egnp.exe\u2069`) {
					checks++
				}
			}
		}
		Expect(checks).To(BeNumerically(">", 0))
	})

	DescribeTable("cannot leave the element that holds it", func(hostile string) {
		run := gallery(false)
		run.Summary.Dataset.Name, run.Summary.Verdict.Text = hostile, hostile
		run.Summary.Providers[0].Flaky.Items[0].Item = hostile
		run.Summary.Warnings[0].Text, run.Summary.Warnings[0].Hint = hostile, &hostile
		run.Summary.Verdict.Reasons[0].Text, run.Summary.Verdict.Reasons[0].Hint = hostile, &hostile
		page := written(run)
		Expect(strings.Count(strings.ToLower(page), "<script")).To(Equal(len(scripts) + 1 + blockCount(page)))
		Expect(strings.Count(strings.ToLower(page), "</script")).To(Equal(len(scripts) + 1 + blockCount(page)))
		Expect(strings.Count(page, "<img")).To(BeZero())
		Expect(strings.Count(page, "<!--")).To(Equal(1), "the licence of the plots")
		_, rest, _ := strings.Cut(page, `<script type="application/json" class="run-data" id="r0">`)
		data, _, _ := strings.Cut(rest, "</script>")
		Expect(json.Valid([]byte(data))).To(BeTrue())
		Expect(data).NotTo(ContainSubstring("<"))
		Expect(page).NotTo(ContainSubstring("\u2028"))
		Expect(utf8.ValidString(page)).To(BeTrue())
	},
		Entry("the end of a script", `</script><script>alert(1)</script>`), Entry("in other letters", `</SCRIPT ><ScRiPt>alert(1)`), Entry("a comment", `<!--<script>`), Entry("an image", `"><img src=x onerror=alert(1)>`),
		Entry("an attribute", `" onfocus="alert(1)" autofocus="`), Entry("a URL", `javascript:alert(1)`), Entry("line separators", "a\u2028b\u2029c"), Entry("bytes that are no UTF-8", "\xff\xed\xa0\x80</script>"),
		Entry("NUL", "\x00</scr\x00ipt>"), Entry("a template", "{{.}}${alert(1)}"),
	)
})

var _ = Describe("what the page is made of", func() {
	It("is allowed by hashes that are those of the parts, and nothing else is", func() {
		page := written(gallery(false))
		_, rest, _ := strings.Cut(page, `http-equiv="Content-Security-Policy" content="`)
		stated, _, _ := strings.Cut(rest, `"`)
		stated = strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(stated)
		Expect(stated).To(HavePrefix("default-src 'none'; script-src 'sha256-"))
		for _, word := range []string{"unsafe", "http", "*", "self", "blob"} {
			Expect(stated).NotTo(ContainSubstring(word))
		}
		n := 0
		for _, m := range element.FindAllStringSubmatch(page, -1) {
			if strings.Contains(m[2], "type=") {
				continue
			}
			n++
			sum := sha256.Sum256([]byte(m[3]))
			Expect(stated).To(ContainSubstring("'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'"), "part %d", n)
		}
		Expect(n).To(Equal(len(styles) + len(scripts)))
		Expect(strings.Count(stated, "sha256-")).To(Equal(n))
	})

	It("asks for nothing from elsewhere", func() {
		page := bare(written(compared()))
		for _, m := range regexp.MustCompile(`(?i)\b(?:src|href|action|poster|data|srcset)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			Expect(m[1]).To(Or(HavePrefix("#"), Equal("data:,")))
		}
		Expect(page).NotTo(MatchRegexp(`(?i)<(?:iframe|object|embed|base|form|img|video|audio|import)\b`))
	})

	It("makes no markup of text", func() {
		names, err := fs.Glob(assets, "assets/*.js")
		Expect(err).NotTo(HaveOccurred())
		Expect(names).To(HaveLen(len(scripts) - 1))
		for _, name := range names {
			data, err := assets.ReadFile(name)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(data)).NotTo(MatchRegexp(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|\beval\(|new Function|srcdoc|setTimeout\(["'\x60]|localStorage|fetch\(|XMLHttpRequest|import\(|WebSocket`), name)
			Expect(string(data)).To(HavePrefix(`"use strict";`), name)
		}
	})

	It("has the vendored files that docs/dependencies.md names, unchanged", func() {
		doc, err := os.ReadFile(filepath.Join(suite.Root(), "docs", "dependencies.md"))
		Expect(err).NotTo(HaveOccurred())
		n := 0
		Expect(fs.WalkDir(assets, "assets/vendor", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := assets.ReadFile(path)
			if err != nil {
				return err
			}
			n++
			sum := sha256.Sum256(data)
			Expect(string(doc)).To(ContainSubstring("`"+hex.EncodeToString(sum[:])+"`"), path)
			Expect(string(doc)).To(ContainSubstring("`"+filepath.Base(path)+"`"), path)
			return nil
		})).To(Succeed())
		Expect(n).To(Equal(3))
	})
})

// luminance is that of WCAG 2.1 for #rrggbb.
func luminance(colour string) float64 {
	GinkgoHelper()
	value, err := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 32)
	Expect(err).NotTo(HaveOccurred())
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		c := float64(value>>(16-8*i)&0xff) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

var _ = Describe("colours", func() {
	colours := map[string][2]string{}
	for _, m := range regexp.MustCompile(`--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);`).FindAllStringSubmatch(asset("page.css"), -1) {
		colours[m[1]] = [2]string{m[2], m[3]}
	}
	enough := func(front, back string, least float64) {
		GinkgoHelper()
		for i, mode := range []string{"light", "dark"} {
			Expect(colours).To(HaveKey(front))
			Expect(colours).To(HaveKey(back))
			Expect(contrast(colours[front][i], colours[back][i])).To(BeNumerically(">=", least), "%s on %s, %s", front, back, mode)
		}
	}

	It("knows the measure", func() {
		Expect(contrast("#000000", "#ffffff")).To(BeNumerically("~", 21, 0.01))
		Expect(contrast("#777777", "#ffffff")).To(BeNumerically("~", 4.48, 0.01))
	})

	It("of text reach 4.5, as WCAG AA asks", func() {
		for _, pair := range [][2]string{
			{"text", "page"}, {"text", "card"}, {"text", "raised"}, {"quiet", "page"}, {"quiet", "card"}, {"quiet", "raised"}, {"link", "card"}, {"link", "page"}, {"link", "raised"}, {"card", "text"},
			{"good", "good-back"}, {"bad", "bad-back"}, {"open", "open-back"}, {"text", "open-back"}, {"good", "card"}, {"bad", "card"},
		} {
			enough(pair[0], pair[1], 4.5)
		}
	})

	It("of what is not text reach 3", func() {
		for _, pair := range [][2]string{{"edge", "card"}, {"edge", "page"}, {"focus", "card"}, {"focus", "page"}, {"focus", "raised"}, {"good", "page"}, {"bad", "page"}, {"open", "card"},
			{"series-1", "card"}, {"series-2", "card"}, {"series-3", "card"}, {"series-4", "card"}, {"series-5", "card"}, {"series-6", "card"}} {
			enough(pair[0], pair[1], 3)
		}
	})

	It("come from the list alone", func() {
		_, rules, _ := strings.Cut(asset("page.css"), "\n}\n")
		screen, _, found := strings.Cut(rules, "@media print")
		Expect(found).To(BeTrue())
		Expect(screen).NotTo(MatchRegexp(`#[0-9a-fA-F]{3,8}\b[^{]*;`))
	})
})

var _ = Describe("bounds", func() {
	bounded := func(run *results.Run, l limits) string {
		GinkgoHelper()
		var out bytes.Buffer
		Expect(reports.To(&out, func(w *bufio.Writer) error {
			p := page{out: &counter{out: w}, runs: []*results.Run{run}, limits: l}
			return p.write()
		})).To(Succeed())
		return out.String()
	}

	It("keep transcripts of what failed before those of what passed", func() {
		run := regular(400, 2)
		whole := bounded(run, limits{math.MaxInt, math.MaxInt})
		all := 0
		for n := 0; strings.Contains(whole, fmt.Sprintf(`id="r0d%d"`, n)); n++ {
			all++
		}
		Expect(all).To(BeNumerically(">", 3), "the bound is looked at between blocks")
		cut := bounded(run, limits{len(whole) / 4, math.MaxInt})
		with, without := map[string]int{}, map[string]int{}
		for _, d := range detailsOf(cut) {
			if d.Left == "bound" {
				without[d.Status]++
				Expect(d.Events).To(BeEmpty())
			} else {
				with[d.Status]++
			}
			Expect(d.Checks).NotTo(BeEmpty(), "checks are kept")
		}
		Expect(with).To(HaveKeyWithValue("fail", 88))
		Expect(without).To(HaveKey("pass"))
		Expect(without).NotTo(HaveKey("fail"))
	})

	It("leave details out last, and the row says so", func() {
		run := regular(400, 2)
		page := bounded(run, limits{1, 1})
		kept, left := 0, 0
		for _, r := range rowsOf(page, 0) {
			for _, c := range r.Cells {
				for _, l := range c.Lines {
					if l.Block < 0 {
						left++
					} else {
						kept++
					}
				}
			}
		}
		Expect(kept + left).To(Equal(800))
		Expect(left).To(BeNumerically(">", 0))
		Expect(kept).To(Equal(len(detailsOf(page))))
	})

	It("cut long texts and count what is missing", func() {
		for _, d := range detailsOf(written(gallery(false))) {
			for _, e := range d.Events {
				for _, p := range e.Parts {
					Expect(len(p.Text)).To(BeNumerically("<=", 4*mostText))
				}
			}
		}
		t := cutText(strings.Repeat("漢", 10_000), mostText)
		Expect(t.More + len(t.Text)).To(Equal(30_000))
		Expect(utf8.ValidString(t.Text)).To(BeTrue())
	})
})

var _ = DescribeTable("percentiles", func(values []int64, p0, p50, p95, p100 int64) {
	got := percentiles(values)
	Expect(got).To(HaveLen(101))
	Expect([]int64{got[0], got[50], got[95], got[100]}).To(Equal([]int64{p0, p50, p95, p100}))
},
	Entry("of one", []int64{7}, int64(7), int64(7), int64(7), int64(7)),
	Entry("of two", []int64{9, 1}, int64(1), int64(1), int64(9), int64(9)),
	Entry("of twenty", []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, int64(1), int64(10), int64(19), int64(20)),
)
