package view

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/browsertest"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
)

var _ = Describe("in a browser the site", func() {
	It("looks as it should, leads to reports and asks for nothing else", func() {
		runs := GinkgoT().TempDir()
		for ago := 1; ago < 40; ago++ {
			past(runs, "clinic-triage", ago, func(_ *results.Manifest, s *results.Summary) {
				if ago%11 == 5 {
					s.Selected.Items = 12
				}
			})
		}
		past(runs, "support", 3, nil)
		gallery, err := resultstest.Gallery(runs, false)
		Expect(err).NotTo(HaveOccurred())
		server := httptest.NewServer(Handler(runs))
		DeferCleanup(server.Close)

		b := browsertest.Open(server.URL+"/", "main section", server.URL+"/")
		back := `getComputedStyle(document.body).backgroundColor`
		Expect(browsertest.JS[string](b, back)).To(Equal("rgb(244, 245, 247)"), "the style sheet is allowed by its hash")
		Expect(browsertest.JS[int](b, `document.querySelectorAll("svg[role=img]").length`)).To(Equal(4))
		Expect(browsertest.JS[[]string](b, `[...document.querySelectorAll("h2 a")].map((e) => e.textContent)`)).To(Equal([]string{"clinic-triage", "gallery", "support"}))
		// The lines have the colours of the sheet and lie within their room.
		Expect(browsertest.JS[string](b, `getComputedStyle(document.querySelector(".s1 .path")).stroke`)).To(Equal("rgb(11, 87, 176)"))
		Expect(browsertest.JS[bool](b, `[...document.querySelectorAll("svg[role=img]")].every((s) => { const r = s.getBoundingClientRect(); return r.width > 200 && [...s.querySelectorAll("circle, text, path")].every((e) => { const c = e.getBoundingClientRect(); return c.left >= r.left - 1 && c.right <= r.right + 1 && c.top >= r.top - 1 && c.bottom <= r.bottom + 1; }); })`)).To(BeTrue())
		for _, scheme := range []string{"light", "dark"} {
			b.Media(scheme)
			browsertest.Becomes(b, back, map[string]string{"light": "rgb(244, 245, 247)", "dark": "rgb(20, 23, 28)"}[scheme])
			for _, size := range [][2]int64{{390, 1600}, {820, 1400}, {1300, 1500}} {
				b.Run(chromedp.EmulateViewport(size[0], size[1]))
				browsertest.Becomes(b, fmt.Sprintf(`innerWidth === %d && document.documentElement.scrollWidth <= innerWidth`, size[0]), true) // nothing sticks out once the plots have their new size
				b.Shoot(fmt.Sprintf("view-%s-%d", scheme, size[0]))
			}
		}
		Expect(browsertest.JS[[]string](b, `[...document.querySelectorAll("[role=img], [role=region], section")].filter((e) => !(e.getAttribute("aria-label") || "").trim()).map((e) => e.outerHTML.slice(0, 80))`)).To(BeEmpty())

		b.Click(`h2 a`)
		browsertest.Becomes(b, `document.querySelectorAll("tbody").length`, 39)
		b.Shoot("view-dataset")
		b.Run(chromedp.Navigate(server.URL+"/run/"+filepath.Base(gallery)), chromedp.WaitReady(chromedp.CSS(`html[data-ready]`)))
		browsertest.Becomes(b, `document.querySelector(".count").textContent`, "26 items")
		b.Shoot("view-report")
		b.Click(`[data-word="fail"]`)
		Expect(browsertest.JS[string](b, `location.hash`)).To(Equal("#status=fail"), "the report works under both policies")
	})
})
