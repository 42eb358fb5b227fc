package emulator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// openAIPath is the one path of the Chat Completions format.
const openAIPath = "/v1/chat/completions"

// openAI answers in the Chat Completions format.
type openAI struct{ *engine }

// The dated models that the vendor's names stand for: a reply names the dated one.
var openAIModels = map[string]string{
	"gpt-3.5-turbo": "gpt-3.5-turbo-0125",
	"gpt-4":         "gpt-4-0613",
	"gpt-4-turbo":   "gpt-4-turbo-2024-04-09",
	"gpt-4.1":       "gpt-4.1-2025-04-14",
	"gpt-4.1-mini":  "gpt-4.1-mini-2025-04-14",
	"gpt-4.1-nano":  "gpt-4.1-nano-2025-04-14",
	"gpt-4o":        "gpt-4o-2024-08-06",
	"gpt-4o-mini":   "gpt-4o-mini-2024-07-18",
	"gpt-5":         "gpt-5-2025-08-07",
	"gpt-5-mini":    "gpt-5-mini-2025-08-07",
	"gpt-5-nano":    "gpt-5-nano-2025-08-07",
	"gpt-5.1":       "gpt-5.1-2025-11-13",
	"gpt-5.2":       "gpt-5.2-2025-12-11",
	"gpt-5.4":       "gpt-5.4-2026-03-05",
	"gpt-5.4-mini":  "gpt-5.4-mini-2026-03-17",
	"gpt-5.4-nano":  "gpt-5.4-nano-2026-03-17",
	"gpt-5.5":       "gpt-5.5-2026-04-23",
	"o1":            "o1-2024-12-17",
	"o3":            "o3-2025-04-16",
	"o3-mini":       "o3-mini-2025-01-31",
	"o4-mini":       "o4-mini-2025-04-16",
}

func openAIModel(name string) string {
	if dated, ok := openAIModels[name]; ok {
		return dated
	}
	return name
}

// openAIError is a refusal in the vendor's words.
type openAIError struct {
	status      int
	message     string
	kind        string // the field type
	param, code string // null where empty
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// release keeps a buffer for the next request unless it has grown large.
func release(b *bytes.Buffer) {
	const largest = 1 << 20
	if b.Cap() <= largest {
		buffers.Put(b)
	}
}

func (o *openAI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	root, q, done := o.open(w, r, openAIPath)
	if done {
		return
	}
	req, refused := readOpenAI(root, q)
	reply, ok := o.look(w, q, refused, "messages")
	switch {
	case !ok:
	case reply.failure != nil:
		o.fail(r.Context(), w, reply, q)
	case req.stream:
		o.stream(r.Context(), w, reply, q, req)
	default:
		o.block(r.Context(), w, reply, q)
	}
}

// open admits a request and reads its body. Where that is refused, done is true and the refusal written.
func (o *openAI) open(w http.ResponseWriter, r *http.Request, path string) (root *value, q *query, done bool) {
	body := buffers.Get().(*bytes.Buffer)
	body.Reset()
	defer release(body)
	if e := o.admit(r, path); e != nil {
		if e.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		o.refuse(w, seed(o.plan.sum).mix(sha256.Sum256([]byte(r.Method+" "+r.URL.Path))), e)
		return nil, nil, true
	}
	if r.ContentLength > 0 && r.ContentLength <= o.maxBody {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, o.maxBody))
	if err != nil {
		o.refuse(w, seed(o.plan.sum), o.unreadable(r, err))
		return nil, nil, true
	}
	parsed, err := parseValue(body.Bytes())
	if err != nil {
		o.refuse(w, seed(o.plan.sum).mix(sha256.Sum256(body.Bytes())), &openAIError{status: 400, kind: invalidRequest,
			message: "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble figuring out how to fix this, please contact us through our help center at help.openai.com.)"})
		return nil, nil, true
	}
	q = &query{attempt: attempt(r.Header.Get("X-Stainless-Retry-Count"))}
	q.digest = parsed.digest()
	return &parsed, q, false
}

// look finds the script's reply to a request that was read, and sets its headers. Where there is none, the refusal is written; param is the parameter that holds the conversation.
func (o *openAI) look(w http.ResponseWriter, q *query, refused *openAIError, param string) (*reply, bool) {
	if refused == nil && !o.plan.allows(q.model) {
		refused = &openAIError{404, "The model `" + q.model + "` does not exist or you do not have access to it.", invalidRequest, "", "model_not_found"}
	}
	if refused != nil {
		o.refuse(w, o.plan.seed(q), refused)
		return nil, false
	}
	reply, unanswered := o.plan.reply(q)
	if unanswered != nil {
		o.refuse(w, o.plan.seed(q), &openAIError{400, unanswered.what, invalidRequest, param, unanswered.code})
		return nil, false
	}
	o.headers(w.Header(), &reply, q.attempt)
	return &reply, true
}

