package emulator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// geminiPath begins the paths of the Gemini API, in the version that most clients use. Newer ones ask for the same in version v1.
const geminiPath = "/v1beta/"

// geminiServes says whether a path is one of the Gemini API. What else stands below /v1/ is of other vendors.
func geminiServes(path string) bool {
	return strings.HasPrefix(path, geminiPath) || strings.HasPrefix(path, "/v1/models/") && (strings.HasSuffix(path, ":"+geminiBlocking) || strings.HasSuffix(path, ":"+geminiStreaming))
}

// gemini answers in the format of the Gemini API.
type gemini struct{ *engine }

// The methods of a model.
const (
	geminiBlocking  = "generateContent"
	geminiStreaming = "streamGenerateContent"
)

// geminiCall is what a request's address says.
type geminiCall struct {
	version, model, method string
	// sse is a stream of events; else a stream is a JSON array.
	sse bool
}

func (c *geminiCall) streams() bool { return c.method == geminiStreaming }

// geminiError is a refusal in the vendor's words.
type geminiError struct {
	status  int
	word    string // the field status
	message string
	details []string // JSON texts
}

const invalidArgument = "INVALID_ARGUMENT"

// errorInfo is a google.rpc.ErrorInfo.
func errorInfo(reason string) string {
	b := append([]byte(nil), `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":`...)
	b = appendQuoted(b, reason)
	return string(b) + `,"domain":"googleapis.com","metadata":{"service":"generativelanguage.googleapis.com"}}`
}

func (g *gemini) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := buffers.Get().(*bytes.Buffer)
	body.Reset()
	defer release(body)
	c, e := g.admit(r)
	if e != nil {
		if e.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		g.refuse(w, c, e)
		return
	}
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, g.maxBody)); err != nil {
		g.refuse(w, c, g.unreadable(err))
		return
	}
	root, err := parseValue(body.Bytes())
	if err != nil {
		g.refuse(w, c, &geminiError{status: 400, word: invalidArgument, message: "Invalid JSON payload received. " + shorten(err.Error(), 200)})
		return
	}
	if c.embeds() {
		g.embed(w, c, &root)
		return
	}
	q := &query{model: c.model, attempt: attempt(r.Header.Get("X-Stainless-Retry-Count"))}
	q.digest = root.digest()
	// The model and how the reply is sent stand in the address. Whether it is a stream takes no part: it says the same then.
	q.digest = seed(q.digest).mix(sha256.Sum256([]byte(c.model)))
	req, e := readGemini(&root, q)
	if e == nil && !g.plan.allows(c.model) {
		e = &geminiError{status: 404, word: "NOT_FOUND", message: "models/" + c.model + " is not found for API version " + c.version + ", or is not supported for " + c.method + ". Call ListModels to see the list of available models and their supported methods."}
	}
	if e != nil {
		g.refuse(w, c, e)
		return
	}
	reply, unanswered := g.plan.reply(q)
	if unanswered != nil {
		g.refuse(w, c, &geminiError{status: 400, word: invalidArgument, message: unanswered.what, details: []string{errorInfo(strings.ToUpper(unanswered.code))}})
		return
	}
	h := w.Header()
	g.common(h)
	h["Server-Timing"] = []string{"gfet4t7; dur=" + wholeMilliseconds(reply.latency) + ", total;dur=" + milliseconds(reply.latency) + ", ttft;dur=" + milliseconds(reply.ttft)}
	switch {
	case reply.failure != nil:
		g.fail(r.Context(), w, c, &reply)
	case c.streams():
		g.stream(r.Context(), w, c, &reply, req)
	default:
		g.block(r.Context(), w, c, &reply, req)
	}
}

