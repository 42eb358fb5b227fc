package cassette_test

import (
	"fmt"
	"net/http"

	"github.com/echoeval/echoeval/harness/cassette"
)

// A request is stored and matched in its canonical form: other order of keys, another SDK and another key make no difference, and a hidden value is never written.
func ExampleCanonical() {
	rules, err := cassette.NewRules([]cassette.Redaction{{Name: "tenant_id", Value: "tenant-7f3a91"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	header := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "Authorization": {"Bearer …"}, "User-Agent": {"sdk/1.2.3"}}
	request, applied := cassette.Canonical("POST", "https://api.openai.com/v1/chat/completions", header, []byte(`{"model":"gpt-4o-mini", "messages":[{"role":"user","content":"Which records are there of tenant-7f3a91?"}]}`), rules)
	fmt.Println(request.Headers)
	fmt.Println(request.Body)
	fmt.Println(applied)
	// Output:
	// map[Content-Type:[application/json]]
	// {
	//  "messages":[
	//   {"content":"Which records are there of {{echoeval:tenant_id}}?","role":"user"}
	//  ],
	//  "model":"gpt-4o-mini"
	// }
	// [content-type credential json placeholder:tenant_id sdk-fingerprint]
}

// A difference names its class, the path and both values around the place where they part.
func ExampleCompare() {
	canonical := func(body string) cassette.Request {
		r, _ := cassette.Canonical("POST", "https://api.openai.com/v1/chat/completions", nil, []byte(body), nil)
		return r
	}
	d := cassette.Compare(
		canonical(`{"temperature":0,"messages":[{"role":"system","content":"In an emergency call 112."}]}`),
		canonical(`{"temperature":1,"messages":[{"role":"system","content":"In an emergency call 911."}]}`),
	)
	for _, c := range d.Changes {
		fmt.Printf("%s at %s: recorded %s, now %s\n", c.Class, c.Path, c.Old, c.New)
	}
	// Output:
	// system-prompt at messages[0].content: recorded "In an emergency call 112.", now "In an emergency call 911."
	// sampling at temperature: recorded 0, now 1
}
