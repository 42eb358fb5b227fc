package bedrock_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/olekukonko/tablewriter"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v4"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/providers/bedrock"
	"github.com/echoeval/echoeval/providers/providertest"
)

// pairs reads the recordings that keep requests and responses in two lists, in compressed files.
func pairs() []providertest.Recording {
	GinkgoHelper()
	const format = "langchain-requests-responses+gz"
	root := suite.SharedData("cassettes", format)
	names, err := filepath.Glob(filepath.Join(root, "*", "*.yaml.gz"))
	Expect(err).NotTo(HaveOccurred())
	var found []providertest.Recording
	for _, name := range names {
		packed, err := os.ReadFile(name)
		Expect(err).NotTo(HaveOccurred())
		z, err := gzip.NewReader(bytes.NewReader(packed))
		Expect(err).NotTo(HaveOccurred())
		data, err := io.ReadAll(z)
		Expect(err).NotTo(HaveOccurred())
		var file struct {
			Requests []struct {
				URI  string `yaml:"uri"`
				Body yaml.Node
			}
			Responses []struct {
				Body   struct{ String yaml.Node }
				Status struct{ Code int }
			}
		}
		Expect(yaml.Unmarshal(data, &file)).To(Succeed(), name)
		text := func(n yaml.Node) []byte {
			if !strings.HasSuffix(n.Tag, "binary") {
				return []byte(n.Value)
			}
			raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
			Expect(err).NotTo(HaveOccurred(), name)
			return raw
		}
		for i, q := range file.Requests {
			if !strings.HasSuffix(q.URI, "/converse") && !strings.HasSuffix(q.URI, "/converse-stream") {
				continue
			}
			p := file.Responses[i]
			// The headers were taken out of the recording.
			found = append(found, providertest.Recording{Format: format, File: filepath.Base(name), URL: q.URI, Request: text(q.Body), Status: p.Status.Code, Header: http.Header{}, Body: text(p.Body.String)})
		}
	}
	return found
}

func recordings() []providertest.Recording {
	GinkgoHelper()
	return append(append(pairs(), providertest.Recordings("vcrpy-v1", "/converse")...), providertest.Recordings("vcrpy-v1", "/converse-stream")...)
}

type object = map[string]any

func tree(text []byte) object {
	GinkgoHelper()
	var v object
	Expect(json.Unmarshal(text, &v)).To(Succeed(), "%s", text)
	return v
}

// payloads cuts a stream by the lengths alone.
func payloads(body []byte) []object {
	GinkgoHelper()
	var out []object
	for len(body) > 0 {
		size, head := binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])
		out = append(out, tree(body[12+head:size-4]))
		body = body[size:]
	}
	return out
}

// plain is what a reply says, read by other means than those under test.
type plain struct {
	text, stop    string
	calls         []conversation.ToolCall
	input, output int
}

func read(r providertest.Recording) plain {
	GinkgoHelper()
	var p plain
	take := func(o object) {
		if stop, ok := o["stopReason"].(string); ok {
			p.stop = stop
		}
		if usage, ok := o["usage"].(object); ok {
			p.input, p.output = int(usage["inputTokens"].(float64)), int(usage["outputTokens"].(float64))
		}
	}
	call := func(u object) {
		p.calls = append(p.calls, conversation.ToolCall{ID: u["toolUseId"].(string), Name: u["name"].(string)})
	}
	if !streams(r) {
		o := tree(r.Body)
		take(o)
		var raw struct {
			Output struct {
				Message struct {
					Content []struct {
						ToolUse struct{ Input jsontext.Value }
					}
				}
			}
		}
		Expect(json.Unmarshal(r.Body, &raw, json.MatchCaseInsensitiveNames(true))).To(Succeed())
		for i, b := range o["output"].(object)["message"].(object)["content"].([]any) {
			if text, ok := b.(object)["text"].(string); ok {
				p.text += text
			}
			if use, ok := b.(object)["toolUse"].(object); ok {
				call(use)
				p.calls[len(p.calls)-1].Input = conversation.JSON(raw.Output.Message.Content[i].ToolUse.Input)
			}
		}
		return p
	}
	for _, o := range payloads(r.Body) {
		take(o)
		if start, ok := o["start"].(object); ok {
			call(start["toolUse"].(object))
		}
		if delta, ok := o["delta"].(object); ok {
			if text, ok := delta["text"].(string); ok {
				p.text += text
			}
			if use, ok := delta["toolUse"].(object); ok {
				p.calls[len(p.calls)-1].Input += conversation.JSON(use["input"].(string))
			}
		}
	}
	return p
}

func streams(r providertest.Recording) bool { return strings.HasSuffix(r.URL, "-stream") }

var words = map[llm.StopReason]string{llm.StopEnd: "end_turn", llm.StopToolCalls: "tool_use", llm.StopLength: "max_tokens"}

// serve answers every request with a body.
func serve(r providertest.Recording, asked *[]byte) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		if asked != nil {
			*asked, _ = io.ReadAll(req.Body)
		}
		return &http.Response{StatusCode: r.Status, Header: r.Header.Clone(), Body: io.NopCloser(bytes.NewReader(r.Body)), Request: req}, nil
	})
}

func ask(rt http.RoundTripper, req llm.Request) (llm.Reply, error) {
	GinkgoHelper()
	m, err := bedrock.New(bedrock.Config{Model: claude}, rt)
	Expect(err).NotTo(HaveOccurred())
	if req.Messages == nil {
		req.Messages = []conversation.Message{conversation.User("m", conversation.Text{Text: "Hello?"})}
	}
	return llm.Generate(context.Background(), m, req)
}

