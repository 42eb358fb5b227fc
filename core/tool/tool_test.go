package tool_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
)

func TestTool(t *testing.T) { suite.Run(t, "tool") }

type stub struct{ spec tool.Spec }

func (s stub) Spec() tool.Spec { return s.spec }
func (s stub) Run(context.Context, tool.Call) (tool.Output, error) {
	return tool.Text(s.spec.Description), nil
}
func named(name string) tool.Tool { return described(name, "") }
func described(name, description string) tool.Tool {
	return stub{tool.Spec{Name: name, Description: description, Parameters: `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`, Effect: tool.Read, Scope: tool.Workspace}}
}

func registry(names ...string) *tool.Registry {
	GinkgoHelper()
	var tools []tool.Tool
	for _, name := range names {
		tools = append(tools, named(name))
	}
	r, warnings, err := tool.NewRegistry(tools...)
	Expect(err).NotTo(HaveOccurred())
	Expect(warnings).To(BeEmpty())
	return r
}

var _ = Describe("a registry", func() {
	It("keeps the order and finds a tool by its exact name alone", func() {
		r := registry("b_tool", "a-tool", "C")
		Expect(r.Len()).To(Equal(3))
		var names []string
		for spec, t := range r.All() {
			Expect(t).NotTo(BeNil())
			names = append(names, spec.Name)
		}
		Expect(names).To(Equal([]string{"b_tool", "a-tool", "C"}))
		Expect(r.Specs()).To(HaveLen(3))
		for range r.All() {
			break
		}
		found, spec, ok := r.Lookup("a-tool")
		Expect(ok).To(BeTrue())
		Expect(found.Spec()).To(Equal(spec))
		for _, other := range []string{"A-tool", "a_tool", "c", "", "a-tool "} {
			_, _, ok := r.Lookup(other)
			Expect(ok).To(BeFalse(), other)
		}
	})

	It("keeps the first of two tools with one name, with a warning", func() {
		r, warnings, err := tool.NewRegistry(described("a", "first"), named("b"), described("a", "second"))
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(Equal([]tool.Warning{{Code: "duplicate-tool", Text: "tool a stands in the list a second time, at place 3; the first is kept"}}))
		Expect(r.Len()).To(Equal(2))
		_, spec, _ := r.Lookup("a")
		Expect(spec.Description).To(Equal("first"))
	})

	DescribeTable("refuses names", func(name, text string) {
		_, _, err := tool.NewRegistry(named(name))
		Expect(err).To(MatchError(ContainSubstring(text)))
	},
		Entry("empty", "", "1 to 64"),
		Entry("65 characters", strings.Repeat("a", 65), "1 to 64"),
		Entry("a dot", "a.b", "1 to 64"),
		Entry("a space", "a b", "1 to 64"),
		Entry("a newline at the end", "a\n", "1 to 64"),
		Entry("not ASCII", "tööl", "1 to 64"),
		Entry("reserved", "agents_list", "reserved"),
		Entry("reserved", "agents_route", "reserved"),
		Entry("reserved", "load_skill", "reserved"),
		Entry("reserved", "unload_skill", "reserved"),
	)

	It("takes a name of 64 characters and reports every bad tool at once", func() {
		registry(strings.Repeat("Z", 64))
		_, _, err := tool.NewRegistry(named("a b"), nil, stub{tool.Spec{Name: "ok", Parameters: `{}`}}, named("load_skill"))
		Expect(err).To(MatchError(And(ContainSubstring(`"a b"`), ContainSubstring("tool 2 is nil"), ContainSubstring("tool ok: "), ContainSubstring("tool load_skill"))))
	})

	It("tells a model that calls an unknown tool what to call instead", func() {
		r := registry("read_file", "write_file", "exec")
		Expect(r.Unknown("readFile")).To(Equal(`there is no tool "readFile"; do not call it again; did you mean read_file? (available: exec, read_file, write_file)`))
		Expect(r.Unknown("READ-FILE")).To(ContainSubstring("did you mean read_file?"))
		Expect(r.Unknown("bash")).To(Equal(`there is no tool "bash"; do not call it again (available: exec, read_file, write_file)`))
		Expect(r.Unknown("agents_list")).To(HavePrefix(`tool "agents_list" is reserved and not available`))
		Expect(r.Unknown("x\x00\"" + strings.Repeat("y", 1000))).To(And(HavePrefix(`there is no tool "x\u0000\"yyy`), ContainSubstring("…")))
		Expect(registry().Unknown("x")).To(HaveSuffix("(no tools are available)"))
		Expect(r.Validate("bash", `{}`)).To(MatchError(r.Unknown("bash")))
	})

	It("is narrowed without being changed", func() {
		r := registry("a", "b", "c")
		narrow := r.Select(func(s tool.Spec) bool { return s.Name != "b" })
		Expect(r.Len()).To(Equal(3))
		Expect(narrow.Len()).To(Equal(2))
		Expect(narrow.Validate("a", `{"path":"x"}`)).To(Succeed())
		Expect(narrow.Validate("c", `{}`)).To(MatchError("path is required and missing"))
		_, _, ok := narrow.Lookup("b")
		Expect(ok).To(BeFalse())
		specs := r.Specs()
		specs[0].Name = "changed"
		Expect(r.Specs()[0].Name).To(Equal("a"))
	})

	It("may be used from many goroutines", func() {
		r := registry("a", "b")
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				_ = r.Validate("a", `{"path":1}`)
				_ = r.Unknown("c")
				_, _, _ = tool.NewRegistry(named("a"))
			})
		}
		wg.Wait()
	})
})

