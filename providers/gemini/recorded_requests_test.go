package gemini_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/olekukonko/tablewriter"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/providers/gemini"
	"github.com/echoeval/echoeval/providers/providertest"
)

// asked is a recorded request on its way into ours. found counts what is known to differ.
type asked struct {
	found map[string]int
	body  map[string]any
	calls map[string]string // ids by name, of calls without one
}

func (a *asked) differs(name string) { a.found[name]++ }

// named brings a member into the spelling of the vendor's reference.
func (a *asked) named(of map[string]any, short, name string) {
	if v, there := of[short]; there {
		a.differs("members in snake_case")
		delete(of, short)
		of[name] = v
	}
}

func object(v any) map[string]any { o, _ := v.(map[string]any); return o }

func listed(v any) []any { l, _ := v.([]any); return l }

func written(v any) conversation.JSON {
	GinkgoHelper()
	text, err := json.Marshal(v)
	Expect(err).NotTo(HaveOccurred())
	return conversation.JSON(text)
}

// request is ours, false where the recorded one cannot be said in our words. What differs is changed in the body on the way.
func (a *asked) request() (req llm.Request, ok bool) {
	GinkgoHelper()
	for _, p := range listed(object(a.body["systemInstruction"])["parts"]) {
		text, _ := object(p)["text"].(string)
		req.System += text
	}
	if system := object(a.body["systemInstruction"]); system["role"] != nil {
		a.differs("a role of the instructions")
		delete(system, "role")
	}
	config := object(a.body["generationConfig"])
	if n, there := config["maxOutputTokens"].(json.Number); there {
		limit, err := strconv.Atoi(string(n))
		Expect(err).NotTo(HaveOccurred())
		req.Settings.MaxTokens = &limit
	}
	if thinking := object(config["thinkingConfig"]); thinking != nil {
		a.named(thinking, "include_thoughts", "includeThoughts")
		a.named(thinking, "thinking_budget", "thinkingBudget")
		if thinking["includeThoughts"] == nil && thinking["thinkingBudget"] != json.Number("0") {
			a.differs("thoughts that are not asked for")
			thinking["includeThoughts"] = true
		}
		if n, there := thinking["thinkingBudget"].(json.Number); there {
			budget, err := strconv.Atoi(string(n))
			Expect(err).NotTo(HaveOccurred())
			req.Settings.Thinking.BudgetTokens = &budget
		}
		if level, there := thinking["thinkingLevel"].(string); there {
			req.Settings.Thinking.Level = strings.ToLower(level)
			if level != strings.ToLower(level) {
				a.differs("a level in capitals")
				thinking["thinkingLevel"] = strings.ToLower(level)
			}
		}
	}
	if config != nil && len(config) == 0 {
		a.differs("an empty member")
		delete(a.body, "generationConfig")
	}
	if calling := object(object(a.body["toolConfig"])["functionCallingConfig"]); calling != nil {
		req.Settings.ToolChoice = map[any]string{"AUTO": "auto", "ANY": "required", "NONE": "none"}[calling["mode"]]
	}
	for _, t := range listed(a.body["tools"]) {
		list := object(t)["functionDeclarations"]
		if list == nil {
			a.differs("a tool of the vendor")
			return req, false
		}
		for _, f := range listed(list) {
			f := object(f)
			schema := f["parameters"]
			if s, there := f["parametersJsonSchema"]; there {
				schema = s
			}
			description, _ := f["description"].(string)
			spec := tool.Spec{Name: f["name"].(string), Description: description}
			if schema != nil {
				spec.Parameters = written(schema)
				a.untitled(schema)
			}
			req.Tools = append(req.Tools, spec)
		}
	}
	for _, c := range listed(a.body["contents"]) {
		c := object(c)
		if c["role"] == nil {
			a.differs("a content without a role")
			c["role"] = "user"
		}
		message, ok := a.content(c)
		if !ok {
			return req, false
		}
		req.Messages = append(req.Messages, message...)
	}
	return req, true
}

// untitled takes titles out of a schema, at any depth.
func (a *asked) untitled(schema any) {
	for _, v := range object(schema) {
		a.untitled(v)
	}
	if _, isText := object(schema)["title"].(string); isText {
		a.differs("a title in a schema")
		delete(object(schema), "title")
	}
}

