//go:build unix

package main_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/harness/cassette"
)

// foreignFiles are the small examples of each format.
const foreignFiles = "harness/imports/recordings/testdata"

// foreign copies a small example into the project.
func (p *project) foreign(name, as string) {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join(suite.Root(), foreignFiles, name))
	Expect(err).NotTo(HaveOccurred())
	p.write(as, string(data))
}

// asVCRPy makes a recording of VCR.py out of a cassette of the project, as a client that is not ours would have left it: what was said to models alone, bodies compressed, headers in its own words.
func (p *project) asVCRPy(file string) string {
	GinkgoHelper()
	f, err := cassette.Load(p.path(file), file)
	Expect(err).NotTo(HaveOccurred())
	type object = map[string]any
	interactions := []object{}
	for _, i := range f.Interactions {
		if i.Request.Method == cassette.Method {
			continue
		}
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		_, err := z.Write([]byte(i.Response.Body))
		Expect(err).NotTo(HaveOccurred())
		Expect(z.Close()).To(Succeed())
		request := object{"method": i.Request.Method, "uri": i.Request.URL, "body": i.Request.Body, "headers": object{"authorization": []string{"Bearer " + "hidden"}, "user-agent": []string{"client/1"}}}
		for name, values := range i.Request.Headers {
			request["headers"].(object)[strings.ToLower(name)] = values
		}
		headers := object{"content-encoding": []string{"gzip"}, "date": []string{"Mon, 05 Jan 2026 09:00:00 GMT"}}
		for name, values := range i.Response.Headers {
			headers[strings.ToLower(name)] = values
		}
		interactions = append(interactions, object{"request": request, "response": object{
			"status": object{"code": i.Response.Code, "message": "OK"}, "headers": headers, "body": object{"base64_string": base64.StdEncoding.EncodeToString(zipped.Bytes())},
		}})
	}
	Expect(len(interactions)).To(BeNumerically(">", 1))
	data, err := json.Marshal(object{"version": 1, "interactions": interactions})
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}

