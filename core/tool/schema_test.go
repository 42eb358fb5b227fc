package tool_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
)

const bookSchema = `{"type":"object","required":["title","items"],"additionalProperties":false,"properties":{
	"title":{"type":"string","minLength":1,"maxLength":5},
	"mode":{"type":"string","enum":["content","glob"]},
	"count":{"type":"integer","minimum":1,"maximum":10},
	"ratio":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1},
	"flag":{"type":"boolean"},
	"fixed":{"const":7},
	"unit":{"type":["integer","string"]},
	"maybe":{"anyOf":[{"type":"string"},{"type":"null"}]},
	"form":{"oneOf":[{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}},{"type":"object","required":["b","c"]}]},
	"tree":{"$ref":"#/$defs/tree"},
	"pattern":{"type":"string","pattern":"^x"},
	"both":{"allOf":[{"type":"integer"},{"minimum":3}]},
	"items":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"odd name":{"type":"string"}}}},
	"map":{"type":"object","additionalProperties":{"type":"integer"}}
},"$defs":{"tree":{"type":"object","required":["v"],"properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}}}`

var _ = Describe("arguments", func() {
	check := func(schema, arguments string) error {
		GinkgoHelper()
		s, err := tool.CompileSchema(conversation.JSON(schema))
		Expect(err).NotTo(HaveOccurred())
		return s.Validate(conversation.JSON(arguments))
	}

	DescribeTable("that satisfy the schema", func(arguments string) { Expect(check(bookSchema, arguments)).To(Succeed()) },
		Entry("the least", `{"title":"a","items":[{"name":"x"}]}`),
		Entry("an integer written 3.0", `{"title":"a","items":[{"name":"x"}],"count":3.0}`),
		Entry("an integer written 3e0", `{"title":"a","items":[{"name":"x"}],"count":3e0}`),
		Entry("either type", `{"title":"a","items":[{"name":"x"}],"unit":"p"}`),
		Entry("null where it may be", `{"title":"a","items":[{"name":"x"}],"maybe":null}`),
		Entry("a schema that refers to itself", `{"title":"a","items":[{"name":"x"}],"tree":{"v":1,"kids":[{"v":2,"kids":[]}]}}`),
		Entry("characters, not bytes, are counted", `{"title":"ääääé","items":[{"name":"x"}]}`),
		Entry("unknown properties where they are allowed", `{"title":"a","items":[{"name":"x","more":1}]}`),
	)

	DescribeTable("that do not", func(arguments string, want ...string) {
		err := check(bookSchema, arguments)
		var problems *tool.ArgumentsError
		Expect(errors.As(err, &problems)).To(BeTrue())
		Expect(problems.Problems).To(Equal(want))
		Expect(err).To(MatchError(strings.Join(want, "; ")))
	},
		Entry("empty", `{}`, "title is required and missing", "items is required and missing"),
		Entry("everything at once", `{"title":1,"items":[{"name":"x"},{},{"name":2}],"mode":"files","x":1}`,
			"title must be a string, not the number 1", "items[1].name is required and missing", "items[2].name must be a string, not the number 2",
			`mode must be one of "content", "glob", not the string "files"`,
			"x is unknown; known are both, count, fixed, flag, form, items, map, maybe, mode, pattern, ratio, title, tree, unit"),
		Entry("a string for an integer", `{"title":"a","items":[{"name":"x"}],"count":"3"}`, `count must be an integer, not the string "3"`),
		Entry("a fraction for an integer", `{"title":"a","items":[{"name":"x"}],"count":3.5}`, `count must be an integer, not the number 3.5`),
		Entry("bounds", `{"title":"","items":[],"count":0,"ratio":1}`, "title must have at least 1 characters, not 0", "items must have at least 1 items, not 0", "count must be at least 1, not the number 0", "ratio must be below 1, not the number 1"),
		Entry("upper bounds", `{"title":"abcdef","items":[{"name":"x"},{"name":"x"},{"name":"x"},{"name":"x"}],"count":11,"ratio":0}`, "title must have at most 5 characters, not 6", "items must have at most 3 items, not 4", "count must be at most 10, not the number 11", "ratio must be above 0, not the number 0"),
		Entry("null is no value", `{"title":null,"items":[{"name":"x"}],"flag":"true"}`, "title must be a string, not null", `flag must be true or false, not the string "true"`),
		Entry("a const", `{"title":"a","items":[{"name":"x"}],"fixed":8}`, "fixed must be 7, not the number 8"),
		Entry("a choice of types", `{"title":"a","items":[{"name":"x"}],"unit":[]}`, "unit must be an integer or a string, not a list"),
		Entry("alternatives by type", `{"title":"a","items":[{"name":"x"}],"maybe":true}`, "maybe must be null or a string, not true"),
		Entry("alternatives by form", `{"title":"a","items":[{"name":"x"}],"form":{"a":"1"}}`, `form fits none of its 2 forms; nearest: form.a must be an integer, not the string "1"`),
		Entry("a reference", `{"title":"a","items":[{"name":"x"}],"tree":{"v":1,"kids":[{"v":2,"kids":[{"kids":{}}]}]}}`, "tree.kids[0].kids[0].v is required and missing", "tree.kids[0].kids[0].kids must be a list, not an object"),
		Entry("a name that is no plain word", `{"title":"a","items":[{"name":"x","odd name":1}]}`, `items[0]["odd name"] must be a string, not the number 1`),
		Entry("values of a map", `{"title":"a","items":[{"name":"x"}],"map":{"k":"v"}}`, `map.k must be an integer, not the string "v"`),
		Entry("all of", `{"title":"a","items":[{"name":"x"}],"both":2}`, "both must be at least 3, not the number 2"),
		Entry("what only the validator knows", `{"title":"a","items":[{"name":"x"}],"pattern":"y"}`, `the arguments do not satisfy the schema: pattern: "y" does not match regular expression "^x"`),
		Entry("a number without end", `{"title":"a","items":[{"name":"x"}],"count":1e999}`, "the arguments hold a number beyond the range of a 64-bit float"),
		Entry("no object", `[]`, "the arguments must be a JSON object, not a list"),
		Entry("a long value is shortened", `{"title":"a","items":[{"name":"x"}],"count":"`+strings.Repeat("é", 100)+`"}`, `count must be an integer, not the string "`+strings.Repeat("é", 60)+`…"`),
	)

	It("are refused when they are no JSON, have a key twice or nest without measure", func() {
		for arguments, text := range map[string]string{
			`{`: "not valid JSON", ``: "not valid JSON", `{"a":1,"a":2}`: "not valid JSON", `{} {}`: "after the end", `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`: "nested more than",
		} {
			Expect(check(`{"type":"object"}`, arguments)).To(MatchError(ContainSubstring(text)), arguments)
		}
	})

	It("tell big integers apart and keep their text", func() {
		schema := `{"type":"object","properties":{"id":{"type":"integer","maximum":9007199254740993,"enum":[1,9007199254740992]}}}`
		Expect(check(schema, `{"id":9007199254740992}`)).To(Succeed())
		Expect(check(schema, `{"id":9007199254740993}`)).To(MatchError(ContainSubstring("9007199254740993")))
		Expect(check(`{"type":"object","properties":{"id":{"type":"integer"}}}`, `{"id":123456789012345678901234567890}`)).To(Succeed())
		Expect(check(`{"type":"object","properties":{"id":{"type":"string"}}}`, `{"id":123456789012345678901234567890}`)).To(MatchError("id must be a string, not the number 123456789012345678901234567890"))
	})

	It("are decoded with 3.0 as an integer", func() {
		var into struct {
			Offset *int    `json:"offset"`
			Limit  int     `json:"limit"`
			Name   string  `json:"name"`
			Ratio  float64 `json:"ratio"`
		}
		Expect(tool.Decode(`{"offset":3.0,"limit":2e1,"name":"x","other":[],"ratio":0.5}`, &into)).To(Succeed())
		Expect(*into.Offset).To(Equal(3))
		Expect(into.Limit).To(Equal(20))
		Expect(into.Ratio).To(Equal(0.5))
		for _, bad := range []string{`{"limit":3.5}`, `{"limit":123456789012345678901234567890}`, `{"limit":1e300}`, `{"limit":"3"}`, `{"limit":9007199254740994.0}`, `{`, `{"limit":`} {
			Expect(tool.Decode(conversation.JSON(bad), &into)).NotTo(Succeed(), bad)
		}
	})
})

