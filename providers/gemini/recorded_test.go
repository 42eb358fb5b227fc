package gemini_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	"github.com/echoeval/echoeval/providers/gemini"
)

// formats are the folders of recordings that are read.
var formats = []string{"go-vcr-v2", "vcrpy-v1", "ruby-vcr", "httprr"}

// The kinds of bodies.
const (
	inEvents = "SSE"
	inArray  = "array"
	inOne    = "blocking"
)

// recording is one recorded exchange with generateContent or streamGenerateContent.
type recording struct {
	format, file, kind string
	body               []byte // as it came, without Content-Encoding
}

func isGemini(rawURL string) bool {
	u, err := url.Parse(rawURL)
	return err == nil && (strings.HasSuffix(u.Path, ":generateContent") || strings.HasSuffix(u.Path, ":streamGenerateContent"))
}

// node finds a key in a YAML mapping; the zero value where it is absent.
func node(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		next := &yaml.Node{}
		if n.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == key {
					next = n.Content[i+1]
				}
			}
		}
		n = next
	}
	return n
}

// inYAML reads the exchanges of a file of go-vcr, VCR.py or Ruby's VCR.
func inYAML(data []byte) [][]byte {
	GinkgoHelper()
	var doc yaml.Node
	Expect(yaml.Unmarshal(data, &doc)).To(Succeed())
	list := node(doc.Content[0], "interactions")
	if list.Kind == 0 {
		list = node(doc.Content[0], "http_interactions")
	}
	var bodies [][]byte
	for _, n := range list.Content {
		if !isGemini(node(n, "request", "url").Value + node(n, "request", "uri").Value) {
			continue
		}
		body := node(n, "response", "body")
		if body.Kind == yaml.MappingNode {
			body = node(body, "string")
		}
		switch parsed := node(n, "response", "parsed_body"); {
		case parsed.Kind != 0:
			var v any
			Expect(parsed.Decode(&v)).To(Succeed())
			text, err := json.Marshal(v)
			Expect(err).NotTo(HaveOccurred())
			bodies = append(bodies, text)
		case strings.HasSuffix(body.Tag, "binary"):
			text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(body.Value), ""))
			Expect(err).NotTo(HaveOccurred())
			bodies = append(bodies, text)
		default:
			bodies = append(bodies, []byte(body.Value))
		}
	}
	return bodies
}

var lengths = regexp.MustCompile(`^\d+ \d+$`)

// inHTTPRR reads the exchanges of a trace: a line with two lengths, a request, a response, and so on.
func inHTTPRR(data []byte) [][]byte {
	GinkgoHelper()
	_, data, _ = bytes.Cut(data, []byte("\n"))
	var bodies [][]byte
	for len(data) > 0 {
		head, rest, _ := bytes.Cut(data, []byte("\n"))
		Expect(lengths.Match(head)).To(BeTrue(), "%q", head)
		var asked, answered int
		_, err := fmt.Sscan(string(head), &asked, &answered)
		Expect(err).NotTo(HaveOccurred())
		request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(rest[:asked])))
		Expect(err).NotTo(HaveOccurred())
		response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(rest[asked:asked+answered])), request)
		Expect(err).NotTo(HaveOccurred())
		body, err := io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		if isGemini(request.URL.String()) {
			bodies = append(bodies, body)
		}
		data = rest[asked+answered:]
	}
	return bodies
}

// recordings reads all of a format.
func recordings(format string) []recording {
	GinkgoHelper()
	var found []recording
	err := filepath.WalkDir(suite.SharedData("cassettes", format), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var bodies [][]byte
		switch filepath.Ext(path) {
		case ".yaml", ".yml":
			bodies = inYAML(data)
		case ".httprr":
			bodies = inHTTPRR(data)
		}
		for _, body := range bodies {
			if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
				z, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					return err
				}
				if body, err = io.ReadAll(z); err != nil {
					return err
				}
			}
			r := recording{format, filepath.Base(path), inEvents, body}
			switch bytes.TrimSpace(body)[0] {
			case '{':
				r.kind = inOne
			case '[':
				r.kind = inArray
			}
			found = append(found, r)
		}
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
	return found
}

// plain is what a reply says, read from its bytes by other means than those under test.
type plain struct {
	text, thoughts         string
	calls                  []conversation.ToolCall
	signatures             []string
	input, output, thought int
	finish, model, id      string
}

// read walks generic trees: no type of the package and none of the SDK takes part.
func read(r recording) plain {
	GinkgoHelper()
	var frames []map[string]any
	switch r.kind {
	case inEvents:
		for line := range strings.Lines(string(r.body)) {
			if data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data: "); ok {
				frames = append(frames, nil)
				Expect(json.Unmarshal([]byte(data), &frames[len(frames)-1], jsontext.AllowDuplicateNames(true))).To(Succeed())
			}
		}
	case inArray:
		Expect(json.Unmarshal(r.body, &frames)).To(Succeed())
	default:
		frames = append(frames, nil)
		Expect(json.Unmarshal(r.body, &frames[0])).To(Succeed())
	}
	p := plain{}
	for _, f := range frames {
		if id, ok := f["responseId"].(string); ok && p.id == "" {
			p.id = id
		}
		if model, ok := f["modelVersion"].(string); ok {
			p.model = model
		}
		if u, ok := f["usageMetadata"].(map[string]any); ok {
			n := func(name string) int { x, _ := u[name].(float64); return int(x) }
			p.input, p.thought = n("promptTokenCount"), n("thoughtsTokenCount")
			p.output = n("candidatesTokenCount") + p.thought
			Expect(n("totalTokenCount")).To(Equal(p.input+p.output+n("toolUsePromptTokenCount")), "%s: the vendor's own sum", r.file)
		}
		candidates, _ := f["candidates"].([]any)
		for _, c := range candidates {
			candidate := c.(map[string]any)
			switch reason := candidate["finishReason"].(type) {
			case string:
				p.finish = reason
			case float64:
				p.finish = fmt.Sprint(reason)
			}
			content, _ := candidate["content"].(map[string]any)
			parts, _ := content["parts"].([]any)
			for _, x := range parts {
				part := x.(map[string]any)
				if s, ok := part["thoughtSignature"].(string); ok {
					p.signatures = append(p.signatures, s)
				}
				text, _ := part["text"].(string)
				if part["thought"] == true {
					p.thoughts += text
				} else {
					p.text += text
				}
				if call, ok := part["functionCall"].(map[string]any); ok {
					id, _ := call["id"].(string)
					args, err := json.Marshal(call["args"], json.Deterministic(true))
					Expect(err).NotTo(HaveOccurred())
					p.calls = append(p.calls, conversation.ToolCall{ID: id, Name: call["name"].(string), Input: conversation.JSON(args)})
				}
			}
		}
	}
	return p
}

