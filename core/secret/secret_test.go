package secret_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/secret"
)

func TestSecret(t *testing.T) { suite.Run(t, "secret") }

// tail fills a key shape; it is built here so that no key-shaped text stands in this file.
func tail(n int) string { return strings.Repeat("a1B2c3D4", n/8+1)[:n] }

func examples() map[string]string {
	jwt := "eyJ" + tail(20) + ".eyJ" + tail(20) + "." + tail(30)
	return map[string]string{
		"anthropic-key":       "sk-" + "ant-api03-" + tail(40),
		"langfuse-secret-key": "sk-" + "lf-12345678-1234-1234-1234-123456789012",
		"langfuse-public-key": "pk-" + "lf-12345678-1234-1234-1234-123456789012",
		"openai-key":          "sk-" + "proj-" + tail(48),
		"google-key":          "AI" + "za" + tail(35),
		"google-token":        "ya" + "29." + tail(30),
		"aws-key-id":          "AK" + "IAABCDEFGHIJKLMNOP",
		"github-token":        "gh" + "p_" + tail(36),
		"gitlab-token":        "gl" + "pat-" + tail(20),
		"slack-token":         "xo" + "xb-123456789012-abcdef",
		"groq-key":            "gs" + "k_" + tail(40),
		"xai-key":             "xa" + "i-" + tail(40),
		"tavily-key":          "tv" + "ly-" + tail(24),
		"hugging-face-token":  "hf" + "_" + tail(34),
		"bearer-token":        "Bea" + "rer " + tail(20),
		"private-key":         "-----BEGIN RSA PRIV" + "ATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----",
		"json-web-token":      jwt,
	}
}