var _ = Describe("a schema", func() {
	DescribeTable("is refused", func(schema, text string) {
		_, err := tool.CompileSchema(conversation.JSON(schema))
		Expect(err).To(MatchError(ContainSubstring(text)))
	},
		Entry("empty", ``, "not valid JSON"),
		Entry("no JSON", `{"type":`, "not valid JSON"),
		Entry("a key twice", `{"type":"object","type":"object"}`, "not valid JSON"),
		Entry("no object", `[]`, "must be an object"),
		Entry("a boolean", `true`, "must be an object"),
		Entry("another type", `{"type":"string"}`, `"type": "object"`),
		Entry("without a type", `{"properties":{}}`, `"type": "object"`),
		Entry("an array without items", `{"type":"object","properties":{"a":{"type":"array"}}}`, "#/properties/a: an array needs items"),
		Entry("an array without items, deep", `{"type":"object","properties":{"a":{"anyOf":[{"type":"array","items":{"additionalProperties":{"type":["array","null"]}}}]}}}`, "#/properties/a/anyOf/0/items/additionalProperties: an array needs items"),
		Entry("a remote reference", `{"type":"object","properties":{"a":{"$ref":"https://example.com/x.json"}}}`, "leaves the document"),
		Entry("a file as reference", `{"type":"object","properties":{"a":{"$ref":"other.json#/a"}}}`, "leaves the document"),
		Entry("an anchor", `{"type":"object","properties":{"a":{"$ref":"#a","$anchor":"a"}}}`, "leaves the document"),
		Entry("a reference to nothing", `{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}}}`, "names nothing"),
		Entry("a reference to data", `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/required/0"}}}`, "names nothing"),
		Entry("a reference to itself", `{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`, "without end"),
		Entry("the root in itself", `{"type":"object","allOf":[{"$ref":"#"}]}`, "without end"),
		Entry("two in a ring", `{"type":"object","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`, "without end"),
		Entry("a ring in other spelling", `{"type":"object","$defs":{"a b":{"$ref":"#/$defs/a%20b"}}}`, "without end"),
		Entry("dynamic references", `{"type":"object","properties":{"a":{"$dynamicRef":"#x"}}}`, "$dynamicRef is not supported"),
		Entry("another draft", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`, "$schema is"),
		Entry("an id inside", `{"type":"object","properties":{"a":{"$id":"https://example.com/a"}}}`, "$id inside"),
		Entry("look-ahead", `{"type":"object","properties":{"a":{"pattern":"(?=x)"}}}`, "cannot be used"),
		Entry("a type of another kind", `{"type":"object","properties":{"a":{"type":7}}}`, "cannot be read"),
		Entry("too deep", `{"type":"object","properties":`+strings.Repeat(`{"a":`, 100)+`{}`+strings.Repeat("}", 101), "nested more than"),
		Entry("too long", `{"type":"object","description":"`+strings.Repeat("x", 1<<20)+`"}`, "at most 1048576"),
	)

	DescribeTable("is taken", func(schema string) {
		s, err := tool.CompileSchema(conversation.JSON(schema))
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Validate(`{}`)).To(Succeed())
		again, err := tool.CompileSchema(conversation.JSON(schema))
		Expect(err).NotTo(HaveOccurred())
		Expect(again).To(BeIdenticalTo(s), "compiled once")
	},
		Entry("the least", `{"type":"object"}`),
		Entry("draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/definitions/a"}}}`),
		Entry("2020-12", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`),
		Entry("itself by way of a property", `{"type":"object","properties":{"child":{"$ref":"#"}}}`),
		Entry("itself by way of items", `{"type":"object","$defs":{"n":{"type":"array","items":{"$ref":"#/$defs/n"}}},"properties":{"n":{"$ref":"#/$defs/n"}}}`),
		Entry("properties named like keywords", `{"type":"object","properties":{"$ref":{"type":"string"},"type":{"type":"string"},"items":{"type":"string"}}}`),
		Entry("booleans as schemas", `{"type":"object","properties":{"a":true,"b":false}}`),
	)
})

var vendorSpecs = []tool.Spec{
	{Name: "read_file", Description: "Read a \"file\" – é", Parameters: `{"type":"object","properties":{"path":{"type":"string"},"big":{"type":"integer","maximum":12345678901234567890}},"required":["path"]}`},
	{Name: "hazards", Description: "", Parameters: `{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "T", "type": "object", "additionalProperties": false, "required": [],
		"$defs": {
			"pet": {"title": "Pet", "type": "object", "description": "a pet", "properties": {"name": {"type": "string", "default": "x"}}, "required": ["name"]},
			"node": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node", "description": "the next one"}}}
		},
		"properties": {
			"title": {"type": "string", "title": "dropped"}, "default": {"type": "string", "default": "dropped"}, "examples": {"type": "array", "items": {"type": "string"}, "examples": [["dropped"]]},
			"$defs": {"type": "string"}, "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}},
			"pet": {"$ref": "#/$defs/pet", "description": "my pet", "properties": {"age": {"type": "integer"}}, "required": ["age", "name"]},
			"pets": {"type": "array", "items": {"$ref": "#/$defs/pet"}},
			"list": {"$ref": "#/$defs/node"},
			"self": {"$ref": "#"},
			"kind": {"enum": [{"title": "data stays", "$ref": "#/x"}, "a"], "const": {"default": 1}},
			"any": {"anyOf": [{"$ref": "#/$defs/pet"}, {"type": "null", "title": "dropped"}]}
		}
	}`},
}

var _ = Describe("the vendors' forms of a schema", func() {
	convert := map[string]func(tool.Spec) (conversation.JSON, error){
		"openai": tool.OpenAISchema, "anthropic": tool.AnthropicSchema, "bedrock": tool.BedrockSchema,
		"gemini": func(s tool.Spec) (conversation.JSON, error) { out, _, err := tool.GeminiSchema(s); return out, err },
	}

	It("are golden, valid and the same every time", func() {
		for vendor, f := range convert {
			for _, spec := range vendorSpecs {
				out, err := f(spec)
				Expect(err).NotTo(HaveOccurred())
				Expect(out.Valid()).To(BeTrue())
				for range 5 {
					again, err := f(spec)
					Expect(err).NotTo(HaveOccurred())
					Expect(again).To(Equal(out))
				}
				suite.Golden(vendor+"-"+spec.Name+".json", []byte(out+"\n"))
			}
			_, err := f(tool.Spec{Name: "x", Parameters: `{`})
			Expect(err).To(MatchError(ContainSubstring("tool x: ")))
		}
	})

	It("report what Gemini cannot take", func() {
		out, warnings, err := tool.GeminiSchema(vendorSpecs[1])
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).NotTo(ContainSubstring("dropped"))
		Expect(warnings).To(ConsistOf(
			tool.Warning{Code: "recursive-schema", Text: `tool hazards: $ref "#/$defs/node" leads back to itself; at its second appearance only its type is kept`},
			tool.Warning{Code: "recursive-schema", Text: `tool hazards: $ref "#" leads back to itself; at its second appearance only its type is kept`},
			tool.Warning{Code: "schema-left-out", Text: "tool hazards: an enum of other values than strings was left out of the schema: Gemini has none"},
			tool.Warning{Code: "schema-left-out", Text: "tool hazards: the keyword const was left out of the schema: Gemini has none"},
		))
		out, _, err = tool.GeminiSchema(tool.Spec{Name: "x", Parameters: `{"type":"object","$defs":{"n":{"type":"array","items":{"$ref":"#/$defs/n"}}},"properties":{"a":{"$ref":"#/$defs/n"}}}`})
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(Equal(conversation.JSON(`{"name":"x","description":"","parameters":{"type":"object","properties":{"a":{"type":"array","items":{"type":"array","items":{"type":"object"}}}}}}`)))
		out, warnings, err = tool.GeminiSchema(tool.Spec{Name: "x", Parameters: `{"type":"object","properties":{"a":{"$ref":"#/$defs/gone","description":"d"}}}`})
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(Equal(conversation.JSON(`{"name":"x","description":"","parameters":{"type":"object","properties":{"a":{"$ref":"#/$defs/gone","description":"d"}}}}`)))
		Expect(warnings).To(ConsistOf(HaveField("Code", "unresolved-reference")))
	})

	DescribeTable("are said in the keywords that Gemini has", func(schema, want string, leftOut ...string) {
		out, warnings, err := tool.GeminiSchema(tool.Spec{Name: "x", Parameters: conversation.JSON(`{"type":"object","properties":{"a":` + schema + `}}`)})
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(Equal(conversation.JSON(`{"name":"x","description":"","parameters":{"type":"object","properties":{"a":` + want + `}}}`)))
		var texts []string
		for _, w := range warnings {
			Expect(w.Code).To(Equal("schema-left-out"))
			texts = append(texts, w.Text)
		}
		Expect(texts).To(HaveLen(len(leftOut)))
		for i := range leftOut {
			Expect(texts[i]).To(Equal("tool x: " + leftOut[i] + " was left out of the schema: Gemini has none"))
		}
	},
		Entry("a type or null", `{"type":["string","null"],"description":"d"}`, `{"type":"string","description":"d","nullable":true}`),
		Entry("several types", `{"type":["string","array"]}`, `{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"object"}}]}`),
		Entry("an enum", `{"type":"string","enum":["a","b"]}`, `{"type":"string","enum":["a","b"]}`),
		Entry("an enum with null", `{"enum":["a",null]}`, `{"enum":["a"],"nullable":true}`),
		Entry("an enum of numbers", `{"type":"integer","enum":[1,2]}`, `{"type":"integer"}`, "an enum of other values than strings"),
		Entry("a const", `{"const":"a"}`, `{"enum":["a"]}`),
		Entry("oneOf", `{"oneOf":[{"const":"a"},{"type":"integer","exclusiveMinimum":0}]}`, `{"anyOf":[{"enum":["a"]},{"type":"integer"}]}`, "the keyword exclusiveMinimum"),
		Entry("a format", `{"type":"string","format":"uri"}`, `{"type":"string"}`, "the format uri"),
		Entry("a format of numbers", `{"type":"integer","format":"int64"}`, `{"type":"integer","format":"int64"}`),
		Entry("properties of those names", `{"type":"object","properties":{"const":{"type":"string"},"not":{"type":"string"}}}`, `{"type":"object","properties":{"const":{"type":"string"},"not":{"type":"string"}}}`),
	)

	It("are bounded where definitions use each other twice", func() {
		var defs []string
		for i := range 40 {
			next := `{"type":"string"}`
			if i < 39 {
				next = fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
			}
			defs = append(defs, fmt.Sprintf(`"d%d":{"type":"object","properties":{"a":%s,"b":%s}}`, i, next, next))
		}
		_, _, err := tool.GeminiSchema(tool.Spec{Name: "x", Parameters: conversation.JSON(`{"type":"object","properties":{"p":{"$ref":"#/$defs/d0"}},"$defs":{` + strings.Join(defs, ",") + `}}`)})
		Expect(err).To(MatchError(ContainSubstring("more than 20000 values")))
	})
})

func FuzzSchema(f *testing.F) {
	for _, spec := range vendorSpecs {
		f.Add(string(spec.Parameters), `{"path":"x"}`)
	}
	f.Add(bookSchema, `{"title":"a","items":[{"name":1}],"maybe":2}`)
	f.Add(`{"type":"object","properties":{"a":{"anyOf":[true,false,{"not":{}}]}}}`, `{"a":1e400}`)
	f.Fuzz(func(t *testing.T, schema, arguments string) {
		spec := tool.Spec{Name: "x", Parameters: conversation.JSON(schema)}
		if out, _, err := tool.GeminiSchema(spec); err == nil && !out.Valid() {
			t.Fatalf("no JSON: %s", out)
		}
		s, err := tool.CompileSchema(spec.Parameters)
		if err != nil {
			return
		}
		if err := s.Validate(conversation.JSON(arguments)); err != nil && err.Error() == "" {
			t.Fatal("an error without a text")
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	s, err := tool.CompileSchema(bookSchema)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(`{"title":"a","items":[{"name":"x"}],"count":3}`); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompileAgain(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tool.CompileSchema(bookSchema); err != nil {
			b.Fatal(err)
		}
	}
}
