package anthropic

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/wire"
)

// maxErrorBody is how much of a refusal is read.
const maxErrorBody = 64 << 10

// errBroken is a body that could not be read to its end.
var errBroken = errors.New("the reply was cut short")

// refusal reads the reply of a status that is no success.
func refusal(resp *http.Response, now time.Time) *llm.Error {
	data, readErr := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	e := &llm.Error{Vendor: Name, Status: resp.StatusCode, RequestID: requestID(resp.Header), Retryable: transport.MayPass(resp.StatusCode), Retries: wire.Repetitions(resp)}
	e.RetryAfter, _ = transport.RetryAfter(resp.Header, now)
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

// requestID returns the vendor's id of a request.
func requestID(h http.Header) string {
	for _, name := range [...]string{"Request-Id", "X-Request-Id"} {
		if id := h.Get(name); id != "" {
			return wire.Excerpt(id)
		}
	}
	return ""
}

// answer is what the body of an error says.
type answer struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	RequestID string `json:"-"`
}

// passing are the types of errors that may pass. They matter where an error comes in the middle of a stream, whose status was a success.
var passing = map[string]bool{"overloaded_error": true, "api_error": true, "rate_limit_error": true, "timeout_error": true}

func (a answer) into(e *llm.Error) {
	e.Message, e.Type = wire.Excerpt(a.Message), wire.Excerpt(a.Type)
	if e.RequestID == "" {
		e.RequestID = wire.Excerpt(a.RequestID)
	}
	if e.Status < http.StatusBadRequest {
		e.Retryable = passing[a.Type]
	}
}

// answerError is an error that came in the body of a successful reply.
type answerError struct{ answer }

func (e *answerError) Error() string { return e.Message }

// readAnswer reads {"type": "error", "error": {"type", "message"}, "request_id"}, and what gateways make of it: an error that is a text.
func readAnswer(data []byte) (answer, bool) {
	var w struct {
		Error     jsontext.Value `json:"error"`
		RequestID *string        `json:"request_id"`
	}
	if json.Unmarshal(data, &w, lenient) != nil {
		return answer{}, false
	}
	var a answer
	switch w.Error.Kind() {
	case '{':
		if json.Unmarshal(w.Error, &a, lenient) != nil {
			return answer{}, false
		}
	case '"':
		if json.Unmarshal(w.Error, &a.Message, lenient) != nil {
			return answer{}, false
		}
	}
	if w.RequestID != nil {
		a.RequestID = *w.RequestID
	}
	return a, a.Message != "" || a.Type != ""
}
