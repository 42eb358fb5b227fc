package contenttest

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/providers/abilities"
	"github.com/echoeval/echoeval/providers/anthropic"
	"github.com/echoeval/echoeval/providers/bedrock"
	"github.com/echoeval/echoeval/providers/compat"
	"github.com/echoeval/echoeval/providers/gemini"
	"github.com/echoeval/echoeval/providers/openai"
)

func TestContent(t *testing.T) { suite.Run(t, "content") }

// converters makes a model for each row of abilities.Table, by its name.
var converters = map[string]func(http.RoundTripper) (llm.Model, error){
	"anthropic 2023-06-01": func(rt http.RoundTripper) (llm.Model, error) {
		return anthropic.New(anthropic.Config{Model: "claude-haiku-4-5", APIVersion: anthropic.Version2023}, rt)
	},
	"anthropic 2026-10-21": func(rt http.RoundTripper) (llm.Model, error) {
		return anthropic.New(anthropic.Config{Model: "claude-haiku-4-5", APIVersion: anthropic.VersionLatest}, rt)
	},
	"bedrock": func(rt http.RoundTripper) (llm.Model, error) {
		return bedrock.New(bedrock.Config{Model: "us.anthropic.claude-haiku-4-5-20251001-v1:0"}, rt)
	},
	"compat": func(rt http.RoundTripper) (llm.Model, error) {
		return compat.New(compat.Config{BaseURL: "http://127.0.0.1:1/v1", Model: "llama3"}, rt)
	},
	"gemini": func(rt http.RoundTripper) (llm.Model, error) {
		return gemini.New(gemini.Config{Model: "gemini-2.5-flash"}, rt)
	},
	"openai": func(rt http.RoundTripper) (llm.Model, error) {
		return openai.New(openai.Config{Model: "gpt-4o-mini", API: openai.Chat}, rt)
	},
	"openai, Responses API": func(rt http.RoundTripper) (llm.Model, error) {
		return openai.New(openai.Config{Model: "gpt-4o-mini", API: openai.Responses}, rt)
	},
}

// mark stands in every sample. It is base64 of itself, so that no converter changes it on the way.
const mark = "MARKmarkMARKmark"

// unseen stands where no model may see it.
const unseen = "UNSEENunseenUNSEEN"

// sample is one form of a kind of content.
type sample struct {
	form string
	part conversation.Content
}

// samples are the forms of each kind: all media types, all sources, with and without what is optional, and what models get wrong.
var samples = map[conversation.Kind][]sample{
	conversation.KindText: {
		{"plain", conversation.Text{Text: mark}},
		{"signed", conversation.Text{Text: mark, Extras: signed()}},
	},
	conversation.KindReasoning: {
		{"unsigned", conversation.Reasoning{Text: mark}},
		{"signed", conversation.Reasoning{Text: mark, Extras: signed()}},
		{"of somebody else", conversation.Reasoning{Text: mark, Extras: conversation.Extras{{Vendor: "nobody", Data: `"` + mark + `"`}}}},
	},
	conversation.KindImage: media(func(source conversation.Source, mediaType string) conversation.Content {
		return conversation.Image{MediaType: mediaType, Source: source}
	}, "image/jpeg", "image/png", "image/gif", "image/webp"),
	conversation.KindDocument: append(
		media(func(source conversation.Source, mediaType string) conversation.Content {
			return conversation.Document{MediaType: mediaType, Source: source}
		}, "application/pdf"),
		media(func(source conversation.Source, mediaType string) conversation.Content {
			return conversation.Document{MediaType: mediaType, Name: "named.pdf", Source: source}
		}, "application/pdf")...),
	conversation.KindToolCall: {
		{"with arguments", conversation.ToolCall{ID: "call_1", Name: "lookup", Input: `{"name":"` + mark + `"}`}},
		{"without arguments", conversation.ToolCall{ID: "call_1", Name: mark}},
		{"signed", conversation.ToolCall{ID: "call_1", Name: mark, Input: "{}", Extras: signed()}},
		{"with arguments that are no object", conversation.ToolCall{ID: "call_1", Name: "lookup", Input: `["` + mark + `"]`}},
		{"with arguments that are no JSON", conversation.ToolCall{ID: "call_1", Name: "lookup", Input: `{"name": ` + mark}},
	},
	conversation.KindToolResult: {
		{"text", conversation.ToolResult{ID: "call_1", Result: `"` + mark + `"`}},
		{"object", conversation.ToolResult{ID: "call_1", Result: `{"found":"` + mark + `"}`}},
		{"error", conversation.ToolResult{ID: "call_1", Result: `"` + mark + `"`, IsError: true}},
		{"with what no model sees", conversation.ToolResult{ID: "call_1", Result: `"` + mark + `"`, Meta: `{"hidden":"` + unseen + `"}`}},
	},
}

