package cassette_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/harness/cassette"
)

const chatURL = "https://api.openai.com/v1/chat/completions"

func rulesOf(redactions ...cassette.Redaction) *cassette.Rules {
	GinkgoHelper()
	r, err := cassette.NewRules(redactions)
	Expect(err).NotTo(HaveOccurred())
	return r
}

func canonical(body string, redactions ...cassette.Redaction) cassette.Request {
	GinkgoHelper()
	r, _ := cassette.Canonical("POST", chatURL, http.Header{"Content-Type": {"application/json"}}, []byte(body), rulesOf(redactions...))
	return r
}

var _ = Describe("the canonical form", func() {
	It("sorts keys, keeps numbers as they were written and lays long JSON out in lines", func() {
		long := strings.Repeat("x", 60)
		r := canonical(`{"model":"m","stream":true, "temperature":0.10, "seed":12345678901234567890, "e":1e3, "messages":[{"role":"user","content":"a\u003cb\/\u00e9` + long + `"},{"role":"assistant","content":null}],"stream_options":{"include_usage":true},"empty":[],"none":{}}`)
		Expect(r.Body).To(Equal(`{
 "e":1e3,
 "empty":[],
 "messages":[
  {"content":"a<b/é` + long + `","role":"user"},
  {"content":null,"role":"assistant"}
 ],
 "model":"m",
 "none":{},
 "seed":12345678901234567890,
 "stream":true,
 "stream_options":{"include_usage":true},
 "temperature":0.10
}`))
		Expect(canonical(`{"b":1,"a":[1,2]}`).Body).To(Equal(`{"a":[1,2],"b":1}`))
	})

	It("misses on a prompt edit and on no change of SDK", func() {
		send := func(header http.Header, body string) cassette.Key {
			r, _ := cassette.Canonical("POST", chatURL, header, []byte(body), nil)
			return cassette.KeyOf(r)
		}
		a := send(http.Header{"Content-Type": {"application/json; charset=utf-8"}, "User-Agent": {"go/1"}, "Authorization": {"Bearer x"}, "Accept": {"*/*"}, "X-Stainless-Os": {"Linux"}, "Idempotency-Key": {"1"}}, `{"a":1,"b":2}`)
		b := send(http.Header{"content-type": {"application/json"}, "User-Agent": {"go/2"}, "Authorization": {"Bearer y"}, "Accept": {"*/*"}, "X-Request-Id": {"7"}}, "{ \"b\": 2,\n\"a\": 1}\n")
		Expect(a).To(Equal(b))
		Expect(send(http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}}, `{"a":1,"b":3}`)).NotTo(Equal(a))
		Expect(send(http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}, "Openai-Beta": {"x"}}, `{"a":1,"b":2}`)).NotTo(Equal(a))
	})

	It("names the rules that changed something", func() {
		_, applied := cassette.Canonical("POST", "https://me:pw@API.openai.com:443/v1/x?key=1&a=2", http.Header{"Content-Type": {"application/json; charset=utf-8"}, "User-Agent": {"go"}, "X-Api-Key": {"k"}, "Idempotency-Key": {"1"}, "Traceparent": {"0"}}, []byte(`{"b":1,"a":"tenant-7f3a91"}`), rulesOf(cassette.Redaction{Name: "tenant_id", Value: "tenant-7f3a91"}))
		Expect(applied).To(Equal([]string{"content-type", "credential", "header-allow-list", "idempotency-key", "json", "placeholder:tenant_id", "sdk-fingerprint", "url-user"}))
		_, applied = cassette.Canonical("POST", chatURL, http.Header{"Content-Type": {"application/json"}}, []byte(`{"a":1}`), nil)
		Expect(applied).To(BeEmpty())
	})

	DescribeTable("URLs", func(in, want string) {
		r, _ := cassette.Canonical("GET", in, nil, nil, rulesOf(cassette.Redaction{Name: "id", Value: "tenant 7f3a91"}))
		Expect(r.URL).To(Equal(want))
		again, _ := cassette.Canonical("GET", r.URL, nil, nil, rulesOf(cassette.Redaction{Name: "id", Value: "tenant 7f3a91"}))
		Expect(again.URL).To(Equal(want))
	},
		Entry(nil, chatURL, chatURL),
		Entry("host, port, user, fragment", "HTTPS://u:p@Example.COM:443/A?#f", "https://example.com/A"),
		Entry("another port", "http://127.0.0.1:8080/", "http://127.0.0.1:8080/"),
		Entry("order of parameters", "https://e.com/?b=2&a=1&b=1&&c", "https://e.com/?a=1&b=2&b=1&c"),
		Entry("keys", "https://e.com/?alt=sse&key=AIzaXXXX", "https://e.com/?alt=sse&key=%7B%7Bechoeval%3Acredential%7D%7D"),
		Entry("a hidden value", "https://e.com/t/tenant%207f3a91/x?q=tenant+7f3a91", "https://e.com/t/%7B%7Bechoeval:id%7D%7D/x?q=%7B%7Bechoeval%3Aid%7D%7D"),
		Entry("no URL", "://", "://"),
		Entry("a tool", "tool:///read_file", "tool:///read_file"),
	)

	It("gives multipart bodies one boundary", func() {
		send := func(boundary string) cassette.Request {
			body := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n\xff\x00\r\n--" + boundary + "--\r\n"
			r, applied := cassette.Canonical("POST", "https://api.openai.com/v1/audio/transcriptions", http.Header{"Content-Type": {"multipart/form-data; boundary=" + boundary}}, []byte(body), nil)
			Expect(applied).To(Equal([]string{"multipart-boundary"}))
			return r
		}
		Expect(send("abc123")).To(Equal(send("xyz789")))
		Expect(send("abc123").Body).To(HavePrefix("--echoeval-boundary\r\n"))
	})

	It("keeps the bytes of what is no JSON", func() {
		for _, body := range []string{`{"a":1,"a":2}`, `{"a":`, "plain", "{\"a\":\"\xff\"}", " "} {
			Expect(canonical(body).Body).To(Equal(body))
		}
	})

	It("does not change what it was given", func() {
		header := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "X": {"y"}}
		body := []byte(`{"b":1,"a":2}`)
		cassette.Canonical("POST", chatURL, header, body, nil)
		Expect(header).To(Equal(http.Header{"Content-Type": {"application/json; charset=utf-8"}, "X": {"y"}}))
		Expect(string(body)).To(Equal(`{"b":1,"a":2}`))
	})
})

