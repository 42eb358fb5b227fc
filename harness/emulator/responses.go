package emulator

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"
)

// responsesPath is the one path of the Responses format that a script can answer: nothing is stored that could be asked for later.
const responsesPath = "/v1/responses"

// responses answers in OpenAI's Responses format. What stands before the body, and errors, are those of chat completions.
type responses struct{ *openAI }

func (o *responses) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	root, q, done := o.open(w, r, responsesPath)
	if done {
		return
	}
	req, refused := readResponses(root, q)
	answer, ok := o.look(w, q, refused, "input")
	if !ok {
		return
	}
	if answer.failure != nil {
		o.fail(r.Context(), w, answer, q)
		return
	}
	body := newResponse(o.openAI, answer, q, &req)
	if req.stream {
		body.stream(r.Context(), w)
	} else {
		o.whole(r.Context(), w, answer, body.append(nil, true))
	}
}

// response writes a reply.
type response struct {
	o      *openAI
	r      *reply
	q      *query
	req    *responsesRequest
	items  []responseItem
	frames frames
	seq    int
	rest   time.Duration
	noise  uint64
}

// responseItem is an item of the reply's output.
type responseItem struct {
	id     string
	kind   string
	call   int // of a function_call
	pieces []piece
}

func newResponse(o *openAI, r *reply, q *query, req *responsesRequest) *response {
	s := &response{o: o, r: r, q: q, req: req, noise: binary.BigEndian.Uint64(r.seed[:])}
	if r.reasoning != "" {
		s.items = append(s.items, responseItem{id: s.id("rs_", "reasoning", 0), kind: "reasoning", pieces: cut(r.reasoning, r.fragment)})
	}
	if r.text != nil || r.refusal != "" {
		s.items = append(s.items, responseItem{id: s.id("msg_", "message", 0), kind: "message", pieces: r.pieces.text})
	}
	for i := range r.calls {
		s.items = append(s.items, responseItem{id: s.id("fc_", "function call", i), kind: "function_call", call: i, pieces: r.pieces.calls[i]})
	}
	return s
}

// id makes an id of the vendor's form.
func (s *response) id(prefix, purpose string, n int) string {
	sum := s.r.seed.derive("response "+purpose, n)
	return prefix + hex.EncodeToString(sum[:25])
}

// incomplete is why the reply ends early; "" where it does not.
func (s *response) incomplete() string {
	switch s.r.finish {
	case "length":
		return "max_output_tokens"
	case "content_filter":
		return "content_filter"
	}
	return ""
}

