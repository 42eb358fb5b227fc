package emulator_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/harness/eventstream"
	"github.com/echoeval/echoeval/providers/providertest"
)

// serviceShape is a shape of the service's published description.
type serviceShape struct {
	Type, Pattern string
	Enum          []string
	Required      []string
	Min, Max      *float64
	Union         bool
	Document      bool
	EventStream   bool `json:"eventstream"`
	Members       map[string]struct{ Shape, Location string }
	Member        struct{ Shape string }
}

func service() map[string]serviceShape {
	GinkgoHelper()
	data, err := os.ReadFile(suite.SharedData("specs", "bedrock-runtime-service-2.json"))
	Expect(err).NotTo(HaveOccurred())
	var d struct{ Shapes map[string]serviceShape }
	Expect(json.Unmarshal(data, &d)).To(Succeed())
	Expect(d.Shapes).NotTo(BeEmpty())
	return d.Shapes
}

// conforms holds a value of a reply against a shape. p is padding that the description does not have.
func conforms(shapes map[string]serviceShape, at, name string, v any) error {
	s := shapes[name]
	switch s.Type {
	case "string":
		text, ok := v.(string)
		if !ok || s.Enum != nil && !slices.Contains(s.Enum, text) {
			return fmt.Errorf("%s: %v is no %s", at, v, name)
		}
	case "integer", "long":
		if n, ok := v.(float64); !ok || n != float64(int64(n)) || s.Min != nil && n < *s.Min {
			return fmt.Errorf("%s: %v is no %s", at, v, name)
		}
	case "list":
		items, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%s is no list", at)
		}
		for i, item := range items {
			if err := conforms(shapes, fmt.Sprintf("%s[%d]", at, i), s.Member.Shape, item); err != nil {
				return err
			}
		}
	case "structure":
		if s.Document {
			return nil
		}
		o, ok := v.(map[string]any)
		if !ok || s.Union && len(o) != 1 {
			return fmt.Errorf("%s: %v is no %s", at, v, name)
		}
		for _, needed := range s.Required {
			if o[needed] == nil {
				return fmt.Errorf("%s has no %s", at, needed)
			}
		}
		for member, v := range o {
			m, ok := s.Members[member]
			if !ok {
				return fmt.Errorf("%s.%s is unknown", at, member)
			}
			if err := conforms(shapes, at+"."+member, m.Shape, v); err != nil {
				return err
			}
		}
	case "blob":
	default:
		return fmt.Errorf("%s: the shape %s is a %q", at, name, s.Type)
	}
	return nil
}

// describes compares a row of our table with the description, and counts what it has compared.
func describes(shapes map[string]serviceShape, at, name string, ours *emulator.BedrockShape, seen map[string]bool) {
	GinkgoHelper()
	if ours.Kind == 0 {
		return // not looked into
	}
	s := shapes[name]
	seen[name] = true
	kinds := map[string]jsontext.Kind{"string": '"', "blob": '"', "integer": '0', "float": '0', "boolean": 't', "list": '[', "structure": '{'}
	Expect(ours.Kind).To(Equal(kinds[s.Type]), at)
	Expect(ours.Blob).To(Equal(s.Type == "blob"), at)
	Expect(ours.Enum).To(ConsistOf(s.Enum), at)
	Expect(ours.Required).To(ConsistOf(slices.DeleteFunc(slices.Clone(s.Required), func(n string) bool { return s.Members[n].Location == "uri" })), at)
	Expect(ours.Pattern).To(Equal(s.Pattern), at)
	Expect(ours.Union).To(Equal(s.Union), at)
	Expect(ours.Bounded).To(Equal(s.Min != nil || s.Max != nil), at)
	if s.Min != nil {
		Expect(ours.Low).To(Equal(*s.Min), at)
	}
	if s.Max != nil {
		Expect(ours.High).To(Equal(*s.Max), at)
	} else if ours.Bounded {
		Expect(ours.High).To(BeNumerically("<", ours.Low), at)
	}
	if s.Type == "list" {
		describes(shapes, at+"[]", s.Member.Shape, ours.Item, seen)
	}
	for member, m := range s.Members {
		if m.Location == "uri" {
			continue
		}
		Expect(ours.Members).To(HaveKey(member), at)
		describes(shapes, at+"."+member, m.Shape, ours.Members[member], seen)
	}
	Expect(len(ours.Members)).To(BeNumerically("<=", len(s.Members)), at)
}

const converseTools = `"toolConfig":{"tools":[{"toolSpec":{"name":"read_file","inputSchema":{"json":{"type":"object"}}}},{"toolSpec":{"name":"list_dir","inputSchema":{"json":{"type":"object"}}}}]},`