var _ = Describe("placeholders", func() {
	const value = "pass \"word\"\n<&>\\ é😀"

	It("stand for a value however deep JSON has wrapped it", func() {
		hidden := cassette.Redaction{Name: "token", Value: value}
		text := "x " + value + " y"
		for depth := range 3 {
			wrapped, err := json.Marshal(map[string]string{"arguments": text})
			Expect(err).NotTo(HaveOccurred())
			text = string(wrapped)
			r := canonical(text, hidden)
			Expect(r.Body).To(ContainSubstring("x {{echoeval:token}} y"), "depth %d", depth)
			Expect(r.Body).NotTo(ContainSubstring("word"))
			Expect(json.Valid([]byte(r.Body))).To(BeTrue())
			Expect(rulesOf(hidden).Find(text)).To(Equal([]string{"token"}))

			_, sealed, applied := rulesOf(hidden).Seal(200, nil, text)
			Expect(applied).To(Equal([]string{"placeholder:token"}))
			Expect(sealed).NotTo(ContainSubstring("word"))
			var before, after map[string]string
			Expect(json.Unmarshal([]byte(text), &before)).To(Succeed())
			Expect(json.Unmarshal([]byte(rulesOf(hidden).Open(sealed)), &after)).To(Succeed())
			Expect(after).To(HaveLen(1))
			if depth == 0 {
				Expect(after).To(Equal(before))
			}
		}
	})

	It("stand for short values only where they are a whole string", func() {
		hidden := cassette.Redaction{Name: "pin", Value: "1234"}
		Expect(canonical(`{"a":"1234","b":"12345","c":1234,"d":"{\"pin\":\"1234\"}"}`, hidden).Body).To(Equal(`{"a":"{{echoeval:pin}}","b":"12345","c":1234,"d":"{\"pin\":\"{{echoeval:pin}}\"}"}`))
	})

	It("prefer the longest value and are not replaced themselves", func() {
		hidden := []cassette.Redaction{{Name: "a", Value: "tenant-7"}, {Name: "b", Value: "tenant-7f3a91"}, {Name: "c", Value: "echoeval"}}
		r := canonical(`{"x":"tenant-7 tenant-7f3a91 echoeval"}`, hidden...)
		Expect(r.Body).To(Equal(`{"x":"{{echoeval:a}} {{echoeval:b}} {{echoeval:c}}"}`))
		Expect(canonical(r.Body, hidden...)).To(Equal(r))
	})

	It("are found where a stream sends a value in pieces", func() {
		rules := rulesOf(cassette.Redaction{Name: "tenant", Value: "tenant-7f3a91"})
		event := func(text string) string {
			b, err := json.Marshal(text)
			Expect(err).NotTo(HaveOccurred())
			return `data: {"choices":[{"delta":{"content":` + string(b) + `}}]}` + "\n\n"
		}
		body := event("for ten") + event("ant-7") + event("f3a91 and") + event(" tenant-7f3a91.") + "data: [DONE]\n\n"
		header := http.Header{"Content-Type": {"text/event-stream"}}
		_, sealed, _ := rules.Seal(200, header, body)
		Expect(sealed).To(Equal(event("for {{echoeval:tenant}}") + event("") + event(" and") + event(" {{echoeval:tenant}}.") + "data: [DONE]\n\n"))
		Expect(rules.Open(sealed)).To(Equal(event("for tenant-7f3a91") + event("") + event(" and") + event(" tenant-7f3a91.") + "data: [DONE]\n\n"))
	})

	It("leave alone what only looks like one", func() {
		rules := rulesOf(cassette.Redaction{Name: "tenant", Value: "tenant-7f3a91"})
		body := `{"a":"{{echoeval:tenant}} {{echoeval::x {{echoeval:other}} {{echoeval:"}`
		_, sealed, _ := rules.Seal(200, nil, body)
		Expect(rules.Open(sealed)).To(Equal(body))
	})

	DescribeTable("refuse", func(redactions ...cassette.Redaction) {
		_, err := cassette.NewRules(redactions)
		Expect(err).To(HaveOccurred())
		Expect(err.Error()).NotTo(ContainSubstring("secret-value"))
	},
		Entry("no name", cassette.Redaction{Value: "secret-value"}),
		Entry("a name that would end it", cassette.Redaction{Name: "a}}", Value: "secret-value"}),
		Entry("a value that begins one", cassette.Redaction{Name: "a", Value: "secret-value{{echoeval:"}),
		Entry("two values", cassette.Redaction{Name: "a", Value: "secret-value"}, cassette.Redaction{Name: "a", Value: "secret-value2"}),
	)
})