// append writes the response object: as it begins, or whole.
func (s *response) append(b []byte, whole bool) []byte {
	status := "in_progress"
	if whole {
		status = "completed"
		if s.incomplete() != "" {
			status = "incomplete"
		}
	}
	root := s.req.root
	echo := func(name, otherwise string) {
		b = append(b, `,"`+name+`":`...)
		if v := root.get(name); v.given() {
			b = v.append(b)
		} else {
			b = append(b, otherwise...)
		}
	}
	b = append(b, `{"id":"`+s.id("resp_", "response", 0)+`","object":"response","created_at":`...)
	b = strconv.AppendInt(b, created(s.r.seed), 10)
	b = append(b, `,"status":"`+status+`","background":false`...)
	if whole && s.incomplete() == "" {
		b = append(b, `,"completed_at":`...)
		b = strconv.AppendInt(b, created(s.r.seed)+int64(s.r.latency/time.Second), 10)
	}
	b = append(b, `,"error":null,"incomplete_details":`...)
	if why := s.incomplete(); whole && why != "" {
		b = append(b, `{"reason":"`+why+`"}`...)
	} else {
		b = append(b, "null"...)
	}
	echo("instructions", "null")
	echo("max_output_tokens", "null")
	echo("max_tool_calls", "null")
	b = append(b, `,"model":`...)
	b = appendQuoted(b, openAIModel(s.q.model))
	b = append(b, `,"output":[`...)
	for i := range s.items {
		if !whole {
			break
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = s.item(b, i, true)
	}
	b = append(b, ']')
	echo("parallel_tool_calls", "true")
	b = append(b, `,"previous_response_id":null`...)
	echo("prompt_cache_key", "null")
	b = append(b, `,"reasoning":{"effort":`...)
	b = s.member(b, root.get("reasoning").get("effort"))
	b = append(b, `,"summary":`...)
	b = s.member(b, root.get("reasoning").get("summary"))
	b = append(b, '}')
	echo("safety_identifier", "null")
	b = append(b, `,"service_tier":"default"`...)
	echo("store", "true")
	echo("temperature", "1.0")
	echo("text", `{"format":{"type":"text"},"verbosity":"medium"}`)
	echo("tool_choice", `"auto"`)
	echo("tools", "[]")
	echo("top_logprobs", "0")
	echo("top_p", "1.0")
	echo("truncation", `"disabled"`)
	b = append(b, `,"usage":`...)
	if whole {
		u := &s.r.usage
		b = append(b, `{"input_tokens":`...)
		b = strconv.AppendInt(b, int64(u.input), 10)
		b = append(b, `,"input_tokens_details":{"cache_write_tokens":0,"cached_tokens":`...)
		b = strconv.AppendInt(b, int64(u.cached), 10)
		b = append(b, `},"output_tokens":`...)
		b = strconv.AppendInt(b, int64(u.output), 10)
		b = append(b, `,"output_tokens_details":{"reasoning_tokens":`...)
		b = strconv.AppendInt(b, int64(u.reasoning), 10)
		b = append(b, `},"total_tokens":`...)
		b = strconv.AppendInt(b, int64(u.input+u.output), 10)
		b = append(b, '}')
	} else {
		b = append(b, "null"...)
	}
	echo("user", "null")
	echo("metadata", "{}")
	return append(b, '}')
}

func (s *response) member(b []byte, v *value) []byte {
	if !v.given() {
		return append(b, "null"...)
	}
	return v.append(b)
}

// item writes an item: as it begins, or whole.
func (s *response) item(b []byte, i int, whole bool) []byte {
	item := &s.items[i]
	b = append(b, `{"id":"`+item.id+`","type":"`+item.kind+`"`...)
	status := `,"status":"in_progress"`
	if whole {
		status = `,"status":"completed"`
		if s.incomplete() != "" && i == len(s.items)-1 {
			status = `,"status":"incomplete"`
		}
	}
	switch item.kind {
	case "reasoning":
		if s.req.encrypted {
			sum := s.r.seed.derive("encrypted", i)
			b = append(b, `,"encrypted_content":"`...)
			if whole {
				b = base64.StdEncoding.AppendEncode(b, append(sum[:], s.r.reasoning...))
			}
			b = append(b, '"')
		}
		b = append(b, `,"summary":[`...)
		if whole {
			b = append(b, `{"type":"summary_text","text":`...)
			b = appendQuoted(b, s.r.reasoning)
			b = append(b, '}')
		}
		b = append(b, ']')
	case "message":
		b = append(b, status...)
		b = append(b, `,"content":[`...)
		if whole {
			b = s.part(b, true)
		}
		b = append(b, `],"role":"assistant"`...)
	case "function_call":
		b = append(b, status...)
		b = append(b, `,"arguments":`...)
		if whole {
			b = appendQuoted(b, s.r.calls[item.call].args)
		} else {
			b = append(b, `""`...)
		}
		b = append(b, `,"call_id":`...)
		b = s.r.appendCallID(b, item.call)
		b = append(b, `,"name":`...)
		b = appendQuoted(b, s.r.calls[item.call].name)
	}
	return append(b, '}')
}

// part writes the one part of a message.
func (s *response) part(b []byte, whole bool) []byte {
	text := ""
	if s.r.refusal != "" {
		if whole {
			text = s.r.refusal
		}
		b = append(b, `{"type":"refusal","refusal":`...)
		return append(appendQuoted(b, text), '}')
	}
	if whole {
		text = *s.r.text
	}
	b = append(b, `{"type":"output_text","annotations":[],"logprobs":[],"text":`...)
	return append(appendQuoted(b, text), '}')
}

// stream writes the reply as events.
func (s *response) stream(ctx context.Context, w http.ResponseWriter) {
	out := buffers.Get().(*bytes.Buffer)
	out.Reset()
	defer release(out)
	out.Grow(flushAt + 4<<10)
	h := w.Header()
	h["Content-Type"] = typeStream
	h["Transfer-Encoding"] = chunked
	h["Openai-Processing-Ms"] = []string{wholeMilliseconds(s.r.ttft)}
	s.frames = frames{e: s.o.engine, ctx: ctx, w: w, cut: s.r.cut, pause: s.r.delay, buf: out.AvailableBuffer()}
	if s.o.realTime {
		total := time.Duration(s.total())
		s.frames.pause += (s.r.latency - s.r.ttft) / total
		s.rest = (s.r.latency - s.r.ttft) % total
	}
	if !s.o.wait(ctx, s.r.ttft) {
		return
	}
	if s.r.cut != nil && s.r.cut.After.Count == 0 {
		s.frames.cutShort()
		return
	}
	s.event("response.created", func(b []byte) []byte { return s.append(append(b, `"response":`...), false) })
	s.event("response.in_progress", func(b []byte) []byte { return s.append(append(b, `"response":`...), false) })
	for i := range s.items {
		s.streamItem(i)
	}
	if s.frames.over || !s.o.wait(ctx, s.rest) {
		return
	}
	last := "response.completed"
	if s.incomplete() != "" {
		last = "response.incomplete"
	}
	s.event(last, func(b []byte) []byte { return s.append(append(b, `"response":`...), true) })
	switch {
	case s.frames.over:
	case s.r.cut != nil:
		s.frames.cutShort()
	default:
		s.frames.send()
	}
}

// total is the number of events.
func (s *response) total() int {
	n := 3
	for _, item := range s.items {
		n += len(item.pieces) + 3
		if item.kind != "function_call" {
			n += 2
		}
	}
	return n
}

func (s *response) streamItem(i int) {
	item := &s.items[i]
	index := `"output_index":` + strconv.Itoa(i)
	at := `"item_id":"` + item.id + `",` + index
	fixed := func(text string) func([]byte) []byte { return func(b []byte) []byte { return append(b, text...) } }
	whole := func(before, text string) func([]byte) []byte {
		return func(b []byte) []byte { return appendQuoted(append(b, before...), text) }
	}
	s.event("response.output_item.added", func(b []byte) []byte { return s.item(append(b, index+`,"item":`...), i, false) })
	switch item.kind {
	case "reasoning":
		at += `,"summary_index":0`
		s.event("response.reasoning_summary_part.added", fixed(at+`,"part":{"type":"summary_text","text":""}`))
		s.deltas("response.reasoning_summary_text.delta", at, item.pieces)
		s.event("response.reasoning_summary_text.done", whole(at+`,"text":`, s.r.reasoning))
		s.event("response.reasoning_summary_part.done", func(b []byte) []byte {
			return append(appendQuoted(append(b, at+`,"part":{"type":"summary_text","text":`...), s.r.reasoning), '}')
		})
	case "message":
		at += `,"content_index":0`
		s.event("response.content_part.added", func(b []byte) []byte { return s.part(append(b, at+`,"part":`...), false) })
		if s.r.refusal != "" {
			s.deltas("response.refusal.delta", at, item.pieces)
			s.event("response.refusal.done", whole(at+`,"refusal":`, s.r.refusal))
		} else {
			s.deltas("response.output_text.delta", at+`,"logprobs":[]`, item.pieces)
			s.event("response.output_text.done", whole(at+`,"logprobs":[],"text":`, *s.r.text))
		}
		s.event("response.content_part.done", func(b []byte) []byte { return s.part(append(b, at+`,"part":`...), true) })
	case "function_call":
		s.deltas("response.function_call_arguments.delta", at, item.pieces)
		call := s.r.calls[item.call]
		s.event("response.function_call_arguments.done", func(b []byte) []byte {
			b = appendQuoted(append(b, at+`,"name":`...), call.name)
			return appendQuoted(append(b, `,"arguments":`...), call.args)
		})
	}
	s.event("response.output_item.done", func(b []byte) []byte { return s.item(append(b, index+`,"item":`...), i, true) })
}

func (s *response) deltas(kind, at string, pieces []piece) {
	for _, p := range pieces {
		s.event(kind, func(b []byte) []byte {
			start := len(b)
			b = append(append(append(b, at...), `,"delta":`...), p.quoted...)
			if s.req.obfuscation {
				// The vendor pads deltas so that their lengths tell nothing about the tokens.
				const unit = 16
				pad := unit - utf8.RuneCount(b[start:])%unit
				s.noise = s.noise*6364136223846793005 + 1442695040888963407
				from := int(s.noise>>33) % (len(noiseTable) - unit)
				b = append(b, `,"obfuscation":"`+noiseTable[from:from+pad]+`"`...)
			}
			return b
		})
	}
}

// event writes one event with what fill appends.
func (s *response) event(kind string, fill func([]byte) []byte) {
	if s.frames.over {
		return
	}
	b := append(s.frames.buf, "event: "+kind+"\ndata: {\"type\":\""+kind+`",`...)
	b = fill(b)
	b = append(b, `,"sequence_number":`...)
	b = strconv.AppendInt(b, int64(s.seq), 10)
	s.seq++
	s.frames.buf = append(b, "}\n\n"...)
	s.frames.end()
}
