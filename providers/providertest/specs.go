package providertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing/iotest"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/harness/emulator"
)

// requests looks at what the server gets.
func (s Suite) requests() {
	for _, blocking := range s.ways() {
		ginkgo.It("sends system prompt, history and tools, "+way(blocking), func() {
			w := s.play(text("a"), text("b"), text("c"))
			call := conversation.ToolCall{ID: "call_1", Name: "lookup", Input: `{"name":"` + "é🧪" + `"}`}
			nested := tool.Spec{Name: "nested", Parameters: `{"type":"object","properties":{"list":{"type":"array","items":{"type":"object","properties":{"deep":{"enum":["a",1,null]}}}}},"required":["list"]}`}
			if !s.can.MixedEnums {
				nested.Parameters = conversation.JSON(strings.Replace(string(nested.Parameters), `["a",1,null]`, `["a","b"]`, 1))
			}
			w.generate(llm.Request{
				System:   "Be exact.",
				Tools:    []tool.Spec{lookup(), nested},
				Blocking: blocking,
				Messages: []conversation.Message{
					user(conversation.Text{Text: kept}),
					conversation.Assistant("m", conversation.Text{Text: "Looking."}, call, conversation.ToolCall{ID: "call_2", Name: "nested"}),
					conversation.ToolResults("m", conversation.ToolResult{ID: "call_1", Result: conversation.String(kept)}, conversation.ToolResult{ID: "call_2", Result: `{"rows":[1,2]}`, IsError: true}),
					conversation.Assistant("m", conversation.Text{Text: "Found."}),
					user(conversation.Text{Text: "And now?"}),
				},
			})
			asked := w.lastAsked()
			gomega.Expect(asked.System).To(gomega.Equal("Be exact."))
			gomega.Expect(asked.Tools).To(gomega.Equal([]string{"lookup", "nested"}))
			gomega.Expect(asked.Schemas).To(gomega.HaveLen(2))
			gomega.Expect(asked.Schemas[1]).To(gomega.MatchJSON(string(nested.Parameters)))
			gomega.Expect(asked.Messages).To(gomega.Equal([]AskedMessage{
				{Role: conversation.RoleUser, Parts: []string{"text:" + kept}},
				{Role: conversation.RoleAssistant, Parts: []string{"text:Looking.", "call:lookup:" + string(call.Input), "call:nested:{}"}, IDs: []string{"call_1", "call_2"}},
				{Role: conversation.RoleTool, Parts: []string{"result:" + kept}, IDs: []string{"call_1"}},
				{Role: conversation.RoleTool, Parts: []string{`result:{"rows":[1,2]}`}, IDs: []string{"call_2"}},
				{Role: conversation.RoleAssistant, Parts: []string{"text:Found."}},
				{Role: conversation.RoleUser, Parts: []string{"text:And now?"}},
			}))
		})
	}

	if s.can.References {
		ginkgo.It("sends a schema with references as it is", func() {
			w := s.play(text("a"))
			req := hello()
			req.Tools = []tool.Spec{{Name: "walk", Parameters: `{"type":"object","properties":{"list":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"n":{"type":"integer","maximum":12345678901234567890}}}}}`}}
			w.generate(req)
			gomega.Expect(w.lastAsked().Schemas).To(gomega.Equal([]string{string(req.Tools[0].Parameters)}))
		})
	}

	if s.can.Images {
		ginkgo.It("keeps the order of text, image, text", func() {
			w := s.play(text("a cat"))
			// The smallest PNG there is.
			const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
			parts := []conversation.Content{
				conversation.Text{Text: "before"},
				conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceBase64, Data: png}},
				conversation.Text{Text: "after"},
			}
			want := []string{"text:before", "image:image/png:" + png, "text:after"}
			if s.can.ImageURLs {
				parts = append(parts, conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceURL, URL: "https://pictures.example/a.png"}})
				want = append(want, "image:https://pictures.example/a.png")
			}
			reply := w.generate(ask(parts...))
			gomega.Expect(reply.Warnings).To(gomega.BeEmpty())
			gomega.Expect(w.lastAsked().Messages).To(gomega.Equal([]AskedMessage{{Role: conversation.RoleUser, Parts: want}}))
		})
	} else {
		ginkgo.It("leaves an image out with a warning, and refuses it where the settings are strict", func() {
			s.leavesOut("image-left-out", conversation.Image{MediaType: "image/png", Source: conversation.Source{Type: conversation.SourceBase64, Data: "iVBO"}})
		})
	}

	if s.can.Documents {
		ginkgo.It("sends a document", func() {
			w := s.play(text("a letter"))
			w.generate(ask(conversation.Document{MediaType: "application/pdf", Name: "a.pdf", Source: conversation.Source{Type: conversation.SourceBase64, Data: "JVBERi0xLjQ="}}, conversation.Text{Text: "what is this?"}))
			gomega.Expect(w.lastAsked().Messages).To(gomega.Equal([]AskedMessage{{Role: conversation.RoleUser, Parts: []string{"document:JVBERi0xLjQ=", "text:what is this?"}}}))
		})
	} else {
		ginkgo.It("leaves a document out with a warning, and refuses it where the settings are strict", func() {
			s.leavesOut("document-left-out", conversation.Document{MediaType: "application/pdf", Source: conversation.Source{Type: conversation.SourceBase64, Data: "JVBERi0xLjQ="}})
		})
	}
}