// converse is a request with the given messages; more is put before them.
func converse(more string, messages ...string) string {
	return "{" + more + `"messages":[` + strings.Join(messages, ",") + "]}"
}

func converseUser(text string) string {
	return `{"role":"user","content":[{"text":` + quote(text) + `}]}`
}

func postConverse(h http.Handler, way, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/model/claude-x%3A0/"+way, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var _ = Describe("the Converse format", func() {
	const thinks = `"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":1024}},`
	brief := `"system":[{"text":"Be brief."}],` + converseTools
	requests := map[string]string{"calls": converse(brief, converseUser("look at both")), "thinking": converse(thinks+brief, converseUser("look at both"))}
	for _, text := range []string{"unicode", "refuse", "filtered", "long", "empty", "think"} {
		requests[text] = converse("", converseUser(text))
	}

	It("holds requests to all that the service's description says", func() {
		seen := map[string]bool{}
		describes(service(), "", "ConverseRequest", emulator.BedrockRequestShape(), seen)
		Expect(len(seen)).To(BeNumerically(">", 45))
	})

	It("answers as the service's description says, in one piece and in frames alike", func() {
		shapes := service()
		h := handler(load(messagesScript), emulator.Options{})
		kinds := map[string]int{}
		for _, name := range slices.Sorted(maps.Keys(requests)) {
			w := postConverse(h, "converse", requests[name])
			Expect(w.Code).To(Equal(200), "%s: %s", name, w.Body)
			var whole map[string]any
			Expect(json.Unmarshal(w.Body.Bytes(), &whole)).To(Succeed())
			Expect(conforms(shapes, name, "ConverseResponse", whole)).To(Succeed())
			Expect(postConverse(h, "converse", requests[name]).Body.String()).To(Equal(w.Body.String()), "equal requests get equal bytes")

			s := postConverse(h, "converse-stream", requests[name])
			Expect(s.Header().Get("Content-Type")).To(Equal(eventstream.MediaType))
			text, input := "", ""
			for body := s.Body.String(); body != ""; {
				f, rest, ok := eventstream.Cut(body)
				Expect(ok).To(BeTrue(), "%s: %q", name, body)
				body = rest
				kind := f.Get(":event-type")
				kinds[kind]++
				var payload map[string]any
				Expect(json.Unmarshal([]byte(f.Payload), &payload)).To(Succeed())
				Expect(payload["p"]).NotTo(BeEmpty())
				delete(payload, "p")
				Expect(conforms(shapes, name, "ConverseStreamOutput", map[string]any{kind: payload})).NotTo(HaveOccurred())
				if delta, ok := payload["delta"].(map[string]any); ok {
					if piece, ok := delta["text"].(string); ok {
						text += piece
					}
					if use, ok := delta["toolUse"].(map[string]any); ok {
						input += use["input"].(string)
					}
				}
				if kind == "metadata" {
					Expect(payload["usage"]).To(Equal(whole["usage"]), name)
				}
				if kind == "messageStop" {
					Expect(payload["stopReason"]).To(Equal(whole["stopReason"]), name)
				}
			}
			said, called := "", ""
			for _, b := range whole["output"].(map[string]any)["message"].(map[string]any)["content"].([]any) {
				if t, ok := b.(map[string]any)["text"].(string); ok {
					said += t
				}
			}
			if strings.Contains(w.Body.String(), "toolUse") {
				called = `{"path":"a.txt","n":1.50}{}`
			}
			Expect(text).To(Equal(said), name)
			Expect(input).To(Equal(called), name)
		}
		Expect(slices.Sorted(maps.Keys(kinds))).To(Equal([]string{"contentBlockDelta", "contentBlockStart", "contentBlockStop", "messageStart", "messageStop", "metadata"}))
	})

	It("takes every recorded request", func() {
		h := handler(load("version: 1\nname: any\ndefault:\n  steps: [{text: a}, {text: b}, {text: c}, {text: d}]\n"), emulator.Options{})
		seen := 0
		for _, r := range providertest.Recordings("vcrpy-v1", "/converse-stream") {
			seen++
			w := postConverse(h, "converse", string(r.Request))
			Expect(w.Code).To(Equal(200), "%s: %s", r.File, w.Body)
		}
		Expect(seen).To(BeNumerically(">", 0))
	})

	use := func(id string) string {
		return `{"role":"assistant","content":[{"toolUse":{"toolUseId":"` + id + `","name":"read_file","input":{}}}]}`
	}
	result := func(id string) string {
		return `{"role":"user","content":[{"toolResult":{"toolUseId":"` + id + `","content":[{"text":"A"}]}}]}`
	}
	hi := converseUser("empty")
	DescribeTable("refuses", func(body, want string) {
		for _, way := range []string{"converse", "converse-stream"} {
			w := postConverse(handler(load(messagesScript), emulator.Options{}), way, body)
			Expect(w.Code).To(Equal(400), w.Body.String())
			Expect(w.Header().Get("X-Amzn-Errortype")).To(HavePrefix("ValidationException:"))
			Expect(w.Header().Get("X-Amzn-Requestid")).To(MatchRegexp(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$`))
			Expect(w.Body.String()).To(ContainSubstring(want))
		}
	},
		Entry("no message", converse(""), "must start with a user message"),
		Entry("an assistant first", converse(converseTools, use("a")), "must start with a user message"),
		Entry("one role twice", converse("", hi, hi), "must alternate"),
		Entry("another role", `{"messages":[{"role":"tool","content":[]}]}`, "Member must satisfy enum value set: [user, assistant, system]"),
		Entry("no content", `{"messages":[{"role":"user"}]}`, "Value null at 'messages.1.member.content'"),
		Entry("a blank text", converse("", converseUser(" ")), "is blank"),
		Entry("a call without its result", converse(converseTools, hi, use("a"), hi), "Expected toolResult blocks at messages.2.content for the following Ids: a"),
		Entry("a call at the end", converse(converseTools, hi, use("a")), "Expected toolResult blocks"),
		Entry("a result without its call", converse(converseTools, hi, use("a"), result("b")), "exceeds the number of toolUse blocks"),
		Entry("calls without tools", converse("", hi, use("a"), result("a")), "toolConfig field must be defined"),
		Entry("an id with a space", converse(converseTools, hi, use("a b"), result("a b")), "regular expression pattern"),
		Entry("an empty description", `{"toolConfig":{"tools":[{"toolSpec":{"name":"a","description":"","inputSchema":{"json":{"type":"object"}}}}]},"messages":[`+hi+`]}`, "greater than or equal to 1"),
		Entry("no tools", `{"toolConfig":{"tools":[]},"messages":[`+hi+`]}`, "greater than or equal to 1"),
		Entry("a temperature of 2", converse(`"inferenceConfig":{"temperature":2},`, hi), "less than or equal to 1"),
		Entry("a member of another vendor", converse(`"max_tokens":5,`, hi), "max_tokens is no member"),
		Entry("a document with a point in its name", `{"messages":[{"role":"user","content":[{"text":"empty"},{"document":{"format":"txt","name":"a.txt","source":{"bytes":"YQ=="}}}]}]}`, "The document file name"),
		Entry("an image that is none", `{"messages":[{"role":"user","content":[{"text":"empty"},{"image":{"format":"png","source":{"bytes":"YQ=="}}}]}]}`, "does not match the specified image format"),
		Entry("a small budget", converse(`"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":5}},`, hi), "greater than or equal to 1024"),
		Entry("arguments that are none, in one piece or not at all", converse("", converseUser("nobody")), "emulator_no_script"),
	)

	It("fails in the vendor's words, and takes a key or a signature", func() {
		h := handler(load(messagesScript), emulator.Options{Keys: []string{key}})
		for text, want := range map[string]string{"e403": "AccessDeniedException", "e404": "ResourceNotFoundException", "e408": "ModelTimeoutException", "e429": "ThrottlingException", "e500": "InternalServerException", "e503": "ServiceUnavailableException"} {
			w := postConverse(h, "converse", converse("", converseUser(text)))
			Expect(fmt.Sprint("e", w.Code)).To(Equal(text))
			Expect(w.Header().Get("X-Amzn-Errortype")).To(HavePrefix(want + ":"))
		}
		for authorization, status := range map[string]int{"Bearer " + key: 200, "AWS4-HMAC-SHA256 Credential=" + key + "/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=0": 200, "Bearer other-key": 403, "": 403} {
			Expect(postConverse(h, "converse", converse("", hi), "Authorization", authorization).Code).To(Equal(status), authorization)
		}
		Expect(postConverse(h, "count-tokens", "{}").Code).To(Equal(404))
		Expect(postConverse(h, "invoke", "{}").Body.String()).To(ContainSubstring("emulator_unsupported"))
		Expect(postConverse(h, "converse", converse("", converseUser("malformed"))).Body.String()).To(ContainSubstring("emulator_unsupported"))
		Expect(postConverse(h, "converse-stream", converse("", converseUser("malformed"))).Body.String()).To(ContainSubstring(`"input":"{\"pa"`))
	})
})
