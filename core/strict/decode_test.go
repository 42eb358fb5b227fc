package strict_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// colour decodes itself.
type colour struct{ name string }

func (c *colour) DecodeStrict(n strict.Node, p *strict.Problems) {
	if n.Text() != "red" {
		p.Add(n.Pos(), "write red", "no colour")
		return
	}
	c.name = n.Text()
}

type base struct {
	ID string `yaml:"id,required"`
}

type leaf struct {
	Contains string  `yaml:"contains"`
	Weight   *int8   `yaml:"weight"`
	Score    float32 `yaml:"score"`
}

func (*leaf) UnknownKey(name string) (message, hint string) {
	if name == "future" {
		return "not yet", "wait"
	}
	return "", ""
}

type tree struct {
	base
	Ok       bool                      `yaml:"ok"`
	Count    uint16                    `yaml:"count"`
	Wait     time.Duration             `yaml:"wait"`
	Leaves   []leaf                    `yaml:"leaves"`
	Names    []string                  `yaml:"names"`
	Sizes    map[string]int            `yaml:"sizes"`
	Lists    map[string][]string       `yaml:"lists"`
	Any      any                       `yaml:"any"`
	Node     strict.Node               `yaml:"node"`
	Colour   colour                    `yaml:"colour"`
	Colours  []colour                  `yaml:"colours"`
	Maybe    strict.Optional[float64]  `yaml:"maybe"`
	List     strict.Optional[[]string] `yaml:"list"`
	Pointer  *leaf                     `yaml:"pointer"`
	Untagged string
}

func decoded(text string) (tree, string) {
	GinkgoHelper()
	var t tree
	var p strict.Problems
	strict.Decode(parsed(text), &t, &p)
	Expect(p.Err() != nil).To(Equal(p.Len() > 0))
	return t, problems(p.Err())
}

var _ = Describe("decoding", func() {
	It("fills every type", func() {
		t, wrong := decoded(`
id: x
ok: true
count: 65535
wait: 1m30s
leaves: [{contains: a, weight: -128, score: 1}, {}]
names: [a, b]
sizes: {a: 1}
lists: {a: [b]}
any: {a: [1]}
node: {b: 2}
colour: red
colours: [red]
maybe: 2
list: null
pointer: null
`)
		Expect(wrong).To(BeEmpty())
		weight := int8(-128)
		Expect(t.ID).To(Equal("x"))
		Expect(t.Ok).To(BeTrue())
		Expect(t.Count).To(Equal(uint16(65535)))
		Expect(t.Wait).To(Equal(90 * time.Second))
		Expect(t.Leaves).To(Equal([]leaf{{Contains: "a", Weight: &weight, Score: 1}, {}}))
		Expect(t.Names).To(Equal([]string{"a", "b"}))
		Expect(t.Sizes).To(Equal(map[string]int{"a": 1}))
		Expect(t.Lists).To(Equal(map[string][]string{"a": {"b"}}))
		Expect(t.Any).To(Equal(map[string]any{"a": []any{int64(1)}}))
		Expect(t.Node.JSON()).To(Equal(`{"b":2}`))
		Expect(t.Colour.name).To(Equal("red"))
		Expect(t.Colours).To(HaveLen(1))
		Expect(t.Maybe).To(Equal(strict.Optional[float64]{Set: true, Value: 2}))
		Expect(t.List).To(Equal(strict.Optional[[]string]{Set: true, Null: true}))
		Expect(t.Pointer).To(BeNil())
	})

	It("tells unset from null", func() {
		t, wrong := decoded("id: x")
		Expect(wrong).To(BeEmpty())
		Expect(t.Maybe.Set).To(BeFalse())
		Expect(t.Node.IsZero()).To(BeTrue())
	})

	DescribeTable("names what is wrong with place, path and hint", func(text, want string) {
		_, wrong := decoded("id: x\n" + text)
		Expect(wrong).To(Equal(want))
	},
		Entry(nil, "name: [a]", `f.yaml:2:1: unknown key "name" | did you mean "names"?`),
		Entry(nil, "untagged: a", `f.yaml:2:1: unknown key "untagged" | choices: any, colour, colours, count, id, leaves, list, lists, maybe, names, node, ok, pointer, sizes, wait`),
		Entry(nil, "leaves: [{}, {contians: a}]", `f.yaml:2:15: leaves[1]: unknown key "contians" | did you mean "contains"?`),
		Entry(nil, "leaves: [{future: a}]", `f.yaml:2:11: leaves[0]: not yet | wait`),
		Entry(nil, "leaves: [{contains: 12}]", `f.yaml:2:21: leaves[0].contains: want a string, got a whole number | quote it: "12"`),
		Entry(nil, "leaves: [{contains: [a]}]", `f.yaml:2:21: leaves[0].contains: want a string, got a list`),
		Entry(nil, "names: 5", `f.yaml:2:8: names: want a list of strings, got a whole number | write it as a list: [5]`),
		Entry(nil, "names: {a: b}", `f.yaml:2:8: names: want a list of strings, got a mapping | begin each entry of the list with a dash`),
		Entry(nil, "names: [a, true]", `f.yaml:2:12: names[1]: want a string, got true or false | quote it: "true"`),
		Entry(nil, "names:", `f.yaml:2:7: names: want a list of strings, got null | write a value or leave the key out`),
		Entry(nil, "leaves: x", `f.yaml:2:9: leaves: want a list of mappings, got a string | write it as a list: ["x"]`),
		Entry(nil, "lists: {'a b': 1}", `f.yaml:2:16: lists["a b"]: want a list of strings, got a whole number | write it as a list: [1]`),
		Entry(nil, "sizes: [1]", `f.yaml:2:8: sizes: want a mapping to whole numbers, got a list`),
		Entry(nil, "sizes: {a: 1.5}", `f.yaml:2:12: sizes.a: want a whole number, got a number`),
		Entry(nil, `sizes: {a: "15"}`, `f.yaml:2:12: sizes.a: want a whole number, got a string | write it without quotes`),
		Entry(nil, "count: 65536", `f.yaml:2:8: count: 65536 is out of range`),
		Entry(nil, "count: -1", `f.yaml:2:8: count: -1 is out of range`),
		Entry(nil, "leaves: [{weight: 128}]", `f.yaml:2:19: leaves[0].weight: 128 is out of range`),
		Entry(nil, "leaves: [{score: 1e99}]", `f.yaml:2:18: leaves[0].score: 1e99 is out of range`),
		Entry(nil, "leaves: [{score: x}]", `f.yaml:2:18: leaves[0].score: want a number, got a string`),
		Entry(nil, "ok: yes", `f.yaml:2:5: ok: want true or false, got a string | write true or false, without quotes`),
		Entry(nil, "wait: 60", `f.yaml:2:7: wait: want a duration, got a whole number | write the unit: 60s`),
		Entry(nil, "wait: 60 s", `f.yaml:2:7: wait: "60 s" is no duration | write a number and a unit: 60s, 1m30s, 500ms`),
		Entry(nil, "wait: []", `f.yaml:2:7: wait: want a duration such as 60s, got a list`),
		Entry(nil, "colours: [red, blue]", `f.yaml:2:16: colours[1]: no colour | write red`),
		Entry(nil, "maybe: x", `f.yaml:2:8: maybe: want a number, got a string`),
		Entry(nil, "pointer: 1", `f.yaml:2:10: pointer: want a mapping, got a whole number`),
	)

	It("misses required keys, and does not take null for one", func() {
		_, wrong := decoded("ok: true")
		Expect(wrong).To(Equal(`f.yaml:1:1: key "id" is missing | add it: id: ...`))
		_, wrong = decoded("id:")
		Expect(wrong).To(Equal("f.yaml:1:4: id: want a string, got null | write a value or leave the key out"))
		_, wrong = decoded("[1]")
		Expect(wrong).To(Equal("f.yaml:1:1: want a mapping, got a list"))
	})

	It("leaves alone what does not fit", func() {
		t, _ := decoded("id: x\npointer: 1\nnames: 3\n")
		Expect(t.Pointer).To(BeNil())
		Expect(t.Names).To(BeNil())
	})

	It("lists the keys of a type in their order", func() {
		Expect(strict.Keys(&tree{})[:3]).To(Equal([]string{"id", "ok", "count"}))
	})

	It("panics on a programmer's mistake, naming it", func() {
		var c struct {
			C chan int `yaml:"c"`
		}
		Expect(func() { strict.Decode(parsed("c: 1"), &c, new(strict.Problems)) }).To(PanicWith("strict: Decode into chan int"))
		Expect(func() { strict.Decode(parsed("c: 1"), c, new(strict.Problems)) }).To(PanicWith(ContainSubstring("want a pointer")))
	})
})