func (s Suite) leavesOut(code string, medium conversation.Content) {
	w := s.play(text("yes"))
	reply := w.generate(ask(conversation.Text{Text: "see?"}, medium))
	gomega.Expect(reply.Warnings).To(gomega.HaveExactElements(gomega.HaveField("Code", code)))
	gomega.Expect(w.lastAsked().Messages).To(gomega.Equal([]AskedMessage{{Role: conversation.RoleUser, Parts: []string{"text:see?"}}}))
	strict := ask(conversation.Text{Text: "see?"}, medium)
	strict.Settings.Strict = true
	_, err := llm.Generate(context.Background(), w.model, strict)
	gomega.Expect(err).To(gomega.HaveOccurred())
	gomega.Expect(w.asked).To(gomega.HaveLen(1), "nothing is sent")
}

// answer is a step and the reply that it means.
type answer struct {
	name  string
	step  emulator.Step
	parts []conversation.Content
	stop  llm.StopReason
}

func (s Suite) answers() []answer {
	call := func(id, name string, input conversation.JSON) conversation.ToolCall {
		return conversation.ToolCall{ID: id, Name: name, Input: input}
	}
	scripted := func(id, name, args string) emulator.Call {
		return emulator.Call{ID: id, Name: name, Args: emulator.Object(args)}
	}
	list := []answer{
		{"a text", text("Hello there."), []conversation.Content{conversation.Text{Text: "Hello there."}}, llm.StopEnd},
		{"characters that go wrong first", text(kept), []conversation.Content{conversation.Text{Text: kept}}, llm.StopEnd},
		{"an empty answer", text(""), nil, llm.StopEnd},
		{"an answer of 1 MB", emulator.Step{Text: ptr(long()), Fragment: 4096}, []conversation.Content{conversation.Text{Text: long()}}, llm.StopEnd},
		{"an answer cut by the output limit", emulator.Step{Text: ptr("Hel"), Finish: "length"}, []conversation.Content{conversation.Text{Text: "Hel"}}, llm.StopLength},
		{"one call", emulator.Step{Calls: []emulator.Call{scripted("c1", "lookup", `{"name":"x"}`)}}, []conversation.Content{call("c1", "lookup", `{"name":"x"}`)}, llm.StopToolCalls},
		{"a call without arguments", emulator.Step{Calls: []emulator.Call{{ID: "c1", Name: "lookup"}}}, []conversation.Content{call("c1", "lookup", "{}")}, llm.StopToolCalls},
		{"arguments in Unicode", emulator.Step{Calls: []emulator.Call{scripted("c1", "lookup", `{"name":"漢字 🧪 \u00e9"}`)}, Fragment: 1}, []conversation.Content{call("c1", "lookup", `{"name":"漢字 🧪 é"}`)}, llm.StopToolCalls},
		{"text and parallel calls", emulator.Step{Text: ptr("Looking."), Calls: []emulator.Call{scripted("c1", "lookup", `{"name":"x"}`), scripted("c2", "lookup", `{"name":"y"}`), scripted("c3", "lookup", `{}`)}},
			[]conversation.Content{conversation.Text{Text: "Looking."}, call("c1", "lookup", `{"name":"x"}`), call("c2", "lookup", `{"name":"y"}`), call("c3", "lookup", "{}")}, llm.StopToolCalls},
	}
	if s.can.Refusals {
		list = append(list, answer{"a refusal", emulator.Step{Refusal: "I cannot help with that."}, []conversation.Content{conversation.Text{Text: "I cannot help with that."}}, llm.StopRefused},
			answer{"an answer that a filter stopped", emulator.Step{Text: ptr("Hm"), Finish: "content_filter"}, []conversation.Content{conversation.Text{Text: "Hm"}}, llm.StopRefused})
	}
	return list
}

