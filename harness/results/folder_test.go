package results_test

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/claim"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
)

var _ = Describe("the folder of a new run", func() {
	It("is named for time and dataset, and never one that is there", func() {
		runs := filepath.Join(GinkgoT().TempDir(), "deep", "runs")
		seen := map[string]bool{}
		for range 50 {
			id, dir, err := results.NewFolder(runs, resultstest.Start.In(time.FixedZone("x", 7200)), "clinic-triage")
			Expect(err).NotTo(HaveOccurred())
			Expect(id).To(MatchRegexp(`^20270104T081500Z-clinic-triage-[0-9a-f]{4}$`))
			Expect(dir).To(BeADirectory())
			Expect(seen).NotTo(HaveKey(id))
			seen[id] = true
		}
	})

	It("cannot lie below a file", func() {
		path := filepath.Join(GinkgoT().TempDir(), "file")
		Expect(os.WriteFile(path, nil, 0o644)).To(Succeed())
		_, _, err := results.NewFolder(filepath.Join(path, "runs"), resultstest.Start, "d")
		Expect(failure.CodeOf(err)).To(Equal(failure.Internal))
		Expect(failure.Hints(err)).To(ContainElement(ContainSubstring("--out")))
	})
})

var _ = Describe("the manifest", func() {
	It("comes back as it was written", func() {
		dir := GinkgoT().TempDir()
		finished := resultstest.Start.Add(time.Minute)
		want := results.Manifest{
			ID: "x", Tool: results.Tool{Version: "1.2", Platform: "linux/amd64"}, Started: resultstest.Start, Finished: &finished, Host: "h",
			Git: &results.Git{Commit: "abc"}, Warnings: []results.WarningCount{{Code: "c", Text: "t", Count: 2}}, Flags: []string{"run", "a b"}, Plan: resultstest.Size{Items: 1, Providers: 2, Repeats: 1}.Head(), Environment: []string{"CI"},
		}
		Expect(results.WriteManifest(dir, want)).To(Succeed())
		got, err := results.ReadManifest(dir)
		Expect(err).NotTo(HaveOccurred())
		want.V = results.Version
		Expect(got).To(Equal(want))
		Expect(string(file(dir, "manifest.json"))).To(ContainSubstring(`"started": "2027-01-04T08:15:00Z"`))
	})
	It("has every key also where nothing is known", func() {
		dir := GinkgoT().TempDir()
		Expect(results.WriteManifest(dir, results.Manifest{})).To(Succeed())
		for _, key := range []string{`"finished": null`, `"git": null`, `"shard": null`, `"flags": []`, `"environment": []`, `"providers": []`} {
			Expect(string(file(dir, "manifest.json"))).To(ContainSubstring(key))
		}
	})
})