// signed is what each vendor keeps with a part of its own.
func signed() conversation.Extras {
	return conversation.Extras{}.
		With(anthropic.Name, `[{"type":"thinking","thinking":"`+mark+`","signature":"c2ln"}]`).
		With(gemini.Name, `"`+mark+`"`).
		With(openai.Name, `[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"`+mark+`"}]`)
}

func media(make func(conversation.Source, string) conversation.Content, types ...string) []sample {
	var list []sample
	for _, t := range types {
		list = append(list,
			sample{t + " by its bytes", make(conversation.Source{Type: conversation.SourceBase64, Data: mark}, t)},
			sample{t + " by its address", make(conversation.Source{Type: conversation.SourceURL, URL: "https://media.example/" + mark}, t)})
	}
	return list
}

var roles = []conversation.Role{conversation.RoleSystem, conversation.RoleUser, conversation.RoleAssistant, conversation.RoleTool}

// around is a valid conversation with the part in a message of the role; without a part it is what stands around it.
func around(role conversation.Role, part conversation.Content) []conversation.Message {
	parts := func(others ...conversation.Content) []conversation.Content {
		if part != nil {
			others = append(others, part)
		}
		return others
	}
	text := func(s string) conversation.Content { return conversation.Text{Text: s} }
	call := conversation.ToolCall{ID: "call_1", Name: "lookup", Input: "{}"}
	result := conversation.ToolResult{ID: "call_1", Result: `"found"`}
	switch role {
	case conversation.RoleSystem:
		return []conversation.Message{conversation.NewMessage(role, "m", parts()...), conversation.User("m", text("ask"))}
	case conversation.RoleUser:
		return []conversation.Message{conversation.User("m", parts(text("ask"))...)}
	case conversation.RoleAssistant:
		messages := []conversation.Message{conversation.User("m", text("ask")), conversation.Assistant("m", parts(text("said"))...)}
		if _, ok := part.(conversation.ToolCall); ok {
			return append(messages, conversation.ToolResults("m", result))
		}
		return append(messages, conversation.User("m", text("go on")))
	}
	answers := parts(result)
	if _, ok := part.(conversation.ToolResult); ok {
		answers = parts()
	}
	return []conversation.Message{conversation.User("m", text("ask")), conversation.Assistant("m", call), conversation.ToolResults("m", answers...)}
}

// lookup is the tool that is called: a vendor may want it to be declared.
var lookup = tool.Spec{Name: "lookup", Description: "looks things up", Parameters: conversation.JSON(`{"type":"object","properties":{}}`)}

// errSent ends a request that was about to be sent.
var errSent = errors.New("sent")

type sink struct{ body string }

func (s *sink) RoundTrip(req *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	s.body = string(data)
	return nil, errSent
}

