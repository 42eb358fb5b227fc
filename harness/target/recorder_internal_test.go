package target

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/transport"
)

// roundTrip is a transport that is a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func replying(status int, body string) roundTrip {
	return func(*http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return w.Result(), nil
	}
}

// recording opens a recorder with an item in its first turn.
func recording(item Item, live func(Service) (http.RoundTripper, error)) (*recorder, *underWay, *[]error) {
	GinkgoHelper()
	r, err := newRecorder(&Spec{Proxy: map[string]string{"CRM_URL": "https://crm.example.com/api"}}, live)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(r.close)
	if item.Clock == nil {
		item.Clock = clock.NewVirtual(time.Time{})
	}
	if item.Wrap == nil {
		item.Wrap = func(t tool.Tool) tool.Tool { return t }
	}
	u := &underWay{Item: item}
	var lost []error
	r.serve(u)
	u.begin(context.Background(), func(err error) { lost = append(lost, err) })
	return r, u, &lost
}

func send(address, body string, header ...string) (int, string) {
	GinkgoHelper()
	req, err := http.NewRequest(http.MethodPost, address, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	return resp.StatusCode, string(text)
}

var _ = Describe("a recorder", func() {
	It("shows the vendor's address to what records, without the client's keys, and puts these back below it", func() {
		const key = "key-0123456789abcdef"
		var above, below []string
		keys := func(r *http.Request) string { return r.Header.Get("Authorization") + r.Header.Get("X-Api-Key") }
		live := func(s Service) (http.RoundTripper, error) {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				below = append(below, s.Name+" "+keys(r))
				return replying(401, `{"error":"`+key+` is wrong"}`)(r)
			}), nil
		}
		item := Item{Transport: func(live http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				above = append(above, r.URL.String()+" "+keys(r))
				return live.RoundTrip(r)
			})
		}}
		r, u, lost := recording(item, live)
		status, text := send(r.address()+"/openai/v1/chat/completions?x=1", "{}", "Authorization", "Bearer "+key)
		Expect(status).To(Equal(401))
		Expect(text).To(ContainSubstring("[secret] is wrong"))
		send(r.address()+"/anthropic/v1/messages", "{}", "X-Api-Key", key)
		send(r.address()+"/-/CRM_URL/api/orders/7", "{}", "Authorization", key)
		Expect(above).To(Equal([]string{"https://api.openai.com/v1/chat/completions?x=1 ", "https://api.anthropic.com/v1/messages ", "https://crm.example.com/api/orders/7 "}))
		Expect(below).To(Equal([]string{"openai Bearer " + key, "anthropic " + key, "CRM_URL " + key}))
		u.end()
		exchanges, _ := u.turn()
		Expect(exchanges).To(HaveLen(3))
		Expect(exchanges[0].Status).To(Equal(401))
		Expect(exchanges[0].asked()).To(BeTrue())
		Expect(exchanges[2].asked()).To(BeFalse())
		Expect(*lost).To(BeEmpty())
	})

	It("repeats requests to models, and of those to services only what may be repeated", func() {
		sent := map[string]int{}
		busy := func(s Service) (http.RoundTripper, error) {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				sent[r.Method+" "+s.Name]++
				return replying(503, "{}")(r)
			}), nil
		}
		item := Item{Transport: func(live http.RoundTripper) http.RoundTripper {
			return transport.Retry(transport.RetryConfig{Clock: clock.NewVirtual(time.Time{})}, live)
		}}
		r, _, _ := recording(item, busy)
		send(r.address()+"/openai/v1/chat/completions", "{}")
		send(r.address()+"/-/CRM_URL/api/orders", "{}")
		resp, err := http.Get(r.address() + "/-/CRM_URL/api/orders")
		Expect(err).NotTo(HaveOccurred())
		Expect(resp.Body.Close()).To(Succeed())
		Expect(sent).To(Equal(map[string]int{"POST openai": 3, "POST CRM_URL": 1, "GET CRM_URL": 3}))
	})

	It("answers nobody between turns", func() {
		r, u, _ := recording(Item{Transport: func(http.RoundTripper) http.RoundTripper { return replying(200, "{}") }}, nil)
		status, _ := send(r.address()+"/openai/v1/chat/completions", "{}")
		Expect(status).To(Equal(200))
		u.end()
		status, text := send(r.address()+"/openai/v1/chat/completions", "{}")
		Expect(status).To(Equal(503))
		Expect(text).To(ContainSubstring("after its answer"))
		u.begin(context.Background(), func(error) {})
		status, _ = send(r.address()+"/openai/v1/chat/completions", "{}")
		Expect(status).To(Equal(200))
		r.serve(nil)
		status, _ = send(r.address()+"/openai/v1/chat/completions", "{}")
		Expect(status).To(Equal(503))
	})

	It("refuses what it cannot pass on, and paths that it does not know", func() {
		r, _, _ := recording(Item{Transport: func(http.RoundTripper) http.RoundTripper { return replying(200, "{}") }}, nil)
		for path, want := range map[string]int{"/bedrock/model/x/invoke": 501, "/azure/openai": 501, "/other/x": 404, "/-/OTHER/x": 404, "/echoeval/tool/7": 404, "/echoeval/tools": 404} {
			status, text := send(r.address()+path, `{"result":1}`)
			Expect(status).To(Equal(want), path)
			Expect(text).To(ContainSubstring(`"type":"echoeval"`), path)
		}
	})

	It("ends the item with what nobody may spend or dial", func() {
		broke := errors.New("nothing is left")
		item := Item{Transport: func(http.RoundTripper) http.RoundTripper { return replying(200, "{}") }}
		item.Reserve = func(_ context.Context, vendor, model string, size, most int) (func(*conversation.Usage), error) {
			Expect([]any{vendor, model, most}).To(Equal([]any{"openai", "m", 9}))
			return nil, broke
		}
		r, _, lost := recording(item, func(Service) (http.RoundTripper, error) { return nil, nil })
		status, _ := send(r.address()+"/openai/v1/chat/completions", `{"model":"m","max_tokens":9}`)
		Expect(status).To(Equal(403))
		Expect(*lost).To(Equal([]error{broke}))
	})

	It("takes calls of tools side by side, and ends those that nobody answers", func() {
		r, u, _ := recording(Item{}, nil)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				defer GinkgoRecover()
				_, text := send(r.address()+"/echoeval/tool", `{"name":"find","arguments":{"of":1}}`)
				id := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), `{"run":"`), `"}`)
				status, text := send(r.address()+"/echoeval/tool/"+id, `{"result":`+id+`}`)
				Expect(status).To(Equal(200))
				Expect(strings.TrimSpace(text)).To(Equal(`{"result":` + id + `}`))
			})
		}
		wg.Wait()
		_, text := send(r.address()+"/echoeval/tool", `{"name":"find"}`)
		Expect(text).To(ContainSubstring(`"run":"9"`))
		status, _ := send(r.address()+"/echoeval/tool", `{"name":"find","effect":"odd"}`)
		Expect(status).To(Equal(400))
		u.end()
		_, runs := u.turn()
		Expect(runs).To(HaveLen(8))
		for i, run := range runs {
			Expect(run.seq).To(Equal(i + 1))
			Expect(run.Effect).To(Equal(tool.Write))
		}
	})

	It("does not wait for a request that goes on when the program has answered", func() {
		began := make(chan struct{})
		item := Item{Transport: func(http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				close(began)
				<-r.Context().Done()
				return nil, context.Cause(r.Context())
			})
		}}
		r, u, _ := recording(item, nil)
		go func() {
			resp, err := http.Post(r.address()+"/openai/v1/chat/completions", "application/json", strings.NewReader("{}"))
			if err == nil {
				_ = resp.Body.Close()
			}
		}()
		<-began
		u.end()
		exchanges, _ := u.turn()
		Expect(exchanges).To(HaveLen(1))
		Expect(exchanges[0].Err).To(MatchError(errOver))
	})
})