// attempt reads the number of earlier tries that the vendor's clients send; anything else is a first try.
func attempt(header string) int {
	n, err := strconv.Atoi(header)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func (v *value) digest() [sha256.Size]byte {
	h := sha256.New()
	v.hashInto(h, make([]byte, 0, 256))
	return [sha256.Size]byte(h.Sum(nil))
}

// admit checks what stands before the body.
func (o *openAI) admit(r *http.Request, path string) *openAIError {
	if r.URL.Path != path {
		return &openAIError{status: 404, kind: invalidRequest, message: "Invalid URL (" + printable(r.Method) + " " + printable(r.URL.Path) + ")"}
	}
	if r.Method != http.MethodPost {
		return &openAIError{status: 405, kind: invalidRequest, message: "Not allowed to " + printable(r.Method) + " on " + path + ". (HINT: Perhaps you meant to use a different HTTP method?)"}
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	key = strings.TrimSpace(key)
	if !strings.EqualFold(scheme, "Bearer") || key == "" {
		return &openAIError{status: 401, kind: invalidRequest,
			message: "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if you're accessing the API from your browser and are prompted for a username and password. You can obtain an API key from https://platform.openai.com/account/api-keys."}
	}
	known := len(o.keys) == 0
	for _, k := range o.keys {
		if subtle.ConstantTimeCompare([]byte(k), []byte(key)) == 1 {
			known = true
		}
	}
	if !known {
		return &openAIError{401, "Incorrect API key provided: " + mask(key) + ". You can find your API key at https://platform.openai.com/account/api-keys.", invalidRequest, "", "invalid_api_key"}
	}
	return nil
}

// mask hides a key as the vendor does, which leaves the first eight and the last four characters; a key too short to stay secret that way is hidden whole.
func mask(key string) string {
	const head, tail, least = 8, 4, 32
	if len(key) < least {
		return strings.Repeat("*", len(key))
	}
	return printable(key[:head]) + strings.Repeat("*", len(key)-head-tail) + printable(key[len(key)-tail:])
}

// printable makes text from the request's head fit for a message: it is shortened, and what is not plain is replaced.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r == 0x7f {
			return '?'
		}
		return r
	}, shorten(s, 200))
}

func (o *openAI) unreadable(r *http.Request, err error) *openAIError {
	if isTooLarge(err) {
		return &openAIError{status: 413, kind: "server_error", message: fmt.Sprintf("Maximum content size limit (%d) exceeded (%d bytes read)", o.maxBody, max(r.ContentLength, o.maxBody+1))}
	}
	return &openAIError{status: 400, kind: invalidRequest, message: "the request's body ended early"}
}

// isTooLarge reports that a body was larger than it may be.
func isTooLarge(err error) bool {
	var tooLarge *http.MaxBytesError
	return errors.As(err, &tooLarge)
}

var (
	typeJSON      = []string{"application/json"}
	typeStream    = []string{"text/event-stream; charset=utf-8"}
	chunked       = []string{"chunked"}
	apiVersion    = []string{"2020-10-01"}
	exposed       = []string{"X-Request-ID"}
	nosniff       = []string{"nosniff"}
	requestLimit  = []string{strconv.Itoa(rateRequests)}
	requestsLeft  = []string{strconv.Itoa(rateRequests - 1)}
	requestsReset = []string{"6ms"}
	tokenLimit    = []string{strconv.Itoa(rateTokens)}
	tokensReset   = []string{"0s"}
	noneLeft      = []string{"0"}
)

const (
	rateRequests = 10_000
	rateTokens   = 30_000_000
)

// common sets the headers of every reply. Date is left out: it would differ from run to run.
func common(h http.Header, s seed, attempt int) {
	h["Date"] = nil
	h["Openai-Version"] = apiVersion
	h["Access-Control-Expose-Headers"] = exposed
	h["X-Content-Type-Options"] = nosniff
	sum := s.derive("request id", attempt)
	h["X-Request-Id"] = []string{"req_" + hex.EncodeToString(sum[:16])}
}