// replies looks at what comes out.
func (s Suite) replies() {
	for _, a := range s.answers() {
		ginkgo.It("reads "+a.name, func() {
			var first *llm.Reply
			for _, blocking := range s.ways() {
				w := s.play(a.step)
				req := hello()
				req.Tools = []tool.Spec{lookup()}
				req.Blocking = blocking
				reply := w.generate(req)
				gomega.Expect(sameParts(reply.Parts, a.parts)).To(gomega.BeTrue(), "%s: %v", way(blocking), reply.Parts)
				gomega.Expect(reply.Finish.Stop).To(gomega.Equal(a.stop), way(blocking))
				gomega.Expect(reply.Finish.ID).NotTo(gomega.BeEmpty())
				gomega.Expect(reply.Warnings).To(gomega.BeEmpty())
				if first == nil {
					first = &reply
				} else {
					gomega.Expect(reply.Parts).To(gomega.Equal(first.Parts), "streamed and blocking are the same")
					gomega.Expect(reply.Finish.Usage).To(gomega.Equal(first.Finish.Usage))
				}
			}
		})
	}

	ginkgo.It("says what the vendor is to keep of a prompt where it can be said, and changes nothing else by it", func() {
		req := llm.Request{
			System: "Be exact.", Tools: []tool.Spec{lookup()},
			Messages: []conversation.Message{
				user(conversation.Text{Text: "Who?"}),
				conversation.Assistant("m", conversation.ToolCall{ID: "call_1", Name: "lookup", Input: `{"name":"x"}`}),
				conversation.ToolResults("m", conversation.ToolResult{ID: "call_1", Result: conversation.String("y")}),
			},
		}
		for _, blocking := range s.ways() {
			req.Blocking = blocking
			w := s.play(text("a"), text("b"))
			w.generate(req)
			plain, sent := w.lastAsked(), w.last()
			for name, settings := range map[string]llm.Settings{
				"cache_ttl": {CacheTTL: "5m"}, "an hour": {CacheTTL: "1h"}, "cache_messages": {CacheMessages: true}, "prompt_cache_key": {PromptCacheKey: "clinic"},
			} {
				asked := req
				asked.Settings = settings
				can := s.can.Caching != nil && (settings.PromptCacheKey != "") == (s.can.Caching.PromptCacheKey != "")
				reply := w.generate(asked)
				gomega.Expect(w.lastAsked()).To(gomega.Equal(plain), name)
				gomega.Expect(bytes.Equal(w.last(), sent)).To(gomega.Equal(!can), name)
				gomega.Expect(len(reply.Warnings) == 0).To(gomega.Equal(can), "%s: %v", name, reply.Warnings)
				asked.Settings.Strict = true
				_, err := llm.Generate(context.Background(), w.model, asked)
				gomega.Expect(err == nil).To(gomega.Equal(can), "%s: %v", name, err)
			}
		}
	})
	ginkgo.It("counts tokens", func() {
		usage := &emulator.Usage{Input: ptr(120), Output: ptr(34)}
		want := conversation.Usage{InputTokens: 120, OutputTokens: 34}
		if s.can.CachedTokens {
			usage.CachedInput, want.CacheReadTokens = ptr(100), 100
		}
		if s.can.ReasoningTokens {
			usage.Reasoning, want.ReasoningTokens = ptr(30), 30
		}
		for _, blocking := range s.ways() {
			w := s.play(emulator.Step{Text: ptr("x"), Usage: usage})
			req := hello()
			req.Blocking = blocking
			gomega.Expect(w.generate(req).Finish.Usage).To(gomega.Equal(want), way(blocking))
		}
	})

	ginkgo.It("holds a conversation with a tool that fails and one that works", func() {
		w := s.play(
			emulator.Step{Calls: []emulator.Call{{Name: "lookup", Args: emulator.Object(`{"name":"x"}`)}}},
			emulator.Step{Calls: []emulator.Call{{Name: "lookup", Args: emulator.Object(`{"name":"y"}`)}}},
			text("It is {{last_tool_result}}."))
		req := hello()
		req.Tools = []tool.Spec{lookup()}
		ids := map[string]bool{}
		for _, result := range []conversation.ToolResult{{Result: `"no such name"`, IsError: true}, {Result: `"42"`}} {
			reply := w.generate(req)
			made := calls(reply)
			gomega.Expect(made).To(gomega.HaveLen(1))
			ids[made[0].ID] = true
			result.ID = made[0].ID
			req.Messages = append(req.Messages, conversation.Assistant("m", reply.Parts...), conversation.ToolResults("m", result))
		}
		gomega.Expect(w.generate(req).Parts).To(gomega.Equal([]conversation.Content{conversation.Text{Text: "It is 42."}}))
		gomega.Expect(ids).To(gomega.HaveLen(2))
	})

	if thinking := s.can.Thinking; thinking != nil {
		ginkgo.It("shows what the model thought, and gives it back as it came after the conversation was stored, where the vendor wants that", func() {
			for _, blocking := range s.ways() {
				w := s.play(
					emulator.Step{Reasoning: "Look first. " + kept, Text: ptr("Looking."), Calls: []emulator.Call{{Name: "lookup", Args: emulator.Object(`{"name":"x"}`)}}},
					emulator.Step{Reasoning: "Now I know.", Text: ptr("It is {{last_tool_result}}.")})
				req := hello()
				req.Tools, req.Settings.Thinking, req.Blocking = []tool.Spec{lookup()}, *thinking, blocking
				reply := w.generate(req)
				gomega.Expect(reply.Warnings).To(gomega.BeEmpty())
				gomega.Expect(reply.Parts).To(gomega.HaveLen(3))
				thought, ok := reply.Parts[0].(conversation.Reasoning)
				gomega.Expect(ok).To(gomega.BeTrue(), "%T", reply.Parts[0])
				gomega.Expect(thought.Text).To(gomega.Equal("Look first. " + kept))

				made := calls(reply)[0]
				ctx, err := conversation.New(nil).Append(append(req.Messages, conversation.Assistant("m", reply.Parts...), conversation.ToolResults("m", conversation.ToolResult{ID: made.ID, Result: `"42"`}))...)
				gomega.Expect(err).NotTo(gomega.HaveOccurred())
				stored, warnings, err := conversation.Decode(ctx.AppendJSON(nil))
				gomega.Expect(err).NotTo(gomega.HaveOccurred())
				gomega.Expect(warnings).To(gomega.BeEmpty())
				req.Messages = nil
				for _, m := range stored.Messages() {
					req.Messages = append(req.Messages, m)
				}
				gomega.Expect(conversation.Assistant("m", w.generate(req).Parts...).Text()).To(gomega.Equal("It is 42."))
				want := []string{"text:Looking.", `call:lookup:{"name":"x"}`}
				if s.can.ThoughtsBack {
					want = append([]string{"reasoning:Look first. " + kept}, want...)
				}
				gomega.Expect(w.lastAsked().Messages[1].Parts).To(gomega.Equal(want))
			}
		})
	}

	ginkgo.It("reads the same whatever the pieces in which the bytes arrive", func() {
		handler := s.script(cutStep())
		w := s.start(handler)
		req := hello()
		req.Tools = []tool.Spec{lookup()}
		want := w.generate(req)
		for _, pieces := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader} {
			w.reads = pieces
			gomega.Expect(w.generate(req)).To(gomega.Equal(want))
		}
	})

	ginkgo.It("gives the first piece before the server sends the last", func() {
		handler := s.script(emulator.Step{Text: ptr("one two three four"), Fragment: 4, Slow: &emulator.Slow{ChunkDelay: time.Millisecond}})
		open := make(chan struct{})
		w := s.start(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(&gate{ResponseWriter: rw, behind: "one ", open: open, gone: r.Context().Done()}, r)
		}))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		pieces := 0
		for event, err := range w.model.Stream(ctx, hello()) {
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			if _, ok := event.(llm.TextDelta); ok {
				if pieces++; pieces == 1 {
					close(open)
				}
			}
		}
		gomega.Expect(pieces).To(gomega.Equal(5))
	})
}

