// Package browsertest drives a page in a real Chromium for specs. Where there is no Chromium the spec is skipped, visibly. ECHOEVAL_SCREENSHOTS names a folder for pictures.
package browsertest

import (
	"context"
	"fmt"
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
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// patience bounds every wait for the browser, which may share its machine with much else.
const patience = 120 * time.Second

// chromium is the path of the browser. Where there is none the spec is skipped, visibly.
func chromium() string {
	ginkgo.GinkgoHelper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	ginkgo.Skip("no chromium: the specs that drive the page in a browser need it")
	return ""
}

// Page is a page that is open in Chromium, and everything that it did which it should not.
type Page struct {
	// Context is that of the page, for actions of chromedp.
	Context context.Context

	mu       sync.Mutex
	requests []string
	problems []string
}

// Open opens the page at an address and waits until an element is there. When the spec ends, the page must have asked for nothing whose address does not begin with one of own, and there must be no exception and no word in the console.
func Open(address, ready string, own ...string) *Page {
	ginkgo.GinkgoHelper()
	program := chromium()
	profile, err := os.MkdirTemp("", "chromium-*")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(os.RemoveAll, profile)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(program), chromedp.UserDataDir(profile), chromedp.WindowSize(1300, 900),
		chromedp.Flag("headless", true), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("no-first-run", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true))
	ginkgo.DeferCleanup(stop)
	ctx, _ := chromedp.NewContext(allocator)
	b := &Page{Context: ctx}
	gomega.Expect(chromedp.Listen(ctx, b.listen)).To(gomega.Succeed())
	ginkgo.DeferCleanup(func() { gomega.Expect(chromedp.Cancel(ctx)).To(gomega.Succeed()) })
	for _, enable := range []func() error{
		func() error { _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); return err },
		func() error { _, err := chromedp.Call(ctx, cdplog.Enable, cdp.Empty{}); return err },
		func() error { _, err := chromedp.Call(ctx, runtime.Enable, cdp.Empty{}); return err },
	} {
		gomega.Expect(enable()).To(gomega.Succeed())
	}
	b.Run(chromedp.Navigate(address), chromedp.WaitReady(chromedp.CSS(ready)))
	ginkgo.DeferCleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, request := range b.requests {
			itself := request == "data:," || slices.ContainsFunc(own, func(prefix string) bool { return strings.HasPrefix(request, prefix) })
			gomega.Expect(itself).To(gomega.BeTrue(), "a request left the page: %s", request)
		}
		gomega.Expect(b.requests).NotTo(gomega.BeEmpty(), "nothing was listened to")
		gomega.Expect(b.problems).To(gomega.BeEmpty())
	})
	return b
}

func (b *Page) listen(event any) {
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

// Run runs actions of chromedp.
func (b *Page) Run(actions ...chromedp.Action[chromedp.Void]) {
	ginkgo.GinkgoHelper()
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	gomega.Expect(chromedp.Do(ctx, actions...)).To(gomega.Succeed())
}

// Do runs a script for what it does.
func (b *Page) Do(script string) {
	ginkgo.GinkgoHelper()
	b.Run(chromedp.Evaluate[chromedp.Void](script))
}

// Choose takes a value of a list.
func (b *Page) Choose(label, value string) {
	ginkgo.GinkgoHelper()
	list := fmt.Sprintf(`select[aria-label=%q]`, label)
	b.Run(chromedp.SetValue(chromedp.CSS(list), value))
	b.Do(fmt.Sprintf("document.querySelector('%s').dispatchEvent(new Event('change'))", list))
}

// Media sets what the browser says of its colours; "" is what it is by itself.
func (b *Page) Media(scheme string) {
	ginkgo.GinkgoHelper()
	var features []*emulation.MediaFeature
	if scheme != "" {
		features = append(features, &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
	}
	_, err := chromedp.Call(b.Context, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
}

// JS is the value of an expression in the page.
func JS[T any](b *Page, expression string) T {
	ginkgo.GinkgoHelper()
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), expression)
	return value
}

// Press presses keys.
func (b *Page) Press(keys string, modifiers ...chromedp.KeyOption) {
	ginkgo.GinkgoHelper()
	b.Run(chromedp.KeyEvent(keys, modifiers...))
}

// Stroke presses a key that writes a character as a keyboard does: where the page takes the key for itself, nothing is written.
func (b *Page) Stroke(key string) {
	ginkgo.GinkgoHelper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		event := input.DispatchKeyEventParams{Type: kind, Key: key}
		if kind == input.DispatchKeyEventTypeKeyDown {
			event.Text = key
		}
		_, err := chromedp.Call(b.Context, input.DispatchKeyEvent, event)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
	}
}

// Becomes waits until an expression has a value.
func Becomes[T any](b *Page, expression string, want T) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(func() T { return JS[T](b, expression) }, patience, 20*time.Millisecond).Should(gomega.Equal(want), expression)
}

// Click clicks on an element.
func (b *Page) Click(selector string) {
	ginkgo.GinkgoHelper()
	b.Run(chromedp.Click(chromedp.CSS(selector)))
}

// Shoot saves a picture of the page where ECHOEVAL_SCREENSHOTS names a folder.
func (b *Page) Shoot(name string) {
	ginkgo.GinkgoHelper()
	picture, err := chromedp.Run(b.Context, chromedp.CaptureScreenshot())
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(len(picture)).To(gomega.BeNumerically(">", 5_000), "an empty picture")
	if folder := os.Getenv("ECHOEVAL_SCREENSHOTS"); folder != "" {
		gomega.Expect(os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644)).To(gomega.Succeed())
	}
}

// Forgive takes out of what the page did those words that contain one of the parts: a spec that tries what is forbidden expects them.
func (b *Page) Forgive(parts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = slices.DeleteFunc(b.problems, func(problem string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(problem, part) })
	})
}

func describe(o *runtime.RemoteObject) string {
	if o == nil {
		return ""
	}
	return o.Description
}
