package wire_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

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