// sameParts compares parts, arguments as JSON.
func sameParts(got, want []conversation.Content) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		g, w := got[i], want[i]
		if call, ok := g.(conversation.ToolCall); ok {
			other, ok := w.(conversation.ToolCall)
			if !ok {
				return false
			}
			same, err := gomega.MatchJSON(string(other.Input)).Match(string(call.Input))
			if err != nil || !same {
				return false
			}
			call.Input = other.Input
			g = call
		}
		if string(conversation.AppendContent(nil, g)) != string(conversation.AppendContent(nil, w)) {
			return false
		}
	}
	return true
}

// failures looks at errors.
func (s Suite) failures() {
	for _, status := range []int{400, 401, 403, 404, 408, 413, 429, 500, 529} {
		ginkgo.It("reports "+strings.TrimSpace(strconv.Itoa(status)+" "+http.StatusText(status)), func() {
			for _, blocking := range s.ways() {
				after := 3 * time.Second
				w := s.play(emulator.Step{Error: &emulator.Error{Status: status, Message: "because of " + kept, RetryAfter: &after}})
				req := hello()
				req.Blocking = blocking
				reply, e := w.fails(req)
				gomega.Expect(reply.Parts).To(gomega.BeEmpty())
				gomega.Expect(e.Status).To(gomega.Equal(status))
				gomega.Expect(e.Message).To(gomega.And(gomega.HavePrefix("because of naïve “quotes”"), gomega.Not(gomega.ContainSubstring("\n"))))
				gomega.Expect(e.Type).NotTo(gomega.BeEmpty())
				gomega.Expect(e.RequestID == "").To(gomega.Equal(!s.can.RequestIDs))
				gomega.Expect(e.RetryAfter).To(gomega.Equal(after))
				gomega.Expect(e.Retryable).To(gomega.Equal(transport.MayPass(status)))
				gomega.Expect(w.asked).To(gomega.HaveLen(1), "a provider does not repeat by itself")
			}
		})
	}

	ginkgo.It("reports a server that is not there", func() {
		w := s.play(text("x"))
		w.server.Close()
		_, e := w.fails(hello())
		gomega.Expect(e.Status).To(gomega.BeZero())
		gomega.Expect(e.Retryable).To(gomega.BeTrue())
	})

	ginkgo.It("reports an error in the middle of a stream, and gives what came before it", func() {
		w := s.start(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", s.ContentType)
			_, _ = io.WriteString(rw, s.BrokenStream)
		}))
		reply, e := w.fails(hello())
		gomega.Expect(reply.Parts).To(gomega.Equal([]conversation.Content{conversation.Text{Text: "Hel"}}))
		gomega.Expect(e.Message).To(gomega.Equal("broken in the middle"))
	})

	ginkgo.It("never takes a stream that is cut after any frame for a shorter answer", func() {
		count := s.Frames
		if count == nil {
			count = func(received []byte) int {
				return bytes.Count(bytes.ReplaceAll(received, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
			}
		}
		s.cutEverywhere(false, count)
	})
	ginkgo.It("never takes a stream that is cut after any byte for a shorter answer", func() {
		s.cutEverywhere(true, func(received []byte) int { return len(received) })
	})
	ginkgo.It("never takes a stream that just ends after any byte for a shorter answer", func() {
		s.endEverywhere()
	})
}

// cutStep is a short answer with a text and a call, in several frames.
func cutStep() emulator.Step {
	return emulator.Step{Text: ptr("Hé 🧪."), Calls: []emulator.Call{{ID: "c1", Name: "lookup", Args: emulator.Object(`{"name":"é"}`)}}, Fragment: 8}
}

// endEverywhere serves a reply that ends after each of its bytes without any sign that more should come.
func (s Suite) endEverywhere() {
	handler := s.script(cutStep())
	w := s.start(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { handler.ServeHTTP(rw, r) }))
	req := hello()
	req.Tools = []tool.Spec{lookup()}
	want := w.generate(req)
	whole := w.received
	gomega.Expect(len(whole)).To(gomega.BeNumerically(">", 100))
	shorter := 0
	for n := range whole {
		handler = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", s.ContentType)
			_, _ = rw.Write(whole[:n])
		})
		if s.shorter(w, req, want, n) {
			shorter++
		}
	}
	gomega.Expect(shorter).To(gomega.BeNumerically(">", len(whole)/2))
}

