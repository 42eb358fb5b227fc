package emulator

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// geminiReply makes the frames of one reply.
type geminiReply struct {
	call *geminiCall
	r    *reply
	// thoughts are shown, signs and ids given.
	thoughts, signs, ids bool
	finish, why          string // finishReason and finishMessage
	tail                 []byte // of each frame, from the model on
}

// geminiFinishes are the vendor's words for how an answer ended.
var geminiFinishes = map[string]string{"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}

const (
	madeCalls = "Model generated function call(s)."
	malformed = "MALFORMED_FUNCTION_CALL"
)

func newGeminiReply(c *geminiCall, r *reply, req geminiRequest) *geminiReply {
	g := &geminiReply{call: c, r: r, finish: geminiFinishes[r.finish], thoughts: req.thoughts && r.reasoning != ""}
	g.ids = isGemini3(c.model)
	g.signs = g.ids || g.thoughts
	if r.refusal != "" {
		g.finish = geminiFinishes["content_filter"]
	}
	for _, call := range r.calls {
		if v := jsontext.Value(call.args); !v.IsValid() || v.Kind() != '{' {
			// The vendor's format cannot say it, and the vendor does not: it withholds such calls.
			g.finish, g.why = malformed, "Malformed function call: "+call.name+"("+call.args+")"
		}
	}
	if len(r.calls) > 0 && g.finish == "STOP" && !g.ids {
		g.why = madeCalls
	}
	g.tail = append(g.tail, `,"modelVersion":`...)
	g.tail = appendQuoted(g.tail, c.model)
	g.tail = append(g.tail, `,"responseId":"`+geminiID(r.seed)+`"}`...)
	return g
}

// isGemini3 reports whether a model is of the generation that gives ids and signatures, and insists on the latter.
func isGemini3(model string) bool { return strings.HasPrefix(model, "gemini-3") }

// blocked reports whether the answer is a prompt that a filter did not let through: a content_filter that leaves nothing to say.
func (g *geminiReply) blocked() bool {
	return g.r.finish == "content_filter" && g.r.refusal == "" && len(g.r.calls) == 0 && (g.r.text == nil || *g.r.text == "")
}

// whole is the reply in one piece.
func (g *geminiReply) whole() []byte {
	if g.blocked() {
		return g.feedback()
	}
	var parts [][]byte
	if g.thoughts {
		parts = append(parts, g.text(quoted(g.r.reasoning), true, ""))
	}
	calls := g.calls()
	if text, ok := g.said(); ok {
		signature := ""
		if g.signs && len(calls) == 0 {
			signature = g.signature("text")
		}
		parts = append(parts, g.text(quoted(text), false, signature))
	}
	return g.frame(append(parts, calls...), g.finish, 1, 1)
}

// frames are the pieces of the reply. Calls come whole. The newer generation closes with a piece that holds nothing but the end.
func (g *geminiReply) frames() [][]byte {
	if g.blocked() {
		return [][]byte{g.feedback()}
	}
	var pieces [][]byte // each a list of parts
	if g.thoughts {
		pieces = append(pieces, g.text(quoted(g.r.reasoning), true, ""))
	}
	calls := g.calls()
	if _, ok := g.said(); ok {
		for _, p := range g.r.pieces.text {
			pieces = append(pieces, g.text(p.quoted, false, ""))
		}
		if len(g.r.pieces.text) == 0 && !(g.signs && len(calls) == 0) {
			pieces = append(pieces, g.text([]byte(`""`), false, ""))
		}
		if g.signs && len(calls) == 0 {
			pieces = append(pieces, g.text([]byte(`""`), false, g.signature("text")))
		}
	}
	pieces = append(pieces, calls...)
	if g.ids && len(calls) > 0 || len(pieces) == 0 {
		pieces = append(pieces, g.text([]byte(`""`), false, ""))
	}
	out := make([][]byte, len(pieces))
	for i, p := range pieces {
		finish := ""
		if i == len(pieces)-1 {
			finish = g.finish
		}
		out[i] = g.frame([][]byte{p}, finish, i+1, len(pieces))
	}
	return out
}

// said is the answer's text.
func (g *geminiReply) said() (string, bool) {
	switch {
	case g.r.text != nil:
		return *g.r.text, true
	case g.r.refusal != "":
		return g.r.refusal, true
	}
	return "", len(g.r.calls) == 0
}

func quoted(s string) []byte { return appendQuoted(nil, s) }

func (g *geminiReply) text(quoted []byte, thought bool, signature string) []byte {
	b := append([]byte(`{"text":`), quoted...)
	if thought {
		b = append(b, `,"thought":true`...)
	}
	return g.sign(b, signature)
}

func (g *geminiReply) sign(b []byte, signature string) []byte {
	if signature != "" {
		b = append(b, `,"thoughtSignature":"`+signature+`"`...)
	}
	return append(b, '}')
}

// signature is opaque: bytes that hang on what was asked.
func (g *geminiReply) signature(of string) string {
	var raw []byte
	for i := range 3 {
		sum := g.r.seed.derive("signature "+of, i)
		raw = append(raw, sum[:]...)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// calls are the parts of the calls. The first bears the signature of all.
func (g *geminiReply) calls() [][]byte {
	if g.finish == malformed {
		return nil
	}
	var parts [][]byte
	for i, c := range g.r.calls {
		b := append([]byte(nil), `{"functionCall":{"name":`...)
		b = appendQuoted(b, c.name)
		b = append(b, `,"args":`...)
		b = append(b, c.args...)
		switch {
		case c.id != "":
			b = append(b, `,"id":`...)
			b = appendQuoted(b, c.id)
		case g.ids:
			b = append(b, `,"id":"`...)
			b = append(b, strings.ToLower(string(appendAlphanumeric(nil, g.r.seed.derive("call", i), 8)))...)
			b = append(b, '"')
		}
		b = append(b, '}')
		signature := ""
		if g.signs && i == 0 {
			signature = g.signature("call")
		}
		parts = append(parts, g.sign(b, signature))
	}
	return parts
}

// frame is piece n of all. The counts of its output grow with it.
func (g *geminiReply) frame(parts [][]byte, finish string, n, all int) []byte {
	b := append([]byte(nil), `{"candidates":[{"content":{"parts":[`...)
	for i, p := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, p...)
	}
	b = append(b, `],"role":"model"}`...)
	if finish != "" {
		b = append(b, `,"finishReason":"`+finish+`"`...)
	}
	b = append(b, `,"index":0`...)
	if finish != "" && g.why != "" {
		b = append(b, `,"finishMessage":`...)
		b = appendQuoted(b, g.why)
	}
	b = append(b, `}],`...)
	return g.close(b, (g.r.usage.output-g.r.usage.reasoning)*n/all)
}

// feedback is the reply to a blocked prompt.
func (g *geminiReply) feedback() []byte {
	return g.close([]byte(`{"promptFeedback":{"blockReason":"SAFETY"},`), 0)
}

// close adds the usage and what stands behind it. A count of 0 is left out.
func (g *geminiReply) close(b []byte, candidates int) []byte {
	u := &g.r.usage
	b = append(b, `"usageMetadata":{"promptTokenCount":`...)
	b = strconv.AppendInt(b, int64(u.input), 10)
	count := func(name string, n int) {
		if n > 0 {
			b = append(b, `,"`+name+`":`...)
			b = strconv.AppendInt(b, int64(n), 10)
		}
	}
	details := func(name string, n int) {
		if n > 0 {
			b = append(b, `,"`+name+`":[{"modality":"TEXT","tokenCount":`...)
			b = strconv.AppendInt(b, int64(n), 10)
			b = append(b, `}]`...)
		}
	}
	count("candidatesTokenCount", candidates)
	count("totalTokenCount", u.input+candidates+u.reasoning)
	count("cachedContentTokenCount", u.cached)
	details("promptTokensDetails", u.input)
	details("cacheTokensDetails", u.cached)
	count("thoughtsTokenCount", u.reasoning)
	b = append(b, '}')
	return append(b, g.tail...)
}
