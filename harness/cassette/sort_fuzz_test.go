package cassette

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func FuzzSort(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[true,false,null,-0,1.50,1e+3,0.1E-2],"aa":{},"c":"é\u00e9\/\n\"\\\u2028😀\ud83d\ude00"}`, `{"a":1,"a":2}`, `{"a":1,"b":{"z":1,"y":2,"z":3}}`, `[1,]`, `01`, `"\u001f"`, "\"\x1f\"", "\"\xff\"", `"\ud800"`, ` [ ] `, `{"":1,"!":2," ":3}`, `{"é":1,"a":2}`, `tru`, `"a`, `"a\`, `"\n\t\"x\n`, `{"a\"b":1,"a":2}`, `-`, `1.`, `1e`, ``} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := sortJSON(text)
		want := jsontext.Value(text)
		err := want.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
		if ok != (err == nil) {
			t.Fatalf("%q: %v, jsontext says %v", text, ok, err)
		}
		if ok && got != string(want) {
			t.Fatalf("%q: %q, jsontext says %q", text, got, want)
		}
		if !ok && got != text {
			t.Fatal("changed")
		}
	})
}