// summary brings a reply into the same form.
func summary(r llm.Reply, want plain) plain {
	GinkgoHelper()
	u := r.Finish.Usage
	p := plain{input: u.InputTokens, output: u.OutputTokens, thought: u.ReasoningTokens, model: r.Finish.Model, id: r.Finish.ID, finish: want.finish}
	keep := func(e conversation.Extras) {
		if data := e.Get(gemini.Name); data != "" {
			var s string
			Expect(json.Unmarshal([]byte(data), &s)).To(Succeed())
			p.signatures = append(p.signatures, s)
		}
	}
	for _, part := range r.Parts {
		switch part := part.(type) {
		case conversation.Text:
			p.text += part.Text
			keep(part.Extras)
		case conversation.Reasoning:
			p.thoughts += part.Text
			keep(part.Extras)
		case conversation.ToolCall:
			keep(part.Extras)
			if n := len(p.calls); n < len(want.calls) && want.calls[n].ID == "" {
				Expect(part.ID).To(HavePrefix("call_"))
				part.ID = ""
			}
			args := jsontext.Value(part.Input)
			Expect(args.Canonicalize()).To(Succeed())
			p.calls = append(p.calls, conversation.ToolCall{ID: part.ID, Name: part.Name, Input: conversation.JSON(args)})
		}
	}
	return p
}

var stopWords = map[string]llm.StopReason{"STOP": llm.StopEnd, "1": llm.StopEnd, "MAX_TOKENS": llm.StopLength}

func decode(body []byte) (llm.Reply, error) {
	GinkgoHelper()
	return llm.Generate(context.Background(), newModel(gemini.Config{}, &server{body: string(body)}), hello())
}

var _ = Describe("recorded traffic", func() {
	It("decodes to the same text, calls, signatures and usage", func() {
		counts := map[string]int{}
		kinds := []string{inOne, inEvents, inArray}
		signed, called := 0, 0
		for _, format := range formats {
			for _, r := range recordings(format) {
				where := r.format + "/" + r.file
				want := read(r)
				reply, err := decode(r.body)
				Expect(err).NotTo(HaveOccurred(), where)
				Expect(reply.Warnings).To(BeEmpty(), where)
				Expect(summary(reply, want)).To(Equal(want), where)
				Expect(want.text != "" || len(want.calls) > 0).To(BeTrue(), "%s says something", where)
				stop := stopWords[want.finish]
				if len(want.calls) > 0 {
					stop = llm.StopToolCalls
				}
				Expect(reply.Finish.Stop).To(Equal(stop), "%s: %s", where, want.finish)
				counts[format+r.kind]++
				signed += len(want.signatures)
				called += len(want.calls)
			}
		}
		var b strings.Builder
		table := tablewriter.NewWriter(&b)
		table.Header("format", "kind", "replies")
		total := 0
		for _, format := range formats {
			for _, kind := range kinds {
				total += counts[format+kind]
				Expect(table.Append(format, kind, strconv.Itoa(counts[format+kind]))).To(Succeed())
			}
		}
		Expect(table.Append("all", "", strconv.Itoa(total))).To(Succeed())
		Expect(table.Render()).To(Succeed())
		AddReportEntry("recorded Gemini replies", ReportEntryVisibilityAlways, "\n"+b.String())
		for _, needed := range []string{"go-vcr-v2" + inEvents, "vcrpy-v1" + inOne, "ruby-vcr" + inOne, "httprr" + inEvents, "httprr" + inArray, "httprr" + inOne} {
			Expect(counts[needed]).To(BeNumerically(">", 0), needed)
		}
		Expect(total).To(BeNumerically(">=", 30))
		Expect(signed).To(BeNumerically(">", 0))
		Expect(called).To(BeNumerically(">", 0))
	})

	It("is never a shorter reply where it is cut", func() {
		seen := 0
		for _, r := range slices.Concat(recordings("go-vcr-v2"), recordings("httprr")) {
			want, err := decode(r.body)
			Expect(err).NotTo(HaveOccurred())
			for cut := 0; cut < len(r.body); cut += 1 + len(r.body)/60 {
				seen++
				got, err := decode(r.body[:cut])
				if err == nil {
					Expect(got.Parts).To(Equal(want.Parts))
					Expect(got.Finish.Stop).To(Equal(want.Finish.Stop))
				} else {
					Expect(err).To(MatchError(io.ErrUnexpectedEOF), "%s at %d", r.file, cut)
				}
			}
		}
		Expect(seen).To(BeNumerically(">", 500))
	})
})
