package emulator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// anthropicPath is the one path of the Messages format.
const anthropicPath = "/v1/messages"

// The versions of the API: the newer one knows no sampling parameters, and no documents in assistant messages.
const (
	anthropicOlder  = "2023-06-01"
	anthropicLatest = "2026-10-21"
)

// anthropic answers in the Messages format.
type anthropic struct{ *engine }

// The dated models that the vendor's names stand for: a reply names the dated one. Names from 4.6 on have no date.
var anthropicModels = map[string]string{
	"claude-3-5-haiku-latest":  "claude-3-5-haiku-20241022",
	"claude-3-7-sonnet-latest": "claude-3-7-sonnet-20250219",
	"claude-opus-4-0":          "claude-opus-4-20250514",
	"claude-sonnet-4-0":        "claude-sonnet-4-20250514",
	"claude-opus-4-1":          "claude-opus-4-1-20250805",
	"claude-sonnet-4-5":        "claude-sonnet-4-5-20250929",
	"claude-haiku-4-5":         "claude-haiku-4-5-20251001",
	"claude-opus-4-5":          "claude-opus-4-5-20251101",
}

func anthropicModel(name string) string {
	if dated, ok := anthropicModels[name]; ok {
		return dated
	}
	return name
}

// anthropicError is a refusal in the vendor's words.
type anthropicError struct {
	status  int
	kind    string // the field type
	message string
}

const authenticationError = "authentication_error"

func (a *anthropic) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := buffers.Get().(*bytes.Buffer)
	body.Reset()
	defer release(body)
	if e := a.admit(r); e != nil {
		if e.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		a.refuse(w, seed(a.plan.sum).mix(sha256.Sum256([]byte(r.Method+" "+r.URL.Path))), e)
		return
	}
	if r.ContentLength > 0 && r.ContentLength <= a.maxBody {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, a.maxBody)); err != nil {
		e := &anthropicError{400, invalidRequest, "the request's body ended early"}
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			e = &anthropicError{413, "request_too_large", "Request exceeds the maximum size"}
		}
		a.refuse(w, seed(a.plan.sum), e)
		return
	}
	root, err := parseValue(body.Bytes())
	if err != nil {
		a.refuse(w, seed(a.plan.sum).mix(sha256.Sum256(body.Bytes())), &anthropicError{400, invalidRequest, "The request body is not valid JSON"})
		return
	}
	q := &query{attempt: attempt(r.Header.Get("X-Stainless-Retry-Count"))}
	q.digest = root.digest()
	req, refused := readAnthropic(&root, q, r.Header.Get("Anthropic-Version"))
	if refused == nil && !a.plan.allows(q.model) {
		refused = &anthropicError{404, "not_found_error", "model: " + q.model}
	}
	if refused != nil {
		a.refuse(w, a.plan.seed(q), refused)
		return
	}
	reply, unanswered := a.plan.reply(q)
	if unanswered != nil {
		a.refuse(w, a.plan.seed(q), &anthropicError{400, invalidRequest, unanswered.code + ": " + unanswered.what})
		return
	}
	if c := unsayable(&reply); c != nil && !req.stream {
		a.refuse(w, a.plan.seed(q), &anthropicError{400, invalidRequest, fmt.Sprintf("emulator_unsupported: the arguments of the call of %q are no JSON object, which only a streamed reply of this format can hold", c.name)})
		return
	}
	a.headers(w.Header(), &reply, q.attempt)
	switch {
	case reply.failure != nil:
		a.fail(r.Context(), w, &reply, q)
	case req.stream:
		a.stream(r.Context(), w, &reply, q, req)
	default:
		a.block(r.Context(), w, &reply, q, req)
	}
}

// unsayable returns a call whose arguments are no JSON object, nil where there is none.
func unsayable(r *reply) *replyCall {
	for i := range r.calls {
		if v := jsontext.Value(r.calls[i].args); !v.IsValid() || v.Kind() != '{' {
			return &r.calls[i]
		}
	}
	return nil
}

// admit checks what stands before the body.
func (a *anthropic) admit(r *http.Request) *anthropicError {
	if r.URL.Path != anthropicPath {
		return &anthropicError{404, "not_found_error", "Not Found"}
	}
	if r.Method != http.MethodPost {
		return &anthropicError{405, invalidRequest, "Method Not Allowed"}
	}
	// The vendor's newer clients send the key as a bearer.
	key := strings.TrimSpace(r.Header.Get("X-Api-Key"))
	if scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " "); key == "" && strings.EqualFold(scheme, "Bearer") {
		key = strings.TrimSpace(bearer)
	}
	if key == "" {
		return &anthropicError{401, authenticationError, "x-api-key header is required"}
	}
	known := len(a.keys) == 0
	for _, k := range a.keys {
		if subtle.ConstantTimeCompare([]byte(k), []byte(key)) == 1 {
			known = true
		}
	}
	if !known {
		return &anthropicError{401, authenticationError, "invalid x-api-key"}
	}
	switch version := r.Header.Get("Anthropic-Version"); {
	case version == "":
		return &anthropicError{400, invalidRequest, "anthropic-version: header is required"}
	case version != anthropicOlder && version != anthropicLatest:
		return &anthropicError{400, invalidRequest, fmt.Sprintf("anthropic-version: %q is not a valid version. Valid versions are %q and %q.", printable(version), anthropicOlder, anthropicLatest)}
	}
	return nil
}