var _ = Describe("cassette import", func() {
	It("puts a foreign recording where the replay of an item finds it, its tools run", func() {
		p := exampleProject()
		p.write("old.json", p.asVCRPy(mini+"total-copies.yaml"))
		p.remove(mini + "total-copies.yaml")
		only := []string{"--item", "total-copies", "--provider", "openai:gpt-4o-mini"}
		p.expect(4, append([]string{"run", quickstart}, only...)...)
		o := p.succeed(append([]string{"cassette", "import", "old.json", "--dataset", quickstart}, only...)...)
		Expect(o.stdout).To(And(
			MatchRegexp(`(?m)^format +exchanges +lost +changed +state +cassette\nVCR\.py +2 +2 +0 +written +`+mini+`total-copies\.yaml\n1 cassette, 2 exchanges\n`),
			ContainSubstring("lost: headers of the request that no cassette keeps: Authorization, User-Agent, 2 times (old.json:1:"),
			HaveSuffix("next: echoeval run "+quickstart+" --provider openai:gpt-4o-mini --item total-copies\n"),
		))
		Expect(o.stderr).To(BeEmpty())
		p.succeed(append([]string{"run", quickstart}, only...)...)
		Expect(p.results(p.last())[0].Cassette.State).To(Equal("fresh"))
		Expect(p.succeed("cassette", "show", mini+"total-copies.yaml").stdout).To(And(HavePrefix("quickstart / total-copies / openai:gpt-4o-mini, repeat 1\n"), ContainSubstring("imported from VCR.py"), ContainSubstring("came as gzip")))
		p.succeed("cassette", "verify", quickstart)
		p.succeed(append([]string{"cassette", "import", "old.json", "--check", "--dataset", quickstart}, only...)...)

		// What the tool gives now is compared in the next request.
		p.edit("datasets/workspaces/bookshop/stock.csv", "21.00", "22.00")
		o = p.expect(4, append([]string{"run", quickstart}, only...)...)
		Expect(o.all()).To(ContainSubstring("tool-result"))
	})

	It("makes free cassettes of many files, and a second time the same", func() {
		p := emptyProject()
		for from, to := range map[string]string{"govcr1.yaml": "old/go/a.yaml", "vcrpy.yaml": "old/py/a.yaml", "vcrpy.json": "old/py/a.json", "trace.httprr": "old/trace.httprr", "lists.yaml.gz": "old/lists.yaml.gz", "browser.har": "old/browser.har"} {
			p.foreign(from, to)
		}
		args := []string{"cassette", "import", "old/go/a.yaml", "old/py/a.yaml", "old/py/a.json", "old/trace.httprr", "old/lists.yaml.gz", "old/browser.har", "-o", "new"}
		o := p.expect(1, append(args, "--check")...)
		Expect(strings.Count(o.stdout, "does not exist")).To(Equal(6))
		Expect(p.path("new")).NotTo(BeADirectory())
		o = p.succeed(args...)
		Expect(o.stdout).To(And(ContainSubstring("6 cassettes, 14 exchanges\n"), ContainSubstring("next: echoeval cassette show new/go/a.yaml\n")))
		written := p.files("new")
		Expect(written).To(And(HaveLen(6), HaveKey("go/a.yaml"), HaveKey("py/a.yaml.yaml"), HaveKey("py/a.json.yaml"), HaveKey("trace.yaml"), HaveKey("lists.yaml"), HaveKey("browser.yaml")))
		for name := range written {
			shown := p.succeed("cassette", "show", "new/"+name, "--bodies").stdout
			Expect(shown).To(And(HavePrefix("a recording of no dataset\nmodel "), ContainSubstring(", imported from ")), name)
			Expect(p.succeed("cassette", "scrub", "new/"+name, "--dry-run").stdout).To(ContainSubstring("nothing to replace"))
		}
		Expect(strings.Count(p.succeed(args...).stdout, "the same")).To(Equal(6))
		expectSameFiles(p.files("new"), written)
		p.succeed(append(args, "--check")...)

		p.succeed("cassette", "import", "old/trace.httprr", "-o", "one.yaml")
		Expect(p.read("one.yaml")).To(Equal(written["trace.yaml"]))
	})

	It("overwrites nothing that would change without being told", func() {
		p := emptyProject()
		p.foreign("nock.json", "a.json")
		p.foreign("govcr1.yaml", "b.yaml")
		p.write("out/a.yaml", "mine\n")
		o := p.expect(2, "cassette", "import", "a.json", "b.yaml", "-o", "out")
		Expect(o.stderr).To(And(ContainSubstring("out/a.yaml: it exists and would change; nothing was written"), ContainSubstring("hint: ")))
		Expect(p.files("out")).To(Equal(map[string]string{"a.yaml": "mine\n"}))
		Expect(p.expect(1, "cassette", "import", "a.json", "-o", "out", "--check").stdout).To(ContainSubstring("differs"))
		p.succeed("cassette", "import", "a.json", "b.yaml", "-o", "out", "--force")
		Expect(p.read("out/a.yaml")).To(HavePrefix("---\nversion: 1\nechoeval:\n"))
		Expect(p.files("out")).To(HaveLen(2), "no temporary file is left")
	})

	It("prints JSON, a line for each file", func() {
		p := emptyProject()
		p.foreign("exchange.json", "a.json")
		p.write("b.json", "{}")
		o := p.expect(2, "cassette", "import", "a.json", "b.json", "-o", "out", "--json")
		var rows []struct {
			File, Format, Vendor, Model, Cassette, State, Problem string
			Exchanges, Lost, Changed                              int
			Notes                                                 []struct{ Class, At, Text, Hint string }
		}
		for line := range strings.Lines(o.stdout) {
			rows = append(rows, struct {
				File, Format, Vendor, Model, Cassette, State, Problem string
				Exchanges, Lost, Changed                              int
				Notes                                                 []struct{ Class, At, Text, Hint string }
			}{})
			Expect(json.Unmarshal([]byte(line), &rows[len(rows)-1])).To(Succeed())
		}
		Expect(rows).To(HaveLen(2))
		good, bad := rows[0], rows[1]
		Expect([]any{good.File, good.Format, good.Vendor, good.Model, good.Cassette, good.State, good.Problem, good.Exchanges, good.Changed}).To(Equal([]any{"a.json", "one exchange", "deepseek", "deepseek-chat", "out/a.yaml", "written", "", 1, 4}))
		Expect(good.Notes).To(HaveLen(4))
		Expect(good.Notes[len(good.Notes)-1].At).To(Equal("a.json:8:11"))
		Expect([]string{bad.File, bad.State, bad.Problem}).To(Equal([]string{"b.json", "failed", "no recording that is known"}))
		Expect(o.stderr).To(ContainSubstring("b.json:1:1: no recording that is known\n"))
	})

	It("holds no secret, and puts aside what cannot be cleaned", func() {
		key := "sk-" + "proj-ABCDEFGHIJKLMNOPQRST0123456789abcdefghij"
		p := emptyProject()
		for _, name := range []string{"x", "y", "z"} {
			p.write(name, name)
		}
		p.env = []string{"SHOP_TOKEN=blue-harbour-4711", "TENANT=tenant-0815"}
		p.foreign("govcr1.yaml", "a.yaml")
		p.edit("a.yaml", "Name a harbour.", "I am "+key+" and tenant-0815")
		p.edit("a.yaml", "Rotterdam", "blue-harbour-4711")
		p.foreign("govcr1.yaml", "b.yaml")
		p.edit("b.yaml", "gpt-4o-mini", key)
		o := p.expect(4, "cassette", "import", "a.yaml", "b.yaml", "-o", "out", "--value", "tenant=TENANT")
		Expect(o.stdout).To(And(ContainSubstring("openai-key in messages[0].content of the request of interaction 1 is replaced by a placeholder (a.yaml:4:3)"), ContainSubstring("value of SHOP_TOKEN in"), ContainSubstring("1 file failed")))
		Expect(o.stderr).To(And(ContainSubstring("b.yaml: not imported: openai-key in model of the header cannot be replaced"), ContainSubstring("hint: it is in .echoeval/quarantine")))
		Expect(p.read("out/a.yaml")).To(And(ContainSubstring("{{echoeval:tenant}}"), ContainSubstring("{{echoeval:scrubbed-openai-key}}")))
		Expect(p.path("out/b.yaml")).NotTo(BeAnExistingFile())
		info, err := os.Stat(p.path(".echoeval/quarantine/imported/b.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(fs.FileMode(0o600)))
		for _, text := range []string{key, "blue-harbour-4711", "tenant-0815"} {
			Expect(o.all()).NotTo(ContainSubstring(text))
			p.expectNowhere(text, "a.yaml", "b.yaml")
		}
	})

	DescribeTable("refuses what it cannot read, with its place", func(content, want string) {
		p := emptyProject()
		p.write("a.txt", content)
		o := p.expect(2, "cassette", "import", "a.txt", "-o", "out")
		Expect(o.stderr).To(ContainSubstring(want))
		Expect(o.stdout).To(MatchRegexp(`(?m)^.* +0 +0 +0 +failed +- \(a\.txt\)$`))
		Expect(p.path("out")).NotTo(BeADirectory())
	},
		Entry("no recording", "name: x\n", "a.txt:1:1: no recording that is known\nhint: known are"),
		Entry("a text with control characters", "\x1b[31mred\n", "a.txt:1:1: a control character: no recording that is known\nhint: "),
		Entry("no UTF-8", "a: \xff\n", "a.txt:1:4: byte 0xff is no UTF-8"),
		Entry("an empty file", "", "a.txt: the file is empty\n"),
		Entry("a file that is cut short", "{\"log\": {\"entries\": [{\"request\": {", "a.txt:1:35: the file is cut short: it ends within a JSON value\nhint: "),
		Entry("an unknown version", "version: 9\ninteractions:\n- request: {url: x}\n", "a.txt:1:10: version \"9\" of a recording with interactions; known are go-vcr 1 and 2 and VCR.py 1\nhint: "),
		Entry("a cassette of our own", "version: 1\nechoeval: {format: 1}\ninteractions:\n- request: {url: x}\n", "a.txt:1:1: it is a cassette of echoeval already\nhint: echoeval cassette show"),
		Entry("many aliases", "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n", "written out, is more than"),
	)

	DescribeTable("refuses what makes no sense", func(line, want, hint string) {
		p := exampleProject()
		p.foreign("govcr1.yaml", "a.yaml")
		p.foreign("govcr2.yaml", "b.yaml")
		before := p.files(".")
		o := p.expect(2, append([]string{"cassette", "import"}, strings.Fields(line)...)...)
		Expect(o.stderr).To(And(ContainSubstring(want), ContainSubstring("hint: "+hint)))
		expectSameFiles(p.files("."), before)
	},
		Entry(nil, "", "a recording", ""),
		Entry(nil, "a.yaml", "-o is missing", "echoeval cassette import a.yaml -o imported"),
		Entry(nil, "a.yaml b.yaml -o c.yaml", "-o c.yaml is one file, for 2 recordings", "name a folder"),
		Entry(nil, "a.yaml -o x --dataset "+quickstart, "-o and --dataset both say", "leave out"),
		Entry(nil, "a.yaml -o x --item i", "go with --dataset", "--dataset says"),
		Entry(nil, "a.yaml --dataset "+quickstart, "wants --provider and --item too", "echoeval cassette import FILE"),
		Entry(nil, "a.yaml b.yaml --dataset "+quickstart+" --provider openai:gpt-4o-mini --item total-copies", "not 2", "import each"),
		Entry(nil, "a.yaml --dataset "+quickstart+" --provider openai:gpt-4o-mini --item total-copy", `total-copy`, ""),
		Entry(nil, "a.yaml --dataset "+quickstart+" --provider opnai:gpt-4o-mini --item total-copies", "--provider opnai:gpt-4o-mini: neither", "did you mean"),
		Entry(nil, "a.yaml --dataset "+quickstart+" --provider openai:gpt-4o-mini --item total-copies --repeat 0", "--repeat 0", "repeats count from 1"),
		Entry(nil, "a.yaml ./a.yaml -o x", "a.yaml and ./a.yaml would both become a.yaml.yaml", "give each once"),
		Entry(nil, "nowhere.yaml -o x", "nowhere.yaml cannot be read: no such file", "check the path"),
		Entry(nil, "datasets -o x", "datasets cannot be read: it is a folder", "check the path"),
		Entry(nil, "a.yaml -o x --value y", "--value y: want NAME=ENV", ""),
		Entry(nil, "a.yaml --dataset "+quickstart+" --provider openai:gpt-4o-mini --item total-copies", "total-copies.yaml: it exists and would change", "--check compares"),
	)

	It("does not wait for a pipe", func() {
		p := emptyProject()
		Expect(syscall.Mkfifo(p.path("pipe"), 0o600)).To(Succeed())
		Expect(p.expect(2, "cassette", "import", "pipe", "-o", "out").stderr).To(ContainSubstring("pipe cannot be read: it is no regular file"))
	})

	It("imports all of the recorded traffic", func() {
		dir := suite.SharedData("cassettes")
		p := emptyProject()
		var files []string
		Expect(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() && entry.Name() != "INDEX.tsv" {
				files = append(files, path)
			}
			return err
		})).To(Succeed())
		Expect(len(files)).To(BeNumerically(">", 90))
		o := p.succeed(append(append([]string{"cassette", "import"}, files...), "-o", "out", "--json")...)
		exchanges := 0
		for line := range strings.Lines(o.stdout) {
			var row struct {
				State     string
				Exchanges int
			}
			Expect(json.Unmarshal([]byte(line), &row)).To(Succeed())
			Expect(row.State).To(Equal("written"))
			exchanges += row.Exchanges
		}
		Expect(exchanges).To(Equal(248))
		Expect(p.files("out")).To(HaveLen(len(files)))
	})
})
