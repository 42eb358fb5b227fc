package html

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/browsertest"
	"github.com/echoeval/echoeval/harness/results"
)

// visit opens the page of the runs at the fragment, once it is ready.
func visit(fragment string, runs ...*results.Run) *browsertest.Page {
	GinkgoHelper()
	return browse(written(runs...), fragment, `html[data-ready]`)
}

// browse writes a page to a file, opens it from there and waits for an element.
func browse(text, fragment, ready string) *browsertest.Page {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "report.html")
	Expect(os.WriteFile(file, []byte(text), 0o644)).To(Succeed())
	return browsertest.Open((&url.URL{Scheme: "file", Path: file, Fragment: fragment}).String(), ready, "file://"+file)
}

// ids are the items whose rows are in the document.
const ids = `[...document.querySelectorAll(".run:not([hidden]) .rows .name")].map((e) => e.title)`

const focused = `document.activeElement.closest(".row")?.dataset.place + "/" + document.activeElement.dataset.column`

var _ = Describe("in a browser the page", func() {
	It("filters, and keeps the filters in its address", func() {
		b := visit("", compared())
		browsertest.Becomes(b, `document.querySelector(".count").textContent`, "26 items")
		b.Click(`[data-word="worse"]`)
		browsertest.Becomes(b, ids, []string{"wrong answer 🩺"})
		browsertest.Becomes(b, `location.hash`, "#status=worse")
		b.Click(`[data-word="flaky"]`)
		browsertest.Becomes(b, `document.querySelector(".count").textContent`, "2 items of 26")
		Expect(browsertest.JS[string](b, `document.querySelector('[data-word="worse"]').getAttribute("aria-pressed")`)).To(Equal("true"))
		b.Click(`[data-word="worse"]`)
		b.Click(`[data-word="flaky"]`)
		b.Choose("Provider", "haiku")
		browsertest.Becomes(b, `document.querySelectorAll(".heads [role=columnheader]").length`, 2)
		b.Stroke("/")
		browsertest.Becomes(b, `document.activeElement.type`, "search")
		b.Press("drifted")
		browsertest.Becomes(b, ids, []string{"drifted-1", "drifted-2"})
		browsertest.Becomes(b, `location.hash`, "#provider=haiku&q=drifted")
		b.Press(kb.Escape)
		browsertest.Becomes(b, `document.querySelector(".count").textContent`, "26 items")
		b.Press("no such thing")
		browsertest.Becomes(b, `document.querySelector(".empty").hidden`, false)
		b.Click(".empty button")
		browsertest.Becomes(b, `document.querySelector(".count").textContent`, "26 items")
		Expect(browsertest.JS[string](b, `location.hash`)).To(BeElementOf("", "#"))
	})

	It("opens at what its address says", func() {
		b := visit("status=fail&tag=gallery&q=wrong&item=wrong+answer+🩺&of=haiku&repeat=2&with=baseline", compared())
		browsertest.Becomes(b, `document.getElementById("item").open`, true)
		Expect(browsertest.JS[string](b, `document.getElementById("item-title").textContent`)).To(Equal("wrong answer 🩺"))
		Expect(browsertest.JS[[]string](b, `[...document.querySelectorAll('#item [aria-pressed="true"]')].map((e) => e.firstChild.textContent)`)).To(Equal([]string{"haiku, repeat 2", "the baseline"}))
		Expect(browsertest.JS[[]string](b, ids)).To(Equal([]string{"wrong answer 🩺"}))
	})

	It("shows disagreements first where there are several providers", func() {
		b := visit("", compared())
		Expect(browsertest.JS[[]string](b, ids)[0]).To(Equal("flaky"), "the one on which the providers differ")
		b.Choose("Order", "dataset")
		browsertest.Becomes(b, ids+"[0]", "all-is-well")
	})

	It("is driven by the keyboard alone", func() {
		b := visit("order=dataset", compared())
		b.Run(chromedp.Focus(chromedp.CSS(`.rows [tabindex="0"]`)))
		for _, move := range []struct{ key, at string }{
			{kb.ArrowDown, "1/0"}, {kb.ArrowRight, "1/1"}, {kb.ArrowRight, "1/2"}, {kb.ArrowRight, "1/2"}, {kb.ArrowUp, "0/2"}, {kb.ArrowUp, "0/2"}, {kb.Home, "0/0"}, {kb.End, "0/2"}, {kb.ArrowLeft, "0/1"},
		} {
			b.Press(move.key)
			browsertest.Becomes(b, focused, move.at)
		}
		b.Press(kb.End, chromedp.KeyModifiers(kb.ModifierCtrl))
		browsertest.Becomes(b, focused, "25/2")
		b.Press(kb.Home, chromedp.KeyModifiers(kb.ModifierCtrl))
		browsertest.Becomes(b, focused, "0/0")
		b.Press(kb.ArrowDown)
		b.Press(kb.ArrowRight)
		b.Press(kb.Enter)
		browsertest.Becomes(b, `document.getElementById("item").open ? document.getElementById("item-title").textContent : ""`, "wrong answer 🩺")
		Expect(browsertest.JS[string](b, `location.hash`)).To(ContainSubstring("of=haiku"))
		Expect(browsertest.JS[bool](b, `document.getElementById("item").contains(document.activeElement)`)).To(BeTrue())
		b.Press("n")
		browsertest.Becomes(b, `document.getElementById("item-title").textContent`, "flaky")
		b.Press("p")
		browsertest.Becomes(b, `document.getElementById("item-title").textContent`, "wrong answer 🩺")
		b.Press(kb.Escape)
		browsertest.Becomes(b, `document.getElementById("item").open`, false)
		browsertest.Becomes(b, focused, "1/1")
		browsertest.Becomes(b, `location.hash`, "#order=dataset")
		b.Stroke("?")
		browsertest.Becomes(b, `document.getElementById("help").open`, true)
		b.Press(kb.Escape)
		browsertest.Becomes(b, `document.getElementById("help").open`, false)
	})

	It("shows transcript, paired calls, checks and evidence of an item", func() {
		b := visit("item=web-before-exec&of=haiku", compared())
		browsertest.Becomes(b, `document.getElementById("item").open`, true)
		text := browsertest.JS[string](b, `document.querySelector(".item-body").textContent`)
		for _, part := range []string{"violated (error)", "web-then-exec", "exec after web_fetch of \\x1b[1mhttp://a", "#5 executed", "call contacts", `{"of":"p-1"}`, "the arguments are no JSON", "image image/png", "the model takes no images", "end after 2 steps", "attempt 1"} {
			Expect(text).To(ContainSubstring(part))
		}
		Expect(browsertest.JS[int](b, `document.querySelectorAll(".proof").length`)).To(Equal(2), "events 3 and 5")
		b.Do(`[...document.querySelectorAll(".item-body button")].find((e) => e.textContent === "#5").click()`)
		browsertest.Becomes(b, `document.activeElement.dataset.event`, "5")
		Expect(browsertest.JS[bool](b, `document.activeElement.closest(".call").firstChild.textContent.startsWith("call contacts")`)).To(BeTrue(), "the result stands with its call")
	})

	It("sets an item beside the baseline and beside another provider", func() {
		b := visit("item=wrong+answer+🩺&of=haiku", compared())
		browsertest.Becomes(b, `document.getElementById("item").open`, true)
		b.Do(`document.querySelector('[data-key="withbaseline"]').click()`)
		browsertest.Becomes(b, `document.querySelectorAll(".diff tbody tr").length`, 7)
		Expect(browsertest.JS[[]string](b, `[...document.querySelectorAll(".diff del")].map((e) => e.textContent).filter((t) => t.trim())`)).To(ContainElements("call_ward", "at", "once."))
		Expect(browsertest.JS[[]string](b, `[...document.querySelectorAll(".diff ins")].map((e) => e.textContent).filter((t) => t.trim())`)).To(ContainElements("contains", "read_file", "now."))
		Expect(browsertest.JS[string](b, `document.querySelector(".diff").textContent`)).To(ContainSubstring("</script><script>alert(1)</script>"), "as text")
		b.Shoot("baseline")
		b.Do(`document.querySelector('[data-key="with1.1"]').click()`)
		browsertest.Becomes(b, `document.querySelectorAll(".sides.two .side").length`, 2)
		Expect(browsertest.JS[string](b, `location.hash`)).To(ContainSubstring("with=1.1"))
	})

	It("shows each of several datasets", func() {
		other := regular(30, 1)
		b := visit("run=regular", compared(), other)
		browsertest.Becomes(b, `document.querySelector(".run:not([hidden]) .count")?.textContent || ""`, "30 items")
		Expect(browsertest.JS[int](b, `document.querySelectorAll(".run:not([hidden])").length`)).To(Equal(1))
		b.Click(`[data-run-link="0"]`)
		browsertest.Becomes(b, `document.querySelector(".run:not([hidden]) .count")?.textContent || ""`, "26 items")
		Expect(browsertest.JS[string](b, `document.querySelector("[aria-current]").textContent`)).To(ContainSubstring("gallery"))
	})

	It("draws its plots, in the colours of the day and of the night, and looks as it should", func() {
		b := visit("", compared())
		Expect(browsertest.JS[int](b, `document.querySelectorAll(".chart canvas").length`)).To(Equal(4))
		Expect(browsertest.JS[[]string](b, `[...document.querySelectorAll(".chart [role=img]")].map((e) => e.getAttribute("aria-label"))`)).To(ContainElement(MatchRegexp(`^Pass rate: haiku 0\.\d+ between 0\.\d+ and 0\.\d+; compat:llama3/8b `)))
		back := `getComputedStyle(document.body).backgroundColor`
		Expect(browsertest.JS[string](b, back)).To(Equal("rgb(244, 245, 247)"))
		b.Shoot("light")
		b.Media("dark")
		browsertest.Becomes(b, back, "rgb(20, 23, 28)")
		b.Shoot("dark")
		b.Click("#theme")
		browsertest.Becomes(b, back, "rgb(244, 245, 247)")
		b.Click("#theme")
		browsertest.Becomes(b, back, "rgb(20, 23, 28)")
		for _, size := range [][2]int64{{390, 844}, {820, 1180}, {1300, 2400}} {
			b.Run(chromedp.EmulateViewport(size[0], size[1]))
			browsertest.Becomes(b, fmt.Sprintf(`innerWidth === %d && document.documentElement.scrollWidth <= innerWidth`, size[0]), true) // nothing sticks out once the plots have their new size
			b.Shoot(fmt.Sprintf("dark-%d", size[0]))
		}
		b.Click("#theme")
		b.Media("")
		b.Run(chromedp.EmulateViewport(1300, 2400))
		browsertest.Becomes(b, back, "rgb(244, 245, 247)")
		b.Shoot("light-1300")
		b.Run(chromedp.EmulateViewport(390, 1600))
		b.Shoot("light-390")
		b.Do(`location.hash = "item=web-before-exec&of=haiku"`)
		browsertest.Becomes(b, `document.getElementById("item").open`, true)
		b.Shoot("item-390")
		b.Run(chromedp.EmulateViewport(1300, 2000))
		b.Shoot("item-1300")
	})

	It("is there on paper", func() {
		b := visit("", compared())
		paper, err := chromedp.Run(b.Context, chromedp.PrintToPDF())
		Expect(err).NotTo(HaveOccurred())
		Expect(string(paper)).To(HavePrefix("%PDF"))
		b.Do(`dispatchEvent(new Event("beforeprint"))`)
		Expect(browsertest.JS[int](b, `document.querySelectorAll(".rows .row").length`)).To(Equal(26), "every row is there")
		b.Do(`dispatchEvent(new Event("afterprint"))`)
		Expect(browsertest.JS[string](b, `document.documentElement.dataset.theme || "auto"`)).To(Equal("auto"))
		if folder := os.Getenv("ECHOEVAL_SCREENSHOTS"); folder != "" {
			Expect(os.WriteFile(filepath.Join(folder, "paper.pdf"), paper, 0o644)).To(Succeed())
		}
	})

	It("names everything for those who do not see it", func() {
		b := visit("item=web-before-exec&of=haiku&with=1.1", compared())
		browsertest.Becomes(b, `document.querySelectorAll(".sides.two .side").length`, 2)
		nameless := browsertest.JS[[]string](b, `[...document.querySelectorAll("button, select, input, [role=grid], [role=img], [role=region], dialog, nav, section[aria-labelledby]")].filter((e) => {
			const label = e.getAttribute("aria-label") || e.getAttribute("aria-labelledby")?.split(" ").map((id) => document.getElementById(id)?.textContent || "").join("") || e.textContent;
			return !label.trim();
		}).map((e) => e.outerHTML.slice(0, 100))`)
		Expect(nameless).To(BeEmpty())
		Expect(browsertest.JS[[]string](b, `[...document.querySelectorAll("[id]")].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i)`)).To(BeEmpty(), "ids stand once")
		Expect(browsertest.JS[int](b, `document.querySelectorAll('[role=grid] [tabindex="0"]').length`)).To(Equal(1), "the grid is one stop for Tab")
		levels := browsertest.JS[[]int](b, `[...document.querySelectorAll(".run h1, .run h2, .run h3")].map((e) => Number(e.tagName[1]))`)
		for i := 1; i < len(levels); i++ {
			Expect(levels[i]-levels[i-1]).To(BeNumerically("<=", 1), "headings skip no level: %v", levels)
		}
		Expect(browsertest.JS[string](b, `document.documentElement.lang`)).To(Equal("en"))
		Expect(browsertest.JS[string](b, `document.querySelector("[role=grid]").getAttribute("aria-rowcount")`)).To(Equal("27"))
	})

	It("lets no markup and no code through, even if a script tried", func() {
		b := visit("", gallery(false))
		Expect(browsertest.JS[string](b, `(() => { try { document.body.innerHTML = "<p>x"; return "made"; } catch (e) { return e.name; } })()`)).To(Equal("TypeError"))
		Expect(browsertest.JS[bool](b, `(() => { const s = document.createElement("script"); try { s.text = "window.harm = true"; document.body.append(s); } catch (e) {} return window.harm === true; })()`)).To(BeFalse())
		// What the attempts wrote to the log is what they were for.
		b.Forgive("Trusted", "Content Security Policy")
	})

	It("says so where its data cannot be opened", func() {
		text := written(gallery(false))
		head, rest, found := strings.Cut(text, `id="r0i0">`)
		Expect(found).To(BeTrue())
		b := browse(head+`id="r0i0">AAAA`+rest[4:], "", `main > [role="alert"]`)
		Expect(browsertest.JS[string](b, `document.querySelector("[role=alert]").textContent`)).To(ContainSubstring("cannot be opened"))
		Expect(browsertest.JS[string](b, `document.querySelector("h1").textContent`)).To(Equal("gallery"), "the verdict is there all the same")
	})

	It("of 10,000 items is small, opens, scrolls and filters without holding them all", func() {
		run := regular(10_000, 2)
		b := visit("", run)
		info := browsertest.JS[map[string]float64](b, `(() => { const t = performance.getEntriesByType("navigation")[0]; return {load: t.duration, size: document.documentElement.outerHTML.length}; })()`)
		GinkgoWriter.Printf("opened in %.0f ms, %.1f MB\n", info["load"], info["size"]/1e6)
		Expect(info["size"]).To(BeNumerically("<", MaxBytes))
		Expect(info["size"]).To(BeNumerically(">", 5_000_000), "the run is large")
		browsertest.Becomes(b, `document.querySelector(".count").textContent`, "10000 items")
		rows := `document.querySelectorAll(".rows .row").length`
		Expect(browsertest.JS[int](b, rows)).To(BeNumerically("<", 80))
		Expect(browsertest.JS[string](b, ids+"[0]")).To(Equal("item-000025"), "disagreements first")
		b.Do(`document.querySelector(".results").scrollIntoView()`)
		b.Shoot("grid")
		for _, place := range []int{2_000, 5_500, 9_000} {
			b.Do(fmt.Sprintf(`document.querySelector(".grid").scrollTop = %d * 36`, place))
			browsertest.Becomes(b, fmt.Sprintf(`Boolean(document.querySelector('.rows [data-place="%d"]'))`, place+5), true)
			Expect(browsertest.JS[int](b, rows)).To(BeNumerically("<", 80))
		}
		b.Run(chromedp.Focus(chromedp.CSS(`.rows [tabindex="0"]`)))
		b.Press(kb.End, chromedp.KeyModifiers(kb.ModifierCtrl))
		browsertest.Becomes(b, focused, "9999/2")
		b.Stroke("/")
		b.Press("item-004321")
		browsertest.Becomes(b, ids, []string{"item-004321"})
		b.Press(kb.Enter)
		b.Press(kb.Enter)
		browsertest.Becomes(b, `document.getElementById("item").open && document.querySelector(".item-body").textContent.includes("call search")`, true)
	})
})
