package emulator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/olekukonko/tablewriter"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/emulator"
)

// respond answers a request of the Responses API without a network.
func respond(h http.Handler, body string) *httptest.ResponseRecorder {
	r := request(body)
	r.URL.Path = "/v1/responses"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// asked is the body of a request with one user message; more is put before it.
func asked(user, more string) string {
	return `{"model":"gpt-4o",` + more + `"input":[{"role":"user","content":` + quote(user) + `}]}`
}

const (
	functionTool = `"tools":[{"type":"function","name":"weather","description":"d","parameters":{"type":"object","properties":{}},"strict":false}],`
	called       = `{"type":"function_call","call_id":"call_1","name":"weather","arguments":"{\"location\":\"Florence, Italy\"}"}`
	answered     = `{"type":"function_call_output","call_id":"call_1","output":"40 C"}`
)

// responsesAccepted are requests that testdata/full.yaml answers with 200 and a whole body.
func responsesAccepted() map[string]string {
	first := `{"role":"user","content":[{"type":"input_text","text":` + quote(weather) + `}]}`
	return map[string]string{
		"step 1":   `{"model":"gpt-4o","instructions":"You are helpful",` + functionTool + `"tool_choice":"auto","parallel_tool_calls":true,"store":false,"max_output_tokens":400,"temperature":0,"input":[` + first + `]}`,
		"step 2":   `{"model":"gpt-4o",` + functionTool + `"input":[` + first + "," + called + "," + answered + `]}`,
		"a string": `{"model":"gpt-4o","input":"unicode"}`,
		"parallel": asked("Read both in parallel, please", ""),
		"refusal":  asked("refuse", ""),
		"length":   asked("long", `"metadata":{"a":"b"},`),
		"filtered": asked("filtered", ""),
		"thinking": strings.Replace(asked("think", `"reasoning":{"effort":"low","summary":"auto"},"include":["reasoning.encrypted_content"],`), "gpt-4o", "o3-mini", 1),
		"an image": `{"model":"gpt-4o","input":[{"role":"user","content":[{"type":"input_image","image_url":"` + pixel + `","detail":"auto"},{"type":"input_text","text":"unicode"}]}]}`,
	}
}

var _ = Describe("the Responses API", func() {
	It("has replies and events that fit the published description", func() {
		d := newDescription("openai-openapi.yaml")
		h := handler(full(), emulator.Options{})
		for name, body := range responsesAccepted() {
			d.accepts("CreateResponse", body, name)
			w := respond(h, body)
			Expect(w.Code).To(Equal(200), "%s: %s", name, w.Body)
			reply := w.Body.String()
			d.accepts("Response", described(reply), name)
			for _, change := range []string{`"object":`, `"created_at":`, `"output":`} {
				d.rejects("Response", strings.Replace(described(reply), change, strings.Replace(change, `":`, `_":`, 1), 1))
			}
			w = respond(h, with(body, `"stream":true`))
			Expect(w.Code).To(Equal(200), "%s: %s", name, w.Body)
			whole := ""
			for i, event := range strings.Split(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n") {
				head, data, ok := strings.Cut(event, "\ndata: ")
				Expect(ok).To(BeTrue(), event)
				var e struct {
					Type     string
					Number   int `json:"sequence_number"`
					Response json.RawMessage
				}
				Expect(json.Unmarshal([]byte(data), &e)).To(Succeed(), data)
				Expect(head).To(Equal("event: " + e.Type))
				Expect(e.Number).To(Equal(i))
				d.accepts("ResponseStreamEvent", described(data), name)
				if e.Type == "response.completed" || e.Type == "response.incomplete" {
					whole = string(e.Response)
				}
			}
			// A stream's reply is another request's, so that ids differ with the digest; what it says does not.
			Expect(spoken(whole)).To(Equal(spoken(reply)), name)
		}
		table := tablewriter.NewWriter(os.Stdout)
		table.Header("schema", "validated", "broken and rejected")
		for _, name := range []string{"CreateResponse", "Response", "ResponseStreamEvent"} {
			Expect(d.valid[name]).To(BeNumerically(">", 5), name)
			Expect(table.Append(name, fmt.Sprint(d.valid[name]), fmt.Sprint(d.refused[name]))).To(Succeed())
		}
		Expect(table.Render()).To(Succeed())
	})

	It("gives equal bytes to equal requests, and none to half a conversation", func() {
		h := handler(full(), emulator.Options{})
		body := responsesAccepted()["step 2"]
		Expect(respond(h, body).Body.String()).To(Equal(respond(handler(full(), emulator.Options{}), body).Body.String()))
		for request, want := range map[string]string{
			`{"model":"gpt-4o","input":[` + called + `]}`:                                         "No tool output found for function call call_1.",
			`{"model":"gpt-4o","input":[` + answered + `]}`:                                       "No tool call found for function call output with call_id call_1.",
			`{"model":"gpt-4o","input":[]}`:                                                       "Invalid 'input': empty array",
			`{"model":"gpt-4o"}`:                                                                  "Missing required parameter: 'input'.",
			`{"input":"x"}`:                                                                       "Missing required parameter: 'model'.",
			asked("x", `"messages":[],`):                                                          "Unknown parameter: 'messages'.",
			asked("x", `"max_output_tokens":1,`):                                                  "integer below minimum value",
			asked("x", `"include":["reasoning.encrypted_content"],`):                              "Encrypted content is not supported with this model.",
			asked("x", `"tools":[{"type":"web_search"}],`):                                        "the emulator does not support tools of type 'web_search'",
			asked("x", `"previous_response_id":"resp_1",`):                                        "the emulator does not support 'previous_response_id'",
			`{"model":"gpt-4o","input":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`: "Invalid value: 'text'. Supported values are: 'input_text', 'input_image', and 'input_file'.",
			`{"model":"gpt-4o","input":[{"type":"custom","role":"user","content":"x"}]}`:          "Invalid value: 'custom'.",
		} {
			w := respond(h, request)
			Expect(w.Code).To(Equal(400), request)
			Expect(w.Body.String()).To(ContainSubstring(want), request)
		}
		Expect(respond(h, asked("e401", "")).Code).To(Equal(401))
	})
})

// described leaves out what the vendor sends as null, as recorded replies have it, although its description has a string alone there.
func described(reply string) string {
	for _, name := range []string{"user", "safety_identifier", "prompt_cache_key", "usage"} {
		reply = strings.ReplaceAll(reply, `,"`+name+`":null`, "")
	}
	return reply
}

// spoken is what a reply says, without its ids.
func spoken(reply string) any {
	GinkgoHelper()
	var v struct {
		Status string
		Output []map[string]any
		Usage  map[string]any
	}
	Expect(json.Unmarshal([]byte(reply), &v)).To(Succeed(), reply)
	for _, item := range v.Output {
		delete(item, "id")
		delete(item, "call_id")
		delete(item, "encrypted_content")
	}
	return v
}
