package emulator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/echoeval/echoeval/harness/eventstream"
)

// bedrockPath begins the paths of Bedrock's runtime.
const bedrockPath = "/model/"

// bedrock answers in the format of Converse.
type bedrock struct{ *engine }

// bedrockCall is what a request's address says.
type bedrockCall struct {
	model   string
	streams bool
	// invokes says that the body is that of the model's maker, and no Converse.
	invokes bool
}

// bedrockError is a refusal in the vendor's words. kind stands in a header.
type bedrockError struct {
	status  int
	kind    string
	message string
}

const validationException = "ValidationException"

func decodeBase64(s string) (string, bool) {
	data, err := base64.StdEncoding.DecodeString(s)
	return string(data), err == nil
}

func (b *bedrock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := buffers.Get().(*bytes.Buffer)
	body.Reset()
	defer release(body)
	early := seed(b.plan.sum).mix(sha256.Sum256([]byte(r.Method + " " + r.URL.EscapedPath())))
	c, e := b.admit(r)
	if e != nil {
		if e.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		b.refuse(w, early, e)
		return
	}
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, b.maxBody)); err != nil {
		e := &bedrockError{400, "SerializationException", "the request's body ended early"}
		if isTooLarge(err) {
			e = &bedrockError{413, validationException, "Input is too long for requested model."}
		}
		b.refuse(w, early, e)
		return
	}
	root, err := parseValue(body.Bytes())
	if err != nil || root.kind != '{' {
		b.refuse(w, early.mix(sha256.Sum256(body.Bytes())), &bedrockError{400, "SerializationException", "The request body is not a valid JSON object"})
		return
	}
	q := &query{model: c.model, attempt: attempt(r.Header.Get("X-Stainless-Retry-Count"))}
	if c.invokes {
		q.digest = seed(root.digest()).mix(sha256.Sum256([]byte(c.model)))
		b.embed(w, q, &root)
		return
	}
	// The model stands in the address. Whether the reply is a stream takes no part: it says the same then.
	q.digest = seed(root.digest()).mix(sha256.Sum256([]byte(c.model)))
	req, e := readBedrock(&root, q)
	if e == nil && !b.plan.allows(c.model) {
		e = &bedrockError{400, validationException, "The provided model identifier is invalid."}
	}
	if e != nil {
		b.refuse(w, b.plan.seed(q), e)
		return
	}
	reply, unanswered := b.plan.reply(q)
	if unanswered != nil {
		b.refuse(w, b.plan.seed(q), &bedrockError{400, validationException, unanswered.code + ": " + unanswered.what})
		return
	}
	if made := unsayable(&reply); made != nil && !c.streams {
		b.refuse(w, b.plan.seed(q), &bedrockError{400, validationException, fmt.Sprintf("emulator_unsupported: the arguments of the call of %q are no JSON object, which only a streamed reply of this format can hold", made.name)})
		return
	}
	b.common(w.Header(), reply.seed, q.attempt)
	w.Header()["Server-Timing"] = []string{"total;dur=" + milliseconds(reply.latency) + ", ttft;dur=" + milliseconds(reply.ttft)}
	switch {
	case reply.failure != nil:
		b.fail(r.Context(), w, &reply)
	case c.streams:
		b.stream(r.Context(), w, &reply, req)
	default:
		b.block(r.Context(), w, &reply, req)
	}
}

// admit reads the address and checks what stands before the body.
func (b *bedrock) admit(r *http.Request) (bedrockCall, *bedrockError) {
	name, way, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), bedrockPath), "/")
	model, err := url.PathUnescape(name)
	c := bedrockCall{model: model, streams: way == "converse-stream", invokes: way == "invoke"}
	switch {
	case err != nil || model == "" || way != "converse" && !c.streams && !c.invokes:
		return c, &bedrockError{404, "UnknownOperationException", "The emulator has no " + printable(r.Method) + " " + printable(r.URL.Path) + ", only POST " + bedrockPath + "MODEL/converse, /converse-stream and /invoke"}
	case r.Method != http.MethodPost:
		return c, &bedrockError{405, "MethodNotAllowedException", "Not allowed to " + printable(r.Method)}
	}
	// Of a signature only the key's name is looked at: the emulator knows no key that it could be checked with.
	scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	var key string
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		key = strings.TrimSpace(rest)
	case scheme == "AWS4-HMAC-SHA256":
		_, key, _ = strings.Cut(rest, "Credential=")
		key, _, _ = strings.Cut(key, "/")
	}
	if key == "" {
		return c, &bedrockError{403, "MissingAuthenticationTokenException", "Missing Authentication Token"}
	}
	known := len(b.keys) == 0
	for _, k := range b.keys {
		if subtle.ConstantTimeCompare([]byte(k), []byte(key)) == 1 {
			known = true
		}
	}
	if !known {
		return c, &bedrockError{403, "UnrecognizedClientException", "The security token included in the request is invalid."}
	}
	return c, nil
}