const (
	anthropicRequests = 10_000
	anthropicInput    = 10_000_000
	anthropicOutput   = 2_000_000
)

// common sets the headers of every reply. Date is left out: it would differ from run to run.
func (a *anthropic) common(h http.Header, s seed, attempt int) {
	h["Date"] = nil
	h["Server"] = a.server
	h["Request-Id"] = []string{string(appendAnthropicID([]byte("req_011C"), s.derive("request id", attempt), 20))}
}

// appendAnthropicID appends n letters and digits as the vendor's ids have them: without 0, I, O and l.
func appendAnthropicID(b []byte, sum [sha256.Size]byte, n int) []byte {
	const letters = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	for _, c := range sum[:n] {
		b = append(b, letters[int(c)%len(letters)])
	}
	return b
}

func (a *anthropic) headers(h http.Header, r *reply, attempt int) {
	a.common(h, r.seed, attempt)
	h["Server-Timing"] = []string{"total;dur=" + milliseconds(r.latency) + ", ttft;dur=" + milliseconds(r.ttft)}
	reset := []string{time.Unix(created(r.seed), 0).UTC().Format(time.RFC3339)}
	used := r.usage.input / 1000 * 1000 // the vendor tells thousands
	for _, limit := range [...]struct {
		name      string
		max, left int
	}{
		{"Requests", anthropicRequests, anthropicRequests - 1},
		{"Input-Tokens", anthropicInput, max(anthropicInput-used, 0)},
		{"Output-Tokens", anthropicOutput, anthropicOutput},
		{"Tokens", anthropicInput + anthropicOutput, max(anthropicInput-used, 0) + anthropicOutput},
	} {
		h["Anthropic-Ratelimit-"+limit.name+"-Limit"] = []string{strconv.Itoa(limit.max)}
		h["Anthropic-Ratelimit-"+limit.name+"-Remaining"] = []string{strconv.Itoa(limit.left)}
		h["Anthropic-Ratelimit-"+limit.name+"-Reset"] = reset
	}
}

// refuse answers a request that never got as far as the script.
func (a *anthropic) refuse(w http.ResponseWriter, s seed, e *anthropicError) {
	a.common(w.Header(), s, 0)
	writeAnthropicError(w, e)
}

func writeAnthropicError(w http.ResponseWriter, e *anthropicError) {
	h := w.Header()
	b := append([]byte(nil), `{"type":"error","error":{"type":`...)
	b = appendQuoted(b, e.kind)
	b = append(b, `,"message":`...)
	b = appendQuoted(b, e.message)
	b = append(b, `},"request_id":`...)
	b = appendQuotedOrNull(b, h.Get("Request-Id"))
	b = append(b, '}')
	h["Content-Type"] = typeJSON
	h["Date"] = nil
	w.WriteHeader(e.status)
	_, _ = w.Write(b) // a client that is gone needs no answer
}

// The vendor's words for each status, where the script has none of its own.
var anthropicFailures = map[int]anthropicError{
	400: {400, invalidRequest, "The request was rejected."},
	401: {401, authenticationError, "invalid x-api-key"},
	403: {403, "permission_error", "Your API key does not have permission to use the specified resource."},
	404: {404, "not_found_error", "model: %s"},
	408: {408, "timeout_error", "Request timed out."},
	413: {413, "request_too_large", "Request exceeds the maximum size"},
	429: {429, "rate_limit_error", "This request would exceed your organization's rate limit of 10,000 requests per minute (model: %s)."},
	500: {500, "api_error", "Internal server error"},
	503: {503, "api_error", "Service unavailable"},
	529: {529, "overloaded_error", "Overloaded"},
}

// fail answers with the script's error. The format has neither code nor param.
func (a *anthropic) fail(ctx context.Context, w http.ResponseWriter, r *reply, q *query) {
	f := r.failure
	e := anthropicFailures[f.Status]
	e.message = strings.Replace(e.message, "%s", q.model, 1)
	if f.Message != "" {
		e.message = f.Message
	}
	if f.Type != "" {
		e.kind = f.Type
	}
	h := w.Header()
	if f.RetryAfter != nil {
		h["Retry-After"] = []string{strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds())))}
	}
	if f.Status == 429 {
		h["Anthropic-Ratelimit-Requests-Remaining"] = noneLeft
	}
	if a.wait(ctx, r.latency) {
		writeAnthropicError(w, &e)
	}
}

