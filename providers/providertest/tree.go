package providertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// Unlike names the places at which two values of JSON differ, as [Object] reads them; numbers are compared by their value. got is what was built, want what was recorded.
func Unlike(got, want any) []string { return unlike("", got, want) }

func unlike(path string, got, want any) (places []string) {
	if a, ok := got.(map[string]any); ok {
		if b, ok := want.(map[string]any); ok {
			all := maps.Clone(a)
			maps.Copy(all, b)
			for _, key := range slices.Sorted(maps.Keys(all)) {
				places = append(places, unlike(path+"."+key, a[key], b[key])...)
			}
			return places
		}
	}
	if a, ok := got.([]any); ok {
		if b, ok := want.([]any); ok && len(a) == len(b) {
			for i := range a {
				places = append(places, unlike(fmt.Sprintf("%s[%d]", path, i), a[i], b[i])...)
			}
			return places
		}
	}
	x, isNumber := got.(json.Number)
	y, alsoNumber := want.(json.Number)
	if isNumber && alsoNumber {
		f, err := x.Float64()
		g, err2 := y.Float64()
		if err == nil && err2 == nil && f == g {
			return nil // 0 and 0.0
		}
	}
	if !reflect.DeepEqual(got, want) {
		places = append(places, fmt.Sprintf("%s: %v, recorded %v", path, got, want))
	}
	return places
}

// Object reads a JSON object, numbers as they are written.
func Object(data []byte) map[string]any {
	ginkgo.GinkgoHelper()
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	var v map[string]any
	gomega.Expect(d.Decode(&v)).To(gomega.Succeed(), "%s", data)
	return v
}