// convert gives the request that a conversation becomes, "" where none would be sent, the codes of the warnings, and why nothing was sent.
func convert(name string, messages []conversation.Message, strict bool) (body string, codes []string, refused error) {
	GinkgoHelper()
	s := &sink{}
	model, err := converters[name](s)
	Expect(err).NotTo(HaveOccurred())
	for event, err := range model.Stream(context.Background(), llm.Request{Messages: messages, Tools: []tool.Spec{lookup}, Settings: llm.Settings{Strict: strict}}) {
		if w, ok := event.(llm.Warning); ok {
			Expect(w.Text).NotTo(BeEmpty())
			codes = append(codes, w.Code)
		}
		if err != nil && !errors.Is(err, errSent) {
			refused = err
		}
	}
	return s.body, codes, refused
}

var _ = Describe("every kind of content", func() {
	It("has samples, each valid in a role that carries it, and of the kind that it stands for", func() {
		kinds := declared()
		Expect(kinds).NotTo(BeEmpty())
		for _, kind := range kinds {
			Expect(samples[kind]).NotTo(BeEmpty(), "the kind %q is new: give it samples here", kind)
			Expect(slices.ContainsFunc(roles, func(r conversation.Role) bool { return slices.Contains(r.Carries(), kind) })).To(BeTrue(), "no role carries %q", kind)
		}
		Expect(samples).To(HaveLen(len(kinds)))
		for kind, list := range samples {
			for _, s := range list {
				Expect(s.part.Kind()).To(Equal(kind))
			}
		}
	})

	It("has a converter for each row of the table of abilities", func() {
		Expect(converters).To(HaveLen(len(abilities.Table)))
		for _, row := range abilities.Table {
			Expect(converters).To(HaveKey(row.Name), "the wire format is new: give it a converter here")
		}
	})

	for _, row := range abilities.Table {
		for _, role := range roles {
			for _, kind := range role.Carries() {
				for _, s := range samples[kind] {
					It("reaches the request or is left out with a warning: "+row.Name+", "+string(role)+", "+string(kind)+" "+s.form, func() {
						_, calm, refused := convert(row.Name, around(role, nil), false)
						Expect(refused).NotTo(HaveOccurred())
						Expect(calm).To(BeEmpty(), "what stands around the part needs no warning")

						messages := around(role, s.part)
						for _, m := range messages {
							Expect(m.Validate()).To(Succeed())
						}
						body, codes, refused := convert(row.Name, messages, false)
						Expect(refused).NotTo(HaveOccurred())
						Expect(body).NotTo(BeEmpty(), "the request is sent without the part")
						Expect(body).NotTo(ContainSubstring(unseen))
						if !strings.Contains(body, mark) {
							Expect(codes).NotTo(BeEmpty(), "the part is lost in silence: %s", body)
						}
						for _, code := range codes {
							Expect(code).To(MatchRegexp(`^[a-z]+(-[a-z]+)+$`))
						}

						strictly, told, refused := convert(row.Name, messages, true)
						switch {
						case strings.Contains(body, mark):
							Expect(refused).NotTo(HaveOccurred())
							Expect(strictly).To(Equal(body))
						case refused == nil:
							Expect(told).To(ConsistOf("reasoning-left-out"), "where settings are strict nothing but reasoning is left out")
						default:
							Expect(failure.CodeOf(refused)).To(Equal(failure.Input))
							Expect(strictly).To(BeEmpty(), "nothing is sent")
						}
					})
				}
			}
		}
	}
})

// declared reads the kinds from the package that declares them, so that none is forgotten here.
func declared() []conversation.Kind {
	GinkgoHelper()
	folder := filepath.Join(suite.Root(), "core", "conversation")
	entries, err := os.ReadDir(folder)
	Expect(err).NotTo(HaveOccurred())
	var kinds []conversation.Kind
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".go" || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, entry.Name()), nil, 0)
		Expect(err).NotTo(HaveOccurred())
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if t, ok := spec.Type.(*ast.Ident); ok && t.Name == "Kind" {
				for _, value := range spec.Values {
					text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
					Expect(err).NotTo(HaveOccurred())
					kinds = append(kinds, conversation.Kind(text))
				}
			}
			return true
		})
	}
	return kinds
}