var _ = Describe("problems", func() {
	at := func(line int) failure.Position { return failure.Position{File: "a", Line: line, Column: 1} }

	It("come out by place, each with its hint, once", func() {
		var p strict.Problems
		p.Add(at(3), "", "third")
		inner := p.Key("items").At(2).Key("a b").Key("c")
		inner.Add(at(1), "do it", "first %d", 1)
		inner.Root().Key("items").Add(at(1), "do it", "first %d", 1)
		p.AddError(failure.WithHint(failure.At(at(2), failure.Input, "second"), "do that"))
		p.AddError(nil)
		Expect(p.Len()).To(Equal(4), "a repeated one counts")
		Expect(p.All()).To(HaveLen(3))
		Expect(p.All()[0].Path).To(Equal(`items[2]["a b"].c`))
		Expect(failure.Render(p.Err())).To(Equal("error: a:1:1: items[2][\"a b\"].c: first 1\nhint: do it\nerror: a:2:1: second\nhint: do that\nerror: a:3:1: third\n"))
		Expect(failure.CodeOf(p.Err())).To(Equal(failure.Input))
	})

	It("splits joined errors", func() {
		var inner, p strict.Problems
		inner.Add(at(2), "x", "b")
		inner.Add(at(1), "y", "a")
		p.AddError(inner.Err())
		Expect(problems(p.Err())).To(Equal("a:1:1: a | y\na:2:1: b | x"))
	})

	It("keeps a hundred and counts the rest", func() {
		var p strict.Problems
		Expect(p.Err()).To(Succeed())
		for i := range 250 {
			p.Key("k").Add(at(i+1), "", "wrong")
		}
		Expect(p.Len()).To(Equal(250))
		lines := strings.Split(problems(p.Err()), "\n")
		Expect(lines).To(HaveLen(101))
		Expect(lines[100]).To(Equal("and 150 more problems"))
	})
})

func ExampleDecode() {
	n, err := strict.Parse("agents/triage.yaml", []byte("name: triage\ntols: [contacts]\nmax_iterations: many\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var config struct {
		Name          string   `yaml:"name,required"`
		Tools         []string `yaml:"tools"`
		MaxIterations int      `yaml:"max_iterations"`
	}
	var p strict.Problems
	strict.Decode(n, &config, &p)
	fmt.Print(failure.Render(p.Err()))
	// Output:
	// error: agents/triage.yaml:2:1: unknown key "tols"
	// hint: did you mean "tools"?
	// error: agents/triage.yaml:3:17: max_iterations: want a whole number, got a string
}