func (o *openAI) headers(h http.Header, r *reply, attempt int) {
	common(h, r.seed, attempt)
	h["Server"] = o.server
	h["Server-Timing"] = []string{"total;dur=" + milliseconds(r.latency) + ", ttft;dur=" + milliseconds(r.ttft)}
	h["X-Ratelimit-Limit-Requests"] = requestLimit
	h["X-Ratelimit-Limit-Tokens"] = tokenLimit
	h["X-Ratelimit-Remaining-Requests"] = requestsLeft
	h["X-Ratelimit-Remaining-Tokens"] = []string{strconv.Itoa(max(rateTokens-r.usage.input, 0))}
	h["X-Ratelimit-Reset-Requests"] = requestsReset
	h["X-Ratelimit-Reset-Tokens"] = tokensReset
}

// milliseconds writes a duration as a number of milliseconds, with as many decimals as it needs.
func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64)
}

// refuse answers a request that never got as far as the script.
func (o *openAI) refuse(w http.ResponseWriter, s seed, e *openAIError) {
	h := w.Header()
	common(h, s, 0)
	h["Server"] = o.server
	h["Openai-Processing-Ms"] = []string{"1"}
	writeOpenAIError(w, e)
}

func writeOpenAIError(w http.ResponseWriter, e *openAIError) {
	b := append([]byte(nil), "{\n  \"error\": {\n    \"message\": "...)
	b = appendQuoted(b, e.message)
	b = append(b, ",\n    \"type\": "...)
	b = appendQuoted(b, e.kind)
	b = append(b, ",\n    \"param\": "...)
	b = appendQuotedOrNull(b, e.param)
	b = append(b, ",\n    \"code\": "...)
	b = appendQuotedOrNull(b, e.code)
	b = append(b, "\n  }\n}"...)
	w.Header()["Content-Type"] = typeJSON
	w.Header()["Date"] = nil
	w.WriteHeader(e.status)
	_, _ = w.Write(b) // a client that is gone needs no answer
}

func appendQuotedOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendQuoted(b, s)
}

// The vendor's words for each status, where the script has none of its own. 529 is not the vendor's: gateways pass it on.
var openAIFailures = map[int]openAIError{
	400: {400, "The request was rejected.", invalidRequest, "", ""},
	401: {401, "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.", invalidRequest, "", "invalid_api_key"},
	403: {403, "Country, region, or territory not supported", "request_forbidden", "", "unsupported_country_region_territory"},
	404: {404, "The model `%s` does not exist or you do not have access to it.", invalidRequest, "", "model_not_found"},
	408: {408, "Request timed out.", "timeout", "", ""},
	413: {413, "Maximum content size limit (26214400) exceeded (26214401 bytes read)", "server_error", "", ""},
	429: {429, "Rate limit reached for %s in organization org-emulator on requests per min (RPM): Limit 10000, Used 10000, Requested 1. Please try again in 6ms. Visit https://platform.openai.com/account/rate-limits to learn more.", "requests", "", "rate_limit_exceeded"},
	500: {500, "The server had an error while processing your request. Sorry about that!", "server_error", "", ""},
	503: {503, "The engine is currently overloaded, please try again later", "server_error", "", "service_unavailable"},
	529: {529, "The service is overloaded, please try again later", "overloaded_error", "", "overloaded"},
}

// fail answers with the script's error.
func (o *openAI) fail(ctx context.Context, w http.ResponseWriter, r *reply, q *query) {
	f := r.failure
	e := openAIFailures[f.Status]
	e.message = strings.Replace(e.message, "%s", q.model, 1)
	if f.Message != "" {
		e.message = f.Message
	}
	if f.Type != "" {
		e.kind = f.Type
	}
	if f.Param != nil {
		e.param = *f.Param
	}
	if f.Code != nil {
		e.code = *f.Code
	}
	h := w.Header()
	h["Openai-Processing-Ms"] = []string{wholeMilliseconds(r.latency)}
	if f.RetryAfter != nil {
		d := *f.RetryAfter
		h["Retry-After"] = []string{strconv.Itoa(int(math.Ceil(d.Seconds())))}
		h["Retry-After-Ms"] = []string{wholeMilliseconds(d)}
	}
	if f.Status == 429 {
		h["X-Ratelimit-Remaining-Requests"] = noneLeft
		if f.RetryAfter != nil {
			h["X-Ratelimit-Reset-Requests"] = []string{f.RetryAfter.String()}
		}
	}
	if o.wait(ctx, r.latency) {
		writeOpenAIError(w, &e)
	}
}

func wholeMilliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}

// created is the reply's Unix time: within the year 2026, by hash.
func created(s seed) int64 {
	const epoch, year = 1_767_225_600, 365 * 24 * 60 * 60
	sum := s.derive("created", 0)
	return epoch + int64(binary.BigEndian.Uint32(sum[:])%year)
}

func appendCompletionID(b []byte, s seed) []byte {
	return appendAlphanumeric(append(b, "chatcmpl-"...), s.derive("completion", 0), 29)
}

// appendFingerprint appends the backend's name, one for each script and model.
func (o *openAI) appendFingerprint(b []byte, model string) []byte {
	sum := seed(o.plan.sum).mix(sha256.Sum256([]byte(model)))
	return hex.AppendEncode(append(b, "fp_"...), sum[:5])
}

func (r *reply) appendCallID(b []byte, i int) []byte {
	if id := r.calls[i].id; id != "" {
		return appendQuoted(b, id)
	}
	b = append(b, `"call_`...)
	return append(appendAlphanumeric(b, r.seed.derive("call", i), 24), '"')
}

// block writes a reply in one piece: indented, as the vendor does.
func (o *openAI) block(ctx context.Context, w http.ResponseWriter, r *reply, q *query) {
	model := openAIModel(q.model)
	b := make([]byte, 0, 2048)
	b = append(b, "{\n  \"id\": \""...)
	b = appendCompletionID(b, r.seed)
	b = append(b, "\",\n  \"object\": \"chat.completion\",\n  \"created\": "...)
	b = strconv.AppendInt(b, created(r.seed), 10)
	b = append(b, ",\n  \"model\": "...)
	b = appendQuoted(b, model)
	b = append(b, ",\n  \"choices\": [\n    {\n      \"index\": 0,\n      \"message\": {\n        \"role\": \"assistant\",\n        \"content\": "...)
	if r.text != nil {
		b = appendQuoted(b, *r.text)
	} else {
		b = append(b, "null"...)
	}
	if len(r.calls) > 0 {
		b = append(b, ",\n        \"tool_calls\": ["...)
		for i, c := range r.calls {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, "\n          {\n            \"id\": "...)
			b = r.appendCallID(b, i)
			b = append(b, ",\n            \"type\": \"function\",\n            \"function\": {\n              \"name\": "...)
			b = appendQuoted(b, c.name)
			b = append(b, ",\n              \"arguments\": "...)
			b = appendQuoted(b, c.args)
			b = append(b, "\n            }\n          }"...)
		}
		b = append(b, "\n        ]"...)
	}
	b = append(b, ",\n        \"refusal\": "...)
	b = appendQuotedOrNull(b, r.refusal)
	b = append(b, ",\n        \"annotations\": []\n      },\n      \"logprobs\": null,\n      \"finish_reason\": \""...)
	b = append(b, r.finish...)
	b = append(b, "\"\n    }\n  ],\n  \"usage\": {\n    \"prompt_tokens\": "...)
	b = strconv.AppendInt(b, int64(r.usage.input), 10)
	b = append(b, ",\n    \"completion_tokens\": "...)
	b = strconv.AppendInt(b, int64(r.usage.output), 10)
	b = append(b, ",\n    \"total_tokens\": "...)
	b = strconv.AppendInt(b, int64(r.usage.input+r.usage.output), 10)
	b = append(b, ",\n    \"prompt_tokens_details\": {\n      \"cached_tokens\": "...)
	b = strconv.AppendInt(b, int64(r.usage.cached), 10)
	b = append(b, ",\n      \"audio_tokens\": 0\n    },\n    \"completion_tokens_details\": {\n      \"reasoning_tokens\": "...)
	b = strconv.AppendInt(b, int64(r.usage.reasoning), 10)
	b = append(b, ",\n      \"audio_tokens\": 0,\n      \"accepted_prediction_tokens\": 0,\n      \"rejected_prediction_tokens\": 0\n    }\n  },\n  \"service_tier\": \"default\",\n  \"system_fingerprint\": \""...)
	b = o.appendFingerprint(b, model)
	b = append(b, "\"\n}\n"...)
	o.whole(ctx, w, r, b)
}

// whole writes a body in one piece, or as much of it as the cut leaves.
func (o *openAI) whole(ctx context.Context, w http.ResponseWriter, r *reply, b []byte) {
	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	h["Openai-Processing-Ms"] = []string{wholeMilliseconds(r.latency)}
	if !o.wait(ctx, r.latency) {
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
