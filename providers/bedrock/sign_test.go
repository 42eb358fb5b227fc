package bedrock_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/bedrock"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// signed sends a request through a signing round tripper, and returns what went out, its body, and the reply.
func signed(sign func(next http.RoundTripper) http.RoundTripper, req *http.Request, answer func(*http.Request) *http.Response) (*http.Request, string, *http.Response) {
	GinkgoHelper()
	var out *http.Request
	var body []byte
	resp, err := sign(roundTrip(func(r *http.Request) (*http.Response, error) {
		out = r
		if r.Body != nil {
			var err error
			body, err = io.ReadAll(r.Body)
			Expect(err).NotTo(HaveOccurred())
		}
		return answer(r), nil
	})).RoundTrip(req)
	Expect(err).NotTo(HaveOccurred())
	return out, string(body), resp
}

func fine(*http.Request) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}
}

var _ = Describe("a signature", func() {
	at := clock.NewVirtual(time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))
	example := bedrock.Credentials{KeyID: "AKIDEXAMPLE", Key: transport.NewSecret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")}

	It("is that of the vendor's published example", func() {
		req, err := http.NewRequest(http.MethodGet, "https://example.amazonaws.com/", nil)
		Expect(err).NotTo(HaveOccurred())
		out, _, _ := signed(func(next http.RoundTripper) http.RoundTripper {
			return bedrock.SignFor(example, "service", "us-east-1", at, next)
		}, req, fine)
		Expect(out.Header.Get("Authorization")).To(Equal("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"))
		Expect(out.Header.Get("X-Amz-Date")).To(Equal("20150830T123600Z"))
		Expect(req.Header).To(BeEmpty(), "the request above stays as it was")
	})

	It("signs body, address and session of a request, computed by hand", func() {
		credentials := example
		credentials.Session = transport.NewSecret("the-session-token-of-a-temporary-key")
		const body = `{"messages":[]}`
		req, err := http.NewRequest(http.MethodPost, "https://bedrock-runtime.eu-west-1.amazonaws.com/model/amazon.nova-lite-v1%3A0/converse", strings.NewReader(body))
		Expect(err).NotTo(HaveOccurred())
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer placeholder")
		out, sent, _ := signed(func(next http.RoundTripper) http.RoundTripper {
			return bedrock.Sign(credentials, "eu-west-1", at, next)
		}, req, fine)
		Expect(sent).To(Equal(body))
		Expect(out.Header.Get("X-Amz-Security-Token")).To(Equal(credentials.Session.Reveal()))

		sum := func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }
		mac := func(key []byte, s string) []byte {
			h := hmac.New(sha256.New, key)
			h.Write([]byte(s))
			return h.Sum(nil)
		}
		// The path is escaped once more, as the scheme demands of all services but one.
		canonical := strings.Join([]string{
			"POST", "/model/amazon.nova-lite-v1%253A0/converse", "",
			"content-length:15", "content-type:application/json", "host:bedrock-runtime.eu-west-1.amazonaws.com", "x-amz-date:20150830T123600Z", "x-amz-security-token:" + credentials.Session.Reveal(), "",
			"content-length;content-type;host;x-amz-date;x-amz-security-token", sum(body),
		}, "\n")
		toSign := "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/eu-west-1/bedrock/aws4_request\n" + sum(canonical)
		key := mac(mac(mac(mac([]byte("AWS4"+example.Key.Reveal()), "20150830"), "eu-west-1"), "bedrock"), "aws4_request")
		Expect(out.Header.Get("Authorization")).To(HaveSuffix("Signature=" + hex.EncodeToString(mac(key, toSign))))
	})

	It("hides what a refusal repeats of it", func() {
		credentials := example
		credentials.KeyID = "AKIAIOSFODNN7EXAMPLE"
		credentials.Session = transport.NewSecret("the-session-token-of-a-temporary-key")
		req, err := http.NewRequest(http.MethodPost, "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse", strings.NewReader("{}"))
		Expect(err).NotTo(HaveOccurred())
		out, _, resp := signed(func(next http.RoundTripper) http.RoundTripper {
			return bedrock.Sign(credentials, "", at, next)
		}, req, func(r *http.Request) *http.Response {
			text := r.Header.Get("Authorization") + r.Header.Get("X-Amz-Security-Token") + example.Key.Reveal()
			return &http.Response{StatusCode: 403, Header: http.Header{}, Body: io.NopCloser(bytes.NewBufferString(text))}
		})
		shown, err := io.ReadAll(resp.Body)
		Expect(err).NotTo(HaveOccurred())
		_, signature, _ := strings.Cut(out.Header.Get("Authorization"), "Signature=")
		for _, hidden := range []string{credentials.KeyID, credentials.Session.Reveal(), example.Key.Reveal(), signature} {
			Expect(hidden).NotTo(BeEmpty())
			Expect(string(shown)).NotTo(ContainSubstring(hidden))
		}
		Expect(string(shown)).To(ContainSubstring("us-east-1/bedrock/aws4_request"))
		Expect(resp.Request).To(BeIdenticalTo(req))
	})
})