// shorter asks for a reply that is cut after n, and reports whether that was an error. Else it must be the whole.
func (s Suite) shorter(w *world, req llm.Request, want llm.Reply, n int) bool {
	reply, err := llm.Generate(context.Background(), w.model, req)
	if err == nil {
		gomega.Expect(reply.Parts).To(gomega.Equal(want.Parts), "cut after %d", n)
		gomega.Expect(reply.Finish.Stop).To(gomega.Equal(want.Finish.Stop))
		return false
	}
	gomega.Expect(errors.Is(err, io.ErrUnexpectedEOF)).To(gomega.BeTrue(), "cut after %d: %v", n, err)
	return true
}

// cutEverywhere cuts a reply after each of its frames or bytes. size counts them in a whole reply.
func (s Suite) cutEverywhere(inBytes bool, size func(received []byte) int) {
	step := cutStep()
	if inBytes {
		step.Calls = nil // there are many bytes
	} else {
		step.Fragment = 1 // there are few frames where calls come whole
	}
	handler := s.script(step)
	w := s.start(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { handler.ServeHTTP(rw, r) }))
	req := hello()
	req.Tools = []tool.Spec{lookup()}
	want := w.generate(req)
	all := size(w.received)
	gomega.Expect(all).To(gomega.BeNumerically(">", 5))
	shorter := 0
	for n := range all {
		step.Cut = &emulator.Cut{After: emulator.Amount{Count: n, Bytes: inBytes}}
		handler = s.script(step)
		if s.shorter(w, req, want, n) {
			shorter++
		}
	}
	gomega.Expect(shorter).To(gomega.BeNumerically(">", all/2))
}