// anthropicStop is the vendor's word for why a reply ended.
func anthropicStop(r *reply) string {
	switch {
	case r.refusal != "" || r.finish == "content_filter":
		return "refusal"
	case r.finish == "length":
		return "max_tokens"
	case r.finish == "tool_calls":
		return "tool_use"
	}
	return "end_turn"
}

// shown is the text of a reply: a refusal is told in one.
func shown(r *reply) string {
	if r.text != nil {
		return *r.text
	}
	return r.refusal
}

func appendMessageID(b []byte, s seed) []byte {
	return appendAnthropicID(append(b, "msg_01"...), s.derive("message", 0), 22)
}

func (r *reply) appendToolUseID(b []byte, i int) []byte {
	if id := r.calls[i].id; id != "" {
		return appendQuoted(b, id)
	}
	b = append(b, `"toolu_01`...)
	return append(appendAnthropicID(b, r.seed.derive("call", i), 22), '"')
}

// signatureSize is the length of a signature before it is encoded: half of it stands for the text, half for the emulator.
const signatureSize = 32

// signature signs a text of reasoning, so that a client which gives it back can be held to it. It depends on the text alone.
func signature(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(signed(sum[:signatureSize/2]))
}

func signed(digest []byte) []byte {
	mark := sha256.Sum256(append([]byte("thinking of the emulator "), digest...))
	return append(bytes.Clone(digest), mark[:signatureSize/2]...)
}

// signs reports whether a signature is one of a text, which may be left out.
func signs(given, text string) bool {
	raw, err := base64.StdEncoding.Strict().DecodeString(given)
	if err != nil || len(raw) != signatureSize || !slices.Equal(signed(raw[:signatureSize/2]), raw) {
		return false
	}
	return text == "" || given == signature(text)
}

// appendUsage appends the counts of a whole reply.
func appendUsage(b []byte, u *usage, output int) []byte {
	b = appendInput(b, u)
	b = append(b, `,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":`...)
	b = strconv.AppendInt(b, int64(output), 10)
	b = append(b, `,"service_tier":"standard","inference_geo":"global"`...)
	return b
}

// appendInput appends what the request counts. The vendor's input is without what the cache had.
func appendInput(b []byte, u *usage) []byte {
	b = append(b, `"input_tokens":`...)
	b = strconv.AppendInt(b, int64(u.input-u.cached), 10)
	b = append(b, `,"cache_creation_input_tokens":0,"cache_read_input_tokens":`...)
	return strconv.AppendInt(b, int64(u.cached), 10)
}

func appendThinkingTokens(b []byte, u *usage) []byte {
	if u.reasoning == 0 {
		return b
	}
	b = append(b, `,"output_tokens_details":{"thinking_tokens":`...)
	b = strconv.AppendInt(b, int64(u.reasoning), 10)
	return append(b, '}')
}

// block writes a reply in one piece.
func (a *anthropic) block(ctx context.Context, w http.ResponseWriter, r *reply, q *query, req anthropicRequest) {
	b := make([]byte, 0, 1024)
	b = append(b, `{"model":`...)
	b = appendQuoted(b, anthropicModel(q.model))
	b = append(b, `,"id":"`...)
	b = appendMessageID(b, r.seed)
	b = append(b, `","type":"message","role":"assistant","content":[`...)
	before := len(b)
	if r.reasoning != "" && req.thinks {
		b = append(b, `{"type":"thinking","thinking":`...)
		b = appendQuoted(b, req.shownThinking(r))
		b = append(b, `,"signature":"`...)
		b = append(b, signature(r.reasoning)...)
		b = append(b, `"},`...)
	}
	if text := shown(r); text != "" {
		b = append(b, `{"type":"text","text":`...)
		b = appendQuoted(b, text)
		b = append(b, `},`...)
	}
	for i, c := range r.calls {
		b = append(b, `{"type":"tool_use","id":`...)
		b = r.appendToolUseID(b, i)
		b = append(b, `,"name":`...)
		b = appendQuoted(b, c.name)
		b = append(b, `,"input":`...)
		b = append(b, c.args...)
		b = append(b, `,"caller":{"type":"direct"}},`...)
	}
	if len(b) > before {
		b = b[:len(b)-1] // the last comma
	}
	b = append(b, `],"stop_reason":"`...)
	b = append(b, anthropicStop(r)...)
	b = append(b, `","stop_sequence":null,"stop_details":null,"usage":{`...)
	b = appendUsage(b, &r.usage, r.usage.output)
	b = appendThinkingTokens(b, &r.usage)
	b = append(b, "}}"...)

	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	if !a.wait(ctx, r.latency) {
		return
	}
	if r.cut != nil {
		n := len(b) / 2
		if r.cut.After.Bytes {
			n = min(r.cut.After.Count, len(b)-1)
		}
		_, _ = w.Write(b[:n])
		sever(w)
		return
	}
	_, _ = w.Write(b)
}
