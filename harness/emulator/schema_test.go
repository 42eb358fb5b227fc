package emulator_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/olekukonko/tablewriter"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/emulator"
)

// description is the vendor's published description of its interface, as schemas that can be asked.
type description struct {
	schemas strict.Node
	ready   map[string]*jsonschema.Resolved
	valid   map[string]int
	refused map[string]int
	// lax says that members with a default need not be there, although they are listed as required.
	lax bool
}

func newDescription(file string) *description {
	GinkgoHelper()
	path := suite.SharedData("specs", file)
	data, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	root, err := strict.Parse(file, data)
	Expect(err).NotTo(HaveOccurred())
	d := &description{schemas: root.Get("components").Get("schemas"), ready: map[string]*jsonschema.Resolved{}, valid: map[string]int{}, refused: map[string]int{}}
	Expect(d.schemas.Len()).To(BeNumerically(">", 100))
	return d
}

const componentPrefix = "#/components/schemas/"

// adapt turns OpenAPI's dialect into plain JSON Schema: references within the document, nullable; and it collects what is referred to.
func adapt(v any, found map[string]bool) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = adapt(v[i], found)
		}
	case map[string]any:
		for k := range v {
			v[k] = adapt(v[k], found)
		}
		if ref, ok := v["$ref"].(string); ok {
			name, ok := strings.CutPrefix(ref, componentPrefix)
			if ok {
				found[name] = true
				v["$ref"] = "#/$defs/" + name
			}
		}
		if v["nullable"] == true {
			delete(v, "nullable")
			return map[string]any{"anyOf": []any{v, map[string]any{"type": "null"}}}
		}
	}
	return v
}

// withoutDefaults takes the members that have a default out of what a schema requires.
func withoutDefaults(v any) {
	s, ok := v.(map[string]any)
	if !ok {
		return
	}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	if properties == nil || required == nil {
		return
	}
	s["required"] = slices.DeleteFunc(required, func(name any) bool {
		p, _ := properties[name.(string)].(map[string]any)
		_, has := p["default"]
		return has
	})
}

func (d *description) schema(name string) *jsonschema.Resolved {
	GinkgoHelper()
	if r, ok := d.ready[name]; ok {
		return r
	}
	defs := map[string]any{}
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		if defs[queue[0]] != nil {
			continue
		}
		node := d.schemas.Get(queue[0])
		Expect(node.IsZero()).To(BeFalse(), "the description has no %s", queue[0])
		found := map[string]bool{}
		def := adapt(node.Any(), found)
		if item, ok := def.(map[string]any); ok && queue[0] == "InputItem" {
			// A message without its type, which may be left out, fits two of the alternatives.
			item["anyOf"] = item["oneOf"]
			delete(item, "oneOf")
		}
		defs[queue[0]] = def
		if d.lax {
			withoutDefaults(defs[queue[0]])
		}
		queue = append(queue, slices.Sorted(maps.Keys(found))...)
	}
	text, err := json.Marshal(map[string]any{"$ref": "#/$defs/" + name, "$defs": defs})
	Expect(err).NotTo(HaveOccurred())
	var s jsonschema.Schema
	Expect(json.Unmarshal(text, &s)).To(Succeed())
	r, err := s.Resolve(nil)
	Expect(err).NotTo(HaveOccurred(), name)
	d.ready[name] = r
	return r
}

func (d *description) validate(name, text string) error {
	GinkgoHelper()
	var v any
	Expect(json.Unmarshal([]byte(text), &v)).To(Succeed(), text)
	return d.schema(name).Validate(v)
}

// accepts expects the text to fit a schema.
func (d *description) accepts(name, text, what string) {
	GinkgoHelper()
	Expect(d.validate(name, text)).To(Succeed(), "%s does not fit %s: %s", what, name, text)
	d.valid[name]++
}

// rejects expects that it does not.
func (d *description) rejects(name, text string) {
	GinkgoHelper()
	Expect(d.validate(name, text)).NotTo(Succeed(), "%s takes what is broken: %s", name, text)
	d.refused[name]++
}

var _ = Describe("the published description", func() {
	const (
		requestSchema  = "CreateChatCompletionRequest"
		responseSchema = "CreateChatCompletionResponse"
		chunkSchema    = "CreateChatCompletionStreamResponse"
		errorSchema    = "ErrorResponse"
		messageSchema  = "ChatCompletionResponseMessage"
		usageSchema    = "CompletionUsage"
	)

	It("fits every reply and every request that is answered", func() {
		d := newDescription("openai-openapi.yaml")
		h := handler(full(), emulator.Options{})
		for name, body := range accepted() {
			w := call(h, body)
			Expect(w.Code).To(Equal(200), "%s: %s", name, w.Body)
			d.accepts(requestSchema, body, name)
			reply := w.Body.String()
			d.accepts(responseSchema, reply, name)
			var parts struct {
				Choices []struct{ Message json.RawMessage }
				Usage   json.RawMessage
			}
			Expect(json.Unmarshal(w.Body.Bytes(), &parts)).To(Succeed())
			d.accepts(messageSchema, string(parts.Choices[0].Message), name)
			d.accepts(usageSchema, string(parts.Usage), name)
			for _, more := range []string{streamed, streamedWithUsage} {
				body := with(body, more)
				w := call(h, body)
				Expect(w.Code).To(Equal(200), "%s: %s", name, w.Body)
				d.accepts(requestSchema, body, name)
				for _, frame := range frames(w.Body.Bytes()) {
					d.accepts(chunkSchema, frame, name)
				}
			}

			// The check must be able to fail.
			for _, change := range []string{`"finish_reason": "`, `"logprobs": null`, `"role": "assistant"`, `"index": 0`, `"prompt_tokens": `} {
				broken := strings.Replace(reply, change, strings.Replace(change, `": `, `_": `, 1), 1)
				Expect(broken).NotTo(Equal(reply), change)
				d.rejects(responseSchema, broken)
			}
			frame := frames(call(h, with(body, streamed)).Body.Bytes())[0]
			for _, change := range [][2]string{{`"delta":`, `"delat":`}, {`"chat.completion.chunk"`, `"chat.completion"`}, {`"finish_reason":null`, `"finish_reason":"done"`}, {`"created":`, `"created":"x","c":`}} {
				broken := strings.Replace(frame, change[0], change[1], 1)
				Expect(broken).NotTo(Equal(frame), change[0])
				d.rejects(chunkSchema, broken)
			}
			d.rejects(requestSchema, strings.Replace(body, `"messages":`, `"mesages":`, 1))
			d.rejects(requestSchema, strings.Replace(body, `"role":"user"`, `"role":"person"`, 1))
		}
		for _, r := range refusals() {
			text := r.send().Body.String()
			d.accepts(errorSchema, text, r.name)
			d.rejects(errorSchema, strings.Replace(text, `"param": `, `"parm": `, 1))
		}
		for text := range failures {
			d.accepts(errorSchema, call(h, ask(text, "")).Body.String(), text)
		}

		table := tablewriter.NewWriter(os.Stdout)
		table.Header("schema", "validated", "broken and rejected")
		for _, name := range []string{requestSchema, responseSchema, messageSchema, usageSchema, chunkSchema, errorSchema} {
			Expect(d.valid[name]).To(BeNumerically(">", 0), name)
			Expect(table.Append(name, fmt.Sprint(d.valid[name]), fmt.Sprint(d.refused[name]))).To(Succeed())
		}
		Expect(d.refused[responseSchema]).To(BeNumerically(">", 0))
		Expect(table.Render()).To(Succeed())
	})
})
