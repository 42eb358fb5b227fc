package openai

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/wire"
)

// maxErrorBody is how much of a refusal is read.
const maxErrorBody = 64 << 10

// refusal reads the reply of a status that is no success.
func refusal(vendor string, resp *http.Response, now time.Time) *llm.Error {
	data, readErr := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	e := &llm.Error{Vendor: vendor, Status: resp.StatusCode, RequestID: requestID(resp.Header), Retryable: transport.MayPass(resp.StatusCode)}
	e.RetryAfter, _ = transport.RetryAfter(resp.Header, now)
	e.Retries = wire.Repetitions(resp)
	if a, ok := readAnswer(data); ok {
		a.into(e)
	} else {
		e.Message = wire.Body(string(data))
	}
	if e.Message == "" {
		e.Message = http.StatusText(resp.StatusCode)
	}
	if readErr != nil {
		e.Err = readErr
	}
	return e
}

// requestID returns the vendor's id of a request: OpenAI's header, then those of Azure and of gateways.
func requestID(h http.Header) string {
	for _, name := range [...]string{"X-Request-Id", "Apim-Request-Id", "Request-Id", "X-Litellm-Call-Id"} {
		if id := h.Get(name); id != "" {
			if hexadecimal(strings.TrimPrefix(id, "req_")) {
				return id // the vendor's form, which every reply has and no key
			}
			return wire.Excerpt(id)
		}
	}
	return ""
}

// hexadecimal reports whether a short text is made of hexadecimal digits and hyphens, as the ids of requests are.
func hexadecimal(s string) bool {
	return len(s) <= 64 && strings.Trim(s, "0123456789abcdefABCDEF-") == ""
}

// answer is what the body of an error says.
type answer struct {
	Message, Type, Code string
	// Status is the status that the body itself names, 0 for none: gateways send errors with status 200.
	Status int
}

func (a answer) into(e *llm.Error) {
	e.Message, e.Type, e.Code = wire.Excerpt(a.Message), wire.Excerpt(a.Type), wire.Excerpt(a.Code)
	if e.Status < http.StatusBadRequest && a.Status != 0 {
		e.Retryable = transport.MayPass(a.Status)
	}
	if a.Code == "insufficient_quota" {
		e.Retryable = false // it stays so until somebody pays
	}
}

// answerError is an error that came in the body of a successful reply.
type answerError struct{ answer }

func (e *answerError) Error() string { return e.Message }

type wireError struct {
	Error   jsontext.Value `json:"error"`
	Message jsontext.Value `json:"message"`
	Detail  jsontext.Value `json:"detail"`
	Type    jsontext.Value `json:"type"`
	Code    jsontext.Value `json:"code"`
	Status  jsontext.Value `json:"status"`
	Object  string         `json:"object"`
}

// readAnswer reads the forms of an error body that are in use: {"error": {...}}, {"error": "..."}, a list of one of them, and the bare {"message": ...} or {"detail": ...}.
func readAnswer(data []byte) (answer, bool) {
	v := jsontext.Value(data)
	if !v.IsValid(lenient) {
		return answer{}, false
	}
	switch v.Kind() {
	case '[':
		var list []jsontext.Value
		if json.Unmarshal(v, &list, lenient) != nil || len(list) == 0 {
			return answer{}, false
		}
		return readAnswer(list[0])
	case '"':
		return answer{Message: plain(v)}, true
	case '{':
	default:
		return answer{}, false
	}
	var w wireError
	if json.Unmarshal(v, &w, lenient) != nil {
		return answer{}, false
	}
	if k := w.Error.Kind(); k == '{' || k == '"' || k == '[' {
		return readAnswer(w.Error)
	}
	a := answer{Message: plain(w.Message), Type: plain(w.Type), Code: plain(w.Code)}
	if a.Message == "" {
		a.Message = plain(w.Detail)
	}
	for _, text := range [...]string{plain(w.Status), a.Code} {
		if n, err := strconv.Atoi(text); err == nil && n >= http.StatusBadRequest && n < 600 {
			a.Status = n
			break
		}
	}
	return a, a.Message != "" || a.Type != "" || a.Code != ""
}

// plain is a string's text, "" for null, and the JSON text of anything else.
func plain(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		b, err := jsontext.AppendUnquote(nil, v)
		if err != nil && !utf8.Valid(b) {
			return strings.ToValidUTF8(string(b), "\ufffd")
		}
		return string(b)
	case 'n', 0:
		return ""
	}
	return string(v)
}