// common sets the headers of every reply. Date is left out: it would differ from run to run.
func (b *bedrock) common(h http.Header, s seed, attempt int) {
	h["Date"] = nil
	h["Server"] = b.server
	sum := s.derive("request id", attempt)
	id := hex.EncodeToString(sum[:16])
	h["X-Amzn-Requestid"] = []string{id[:8] + "-" + id[8:12] + "-4" + id[13:16] + "-a" + id[17:20] + "-" + id[20:]}
}

// refuse answers a request that never got as far as the script.
func (b *bedrock) refuse(w http.ResponseWriter, s seed, e *bedrockError) {
	b.common(w.Header(), s, 0)
	writeBedrockError(w, e)
}

func writeBedrockError(w http.ResponseWriter, e *bedrockError) {
	h := w.Header()
	h["X-Amzn-Errortype"] = []string{e.kind + ":http://internal.amazon.com/coral/com.amazon.bedrock/"}
	h["Content-Type"] = typeJSON
	text := append(appendQuoted([]byte(`{"message":`), e.message), '}')
	w.WriteHeader(e.status)
	_, _ = w.Write(text) // a client that is gone needs no answer
}

// bedrockFailures are the vendor's words for each status, where the script has none of its own. 401, 413 and 529 are not the vendor's: gateways send them.
var bedrockFailures = map[int]bedrockError{
	400: {400, validationException, "The request was rejected."},
	401: {401, "UnrecognizedClientException", "The security token included in the request is invalid."},
	403: {403, "AccessDeniedException", "You don't have access to the model with the specified model ID."},
	404: {404, "ResourceNotFoundException", "Could not resolve the foundation model from the provided model identifier."},
	408: {408, "ModelTimeoutException", "Model has timed out in processing the request. Try your request again."},
	413: {413, validationException, "Input is too long for requested model."},
	429: {429, "ThrottlingException", "Too many requests, please wait before trying again."},
	500: {500, "InternalServerException", "The system encountered an unexpected error during processing. Try your request again."},
	503: {503, "ServiceUnavailableException", "Bedrock is unable to process your request."},
	529: {529, "ServiceUnavailableException", "The service is overloaded."},
}

// fail answers with the script's error. The format has neither code nor param.
func (b *bedrock) fail(ctx context.Context, w http.ResponseWriter, r *reply) {
	f := r.failure
	e := bedrockFailures[f.Status]
	if f.Message != "" {
		e.message = f.Message
	}
	if f.Type != "" {
		e.kind = f.Type
	}
	if f.RetryAfter != nil {
		w.Header()["Retry-After"] = []string{strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds())))}
	}
	if b.wait(ctx, r.latency) {
		writeBedrockError(w, &e)
	}
}

// bedrockStop is the vendor's word for why a reply ended.
func bedrockStop(r *reply) string {
	switch {
	case r.refusal != "" || r.finish == "content_filter":
		return "content_filtered"
	case r.finish == "length":
		return "max_tokens"
	case r.finish == "tool_calls":
		return "tool_use"
	}
	return "end_turn"
}

func (r *reply) appendConverseID(b []byte, i int) []byte {
	if id := r.calls[i].id; id != "" {
		return appendQuoted(b, id)
	}
	return append(appendAlphanumeric(append(b, `"tooluse_`...), r.seed.derive("call", i), 22), '"')
}

// appendTokens appends the counts. The vendor's input is without what the cache had; its total has all.
func appendTokens(b []byte, u *usage) []byte {
	for _, count := range [...]struct {
		name string
		n    int
	}{{`{"cacheReadInputTokens":`, u.cached}, {`,"cacheWriteInputTokens":`, 0}, {`,"inputTokens":`, u.input - u.cached}, {`,"outputTokens":`, u.output}, {`,"totalTokens":`, u.input + u.output}} {
		b = strconv.AppendInt(append(b, count.name...), int64(count.n), 10)
	}
	return append(b, '}')
}

// block writes a reply in one piece.
func (b *bedrock) block(ctx context.Context, w http.ResponseWriter, r *reply, req bedrockRequest) {
	t := append([]byte(nil), `{"metrics":{"latencyMs":`...)
	t = strconv.AppendInt(t, r.latency.Milliseconds(), 10)
	t = append(t, `},"output":{"message":{"content":[`...)
	before := len(t)
	if r.reasoning != "" && req.thinks {
		t = append(t, `{"reasoningContent":{"reasoningText":{"signature":"`...)
		t = append(t, signature(r.reasoning)...)
		t = append(appendQuoted(append(t, `","text":`...), r.reasoning), `}}},`...)
	}
	if text := shown(r); text != "" {
		t = append(appendQuoted(append(t, `{"text":`...), text), `},`...)
	}
	for i, c := range r.calls {
		t = append(append(t, `{"toolUse":{"input":`...), c.args...)
		t = appendQuoted(append(t, `,"name":`...), c.name)
		t = append(r.appendConverseID(append(t, `,"toolUseId":`...), i), `}},`...)
	}
	if len(t) > before {
		t = t[:len(t)-1] // the last comma
	}
	t = append(t, `],"role":"assistant"}},"stopReason":"`...)
	t = append(t, bedrockStop(r)...)
	t = append(appendTokens(append(t, `","usage":`...), &r.usage), '}')

	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Content-Length"] = []string{strconv.Itoa(len(t))}
	if !b.wait(ctx, r.latency) {
		return
	}
	if r.cut != nil {
		n := len(t) / 2
		if r.cut.After.Bytes {
			n = min(r.cut.After.Count, len(t)-1)
		}
		_, _ = w.Write(t[:n])
		sever(w)
		return
	}
	_, _ = w.Write(t)
}

