package bedrock

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

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
	a, ok := readAnswer(data)
	if !ok {
		a.Message = wire.Body(string(data))
	}
	if named := errorType(resp.Header.Get("X-Amzn-Errortype")); named != "" {
		a.Type = named
	}
	a.into(e)
	if e.Message == "" {
		e.Message = http.StatusText(resp.StatusCode)
	}
	if readErr != nil {
		e.Err = readErr
	}
	return e
}

// requestID returns the vendor's id of a request.
func requestID(h http.Header) string { return wire.Excerpt(h.Get("X-Amzn-Requestid")) }

// errorType is the name of an error without the address and the namespace that may stand around it: ThrottlingException:http://internal..., com.amazon.coral#ThrottlingException.
func errorType(s string) string {
	s, _, _ = strings.Cut(s, ":")
	if at := strings.LastIndexByte(s, '#'); at >= 0 {
		s = s[at+1:]
	}
	return strings.TrimSpace(s)
}

// answer is what an error says.
type answer struct{ Type, Message string }

// passing are the types of errors that may pass. They matter where an error comes in the middle of a stream, whose status was a success.
var passing = map[string]bool{
	"InternalServerException": true, "ModelNotReadyException": true, "ModelStreamErrorException": true, "ModelTimeoutException": true, "ServiceUnavailableException": true, "ThrottlingException": true,
}

func (a answer) into(e *llm.Error) {
	e.Message, e.Type = wire.Excerpt(a.Message), wire.Excerpt(a.Type)
	if e.Status < http.StatusBadRequest {
		e.Retryable = passing[a.Type]
	}
}

// answerError is an error that came in the body of a successful reply.
type answerError struct{ answer }

func (e *answerError) Error() string { return e.Message }

// readAnswer reads {"message"}, and what the services of the vendor write beside or in place of it.
func readAnswer(data []byte) (answer, bool) {
	var w struct {
		Message any `json:"message"`
		Upper   any `json:"Message"`
		Type    any `json:"__type"`
		Code    any `json:"code"`
		Output  any `json:"Output"`
	}
	if json.Unmarshal(data, &w, lenient) != nil {
		return answer{}, false
	}
	output, _ := w.Output.(map[string]any)
	var a answer
	for _, v := range [...]any{w.Message, w.Upper} {
		if text, ok := v.(string); ok && a.Message == "" {
			a.Message = text
		}
	}
	for _, v := range [...]any{w.Type, w.Code, output["__type"]} {
		if name, ok := v.(string); ok && a.Type == "" {
			a.Type = errorType(name)
		}
	}
	return a, a.Message != "" || a.Type != ""
}