var _ = Describe("finding a run", func() {
	var runs string

	// add makes a run of the dataset, minutes after the start.
	add := func(dataset string, after time.Duration) string {
		GinkgoHelper()
		at := resultstest.Start.Add(after)
		id, dir, err := results.NewFolder(runs, at, dataset)
		Expect(err).NotTo(HaveOccurred())
		Expect(results.WriteManifest(dir, results.Manifest{ID: id, Started: at})).To(Succeed())
		return id
	}
	resolve := func(name string) string {
		GinkgoHelper()
		dir, err := results.Resolve(runs, name)
		Expect(err).NotTo(HaveOccurred())
		return filepath.Base(dir)
	}

	BeforeEach(func() { runs = GinkgoT().TempDir() })

	It("takes a folder, an id, latest, a dataset and the beginning of an id", func() {
		a := add("clinic", 0)
		b := add("clinic", time.Hour)
		c := add("clinic-triage", 2*time.Hour)
		Expect(results.SetLatest(runs, a)).To(Succeed())
		Expect(resolve("latest")).To(Equal(a))
		Expect(results.SetLatest(runs, b)).To(Succeed())
		Expect(resolve("latest")).To(Equal(b))
		Expect(resolve(filepath.Join(runs, "latest"))).To(Equal(b))
		Expect(resolve(filepath.Join(runs, a))).To(Equal(a))
		Expect(resolve(a)).To(Equal(a))
		Expect(resolve("clinic")).To(Equal(b))
		Expect(resolve("clinic-triage")).To(Equal(c))
		Expect(resolve("20270104T09")).To(Equal(b))
		entries, err := os.ReadDir(runs)
		Expect(err).NotTo(HaveOccurred())
		Expect(entries).To(HaveLen(4), "no draft of the link stays")
	})

	It("reads latest also as a file of one line, and does without", func() {
		a := add("clinic", 0)
		Expect(resolve("latest")).To(Equal(a))
		Expect(os.WriteFile(filepath.Join(runs, "latest"), []byte(a+"\r\n"), 0o644)).To(Succeed())
		Expect(resolve("latest")).To(Equal(a))
		Expect(results.SetLatest(runs, a)).To(Succeed(), "the file gives way to a link")
		Expect(os.Remove(filepath.Join(runs, "latest"))).To(Succeed())
		Expect(os.WriteFile(filepath.Join(runs, "latest"), []byte("../../etc"), 0o644)).To(Succeed())
		_, err := results.Resolve(runs, "latest")
		Expect(err).To(MatchError(ContainSubstring("names no run")))
	})

	It("tells runs of one second apart by their manifests", func() {
		for i := range 8 {
			add("clinic", time.Duration((i*5)%8)*time.Millisecond)
		}
		want := add("clinic", 9*time.Millisecond)
		Expect(resolve("clinic")).To(Equal(want))
	})

	DescribeTable("that is not there", func(prepare func(), name, message, hint string) {
		prepare()
		_, err := results.Resolve(runs, strings.ReplaceAll(name, "RUNS", runs))
		Expect(err).To(MatchError(ContainSubstring(message)))
		Expect(failure.CodeOf(err)).To(Equal(failure.Input))
		Expect(failure.Hints(err)).To(ContainElement(ContainSubstring(hint)))
	},
		Entry(nil, func() {}, "latest", `there is no run "latest"`, "echoeval run"),
		Entry(nil, func() { runs = filepath.Join(runs, "absent") }, "clinic", `there is no run "clinic"`, "echoeval run"),
		Entry(nil, func() { add("clinic", 0) }, "clinik", `there is no run "clinik"`, `did you mean "clinic"?`),
		Entry(nil, func() { add("clinic", 0) }, "something-else", `there is no run`, "choices: 2027"),
		Entry(nil, func() { add("clinic", 0); add("clinic", time.Second) }, "2027", `2 runs begin with "2027"`, "choices: 2027"),
		Entry(nil, func() { Expect(os.Mkdir(filepath.Join(runs, "dir"), 0o755)).To(Succeed()) }, "RUNS/dir", "is no folder of a run", "--out"),
		Entry(nil, func() { add("clinic", 0) }, "", "the run has no name", "latest"),
	)
})

var _ = Describe("what a run leaves that was killed before it had a manifest", func() {
	It("is cleared away by the next run, unless a living one is making it", func() {
		runs := GinkgoT().TempDir()
		at := func(name string) string { return filepath.Join(runs, name) }
		const empty, draft, alive, other = "20260101T000000Z-d-0001", "20260101T000000Z-d-0002", "20260101T000000Z-d-0003", "20260101T000000Z-d-0004"
		for _, dir := range []string{empty, draft, alive, other, "something"} {
			Expect(os.Mkdir(at(dir), 0o755)).To(Succeed())
		}
		for _, file := range []string{draft + "/manifest.json.tmp", alive + "/manifest.json.tmp", other + "/notes.txt", "something/manifest.json.tmp"} {
			Expect(os.WriteFile(at(file), []byte("{"), 0o644)).To(Succeed())
		}
		Expect(os.Symlink(draft, at("latest."+draft+".tmp"))).To(Succeed())
		held, err := os.Open(at(alive + "/manifest.json.tmp"))
		Expect(err).NotTo(HaveOccurred())
		defer held.Close()
		Expect(claim.Take(held)).To(BeTrue())

		id, dir, err := results.NewFolder(runs, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), "d")
		Expect(err).NotTo(HaveOccurred())
		entries, err := os.ReadDir(runs)
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		Expect(names).To(Equal([]string{empty, alive, other, id, "something"}))
		Expect(at(alive + "/manifest.json.tmp")).To(BeARegularFile())

		// The sweep of a third run comes between the making of the draft and its claim.
		Expect(os.Remove(dir)).To(Succeed())
		Expect(results.WriteManifest(dir, results.Manifest{ID: id})).To(Succeed())
		Expect(filepath.Join(dir, "manifest.json")).To(BeARegularFile())
	})
})
