package wire_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/wire"
)

func TestReason(t *testing.T) { suite.Run(t, "reason") }

type final struct{ error }

func (final) Final() bool { return true }

var _ = Describe("what a server said", func() {
	DescribeTable("is fit for a message", func(said, want string) { Expect(wire.Excerpt(said)).To(Equal(want)) },
		Entry("as it is", "no such model", "no such model"),
		Entry("on one line", "a\r\n\tb\x1b[31m", "a b [31m"),
		Entry("without half a character", "caf\xc3", "caf\ufffd"),
		Entry("without a key", "the key sk-ant-0123456789abcdef is wrong", "the key [secret] is wrong"),
		Entry("without a bearer", "got Bearer abc.def", "got [secret]"))

	It("is not long and ends on a whole character", func() {
		long := wire.Excerpt(strings.Repeat("é", 2000))
		Expect(len(long)).To(BeNumerically("<", 1010))
		Expect(utf8.ValidString(long)).To(BeTrue())
	})
})

var _ = Describe("a body in the place of JSON", func() {
	DescribeTable("is fit for a message", func(said, want string) { Expect(wire.Body(said)).To(Equal(want)) },
		Entry("a text", "busy\n<b>now</b>", "busy <b>now</b>"),
		Entry("a page with a title", "\ufeff <!doctype HTML>\n<html><title>A &amp; B\nsk-ant-0123456789abcdef</title><p>long", "a page of HTML and no JSON: A & B [secret]"),
		Entry("a page without one", "<html><script>alert(1)</script><!-- x --><h1>Bad\x1b[31m</h1> gateway <a hr", "a page of HTML and no JSON: Bad [31m gateway"),
		Entry("a page of XHTML", `<?xml version="1.0"?><html/>`, "a page of HTML and no JSON"),
		Entry("no page", "<error>html</error>", "<error>html</error>"))

	It("has an end", func() {
		body := wire.Bound(io.NopCloser(endless{}))
		n, err := io.Copy(io.Discard, body)
		Expect(n).To(BeEquivalentTo(128 << 20))
		Expect(err).To(MatchError("it is longer than 128 MiB"))
		Expect(wire.Final(err)).To(BeTrue())
		Expect(body.Close()).To(Succeed())
	})
})

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

var _ = Describe("how often a request was sent", func() {
	It("stands in the reply's request", func() {
		resp := &http.Response{}
		Expect(wire.Repetitions(resp)).To(Equal(0))
		resp.Request = &http.Request{Header: http.Header{}}
		Expect(wire.Repetitions(resp)).To(Equal(0))
		resp.Request.Header.Set(transport.RetryCountHeader, "2")
		Expect(wire.Repetitions(resp)).To(Equal(2))
	})

	It("stands in the error", func() {
		n, ok := wire.Retries(fmt.Errorf("asking: %w", &transport.RetriedError{Retries: 3, Err: errors.New("x")}))
		Expect(ok).To(BeTrue())
		Expect(n).To(Equal(3))
		_, ok = wire.Retries(errors.New("x"))
		Expect(ok).To(BeFalse())
	})

	It("does not go on after an error that is final", func() {
		Expect(wire.Final(fmt.Errorf("asking: %w", final{errors.New("x")}))).To(BeTrue())
		Expect(wire.Final(errors.New("x"))).To(BeFalse())
	})
})

var _ = Describe("a reply that cannot be read", func() {
	type usage struct {
		Tokens *int `json:"tokens"`
	}
	type answer struct {
		Choices []struct {
			Text string `json:"text"`
		} `json:"choices"`
		Usage usage `json:"usage"`
		Done  bool  `json:"done"`
	}
	DescribeTable("is explained in plain words", func(body, want string) {
		var a answer
		err := json.Unmarshal([]byte(body), &a)
		Expect(err).To(HaveOccurred())
		got := wire.Unreadable("the reply", []byte(body), err)
		Expect(got.Error()).To(Equal("reading the reply: " + want))
		Expect(errors.Is(got, err)).To(BeTrue())
	},
		Entry(nil, `[]`, "want an object, got a list: []"),
		Entry(nil, `"x"`, `want an object, got a text: "x"`),
		Entry(nil, `{"choices":"x"}`, `want a list at /choices, got a text: {"choices":"x"}`),
		Entry(nil, `{"choices":[7]}`, `want an object at /choices/0, got a number: {"choices":[7]}`),
		Entry(nil, `{"choices":[{"text":{}}]}`, `want a text at /choices/0/text, got an object: {"choices":[{"text":{}}]}`),
		Entry(nil, `{"usage":{"tokens":"many"}}`, `want a number at /usage/tokens, got a text: {"usage":{"tokens":"many"}}`),
		Entry(nil, `{"usage":{"tokens":1e99}}`, `the value at /usage/tokens cannot be used: {"usage":{"tokens":1e99}}`),
		Entry(nil, `{"done":7}`, `want a truth value at /done, got a number: {"done":7}`),
		Entry("without its controls and keys", "[\"\x7f\u009b31m sk-ant-0123456789abcdef\"]", `want an object, got a list: [" 31m [secret]"]`),
		Entry("a page", "<html><title>Wrong door</title></html>", "it is no JSON: a page of HTML and no JSON: Wrong door"),
		Entry("no JSON", "hello", "it is no JSON: hello"),
		Entry("torn", `{"choices":[`, `it ends in the middle: {"choices":[`),
		Entry("long", "["+strings.Repeat("1,", 500)+"1]", "want an object, got a list: ["+strings.Repeat("1,", 99)+"1..."),
	)

	It("is cut short where it ends too early", func() {
		Expect(errors.Is(wire.ErrEmpty, io.ErrUnexpectedEOF)).To(BeTrue())
		Expect(wire.ErrEmpty.Error()).To(Equal("the reply is empty"))
	})
})