var _ = Describe("key shapes", func() {
	It("has an example for every kind of the table, and finds it alone and amid text", func() {
		Expect(secret.Kinds()).To(ConsistOf(keys(examples())))
		var d secret.Detector
		for kind, key := range examples() {
			for _, around := range [][2]string{{"", ""}, {"my key is ", ", keep it"}, {`{"a":"x\n`, `"}`}, {`"<`, `"`}, {"?key=%20", "&b=1"}, {"ключ ", "…"}} {
				text := around[0] + key + around[1]
				hits := slices.Collect(d.All(text))
				Expect(hits).To(HaveLen(1), "%s in %q", kind, around)
				Expect(hits[0].Kind).To(Equal(kind))
				Expect(text[hits[0].Start:hits[0].End]).To(Equal(key))
				Expect(d.Redact(text)).To(Equal(around[0] + "[" + kind + "]" + around[1]))
			}
		}
	})

	DescribeTable("lets ordinary text pass", func(text string) {
		var d secret.Detector
		Expect(slices.Collect(d.All(text))).To(BeEmpty())
		Expect(d.Redact(text)).To(Equal(text))
	},
		Entry(nil, ""),
		Entry(nil, "sk-"),
		Entry(nil, "scikit: sk-learn-estimators-and-pipelines"),
		Entry("inside a word", "task-abcdefgh12345678901234"),
		Entry(nil, "disk-0123456789abcdef0123456789"),
		Entry(nil, "Bearer authentication-is-required-here"),
		Entry(nil, "use the header `Authorization: Bearer $TOKEN`"),
		Entry(nil, "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"),
		Entry("a header alone", "-----BEGIN PRIVATE KEY-----"),
		Entry("base64 of an image", "iVBORw0KGgoAAAANSUhEUgAAAAUA"+strings.Repeat("AAAFCAYAAACNbyblAAAAHElEQVQI12P4", 20)),
		Entry("an encrypted reasoning block", "gAAAAABo"+tail(400)),
		Entry("one part of a token", "eyJ"+tail(40)),
		Entry("a hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
	)

	It("asks which shapes are known to be none", func() {
		d := secret.Detector{Allow: func(s string) bool { return strings.HasPrefix(s, "sk-"+"example") }}
		Expect(slices.Collect(d.All("sk-" + "example-" + tail(30)))).To(BeEmpty())
		Expect(slices.Collect(d.All("sk-" + tail(30)))).To(HaveLen(1))
	})
})

var _ = Describe("patterns of a project", func() {
	d := secret.Detector{Patterns: []secret.Pattern{{Kind: "ticket", Regex: regexp.MustCompile(`T-\d{4}`)}}}

	It("are found and replaced by their kind", func() {
		Expect(d.Redact("see T-1234 and T-12")).To(Equal("see [ticket] and T-12"))
		hit, ok := d.First("see T-1234")
		Expect(ok).To(BeTrue())
		Expect(hit).To(Equal(secret.Hit{Kind: "ticket", Start: 4, End: 10}))
	})

	It("let pass what is known to be none", func() {
		d := d
		d.Allow = func(text string) bool { return text == "T-0000" }
		Expect(d.Redact("T-0000 T-0001")).To(Equal("T-0000 [ticket]"))
	})
})

var _ = Describe("known values", func() {
	It("come from variables with a telling name and a value long enough", func() {
		values := secret.FromEnviron([]string{"Z_KEY=123456789012", "A_TOKEN=abcdefghijkl", "my_password=abcdefghijkl", "SHORT_SECRET=12345678901", "HOME=/somewhere/else", "KEYS=123456789012", "EMPTY_KEY="})
		Expect(values).To(HaveLen(3))
		Expect([]string{values[0].Name, values[1].Name, values[2].Name}).To(Equal([]string{"A_TOKEN", "Z_KEY", "my_password"}))
		Expect(fmt.Sprintf("%v %+v %#v", values[0], values[0], values[0])).NotTo(ContainSubstring("abcdef"))
	})

	It("are found however deep JSON has wrapped them", func() {
		const value = "pass \"word\"\n<&>\\ é😀"
		d := secret.Detector{Values: []secret.Value{{Name: "DB_PASSWORD", Value: value}}}
		text := "x " + value + " y"
		for depth := range 4 {
			hits := slices.Collect(d.All(text))
			Expect(hits).To(HaveLen(1), "depth %d", depth)
			Expect(hits[0].Kind).To(Equal("value of DB_PASSWORD"))
			Expect(d.Redact(text)).To(And(ContainSubstring("x [value of DB_PASSWORD] y"), Not(ContainSubstring("word"))))
			wrapped, err := json.Marshal(map[string]string{"arguments": text})
			Expect(err).NotTo(HaveOccurred())
			text = string(wrapped)
		}
	})

	It("are found in the forms that they have in a URL", func() {
		const value = "pa/ss wo+rd&é"
		d := secret.Detector{Values: []secret.Value{{Name: "DB_PASSWORD", Value: value}}}
		for _, form := range []string{url.QueryEscape(value), url.PathEscape(value), strings.ToLower(url.QueryEscape(value))} {
			text := "https://example.com/?x=" + form + "&y=1"
			Expect(form).NotTo(Equal(value))
			Expect(d.Redact(text)).To(Equal("https://example.com/?x=[value of DB_PASSWORD]&y=1"), form)
		}
		Expect(d.Redact("https://example.com/?x=100%25+off")).To(Equal("https://example.com/?x=100%25+off"))
	})

	It("are reported once where nothing wraps them", func() {
		d := secret.Detector{Values: []secret.Value{{Name: "A_KEY", Value: "abcdefghijkl"}}}
		Expect(slices.Collect(d.All(`{"a":"abcdefghijkl","b":"\n"}`))).To(HaveLen(1))
		Expect(slices.Collect(d.All(`abcdefghijkl abcdefghijkl`))).To(HaveLen(2))
	})
})

func keys(m map[string]string) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	return names
}

func FuzzRedact(f *testing.F) {
	f.Add(`{"a":"\u0061bcdefghijkl"}`, "abcdefghijkl")
	f.Add(`\\\\\\"x`, `\"x`)
	for _, key := range examples() {
		f.Add("x "+key+" y", key)
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		d := secret.Detector{Values: []secret.Value{{Name: "N", Value: value}}}
		for hit := range d.All(text) {
			if hit.Start < 0 || hit.End < hit.Start || hit.End > len(text) {
				t.Fatalf("%+v of %d bytes", hit, len(text))
			}
		}
		out := d.Redact(text)
		// The marker itself, or what stands on both sides of it, may make up a short value again.
		if len(value) >= secret.MinValue && !strings.Contains(text, "[") && !strings.ContainsAny(value, "[]") && strings.Contains(out, value) {
			t.Fatalf("%q is still in %q", value, out)
		}
	})
}

func BenchmarkAll(b *testing.B) {
	text := strings.Repeat(`{"role":"user","content":"the patient asks for a summary of the last visit\nplease"},`, 250)
	for name, d := range map[string]*secret.Detector{"shapes": {}, "values": {Values: []secret.Value{{Name: "A", Value: tail(20)}, {Name: "B", Value: tail(24)[1:]}}}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, found := d.First(text); found {
					b.Fatal("a false alarm")
				}
			}
		})
	}
}
