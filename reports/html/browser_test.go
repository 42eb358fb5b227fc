package html

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/results"
)

// patience bounds every wait for the browser, which may share its machine with much else.
const patience = 120 * time.Second

// chromium is the path of the browser. Where there is none the spec is skipped, visibly.
func chromium() string {
	GinkgoHelper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Skip("no chromium: the specs that drive the page in a browser need it")
	return ""
}

// browser is a page that is open in Chromium, and everything that it did which it should not.
type browser struct {
	ctx context.Context

	mu       sync.Mutex
	requests []string
	problems []string
}

// visit opens the page of the runs at the fragment, once it is ready.
func visit(fragment string, runs ...*results.Run) *browser {
	GinkgoHelper()
	return browse(written(runs...), fragment, `html[data-ready]`)
}

// browse writes a page to a file, opens it from there and waits for an element.
func browse(text, fragment, ready string) *browser {
	GinkgoHelper()
	program := chromium()
	file := filepath.Join(GinkgoT().TempDir(), "report.html")
	Expect(os.WriteFile(file, []byte(text), 0o644)).To(Succeed())
	profile, err := os.MkdirTemp("", "chromium-*")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, profile)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(program), chromedp.UserDataDir(profile), chromedp.WindowSize(1300, 900),
		chromedp.Flag("headless", true), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("no-first-run", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true))
	DeferCleanup(stop)
	ctx, _ := chromedp.NewContext(allocator)
	b := &browser{ctx: ctx}
	Expect(chromedp.Listen(ctx, b.listen)).To(Succeed())
	DeferCleanup(func() { Expect(chromedp.Cancel(ctx)).To(Succeed()) })
	for _, enable := range []func() error{
		func() error { _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); return err },
		func() error { _, err := chromedp.Call(ctx, cdplog.Enable, cdp.Empty{}); return err },
		func() error { _, err := chromedp.Call(ctx, runtime.Enable, cdp.Empty{}); return err },
	} {
		Expect(enable()).To(Succeed())
	}
	b.run(chromedp.Navigate((&url.URL{Scheme: "file", Path: file, Fragment: fragment}).String()), chromedp.WaitReady(chromedp.CSS(ready)))
	DeferCleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, request := range b.requests {
			Expect(request).To(Or(HavePrefix("file://"+file), Equal("data:,")), "a request left the page")
		}
		Expect(b.requests).NotTo(BeEmpty(), "nothing was listened to")
		Expect(b.problems).To(BeEmpty())
	})
	return b
}

func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, "exception: "+e.ExceptionDetails.Text+" "+describe(e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		problem := "console: " + string(e.Type)
		for _, arg := range e.Args {
			problem += fmt.Sprintf(" %s%s", arg.Value, describe(arg))
		}
		b.problems = append(b.problems, problem)
	case *cdplog.EventEntryAdded:
		b.problems = append(b.problems, fmt.Sprintf("log: %s %s", e.Entry.Level, e.Entry.Text))
	}
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	Expect(chromedp.Do(ctx, actions...)).To(Succeed())
}

// do runs a script for what it does.
func (b *browser) do(script string) {
	GinkgoHelper()
	b.run(chromedp.Evaluate[chromedp.Void](script))
}

// choose takes a value of a list.
func (b *browser) choose(label, value string) {
	GinkgoHelper()
	list := fmt.Sprintf(`select[aria-label=%q]`, label)
	b.run(chromedp.SetValue(chromedp.CSS(list), value))
	b.do(fmt.Sprintf("document.querySelector('%s').dispatchEvent(new Event('change'))", list))
}

// media sets what the browser says of its colours; "" is what it is by itself.
func (b *browser) media(scheme string) {
	GinkgoHelper()
	var features []*emulation.MediaFeature
	if scheme != "" {
		features = append(features, &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
	}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
	Expect(err).NotTo(HaveOccurred())
}

// js is the value of an expression in the page.
func js[T any](b *browser, expression string) T {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	Expect(err).NotTo(HaveOccurred(), expression)
	return value
}

func (b *browser) press(keys string, modifiers ...chromedp.KeyOption) {
	GinkgoHelper()
	b.run(chromedp.KeyEvent(keys, modifiers...))
}

// stroke presses a key that writes a character as a keyboard does: where the page takes the key for itself, nothing is written.
func (b *browser) stroke(key string) {
	GinkgoHelper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		event := input.DispatchKeyEventParams{Type: kind, Key: key}
		if kind == input.DispatchKeyEventTypeKeyDown {
			event.Text = key
		}
		_, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, event)
		Expect(err).NotTo(HaveOccurred())
	}
}