var _ = Describe("hidden values", func() {
	It("are a copy, iterated by name", func() {
		values := conversation.Hidden{"b": `1`, "a": `"x"`}
		h := tool.NewHidden(values)
		values["a"] = `"changed"`
		v, ok := h.Get("a")
		Expect(ok).To(BeTrue())
		Expect(v).To(Equal(conversation.JSON(`"x"`)))
		var names []string
		for name := range h.All() {
			names = append(names, name)
		}
		Expect(names).To(Equal([]string{"a", "b"}))
		for range h.All() {
			break
		}
	})

	DescribeTable("show up as properties of a schema", func(schema string, want ...string) {
		h := tool.NewHidden(conversation.Hidden{"tenant_id": `"t"`, "user": `"u"`})
		Expect(tool.HiddenNames(conversation.JSON(schema), h)).To(ConsistOf(want))
	},
		Entry("none", `{"type":"object","properties":{"path":{"type":"string","enum":["tenant_id"]}},"required":["tenant_id"]}`),
		Entry("at the top", `{"type":"object","properties":{"tenant_id":{"type":"string"}}}`, "tenant_id"),
		Entry("below", `{"type":"object","properties":{"a":{"type":"object","properties":{"user":{},"x":{}}}}}`, "a.user"),
		Entry("in items", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"user":{}}}}}}`, "a[].user"),
		Entry("in a definition", `{"type":"object","$defs":{"d":{"properties":{"user":{}}}}}`, "d.user"),
		Entry("in alternatives", `{"type":"object","anyOf":[{"properties":{"user":{}}},{"properties":{"tenant_id":{}}}]}`, "tenant_id", "user"),
		Entry("a default is data", `{"type":"object","default":{"properties":{"user":{}}}}`),
		Entry("no JSON", `{`),
	)
})

var _ = Describe("the contract", func() {
	It("lets only pure and read calls run side by side", func() {
		Expect([]bool{tool.Pure.Parallel(), tool.Read.Parallel(), tool.Write.Parallel(), tool.Irreversible.Parallel(), tool.Effect("").Parallel()}).To(Equal([]bool{true, true, false, false, false}))
	})

	It("makes outputs of texts", func() {
		Expect(tool.Text("a\"b")).To(Equal(tool.Output{Result: `"a\"b"`}))
		Expect(tool.Failed("no")).To(Equal(tool.Output{Result: `"no"`, IsError: true}))
	})
})