// admit reads the address and checks what stands before the body. The call is there beside an error too.
func (g *gemini) admit(r *http.Request) (*geminiCall, *geminiError) {
	c := &geminiCall{}
	version, name, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/models/")
	c.version = version
	c.model, c.method, _ = strings.Cut(name, ":")
	params := r.URL.Query()
	c.sse = params.Get("alt") == "sse"
	switch {
	case !ok || c.model == "" || c.method != geminiBlocking && c.method != geminiStreaming && !c.embeds():
		return c, &geminiError{status: 404, word: "NOT_FOUND", message: "The emulator has no " + printable(r.Method) + " " + printable(r.URL.Path) + ", only POST " + geminiPath + "models/MODEL:" + geminiBlocking + ", :" + geminiStreaming + ", :" + geminiEmbed + " and :" + geminiEmbedBatch}
	case r.Method != http.MethodPost:
		return c, &geminiError{status: 405, word: "UNIMPLEMENTED", message: "Not allowed to " + printable(r.Method) + " on " + printable(r.URL.Path)}
	}
	if alt := params.Get("alt"); alt != "" && alt != "json" && alt != "sse" || params.Has("$alt") {
		return c, &geminiError{status: 400, word: invalidArgument, message: "the emulator knows only alt=sse and alt=json", details: []string{errorInfo("EMULATOR_UNSUPPORTED")}}
	}
	key := r.Header.Get("X-Goog-Api-Key")
	if key == "" {
		key = params.Get("key")
	}
	if key == "" {
		return c, &geminiError{status: 403, word: "PERMISSION_DENIED", message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."}
	}
	known := len(g.keys) == 0
	for _, k := range g.keys {
		if subtle.ConstantTimeCompare([]byte(k), []byte(key)) == 1 {
			known = true
		}
	}
	if !known {
		return c, &geminiError{400, invalidArgument, "API key not valid. Please pass a valid API key.", []string{errorInfo("API_KEY_INVALID")}}
	}
	return c, nil
}

func (g *gemini) unreadable(err error) *geminiError {
	if isTooLarge(err) {
		return &geminiError{status: 413, word: invalidArgument, message: "Request payload size exceeds the limit: " + strconv.FormatInt(g.maxBody, 10) + " bytes."}
	}
	return &geminiError{status: 400, word: invalidArgument, message: "the request's body ended early"}
}

var (
	geminiJSON   = []string{"application/json; charset=UTF-8"}
	geminiEvents = []string{"text/event-stream"}
	geminiVary   = []string{"Origin", "X-Origin", "Referer"}
	geminiXSS    = []string{"0"}
	geminiFrames = []string{"SAMEORIGIN"}
)

// common sets the headers of every reply. Date is left out: it would differ from run to run.
func (g *gemini) common(h http.Header) {
	h["Date"] = nil
	h["Server"] = g.server
	h["Vary"] = geminiVary
	h["X-Content-Type-Options"] = nosniff
	h["X-Frame-Options"] = geminiFrames
	h["X-Xss-Protection"] = geminiXSS
}

// refuse answers a request that never got as far as the script.
func (g *gemini) refuse(w http.ResponseWriter, c *geminiCall, e *geminiError) {
	h := w.Header()
	g.common(h)
	h["Server-Timing"] = []string{"gfet4t7; dur=1"}
	writeGeminiError(w, c, e)
}

// writeGeminiError writes the error as the vendor does: in a list where the reply would have been one.
func writeGeminiError(w http.ResponseWriter, c *geminiCall, e *geminiError) {
	b := append([]byte(nil), `{"error":{"code":`...)
	b = strconv.AppendInt(b, int64(e.status), 10)
	b = append(b, `,"message":`...)
	b = appendQuoted(b, e.message)
	b = append(b, `,"status":`...)
	b = appendQuoted(b, e.word)
	if len(e.details) > 0 {
		b = append(b, `,"details":[`...)
		b = append(b, strings.Join(e.details, ",")...)
		b = append(b, ']')
	}
	b = append(b, "}}"...)
	var out []byte
	if c.streams() && !c.sse {
		out = append(out, '[')
	}
	out = appendIndented(out, b)
	out = append(out, '\n')
	if c.streams() && !c.sse {
		out = append(out, ']')
	}
	w.Header()["Content-Type"] = geminiJSON
	w.WriteHeader(e.status)
	_, _ = w.Write(out) // a client that is gone needs no answer
}

// appendIndented lays a JSON text out as the vendor does where it is no event.
func appendIndented(dst, text []byte) []byte {
	v := jsontext.Value(text)
	// The text was made here, so that it is JSON.
	_ = v.Format(jsontext.Multiline(true), jsontext.WithIndent("  "), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return append(dst, v...)
}

// geminiFailures are the vendor's words for each status, where the script has none of its own. 408, 413 and 529 are not the vendor's: gateways send them.
var geminiFailures = map[int]geminiError{
	400: {400, invalidArgument, "Request contains an invalid argument.", nil},
	401: {401, "UNAUTHENTICATED", "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.", []string{errorInfo("ACCESS_TOKEN_TYPE_UNSUPPORTED")}},
	403: {403, "PERMISSION_DENIED", "Your project has been denied access. Please contact support.", nil},
	404: {404, "NOT_FOUND", "models/%s is not found for API version %s, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.", nil},
	408: {408, "DEADLINE_EXCEEDED", "Request timed out.", nil},
	413: {413, invalidArgument, "Request payload size exceeds the limit: 20971520 bytes.", nil},
	429: {429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details. For more information on this error, head over to: https://ai.google.dev/gemini-api/docs/rate-limits.", nil},
	500: {500, "INTERNAL", "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting", nil},
	503: {503, "UNAVAILABLE", "The model is overloaded. Please try again later.", nil},
	529: {529, "UNAVAILABLE", "The service is overloaded. Please try again later.", nil},
}

// fail answers with the script's error.
func (g *gemini) fail(ctx context.Context, w http.ResponseWriter, c *geminiCall, r *reply) {
	f := r.failure
	e := geminiFailures[f.Status]
	e.message = strings.Replace(strings.Replace(e.message, "%s", c.model, 1), "%s", c.version, 1)
	if f.Message != "" {
		e.message = f.Message
	}
	if f.Type != "" {
		e.word = f.Type
	}
	e.details = append([]string(nil), e.details...)
	if f.Code != nil {
		e.details = []string{errorInfo(*f.Code)}
	}
	if f.RetryAfter != nil {
		delay := appendQuoted(nil, strconv.FormatFloat(f.RetryAfter.Seconds(), 'f', -1, 64)+"s")
		e.details = append(e.details, `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":`+string(delay)+`}`)
	}
	if g.wait(ctx, r.latency) {
		writeGeminiError(w, c, &e)
	}
}

// geminiID is the reply's id.
func geminiID(s seed) string {
	return string(appendAlphanumeric(nil, s.derive("response", 0), 23))
}

// block writes a reply in one piece.
func (g *gemini) block(ctx context.Context, w http.ResponseWriter, c *geminiCall, r *reply, req geminiRequest) {
	b := append(appendIndented(nil, newGeminiReply(c, r, req).whole()), '\n')
	h := w.Header()
	h["Content-Type"] = geminiJSON
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	if !g.wait(ctx, r.latency) {
		return
	}
	if r.cut != nil {
		n := len(b) / 2
		if r.cut.After.Bytes {
			n = min(r.cut.After.Count, len(b)-2) // the last byte is a line end
		}
		_, _ = w.Write(b[:n])
		sever(w)
		return
	}
	_, _ = w.Write(b)
}

// stream writes a reply in pieces: as events, or as the elements of an array.
func (g *gemini) stream(ctx context.Context, w http.ResponseWriter, c *geminiCall, r *reply, req geminiRequest) {
	out := buffers.Get().(*bytes.Buffer)
	out.Reset()
	defer release(out)
	out.Grow(flushAt + 4<<10)
	texts := newGeminiReply(c, r, req).frames()
	h := w.Header()
	h["Content-Type"] = geminiEvents
	if !c.sse {
		h["Content-Type"] = geminiJSON
	}
	h["Transfer-Encoding"] = chunked
	f := &frames{e: g.engine, ctx: ctx, w: w, cut: r.cut, pause: r.delay, buf: out.AvailableBuffer()}
	var rest time.Duration
	if g.realTime {
		all := time.Duration(len(texts))
		f.pause += (r.latency - r.ttft) / all
		rest = (r.latency - r.ttft) % all
	}
	if !g.wait(ctx, r.ttft) {
		return
	}
	if f.cut != nil && f.cut.After.Count == 0 {
		f.cutShort()
		return
	}
	for i, text := range texts {
		if f.over {
			return
		}
		last := i == len(texts)-1
		if last && !g.wait(ctx, rest) {
			return
		}
		switch {
		case c.sse:
			f.buf = append(f.buf, "data: "...)
			f.buf = appendSpaced(f.buf, text)
		case i == 0:
			f.buf = appendIndented(append(f.buf, '['), text)
		default:
			f.buf = appendIndented(append(f.buf, ",\r\n"...), text)
		}
		if last && f.cut != nil {
			// The last frame says that the reply is whole.
			f.cutWithin(len(f.buf) - 1)
			return
		}
		if c.sse {
			f.buf = append(f.buf, "\r\n\r\n"...)
		} else {
			f.buf = append(f.buf, '\n')
		}
		if last && !c.sse {
			f.buf = append(f.buf, ']')
		}
		f.end()
	}
	if !f.over {
		f.send()
	}
}

// cutWithin sends at most n bytes of what is gathered, fewer where the cut says so, and closes the connection. A cut that counts frames sends half of the last one.
func (f *frames) cutWithin(n int) {
	if f.cut.After.Bytes {
		n = min(n, max(f.cut.After.Count-f.sent, 0))
	}
	f.buf = f.buf[:n]
	f.send()
	f.over = true
	sever(f.w)
}

// appendSpaced lays a JSON text out as the vendor does within an event: a space behind each colon.
func appendSpaced(dst, text []byte) []byte {
	v := jsontext.Value(text)
	// The text was made here, so that it is JSON.
	_ = v.Format(jsontext.Multiline(false), jsontext.SpaceAfterColon(true), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return append(dst, v...)
}
