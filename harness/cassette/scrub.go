package cassette

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/secret"
)

// Scrub returns a copy of a cassette without the secrets that the detector finds and without the values of redactions, and what was replaced where; a nil copy says that there was nothing. The placeholder of a redaction bears its name, so that a replay that knows the value fills it in again; that of a secret
// is scrubbed-KIND, which nobody fills in. Requests stay in their canonical form, bodies of JSON and streams stay such.
//
// It fails where something is left that no placeholder can replace, such as a secret in the header of the cassette, or in the name of a member.
func Scrub(f *File, d *secret.Detector, redactions []Redaction) (*File, []Finding, error) {
	rules, err := NewRules(append(slices.Clone(redactions), secrets(f, d)...))
	if err != nil {
		return nil, nil, err
	}
	found := append(Scan(f, d, rules), short(f, rules)...)
	if len(found) == 0 {
		return nil, nil, nil
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return a.Interaction - b.Interaction })
	c := canon{rules: rules}
	lists := func(m map[string][]string) map[string][]string {
		if m == nil {
			return nil
		}
		out := make(map[string][]string, len(m))
		for name, values := range m {
			for _, v := range values {
				out[name] = append(out[name], c.redact(v, false))
			}
		}
		return out
	}
	out := &File{Header: f.Header, Interactions: slices.Clone(f.Interactions)}
	equal := map[Key]int{}
	for n := range out.Interactions {
		i := &out.Interactions[n]
		form := lists(i.Request.Form)
		i.Request, _ = canonical(i.Request, rules)
		i.Request.Form = form
		i.Response.Headers = http.Header(lists(i.Response.Headers))
		i.Response.Status = c.redact(i.Response.Status, false)
		if framed, ok := reframe(i.Response.Body, func(text string) string { return c.seal(text, true) }); ok {
			i.Response.Body = framed
		} else {
			i.Response.Body = c.seal(i.Response.Body, isStream(i.Response.Headers))
		}
		if i.Extra.Occurrence > 0 { // calls that differed in a value alone are equal now
			key := KeyOf(i.Request)
			equal[key]++
			i.Extra.Occurrence = equal[key]
		}
	}
	if left := Scan(out, d, rules); len(left) > 0 {
		return nil, found, fmt.Errorf("%s cannot be replaced", left[0])
	}
	return out, found, nil
}

// short finds the values that Scan leaves out because they are too short to be searched for within texts, where they are whole strings.
func short(f *File, rules *Rules) (found []Finding) {
	for n := range f.Interactions {
		i := &f.Interactions[n]
		for _, side := range []struct{ name, body string }{{"request", i.Request.Body}, {"response", Readable(i.Response.Body)}} {
			for _, name := range rules.Find(side.body) {
				if v, _ := rules.value(name); len(v) < shortValue {
					found = append(found, Finding{n + 1, side.name, "body", "value of " + name})
				}
			}
		}
	}
	return found
}

// secrets collects what the detector finds, each value once, with the placeholder that replaces it.
func secrets(f *File, d *secret.Detector) []Redaction {
	g := gatherer{detector: d, names: map[string]int{}, values: map[string]bool{}}
	for n := range f.Interactions {
		i := &f.Interactions[n]
		q, p := &i.Request, &i.Response
		g.text(q.URL, false)
		g.text(p.Status, false)
		for _, m := range []map[string][]string{q.Form, q.Headers, p.Headers} {
			for _, name := range names(m) {
				for _, v := range m[name] {
					g.text(v, false)
				}
			}
		}
		g.body(q.Body)
		g.body(p.Body)
	}
	return g.found
}

type gatherer struct {
	detector *secret.Detector
	names    map[string]int
	values   map[string]bool
	found    []Redaction
}

func (g *gatherer) body(body string) {
	body = Readable(body)
	leaf := func(path, text string) {
		g.text(text, slices.Contains(sealedFields, path[strings.LastIndexByte(path, '.')+1:]))
	}
	if t, ok := parse(body); ok {
		for path, l := range t.leaves("") {
			leaf(path, l.text)
		}
	} else if paths, by := fragments(body); len(paths) > 0 {
		for _, path := range paths {
			leaf(path, joined(by[path]))
		}
	} else {
		g.text(body, false)
	}
}

// text takes the secrets of a text in. What vendors have sealed looks like a key and is none, so that only known values count there.
func (g *gatherer) text(text string, sealed bool) {
	for layer := range secret.Layers(text) {
		if !sealed {
			shapes := secret.Detector{Allow: g.detector.Allow, Patterns: g.detector.Patterns}
			for hit := range shapes.All(layer.Text) {
				g.add(hit.Kind, layer.Text[hit.Start:hit.End])
			}
		}
		for _, v := range g.detector.Values {
			if v.Value != "" && strings.Contains(layer.Text, v.Value) {
				g.add(v.Name, v.Value)
			}
		}
	}
}

func (g *gatherer) add(kind, value string) {
	if g.values[value] || strings.Contains(value, open) {
		return
	}
	g.values[value] = true
	name := "scrubbed-" + strings.Map(func(r rune) rune {
		if strings.ContainsRune(unescaped, r) {
			return r
		}
		return '-'
	}, kind)
	g.names[name]++
	if n := g.names[name]; n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	g.found = append(g.found, Redaction{name, value})
}