// becomes waits until an expression has a value.
func becomes[T any](b *browser, expression string, want T) {
	GinkgoHelper()
	Eventually(func() T { return js[T](b, expression) }, patience, 20*time.Millisecond).Should(Equal(want), expression)
}

func (b *browser) click(selector string) {
	GinkgoHelper()
	b.run(chromedp.Click(chromedp.CSS(selector)))
}

// shoot saves a picture of the page where ECHOEVAL_SCREENSHOTS names a folder.
func (b *browser) shoot(name string) {
	GinkgoHelper()
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	Expect(err).NotTo(HaveOccurred())
	Expect(len(picture)).To(BeNumerically(">", 5_000), "an empty picture")
	if folder := os.Getenv("ECHOEVAL_SCREENSHOTS"); folder != "" {
		Expect(os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644)).To(Succeed())
	}
}

// ids are the items whose rows are in the document.
const ids = `[...document.querySelectorAll(".run:not([hidden]) .rows .name")].map((e) => e.title)`

const focused = `document.activeElement.closest(".row")?.dataset.place + "/" + document.activeElement.dataset.column`

var _ = Describe("in a browser the page", func() {
	It("filters, and keeps the filters in its address", func() {
		b := visit("", compared())
		becomes(b, `document.querySelector(".count").textContent`, "26 items")
		b.click(`[data-word="worse"]`)
		becomes(b, ids, []string{"wrong answer 🩺"})
		Expect(js[string](b, `location.hash`)).To(Equal("#status=worse"))
		b.click(`[data-word="flaky"]`)
		becomes(b, `document.querySelector(".count").textContent`, "2 items of 26")
		Expect(js[string](b, `document.querySelector('[data-word="worse"]').getAttribute("aria-pressed")`)).To(Equal("true"))
		b.click(`[data-word="worse"]`)
		b.click(`[data-word="flaky"]`)
		b.choose("Provider", "haiku")
		becomes(b, `document.querySelectorAll(".heads [role=columnheader]").length`, 2)
		b.stroke("/")
		becomes(b, `document.activeElement.type`, "search")
		b.press("drifted")
		becomes(b, ids, []string{"drifted-1", "drifted-2"})
		Expect(js[string](b, `location.hash`)).To(Equal("#provider=haiku&q=drifted"))
		b.press(kb.Escape)
		becomes(b, `document.querySelector(".count").textContent`, "26 items")
		b.press("no such thing")
		becomes(b, `document.querySelector(".empty").hidden`, false)
		b.click(".empty button")
		becomes(b, `document.querySelector(".count").textContent`, "26 items")
		Expect(js[string](b, `location.hash`)).To(BeElementOf("", "#"))
	})

	It("opens at what its address says", func() {
		b := visit("status=fail&tag=gallery&q=wrong&item=wrong+answer+🩺&of=haiku&repeat=2&with=baseline", compared())
		becomes(b, `document.getElementById("item").open`, true)
		Expect(js[string](b, `document.getElementById("item-title").textContent`)).To(Equal("wrong answer 🩺"))
		Expect(js[[]string](b, `[...document.querySelectorAll('#item [aria-pressed="true"]')].map((e) => e.firstChild.textContent)`)).To(Equal([]string{"haiku, repeat 2", "the baseline"}))
		Expect(js[[]string](b, ids)).To(Equal([]string{"wrong answer 🩺"}))
	})

	It("shows disagreements first where there are several providers", func() {
		b := visit("", compared())
		Expect(js[[]string](b, ids)[0]).To(Equal("flaky"), "the one on which the providers differ")
		b.choose("Order", "dataset")
		becomes(b, ids+"[0]", "all-is-well")
	})

	It("is driven by the keyboard alone", func() {
		b := visit("order=dataset", compared())
		b.run(chromedp.Focus(chromedp.CSS(`.rows [tabindex="0"]`)))
		for _, move := range []struct{ key, at string }{
			{kb.ArrowDown, "1/0"}, {kb.ArrowRight, "1/1"}, {kb.ArrowRight, "1/2"}, {kb.ArrowRight, "1/2"}, {kb.ArrowUp, "0/2"}, {kb.ArrowUp, "0/2"}, {kb.Home, "0/0"}, {kb.End, "0/2"}, {kb.ArrowLeft, "0/1"},
		} {
			b.press(move.key)
			becomes(b, focused, move.at)
		}
		b.press(kb.End, chromedp.KeyModifiers(kb.ModifierCtrl))
		becomes(b, focused, "25/2")
		b.press(kb.Home, chromedp.KeyModifiers(kb.ModifierCtrl))
		becomes(b, focused, "0/0")
		b.press(kb.ArrowDown)
		b.press(kb.ArrowRight)
		b.press(kb.Enter)
		becomes(b, `document.getElementById("item").open ? document.getElementById("item-title").textContent : ""`, "wrong answer 🩺")
		Expect(js[string](b, `location.hash`)).To(ContainSubstring("of=haiku"))
		Expect(js[bool](b, `document.getElementById("item").contains(document.activeElement)`)).To(BeTrue())
		b.press("n")
		becomes(b, `document.getElementById("item-title").textContent`, "flaky")
		b.press("p")
		becomes(b, `document.getElementById("item-title").textContent`, "wrong answer 🩺")
		b.press(kb.Escape)
		becomes(b, `document.getElementById("item").open`, false)
		becomes(b, focused, "1/1")
		Expect(js[string](b, `location.hash`)).To(Equal("#order=dataset"))
		b.stroke("?")
		becomes(b, `document.getElementById("help").open`, true)
		b.press(kb.Escape)
		becomes(b, `document.getElementById("help").open`, false)
	})

	It("shows transcript, paired calls, checks and evidence of an item", func() {
		b := visit("item=web-before-exec&of=haiku", compared())
		becomes(b, `document.getElementById("item").open`, true)
		text := js[string](b, `document.querySelector(".item-body").textContent`)
		for _, part := range []string{"violated (error)", "web-then-exec", "exec after web_fetch of \\x1b[1mhttp://a", "#5 executed", "call contacts", `{"of":"p-1"}`, "the arguments are no JSON", "image image/png", "the model takes no images", "end after 2 steps", "attempt 1"} {
			Expect(text).To(ContainSubstring(part))
		}
		Expect(js[int](b, `document.querySelectorAll(".proof").length`)).To(Equal(2), "events 3 and 5")
		b.do(`[...document.querySelectorAll(".item-body button")].find((e) => e.textContent === "#5").click()`)
		becomes(b, `document.activeElement.dataset.event`, "5")
		Expect(js[bool](b, `document.activeElement.closest(".call").firstChild.textContent.startsWith("call contacts")`)).To(BeTrue(), "the result stands with its call")
	})

	It("sets an item beside the baseline and beside another provider", func() {
		b := visit("item=wrong+answer+🩺&of=haiku", compared())
		becomes(b, `document.getElementById("item").open`, true)
		b.do(`document.querySelector('[data-key="withbaseline"]').click()`)
		becomes(b, `document.querySelectorAll(".diff tbody tr").length`, 7)
		Expect(js[[]string](b, `[...document.querySelectorAll(".diff del")].map((e) => e.textContent).filter((t) => t.trim())`)).To(ContainElements("call_ward", "at", "once."))
		Expect(js[[]string](b, `[...document.querySelectorAll(".diff ins")].map((e) => e.textContent).filter((t) => t.trim())`)).To(ContainElements("contains", "read_file", "now."))
		Expect(js[string](b, `document.querySelector(".diff").textContent`)).To(ContainSubstring("</script><script>alert(1)</script>"), "as text")
		b.shoot("baseline")
		b.do(`document.querySelector('[data-key="with1.1"]').click()`)
		becomes(b, `document.querySelectorAll(".sides.two .side").length`, 2)
		Expect(js[string](b, `location.hash`)).To(ContainSubstring("with=1.1"))
	})

	It("shows each of several datasets", func() {
		other := regular(30, 1)
		b := visit("run=regular", compared(), other)
		becomes(b, `document.querySelector(".run:not([hidden]) .count")?.textContent || ""`, "30 items")
		Expect(js[int](b, `document.querySelectorAll(".run:not([hidden])").length`)).To(Equal(1))
		b.click(`[data-run-link="0"]`)
		becomes(b, `document.querySelector(".run:not([hidden]) .count")?.textContent || ""`, "26 items")
		Expect(js[string](b, `document.querySelector("[aria-current]").textContent`)).To(ContainSubstring("gallery"))
	})

	It("draws its plots, in the colours of the day and of the night, and looks as it should", func() {
		b := visit("", compared())
		Expect(js[int](b, `document.querySelectorAll(".chart canvas").length`)).To(Equal(4))
		Expect(js[[]string](b, `[...document.querySelectorAll(".chart [role=img]")].map((e) => e.getAttribute("aria-label"))`)).To(ContainElement(MatchRegexp(`^Pass rate: haiku 0\.\d+ between 0\.\d+ and 0\.\d+; compat:llama3/8b `)))
		back := `getComputedStyle(document.body).backgroundColor`
		Expect(js[string](b, back)).To(Equal("rgb(244, 245, 247)"))
		b.shoot("light")
		b.media("dark")
		becomes(b, back, "rgb(20, 23, 28)")
		b.shoot("dark")
		b.click("#theme")
		becomes(b, back, "rgb(244, 245, 247)")
		b.click("#theme")
		becomes(b, back, "rgb(20, 23, 28)")
		for _, size := range [][2]int64{{390, 844}, {820, 1180}, {1300, 2400}} {
			b.run(chromedp.EmulateViewport(size[0], size[1]))
			Expect(js[bool](b, `document.documentElement.scrollWidth <= innerWidth`)).To(BeTrue(), "%d wide: nothing sticks out", size[0])
			b.shoot(fmt.Sprintf("dark-%d", size[0]))
		}
		b.click("#theme")
		b.media("")
		b.run(chromedp.EmulateViewport(1300, 2400))
		becomes(b, back, "rgb(244, 245, 247)")
		b.shoot("light-1300")
		b.run(chromedp.EmulateViewport(390, 1600))
		b.shoot("light-390")
		b.do(`location.hash = "item=web-before-exec&of=haiku"`)
		becomes(b, `document.getElementById("item").open`, true)
		b.shoot("item-390")
		b.run(chromedp.EmulateViewport(1300, 2000))
		b.shoot("item-1300")
	})

	It("is there on paper", func() {
		b := visit("", compared())
		paper, err := chromedp.Run(b.ctx, chromedp.PrintToPDF())
		Expect(err).NotTo(HaveOccurred())
		Expect(string(paper)).To(HavePrefix("%PDF"))
		b.do(`dispatchEvent(new Event("beforeprint"))`)
		Expect(js[int](b, `document.querySelectorAll(".rows .row").length`)).To(Equal(26), "every row is there")
		b.do(`dispatchEvent(new Event("afterprint"))`)
		Expect(js[string](b, `document.documentElement.dataset.theme || "auto"`)).To(Equal("auto"))
		if folder := os.Getenv("ECHOEVAL_SCREENSHOTS"); folder != "" {
			Expect(os.WriteFile(filepath.Join(folder, "paper.pdf"), paper, 0o644)).To(Succeed())
		}
	})

	It("names everything for those who do not see it", func() {
		b := visit("item=web-before-exec&of=haiku&with=1.1", compared())
		becomes(b, `document.querySelectorAll(".sides.two .side").length`, 2)
		nameless := js[[]string](b, `[...document.querySelectorAll("button, select, input, [role=grid], [role=img], [role=region], dialog, nav, section[aria-labelledby]")].filter((e) => {
			const label = e.getAttribute("aria-label") || e.getAttribute("aria-labelledby")?.split(" ").map((id) => document.getElementById(id)?.textContent || "").join("") || e.textContent;
			return !label.trim();
		}).map((e) => e.outerHTML.slice(0, 100))`)
		Expect(nameless).To(BeEmpty())
		Expect(js[[]string](b, `[...document.querySelectorAll("[id]")].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i)`)).To(BeEmpty(), "ids stand once")
		Expect(js[int](b, `document.querySelectorAll('[role=grid] [tabindex="0"]').length`)).To(Equal(1), "the grid is one stop for Tab")
		levels := js[[]int](b, `[...document.querySelectorAll(".run h1, .run h2, .run h3")].map((e) => Number(e.tagName[1]))`)
		for i := 1; i < len(levels); i++ {
			Expect(levels[i]-levels[i-1]).To(BeNumerically("<=", 1), "headings skip no level: %v", levels)
		}
		Expect(js[string](b, `document.documentElement.lang`)).To(Equal("en"))
		Expect(js[string](b, `document.querySelector("[role=grid]").getAttribute("aria-rowcount")`)).To(Equal("27"))
	})

	It("lets no markup and no code through, even if a script tried", func() {
		b := visit("", gallery(false))
		Expect(js[string](b, `(() => { try { document.body.innerHTML = "<p>x"; return "made"; } catch (e) { return e.name; } })()`)).To(Equal("TypeError"))
		Expect(js[bool](b, `(() => { const s = document.createElement("script"); try { s.text = "window.harm = true"; document.body.append(s); } catch (e) {} return window.harm === true; })()`)).To(BeFalse())
		// What the attempts wrote to the log is what they were for.
		b.mu.Lock()
		defer b.mu.Unlock()
		b.problems = slices.DeleteFunc(b.problems, func(p string) bool {
			return strings.Contains(p, "Trusted") || strings.Contains(p, "Content Security Policy")
		})
	})

	It("says so where its data cannot be opened", func() {
		text := written(gallery(false))
		head, rest, found := strings.Cut(text, `id="r0i0">`)
		Expect(found).To(BeTrue())
		b := browse(head+`id="r0i0">AAAA`+rest[4:], "", `main > [role="alert"]`)
		Expect(js[string](b, `document.querySelector("[role=alert]").textContent`)).To(ContainSubstring("cannot be opened"))
		Expect(js[string](b, `document.querySelector("h1").textContent`)).To(Equal("gallery"), "the verdict is there all the same")
	})

	It("of 10,000 items is small, opens, scrolls and filters without holding them all", func() {
		run := regular(10_000, 2)
		b := visit("", run)
		info := js[map[string]float64](b, `(() => { const t = performance.getEntriesByType("navigation")[0]; return {load: t.duration, size: document.documentElement.outerHTML.length}; })()`)
		GinkgoWriter.Printf("opened in %.0f ms, %.1f MB\n", info["load"], info["size"]/1e6)
		Expect(info["size"]).To(BeNumerically("<", MaxBytes))
		Expect(info["size"]).To(BeNumerically(">", 5_000_000), "the run is large")
		becomes(b, `document.querySelector(".count").textContent`, "10000 items")
		rows := `document.querySelectorAll(".rows .row").length`
		Expect(js[int](b, rows)).To(BeNumerically("<", 80))
		Expect(js[string](b, ids+"[0]")).To(Equal("item-000025"), "disagreements first")
		b.do(`document.querySelector(".results").scrollIntoView()`)
		b.shoot("grid")
		for _, place := range []int{2_000, 5_500, 9_000} {
			b.do(fmt.Sprintf(`document.querySelector(".grid").scrollTop = %d * 36`, place))
			becomes(b, fmt.Sprintf(`Boolean(document.querySelector('.rows [data-place="%d"]'))`, place+5), true)
			Expect(js[int](b, rows)).To(BeNumerically("<", 80))
		}
		b.run(chromedp.Focus(chromedp.CSS(`.rows [tabindex="0"]`)))
		b.press(kb.End, chromedp.KeyModifiers(kb.ModifierCtrl))
		becomes(b, focused, "9999/2")
		b.stroke("/")
		b.press("item-004321")
		becomes(b, ids, []string{"item-004321"})
		b.press(kb.Enter)
		b.press(kb.Enter)
		becomes(b, `document.getElementById("item").open && document.querySelector(".item-body").textContent.includes("call search")`, true)
	})
})

func describe(o *runtime.RemoteObject) string {
	if o == nil {
		return ""
	}
	return o.Description
}