var _ = Describe("responses", func() {
	It("keep an allow-list of headers", func() {
		header := http.Header{"Content-Type": {"application/json"}, "Date": {"today"}, "Set-Cookie": {"a=b"}, "Server": {"x"}, "Retry-After": {"2"}, "X-Ratelimit-Remaining-Requests": {"9"}, "X-Request-Id": {"req_1"}, "Server-Timing": {"total;dur=1"}, "Cf-Ray": {"1"}}
		kept, _, _ := (&cassette.Rules{}).Seal(200, header, "")
		Expect(kept).To(Equal(http.Header{"Content-Type": {"application/json"}, "Retry-After": {"2"}, "X-Ratelimit-Remaining-Requests": {"9"}}))
		kept, _, _ = (&cassette.Rules{}).Seal(429, header, "")
		Expect(kept).To(HaveKeyWithValue("X-Request-Id", []string{"req_1"}))
	})
})

func FuzzCanonical(f *testing.F) {
	f.Add("POST", chatURL, "application/json", `{"b":"tenant-7f3a91","a":"{\"x\":\"tenant-7f3a91\\n\"}"}`, "tenant-7f3a91", "n")
	f.Add("GET", "https://u@h:443/a%2Fb/%7Ec?b&a=1&%zz#f", "multipart/form-data; boundary=xx", "--xx\r\n\r\n--xx--", "echoeval", "a.b")
	f.Add("TOOL", "tool:///a b", "application/x-www-form-urlencoded", "b=1&a=%20", `"},{"`, "x")
	f.Add("POST", "https://h/?key=1", "text/plain; charset=utf-8", "[\"\\u0061bcdefgh\"]", "abcdefgh", "y")
	f.Add("POST", "https://h/", "", `["x{{echoeval:n}}y","{{echoeval:"]`, "}}abcdefgh", "n")
	f.Fuzz(func(t *testing.T, method, rawURL, media, body, value, name string) {
		rules, err := cassette.NewRules([]cassette.Redaction{{Name: name, Value: value}})
		if err != nil {
			rules = &cassette.Rules{}
		}
		header := http.Header{"Content-Type": {media}, "Accept": {media}}
		once, _ := cassette.Canonical(method, rawURL, header, []byte(body), rules)
		twice, _ := cassette.Canonical(once.Method, once.URL, once.Headers, []byte(once.Body), rules)
		if cassette.KeyOf(once) != cassette.KeyOf(twice) {
			t.Fatalf("not its own canonical form:\n%#v\n%#v", once, twice)
		}
		if json.Valid([]byte(body)) && len(body) > 0 && strings.Contains("{[", body[:1]) && !strings.HasPrefix(media, "multipart") && !strings.HasPrefix(media, "application/x-www") && !strings.ContainsAny(value, `"{}[],:\`) && !json.Valid([]byte(once.Body)) {
			t.Fatalf("no JSON any more: %s", once.Body)
		}
	})
}

func FuzzSeal(f *testing.F) {
	f.Add(`{"a":"tenant-7f3a91 {{echoeval:n}} {{echoeval::"}`, "tenant-7f3a91", "application/json")
	f.Add("data: {\"a\":\"ten\"}\n\ndata: {\"a\":\"ant-7f3a91\"}\n\n", "tenant-7f3a91", "text/event-stream")
	f.Add(`{"a":"x\"\\\"y"}`, `\"y12345`, "")
	f.Fuzz(func(t *testing.T, body, value, media string) {
		rules, err := cassette.NewRules([]cassette.Redaction{{Name: "n", Value: value}})
		if err != nil {
			return
		}
		_, sealed, applied := rules.Seal(200, http.Header{"Content-Type": {media}}, body)
		if len(applied) == 0 && rules.Open(sealed) != body {
			t.Fatalf("%q came back as %q", body, rules.Open(sealed))
		}
		// Where nothing escapes anything, a value long enough is gone for certain, unless it is part of a placeholder itself.
		if len(value) >= 8 && !strings.ContainsAny(value, "{}") && !strings.Contains("echoeval:n", value) && !strings.ContainsAny(body, `\{`) && strings.Contains(sealed, value) {
			t.Fatalf("%q is still in %q", value, sealed)
		}
	})
}