// converseStream writes the frames of one stream.
type converseStream struct {
	frames
	r     *reply
	noise uint64
	index int // of the block that is being written
}

var typeEvents = []string{eventstream.MediaType}

// stream writes a reply as frames.
func (b *bedrock) stream(ctx context.Context, w http.ResponseWriter, r *reply, req bedrockRequest) {
	out := buffers.Get().(*bytes.Buffer)
	out.Reset()
	defer release(out)
	out.Grow(flushAt + 4<<10)
	h := w.Header()
	h["Content-Type"] = typeEvents
	h["Transfer-Encoding"] = chunked
	thoughts := []piece(nil)
	if req.thinks {
		thoughts = cut(r.reasoning, r.fragment)
	}
	s := &converseStream{frames: frames{e: b.engine, ctx: ctx, w: w, cut: r.cut, pause: r.delay, buf: out.AvailableBuffer()}, r: r, noise: binary.BigEndian.Uint64(r.seed[:])}
	var rest time.Duration
	if b.realTime {
		all := time.Duration(5 + len(thoughts) + r.pieces.frames() + 3*len(r.calls))
		s.pause += (r.latency - r.ttft) / all
		rest = (r.latency - r.ttft) % all
	}
	if !b.wait(ctx, r.ttft) {
		return
	}
	if s.cut != nil && s.cut.After.Count == 0 {
		s.cutShort()
		return
	}
	s.blocks(thoughts)
	if s.over {
		return
	}
	if s.cut != nil {
		// The last frame says that the reply is whole.
		s.cutShort()
		return
	}
	if b.wait(ctx, rest) {
		t := append(strconv.AppendInt([]byte(`"metrics":{"latencyMs":`), r.latency.Milliseconds(), 10), `},`...)
		s.append("metadata", t, appendTokens([]byte(`,"usage":`), &r.usage))
		s.send()
	}
}

// blocks writes all frames but the last.
func (s *converseStream) blocks(thoughts []piece) {
	s.event("messageStart", nil, []byte(`,"role":"assistant"`))
	if len(thoughts) > 0 {
		for _, p := range thoughts {
			s.delta(`{"reasoningContent":{"text":`, p.quoted, `}}`)
		}
		s.delta(`{"reasoningContent":{"signature":`, appendQuoted(nil, signature(s.r.reasoning)), `}}`)
		s.stop()
	}
	if shown(s.r) != "" {
		for _, p := range s.r.pieces.text {
			s.delta(`{"text":`, p.quoted, `}`)
		}
		s.stop()
	}
	for i, c := range s.r.calls {
		start := appendQuoted([]byte(`,"start":{"toolUse":{"name":`), c.name)
		start = append(s.r.appendConverseID(append(start, `,"toolUseId":`...), i), `}}`...)
		s.event("contentBlockStart", s.at(), start)
		s.delta(`{"toolUse":{"input":`, []byte(`""`), `}}`)
		for _, p := range s.r.pieces.calls[i] {
			s.delta(`{"toolUse":{"input":`, p.quoted, `}}`)
		}
		s.stop()
	}
	s.event("messageStop", nil, []byte(`,"stopReason":"`+bedrockStop(s.r)+`"`))
}

// at is the member that says which block an event belongs to.
func (s *converseStream) at() []byte {
	return append(strconv.AppendInt([]byte(`"contentBlockIndex":`), int64(s.index), 10), ',')
}

func (s *converseStream) delta(before string, quoted []byte, after string) {
	before = `"delta":` + before
	s.event("contentBlockDelta", append(append(append(append(s.at(), before...), quoted...), after...), ','), nil)
}

func (s *converseStream) stop() {
	s.event("contentBlockStop", s.at(), nil)
	s.index++
}

// event writes a frame, whose members before and after the padding it is given.
func (s *converseStream) event(kind string, before, after []byte) {
	if s.over {
		return
	}
	s.append(kind, before, after)
	s.end()
}

// append appends a frame. The vendor pads payloads so that their lengths tell nothing about the tokens.
func (s *converseStream) append(kind string, before, after []byte) {
	const padding = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	s.noise = s.noise*6364136223846793005 + 1442695040888963407
	payload := append(append([]byte{'{'}, before...), `"p":"`...)
	payload = append(payload, padding[:1+int(s.noise>>33)%len(padding)]...)
	payload = append(append(append(payload, '"'), after...), '}')
	head := eventstream.AppendHeader(nil, ":event-type", kind)
	head = eventstream.AppendHeader(head, ":content-type", "application/json")
	head = eventstream.AppendHeader(head, ":message-type", "event")
	s.buf = eventstream.Append(s.buf, eventstream.Frame{Head: string(head), Payload: string(payload)})
}