// endings looks at calls that are not read to their end.
func (s Suite) endings() {
	slow := emulator.Step{Text: ptr(strings.Repeat("word ", 200)), Slow: &emulator.Slow{ChunkDelay: 5 * time.Millisecond}}

	ginkgo.It("closes the body when the caller breaks off", func() {
		w := s.play(slow)
		for _, err := range w.model.Stream(context.Background(), hello()) {
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			break
		}
		gomega.Expect(w.closed).To(gomega.Equal(1))
	})

	ginkgo.It("closes the body when the context ends, and says why", func() {
		w := s.play(slow)
		because := errors.New("the user has left")
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		var last error
		for _, err := range w.model.Stream(ctx, hello()) {
			gomega.Expect(last).NotTo(gomega.HaveOccurred(), "an error is the last thing")
			last = err
			cancel(because)
		}
		gomega.Expect(last).To(gomega.MatchError(because))
		gomega.Expect(w.closed).To(gomega.Equal(1))
	})

	ginkgo.It("does not wait for a reply that does not begin", func() {
		w := s.start(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_, err := llm.Generate(ctx, w.model, hello())
		gomega.Expect(err).To(gomega.MatchError(context.DeadlineExceeded))
	})

	ginkgo.It("sends nothing where the context has ended before", func() {
		w := s.play(text("x"))
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := llm.Generate(ctx, w.model, hello())
		gomega.Expect(err).To(gomega.MatchError(context.Canceled))
		gomega.Expect(w.asked).To(gomega.BeEmpty())
	})
}
