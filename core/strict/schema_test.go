package strict_test

import (
	"encoding/json"
	"reflect"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/strict"
)

type described struct {
	Name   string               `yaml:"name,required" doc:"what it is called"`
	Kind   *string              `yaml:"kind" values:"a,b"`
	Wait   time.Duration        `yaml:"wait"`
	Counts map[string]int       `yaml:"counts"`
	Inner  []inner              `yaml:"inner"`
	Any    strict.Node          `yaml:"any"`
	Named  strict.Node          `yaml:"named" schema:"special"`
	Own    strict.Optional[int] `yaml:"own"`
	hidden int
}

type inner struct {
	On *bool `yaml:"on"`
}

type kept struct {
	inner2
	Value float64 `json:"value"`
	Later *int    `json:"later,omitempty"`
	Not   int     `json:"-"`
}

type inner2 struct {
	V int `json:"v"`
}

func schemaText(s strict.Schema) string {
	GinkgoHelper()
	text, err := json.Marshal(s)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

var _ = Describe("a schema", func() {
	It("says what Decode takes", func() {
		_ = described{}.hidden
		s := &strict.Schemas{
			Types: map[reflect.Type]func() strict.Schema{reflect.TypeFor[strict.Optional[int]](): func() strict.Schema { return strict.Schema{"type": "integer"} }},
			Named: map[string]func() strict.Schema{"special": func() strict.Schema { return strict.Enum("x") }},
		}
		Expect(schemaText(s.Root(described{}, "t"))).To(MatchJSON(`{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"t","type":"object","additionalProperties":false,"required":["name"],"properties":{
			"name":{"type":"string","description":"what it is called"},
			"kind":{"anyOf":[{"enum":["a","b"]},{"type":"null"}]},
			"wait":{"type":"string","pattern":"^[-+]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)","description":"a number and a unit: 60s, 1m30s, 500ms"},
			"counts":{"type":"object","additionalProperties":{"type":"integer"}},
			"inner":{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{"on":{"anyOf":[{"type":"boolean"},{"type":"null"}]}}}},
			"any":{},"named":{"enum":["x"]},"own":{"type":"integer"}}}`))
	})

	It("says what is written as JSON", func() {
		s := &strict.Schemas{Written: true}
		Expect(schemaText(s.Of(reflect.TypeFor[kept]()))).To(MatchJSON(`{"type":"object","required":["v","value"],"properties":{"v":{"type":"integer"},"value":{"type":"number"},"later":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`))
	})

	It("may refer to itself", func() {
		s := &strict.Schemas{}
		ref := s.Define("tree", func() strict.Schema { return strict.Schema{"items": s.Define("tree", nil)} })
		Expect(schemaText(ref)).To(Equal(`{"$ref":"#/$defs/tree"}`))
		Expect(schemaText(s.Root(inner{}, "t"))).To(ContainSubstring(`"$defs":{"tree":{"items":{"$ref":"#/$defs/tree"}}}`))
	})
})

var _ = Describe("values of a key", func() {
	It("are checked", func() {
		n, err := strict.Parse("a.yaml", []byte("name: x\nkind: c\n"))
		Expect(err).NotTo(HaveOccurred())
		var p strict.Problems
		var d described
		strict.Decode(n, &d, &p)
		Expect(p.Err()).To(MatchError(ContainSubstring(`kind: unknown value "c"`)))
		Expect(p.All()[0].Hint).To(Equal("choices: a, b"))
	})
})
