//go:build unix

package main_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/cassette"
)

// setupFile is the cassette of what a run fetches once. Nothing of this version records one; it is read as every other.
const setupFile = "fixtures/cassettes/quickstart/" + cassette.SetupFile

// withSetup makes the example project with a cassette of what a run fetches once. The text is in the answer.
func withSetup(text string) *project {
	GinkgoHelper()
	p := exampleProject()
	from := p.path(mini + "total-copies.yaml")
	f, err := cassette.Load(from, "x")
	Expect(err).NotTo(HaveOccurred())
	f.Header.Item, f.Header.Provider, f.Header.Vendor, f.Header.Model, f.Header.Repeat = "", "", "", "", 0
	f.Interactions = f.Interactions[:1]
	f.Interactions[0].Response.Body = `{"prompt":"` + text + `"}`
	f.Interactions[0].Extra.TTFT = 0
	Expect(cassette.Save(p.path(setupFile), setupFile, f)).To(Succeed())
	return p
}

var _ = Describe("the cassette of what a run fetches once", func() {
	It("is listed, is no orphan, and disturbs nobody", func() {
		p := withSetup("Be kind.")
		before := p.read(setupFile)
		o := p.succeed("cassette", "ls", quickstart)
		Expect(o.stdout).To(MatchRegexp(`(?m)^setup +quickstart/_setup\.yaml  1 interaction, recorded `))
		Expect(strings.Count(o.stdout, "_setup")).To(Equal(1))
		o = p.succeed("cassette", "verify", quickstart)
		Expect(o.stdout).To(ContainSubstring("24 fresh, 0 stale, 0 missing, 0 orphaned"))
		Expect(p.succeed("cassette", "prune", quickstart).stdout).To(Equal("quickstart: no orphans\n"))
		Expect(p.succeed("cassette", "show", setupFile).stdout).To(ContainSubstring("Be kind."))
		p.succeed("run", quickstart)
		Expect(p.summary(p.last()).Cassettes.Orphaned).To(BeZero())
		Expect(p.read(setupFile)).To(Equal(before))
	})

	It("is scrubbed", func() {
		const key = "sk-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKL"
		p := withSetup("The key is " + key)
		o := p.run("cassette", "scrub", setupFile, "--dry-run")
		Expect(o.all()).To(ContainSubstring("_setup.yaml"))
		Expect(o.all()).NotTo(ContainSubstring(key))
		Expect(p.read(setupFile)).To(ContainSubstring(key))
		p.succeed("cassette", "scrub", setupFile)
		Expect(p.read(setupFile)).NotTo(ContainSubstring(key))
	})

	It("that cannot be read is told, by verify with code 4", func() {
		p := withSetup("Be kind.")
		p.write(setupFile, p.read(setupFile)[:300])
		Expect(p.run("cassette", "ls", quickstart).stdout).To(MatchRegexp(`(?m)^unreadable +quickstart/_setup\.yaml`))
		o := p.expect(4, "cassette", "verify", quickstart)
		Expect(o.all()).To(ContainSubstring("quickstart/_setup.yaml"))
	})

	It("is no conversation, so that diff leaves it out", func() {
		p := withSetup("Be kind.")
		p.write("old/quickstart/_setup.yaml", strings.Replace(p.read(setupFile), "Be kind.", "Be quick.", 1))
		for name, text := range p.files("fixtures/cassettes/quickstart") {
			if !strings.Contains(name, "_setup") {
				p.write("old/quickstart/"+name, text)
			}
		}
		o := p.run("cassette", "diff", "old", quickstart)
		Expect(o.stdout).To(HavePrefix("quickstart: 0 changed, 0 with other requests only, 24 same, 0 only in old, 0 only in "))
	})
})
