package cassette_test

import (
	"encoding/json"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/harness/cassette"
)

var _ = Describe("the scan for secrets", func() {
	// Put together here, so that no key-shaped text stands in this file.
	key := "sk-" + "proj-" + strings.Repeat("a1B2", 12)
	detector := &secret.Detector{Values: []secret.Value{{Name: "DB_PASSWORD", Value: "correct horse \"battery\""}}}
	hidden := cassette.Redaction{Name: "tenant", Value: "tenant-7f3a91"}

	DescribeTable("names the field and never the value", func(spoil func(f *cassette.File), want string) {
		f := sample()
		Expect(cassette.Scan(f, detector, rulesOf(hidden))).To(BeEmpty())
		spoil(f)
		found := cassette.Scan(f, detector, rulesOf(hidden))
		Expect(found).To(HaveLen(1))
		Expect(found[0].String()).To(Equal(want))

		redacted := cassette.Redacted(f, detector, rulesOf(hidden))
		Expect(cassette.Scan(redacted, detector, rulesOf(hidden))).To(BeEmpty())
		data := string(encoded(redacted))
		Expect(data).NotTo(Or(ContainSubstring(key), ContainSubstring("battery"), ContainSubstring("7f3a91")))
		Expect(data).To(ContainSubstring("interactions:"))
		Expect(cassette.Scan(f, detector, rulesOf(hidden))).To(HaveLen(1), "the original stays")
	},
		Entry(nil, func(f *cassette.File) { f.Interactions[0].Request.URL += "?x=" + key }, "openai-key in url of the request of interaction 1"),
		Entry(nil, func(f *cassette.File) { f.Interactions[0].Response.Headers.Set("Location", "https://e.com/"+key) }, "openai-key in headers.location of the response of interaction 1"),
		Entry(nil, func(f *cassette.File) {
			f.Interactions[0].Request.Body = strings.Replace(f.Interactions[0].Request.Body, "Be brief.", "Key:\\n"+key, 1)
		}, "openai-key in messages[0].content of the request of interaction 1"),
		Entry("in tool arguments", func(f *cassette.File) {
			args, err := json.Marshal(map[string]string{"password": "correct horse \"battery\""})
			Expect(err).NotTo(HaveOccurred())
			body, err := json.Marshal(map[string]any{"messages": []any{map[string]string{"arguments": string(args)}}})
			Expect(err).NotTo(HaveOccurred())
			f.Interactions[0].Request.Body = string(body)
		}, "value of DB_PASSWORD in messages[0].arguments of the request of interaction 1"),
		Entry("sent in pieces", func(f *cassette.File) {
			f.Interactions[0].Response.Body = `data: {"d":{"c":"a ` + key[:9] + "\"}}\n\ndata: {\"d\":{\"c\":\"" + key[9:] + "\"}}\n\n"
		}, "openai-key in d.c of the response of interaction 1"),
		Entry("a hidden value that no placeholder replaced", func(f *cassette.File) { f.Interactions[1].Response.Body = `{"output":"tenant-7f3a91"}` }, "value of tenant in output of the response of interaction 2"),
		Entry("in no JSON", func(f *cassette.File) { f.Interactions[2].Response.Body = "\xff " + key }, "openai-key in body of the response of interaction 3"),
		Entry("as the name of a member", func(f *cassette.File) {
			f.Interactions[1].Response.Body = `{"correct horse \"battery\"":1}`
		}, "value of DB_PASSWORD in body of the response of interaction 2"),
		Entry("in the header", func(f *cassette.File) { f.Header.Item = key }, "openai-key in item of the header"),
	)

	It("lets signatures and encrypted reasoning pass, but no known value in them", func() {
		f := sample()
		f.Interactions[0].Response.Headers = http.Header{"Content-Type": {"application/json"}}
		f.Interactions[0].Response.Body = `{"content":[{"signature":"` + key + `","encrypted_content":"` + key + `"}]}`
		Expect(cassette.Scan(f, detector, rulesOf())).To(BeEmpty())
		f.Interactions[0].Response.Body = `{"content":[{"signature":"correct horse \"battery\""}]}`
		Expect(cassette.Scan(f, detector, rulesOf())).To(HaveLen(1))
	})
})
