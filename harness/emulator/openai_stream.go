package emulator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"
)

// sse writes the frames of one stream.
type sse struct {
	frames
	r    *reply
	head []byte // of each frame, up to the choices
	runs int    // characters of head
	// usage says whether frames have the field usage: null but in the last.
	usage       bool
	obfuscation bool
	noise       uint64
	rest        time.Duration // before the end
}

const (
	openChoice  = `"choices":[{"index":0,"delta":`
	closeChoice = `,"logprobs":null,"finish_reason":`
)

// stream writes a reply as server-sent events.
func (o *openAI) stream(ctx context.Context, w http.ResponseWriter, r *reply, q *query, req openAIRequest) {
	model := openAIModel(q.model)
	out := buffers.Get().(*bytes.Buffer)
	out.Reset()
	defer release(out)
	out.Grow(flushAt + 4<<10)

	var room [256]byte
	head := append(room[:0], `{"id":"`...)
	head = appendCompletionID(head, r.seed)
	head = append(head, `","object":"chat.completion.chunk","created":`...)
	head = strconv.AppendInt(head, created(r.seed), 10)
	head = append(head, `,"model":`...)
	head = appendQuoted(head, model)
	head = append(head, `,"service_tier":"default","system_fingerprint":"`...)
	head = o.appendFingerprint(head, model)
	head = append(head, `",`...)

	h := w.Header()
	h["Content-Type"] = typeStream
	h["Transfer-Encoding"] = chunked
	h["Openai-Processing-Ms"] = []string{wholeMilliseconds(r.ttft)}
	s := &sse{frames: frames{e: o.engine, ctx: ctx, w: w, cut: r.cut, pause: r.delay, buf: out.AvailableBuffer()}, r: r, head: head, runs: utf8.RuneCount(head),
		usage: req.usage, obfuscation: req.obfuscation, noise: binary.BigEndian.Uint64(r.seed[:])}
	if o.realTime {
		all := time.Duration(s.total())
		s.pause += (r.latency - r.ttft) / all
		s.rest = (r.latency - r.ttft) % all
	}
	if !o.wait(ctx, r.ttft) {
		return
	}
	s.write()
}

func (s *sse) write() {
	if s.cut != nil && s.cut.After.Count == 0 {
		s.cutShort()
		return
	}
	s.answer()
	var room [64]byte
	finish := append(append(append(room[:0], '"'), s.r.finish...), '"')
	s.frame(nil, piece{}, []byte("{}"), finish)
	if s.usage {
		s.usageFrame()
	}
	if s.over {
		return
	}
	if s.cut != nil {
		s.cutShort()
		return
	}
	if s.e.wait(s.ctx, s.rest) {
		s.buf = append(s.buf, "data: [DONE]\n\n"...)
		s.send()
	}
}

// total is the number of frames of the whole stream.
func (s *sse) total() int {
	r := s.r
	n := r.pieces.frames() + len(r.calls) + 1
	if r.text != nil || len(r.calls) != 1 {
		n++
	}
	if s.usage {
		n++
	}
	return n
}

// answer writes the frames between the first and the last. The vendor puts a single call's head into the first frame, and gives several calls, or calls after a text, frames of their own.
func (s *sse) answer() {
	r := s.r
	switch {
	case r.text != nil:
		s.frame([]byte(`{"role":"assistant","content":"","refusal":null}`), piece{}, nil, nil)
		for _, p := range r.pieces.text {
			s.frame([]byte(`{"content":`), p, []byte("}"), nil)
		}
	case r.refusal != "":
		s.frame([]byte(`{"role":"assistant","content":null,"refusal":""}`), piece{}, nil, nil)
		for _, p := range r.pieces.text {
			s.frame([]byte(`{"refusal":`), p, []byte("}"), nil)
		}
	case len(r.calls) > 1:
		s.frame([]byte(`{"role":"assistant","content":null}`), piece{}, nil, nil)
	}
	for i, c := range r.calls {
		var delta []byte
		alone := r.text == nil && len(r.calls) == 1
		if alone {
			delta = append(delta, `{"role":"assistant","content":null,"tool_calls":[{"index":`...)
		} else {
			delta = append(delta, `{"tool_calls":[{"index":`...)
		}
		delta = strconv.AppendInt(delta, int64(i), 10)
		delta = append(delta, `,"id":`...)
		delta = r.appendCallID(delta, i)
		delta = append(delta, `,"type":"function","function":{"name":`...)
		delta = appendQuoted(delta, c.name)
		delta = append(delta, `,"arguments":""}}]`...)
		if alone {
			delta = append(delta, `,"refusal":null`...)
		}
		s.frame(append(delta, '}'), piece{}, nil, nil)

		var room [64]byte
		open := append(room[:0], `{"tool_calls":[{"index":`...)
		open = strconv.AppendInt(open, int64(i), 10)
		open = append(open, `,"function":{"arguments":`...)
		for _, p := range r.pieces.calls[i] {
			s.frame(open, p, []byte("}}]}"), nil)
		}
	}
}

// frame writes one chunk whose delta is before, the piece, after. A nil finish is null.
func (s *sse) frame(before []byte, p piece, after, finish []byte) {
	if s.over {
		return
	}
	b := append(s.buf, "data: "...)
	b = append(b, s.head...)
	start := len(b)
	b = append(b, openChoice...)
	b = append(b, before...)
	b = append(b, p.quoted...)
	b = append(b, after...)
	b = append(b, closeChoice...)
	if finish == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, finish...)
	}
	b = append(b, "}]"...)
	if s.usage {
		b = append(b, `,"usage":null`...)
	}
	runes := s.runs + len(b) - start - len(p.quoted) + p.runes
	if p.quoted == nil && before != nil {
		// The head of a call holds a name and an id, which need not be plain.
		runes = s.runs + utf8.RuneCount(b[start:])
	}
	s.buf = s.close(b, runes)
	s.end()
}

func (s *sse) usageFrame() {
	if s.over {
		return
	}
	u := &s.r.usage
	b := append(s.buf, "data: "...)
	b = append(b, s.head...)
	start := len(b)
	b = append(b, `"choices":[],"usage":{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(u.input), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(u.output), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(u.input+u.output), 10)
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(u.cached), 10)
	b = append(b, `,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":`...)
	b = strconv.AppendInt(b, int64(u.reasoning), 10)
	b = append(b, `,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`...)
	s.buf = s.close(b, s.runs+len(b)-start)
	s.end()
}

// noiseTable is what obfuscation is cut from.
var noiseTable = func() string {
	var b []byte
	for i := range 40 {
		b = appendAlphanumeric(b, seed{}.derive("noise", i), sha256.Size)
	}
	return string(b)
}()

// close ends a frame. The vendor pads frames with a field of random letters so that their lengths tell nothing about the tokens: to one more than a multiple of 16 characters.
func (s *sse) close(b []byte, runes int) []byte {
	if s.obfuscation {
		const open, end, unit, longest = `,"obfuscation":"`, `"}`, 16, 15
		pad := (1 - (runes+len(open)+len(end))%unit + unit) % unit
		s.noise = s.noise*6364136223846793005 + 1442695040888963407
		from := int(s.noise>>33) % (len(noiseTable) - longest)
		b = append(b, open...)
		b = append(b, noiseTable[from:from+pad]...)
		b = append(b, '"')
	}
	return append(b, "}\n\n"...)
}