var _ = Describe("recorded traffic", func() {
	It("decodes to the same text, calls, usage and stop reason", func() {
		counts := map[string]int{}
		for _, r := range recordings() {
			where := r.Format + "/" + r.File
			want := read(r)
			reply, err := ask(serve(r, nil), llm.Request{Blocking: !streams(r)})
			Expect(err).NotTo(HaveOccurred(), where)
			got := plain{stop: words[reply.Finish.Stop], input: reply.Finish.Usage.InputTokens, output: reply.Finish.Usage.OutputTokens}
			for _, part := range reply.Parts {
				switch part := part.(type) {
				case conversation.Text:
					got.text += part.Text
				case conversation.ToolCall:
					got.calls = append(got.calls, part)
				}
			}
			Expect(got).To(Equal(want), where)
			Expect(want.text != "" || len(want.calls) > 0).To(BeTrue(), "%s says something", where)
			Expect(want.input).To(BeNumerically(">", 0), where)
			Expect(reply.Warnings).To(BeEmpty(), where)
			kind := "Converse"
			if streams(r) {
				kind = "ConverseStream"
			}
			counts[r.Format+" "+kind]++
		}
		var b strings.Builder
		table := tablewriter.NewWriter(&b)
		table.Header("format", "operation", "replies")
		kinds := []string{"langchain-requests-responses+gz Converse", "langchain-requests-responses+gz ConverseStream", "vcrpy-v1 ConverseStream"}
		for _, kind := range kinds {
			format, operation, _ := strings.Cut(kind, " ")
			Expect(table.Append(format, operation, strconv.Itoa(counts[kind]))).To(Succeed())
		}
		Expect(table.Append("nock-json", "InvokeModelWithResponseStream: not spoken", "0")).To(Succeed())
		Expect(table.Render()).To(Succeed())
		AddReportEntry("recorded replies", ReportEntryVisibilityAlways, "\n"+b.String())
		for _, kind := range kinds {
			Expect(counts[kind]).To(BeNumerically(">", 0), kind)
		}
		Expect(counts).To(HaveLen(len(kinds)))
	})

	It("is never a shorter reply where it is cut", func() {
		seen := 0
		for _, r := range recordings() {
			if !streams(r) {
				continue
			}
			seen++
			whole := r.Body
			for end := 0; end < len(whole); end += 13 {
				r.Body = whole[:end]
				_, err := ask(serve(r, nil), llm.Request{})
				Expect(err).To(MatchError(io.ErrUnexpectedEOF), "%s at %d", r.File, end)
			}
		}
		Expect(seen).To(BeNumerically(">", 1))
	})

	It("has requests that are built the same again from our conversation", func() {
		same := 0
		for _, r := range recordings() {
			body := tree(r.Request)
			var asked []byte
			_, err := ask(serve(r, &asked), parse(body, !streams(r)))
			Expect(err).NotTo(HaveOccurred(), r.File)
			// What is empty, and what says that a result is no error, is not sent.
			for name, v := range body {
				if list, ok := v.([]any); ok && len(list) == 0 {
					delete(body, name)
				}
				if o, ok := v.(object); ok && len(o) == 0 {
					delete(body, name)
				}
			}
			for _, m := range body["messages"].([]any) {
				for _, b := range m.(object)["content"].([]any) {
					if result, ok := b.(object)["toolResult"].(object); ok && result["status"] == "success" {
						delete(result, "status")
					}
				}
			}
			Expect(tree(asked)).To(Equal(body), r.File)
			same++
		}
		Expect(same).To(Equal(4))
	})
})

// parse reads a recorded request into ours.
func parse(body object, blocking bool) llm.Request {
	GinkgoHelper()
	req := llm.Request{Blocking: blocking}
	for _, s := range body["system"].([]any) {
		req.System += s.(object)["text"].(string)
	}
	inference, _ := body["inferenceConfig"].(object)
	if topP, ok := inference["topP"].(float64); ok {
		req.Settings.TopP = &topP
	}
	schema := func(v any) conversation.JSON {
		data, err := json.Marshal(v)
		Expect(err).NotTo(HaveOccurred())
		return conversation.JSON(data)
	}
	for _, t := range body["toolConfig"].(object)["tools"].([]any) {
		spec := t.(object)["toolSpec"].(object)
		req.Tools = append(req.Tools, tool.Spec{Name: spec["name"].(string), Description: spec["description"].(string), Parameters: schema(spec["inputSchema"].(object)["json"])})
	}
	for _, m := range body["messages"].([]any) {
		var parts []conversation.Content
		role := conversation.Role(m.(object)["role"].(string))
		for _, b := range m.(object)["content"].([]any) {
			b := b.(object)
			switch {
			case b["text"] != nil:
				parts = append(parts, conversation.Text{Text: b["text"].(string)})
			case b["toolUse"] != nil:
				use := b["toolUse"].(object)
				parts = append(parts, conversation.ToolCall{ID: use["toolUseId"].(string), Name: use["name"].(string), Input: schema(use["input"])})
			case b["toolResult"] != nil:
				result := b["toolResult"].(object)
				role = conversation.RoleTool
				parts = append(parts, conversation.ToolResult{ID: result["toolUseId"].(string), Result: conversation.String(result["content"].([]any)[0].(object)["text"].(string)), IsError: result["status"] == "error"})
			}
		}
		req.Messages = append(req.Messages, conversation.NewMessage(role, "m", parts...))
	}
	return req
}