func (a *asked) content(c map[string]any) (out []conversation.Message, ok bool) {
	GinkgoHelper()
	var parts, results []conversation.Content
	for i, p := range listed(c["parts"]) {
		p := object(p)
		a.named(p, "inline_data", "inlineData")
		signature, _ := p["thoughtSignature"].(string)
		var extras conversation.Extras
		if signature != "" {
			extras = conversation.Extras(nil).With(gemini.Name, conversation.String(signature))
		}
		text, isText := p["text"].(string)
		switch {
		case isText && p["thought"] == true:
			parts = append(parts, conversation.Reasoning{Text: text, Extras: extras})
		case isText:
			parts = append(parts, conversation.Text{Text: text, Extras: extras})
		case p["inlineData"] != nil:
			data := object(p["inlineData"])
			a.named(data, "mime_type", "mimeType")
			media, source := data["mimeType"].(string), conversation.Source{Type: conversation.SourceBase64, Data: data["data"].(string)}
			switch {
			case strings.HasPrefix(media, "image/"):
				parts = append(parts, conversation.Image{MediaType: media, Source: source})
			case strings.HasPrefix(media, "application/"), strings.HasPrefix(media, "text/"):
				parts = append(parts, conversation.Document{Name: "document", MediaType: media, Source: source})
			default:
				a.differs("data of " + media)
				return nil, false
			}
		case p["functionCall"] != nil:
			call := object(p["functionCall"])
			name := call["name"].(string)
			id, _ := call["id"].(string)
			if id == "" {
				id = fmt.Sprintf("%s-%d", name, i)
				call["id"] = id
				a.differs("a call without an id")
			}
			a.calls[name] = id
			if call["args"] == nil {
				a.differs("a call without arguments")
				call["args"] = map[string]any{}
			}
			parts = append(parts, conversation.ToolCall{ID: id, Name: name, Input: written(call["args"]), Extras: extras})
		case p["functionResponse"] != nil:
			response := object(p["functionResponse"])
			id, _ := response["id"].(string)
			if id == "" {
				id = a.calls[response["name"].(string)]
				response["id"] = id
			}
			if id == "" {
				a.differs("a result of no call")
				return nil, false
			}
			said := object(response["response"])
			result, isError := said["result"], false
			switch {
			case len(said) == 1 && said["error"] != nil:
				result, isError = said["error"], true
			case len(said) != 1 || said["result"] == nil:
				a.differs("a result of another form")
				result = said
				response["response"] = map[string]any{"result": string(written(said))}
			}
			if s, isText := result.(string); isText {
				result = s
			}
			results = append(results, conversation.ToolResult{ID: id, Result: written(result), IsError: isError})
		default:
			a.differs("a part of the vendor")
			return nil, false
		}
	}
	role := conversation.RoleUser
	if c["role"] == "model" {
		role = conversation.RoleAssistant
	} else if results != nil {
		c["role"] = "user"
	}
	if results != nil {
		out = append(out, conversation.ToolResults("m", results...))
	}
	if parts != nil {
		out = append(out, conversation.NewMessage(role, "m", parts...))
	}
	return out, true
}

var _ = Describe("recorded requests", func() {
	It("are built the same again from our conversation, but for what is listed", func() {
		why := map[string]string{
			"a call without an id":            "calls have ids here, which the vendor takes",
			"a level in capitals":             "the vendor takes its words in either case",
			"a result of no call":             "the recording's client named the result by an id: a result without its call is left out, the request cannot be said",
			"a role of the instructions":      "the vendor does not look at it",
			"a title in a schema":             "not every model takes it: it is left out with a warning",
			"an empty member":                 "the same as leaving it out",
			"data of video/mp4":               "a kind of content that there is not: the request cannot be said",
			"members in snake_case":           "the vendor takes either spelling",
			"thoughts that are not asked for": "who sets a budget is shown the thoughts",
		}
		found := map[string]int{}
		same, seen := 0, 0
		var wrong []string
		for _, format := range []string{"go-vcr-v1", "go-vcr-v2", "vcrpy-v1", "ruby-vcr"} {
			for _, way := range []string{":generateContent", ":streamGenerateContent"} {
				for _, r := range providertest.Recordings(format, way) {
					if len(r.Request) == 0 {
						continue
					}
					seen++
					a := asked{found: found, body: providertest.Object(r.Request), calls: map[string]string{}}
					req, ok := a.request()
					if !ok {
						continue
					}
					u, err := url.Parse(r.URL)
					Expect(err).NotTo(HaveOccurred())
					_, name, _ := strings.Cut(u.Path, "/models/")
					name, _, _ = strings.Cut(name, ":")
					s := &server{body: `{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`}
					req.Blocking = true
					_, err = llm.Generate(context.Background(), newModel(gemini.Config{Model: name}, s), req)
					Expect(err).NotTo(HaveOccurred(), r.File)
					for _, place := range providertest.Unlike(providertest.Object([]byte(s.asked)), a.body) {
						wrong = append(wrong, r.Format+"/"+r.File+": "+place)
					}
					same++
				}
			}
		}
		Expect(strings.Join(wrong[:min(len(wrong), 12)], "\n")).To(BeEmpty(), "%d", len(wrong))
		Expect(slices.Sorted(maps.Keys(found))).To(Equal(slices.Sorted(maps.Keys(why))), "each difference has a reason, and no reason is left over")
		var b strings.Builder
		table := tablewriter.NewWriter(&b)
		table.Header("difference", "requests", "why")
		for _, name := range slices.Sorted(maps.Keys(found)) {
			Expect(table.Append(name, strconv.Itoa(found[name]), why[name])).To(Succeed())
		}
		Expect(table.Render()).To(Succeed())
		AddReportEntry("recorded requests", ReportEntryVisibilityAlways, fmt.Sprintf("\n%d of %d requests built the same again\n%s", same, seen, b.String()))
		Expect([]int{same, seen}).To(Equal([]int{26, 28}))
	})
})
