package gemini

import (
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/wire"
)

// maxErrorBody is how much of a refusal is read.
const maxErrorBody = 64 << 10

// refusal reads the reply of a status that is no success.
func refusal(resp *http.Response, now time.Time) *llm.Error {
	data, readErr := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	e := &llm.Error{Vendor: Name, Status: resp.StatusCode, Retryable: transport.MayPass(resp.StatusCode), Retries: wire.Repetitions(resp)}
	if a, ok := readAnswer(data); ok {
		a.into(e)
	} else {
		e.Message = wire.Body(string(data))
	}
	if after, ok := transport.RetryAfter(resp.Header, now); ok {
		e.RetryAfter = after
	}
	if e.Message == "" {
		e.Message = http.StatusText(resp.StatusCode)
	}
	if readErr != nil {
		e.Err = readErr
	}
	return e
}

// answer is what the body of an error says: https://google.aip.dev/193.
type answer struct {
	Code    int      `json:"code"`
	Message string   `json:"message"`
	Status  string   `json:"status"`
	Details []detail `json:"details"`
}

// detail is an ErrorInfo, a RetryInfo or a RequestInfo of google.rpc, which have no field in common.
type detail struct {
	Reason     string `json:"reason"`
	RetryDelay string `json:"retryDelay"`
	RequestID  string `json:"requestId"`
}

func (a answer) into(e *llm.Error) {
	e.Message, e.Type = excerpt(a.Message), excerpt(a.Status)
	if e.Status < http.StatusBadRequest && a.Code != 0 {
		e.Retryable = transport.MayPass(a.Code)
	}
	for _, d := range a.Details {
		if d.Reason != "" {
			e.Code = excerpt(d.Reason)
		}
		if d.RequestID != "" {
			e.RequestID = excerpt(d.RequestID)
		}
		if after, err := time.ParseDuration(d.RetryDelay); err == nil && after > 0 {
			e.RetryAfter = after
		}
	}
}

// answerError is an error that came in the body of a successful reply.
type answerError struct{ answer }

func (e *answerError) Error() string { return e.Message }

// readAnswer reads {"error": {...}}, and a list of one, as a stream that is a JSON array gives it.
func readAnswer(data []byte) (answer, bool) {
	v := jsontext.Value(data)
	if v.Kind() == '[' {
		var list []jsontext.Value
		if json.Unmarshal(v, &list, lenient) != nil || len(list) == 0 {
			return answer{}, false
		}
		v = list[0]
	}
	var w struct {
		Error *answer `json:"error"`
	}
	if json.Unmarshal(v, &w, lenient) != nil || w.Error == nil {
		return answer{}, false
	}
	return *w.Error, w.Error.Message != "" || w.Error.Status != "" || w.Error.Code != 0
}

// excerpt makes a text of a server fit for a message: one line, no control characters, no key, not long.
func excerpt(s string) string {
	const limit = 1000
	s = strings.ToValidUTF8(s, "\ufffd")
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	s = (&secret.Detector{}).Redact(s)
	if len(s) <= limit {
		return s
	}
	cut := limit
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
