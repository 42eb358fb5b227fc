package cassette

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/secret"
)

// Finding is a secret in a cassette: what kind it is and where it stands, never the value.
type Finding struct {
	Interaction int    // from 1; 0 is the header
	Side        string // request or response; "" in the header
	Field       string // such as url, headers.location, messages[3].content; of a stream, the path within its events
	Kind        string
}

// String names the field.
func (f Finding) String() string {
	if f.Interaction == 0 {
		return fmt.Sprintf("%s in %s of the header", f.Kind, f.Field)
	}
	return fmt.Sprintf("%s in %s of the %s of interaction %d", f.Kind, f.Field, f.Side, f.Interaction)
}

// sealedFields hold what vendors signed or encrypted for themselves. It looks like a key and is none.
var sealedFields = []string{"encrypted_content", "encrypted_reasoning", "redactedContent", "signature", "thoughtSignature", "thought_signature"}

// Scan looks for secrets in everything that would be written: key shapes, the detector's values, and values of the rules that no placeholder has replaced. Texts that a stream sends in pieces are looked at as one. Signatures and encrypted reasoning are searched for known values only.
func Scan(f *File, d *secret.Detector, rules *Rules) []Finding {
	s := scanner{detector: *d, known: *d}
	for _, x := range rules.redactions {
		if len(x.Value) >= shortValue {
			s.known.Values = append(slices.Clip(s.known.Values), secret.Value{Name: x.Name, Value: x.Value})
		}
	}
	s.detector.Values = s.known.Values
	s.known.Allow = func(string) bool { return true }
	h := &f.Header
	for _, field := range []struct{ name, text string }{{"dataset", h.Dataset}, {"item", h.Item}, {"provider", h.Provider}, {"vendor", h.Vendor}, {"model", h.Model}, {"upstream", h.Upstream}, {"imported", h.Imported}} {
		s.text(field.name, field.text)
	}
	for i := range f.Interactions {
		s.interaction = i + 1
		q, p := &f.Interactions[i].Request, &f.Interactions[i].Response
		s.side = "request"
		s.text("url", q.URL)
		s.lists("form", q.Form)
		s.lists("headers", q.Headers)
		s.body(q.Body, q.Headers)
		s.side = "response"
		s.text("status", p.Status)
		s.lists("headers", p.Headers)
		s.body(p.Body, p.Headers)
	}
	return s.found
}

type scanner struct {
	detector, known secret.Detector
	interaction     int
	side            string
	found           []Finding
}

func (s *scanner) add(field, kind string) {
	f := Finding{s.interaction, s.side, field, kind}
	if !slices.Contains(s.found, f) {
		s.found = append(s.found, f)
	}
}

func (s *scanner) text(field, text string) bool {
	hit, found := s.detector.First(text)
	if found {
		s.add(field, hit.Kind)
	}
	return found
}

func (s *scanner) lists(field string, m map[string][]string) {
	for _, name := range names(m) {
		for _, v := range m[name] {
			s.text(join(field, strings.ToLower(name)), v)
		}
	}
}

func (s *scanner) body(body string, header http.Header) {
	known := len(s.found)
	text, _, rest, framed := unframe(body)
	if framed {
		body = text + rest
	}
	if t, ok := parse(body); ok {
		for path, leaf := range t.leaves("") {
			s.leaf(path, leaf.text)
		}
	} else if paths, by := fragments(body); len(paths) > 0 {
		for _, path := range paths {
			s.leaf(path, joined(by[path]))
		}
	}
	if len(s.found) > known {
		return
	}
	// What no string of JSON explains: names of members, text beside the events, no JSON at all. Signatures are part of the raw text, so of JSON only known values count here.
	d := &s.detector
	if framed || isStream(header) || strings.HasPrefix(strings.TrimLeft(body, " \t\r\n"), "{") || strings.HasPrefix(strings.TrimLeft(body, " \t\r\n"), "[") {
		d = &s.known
	}
	if hit, found := d.First(body); found {
		s.add("body", hit.Kind)
	}
}

func (s *scanner) leaf(path, text string) {
	name := path[strings.LastIndexByte(path, '.')+1:]
	d := &s.detector
	if slices.Contains(sealedFields, name) {
		d = &s.known
	}
	if hit, found := d.First(text); found {
		if path == "" {
			path = "body"
		}
		s.add(path, hit.Kind)
	}
}

// Redacted returns a copy of the cassette in which every secret is replaced by its kind, for the eyes of whoever must find out where it came from. A body that hides one in pieces is left out whole.
func Redacted(f *File, d *secret.Detector, rules *Rules) *File {
	all := *d
	for _, x := range rules.redactions {
		if len(x.Value) >= shortValue {
			all.Values = append(slices.Clip(all.Values), secret.Value{Name: x.Name, Value: x.Value})
		}
	}
	redactAll := func(m map[string][]string) map[string][]string {
		if m == nil {
			return nil
		}
		out := make(map[string][]string, len(m))
		for name, values := range m {
			for _, v := range values {
				out[name] = append(out[name], all.Redact(v))
			}
		}
		return out
	}
	out := &File{Header: f.Header, Interactions: slices.Clone(f.Interactions)}
	for _, field := range []*string{&out.Header.Dataset, &out.Header.Item, &out.Header.Provider, &out.Header.Vendor, &out.Header.Model, &out.Header.Upstream, &out.Header.Imported} {
		*field = all.Redact(*field)
	}
	for i := range out.Interactions {
		q, p := &out.Interactions[i].Request, &out.Interactions[i].Response
		q.URL, q.Body, p.Status, p.Body = all.Redact(q.URL), all.Redact(q.Body), all.Redact(p.Status), all.Redact(Readable(p.Body))
		q.Form, q.Headers, p.Headers = redactAll(q.Form), redactAll(q.Headers), redactAll(p.Headers)
	}
	for _, left := range Scan(out, d, rules) {
		if left.Interaction == 0 {
			continue
		}
		i := &out.Interactions[left.Interaction-1]
		body := &i.Response.Body
		if left.Side == "request" {
			body = &i.Request.Body
		}
		*body = "[left out: " + left.Kind + "]"
	}
	return out
}
