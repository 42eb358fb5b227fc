package recordings

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/secret"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/imports"
)

// Cassette makes a cassette of the recording. Of the header it sets what the recording says and the caller leaves empty: vendor, model, when it was recorded, and what it was imported from. Requests are stored in their canonical form, responses with their bytes; values of redactions, and what the detector takes for a
// secret, are replaced by placeholders as [cassette.Scrub] does. What is lost or changed by that goes into the report.
//
// Where a secret cannot be replaced it returns an error of code [failure.Cassette], and as the cassette a copy for the quarantine, with the secrets blacked out.
func (r *Recording) Cassette(header cassette.Header, detector *secret.Detector, redactions []cassette.Redaction) (*cassette.File, error) {
	rules, err := cassette.NewRules(redactions)
	if err != nil {
		return nil, failure.WithCode(err, failure.Input)
	}
	header.Imported = r.Format
	r.describe(&header)
	file := &cassette.File{Header: header}
	applied := map[string]bool{}
	var lost headersLost
	for i := range r.Exchanges {
		x := &r.Exchanges[i]
		file.Interactions = append(file.Interactions, r.interaction(x, rules, applied, &lost))
	}
	file.Header.Rules = slices.Sorted(maps.Keys(applied))
	lost.report(&r.Report)
	clean, found, err := cassette.Scrub(file, detector, redactions)
	for _, f := range found {
		pos := failure.Position{File: r.File}
		if f.Interaction > 0 {
			pos = r.Exchanges[f.Interaction-1].Pos
		}
		r.Report.Add(imports.Changed, pos, "revoke it if it was a key that works", "%s is replaced by a placeholder", f)
	}
	switch {
	case err != nil:
		return cassette.Redacted(file, detector, rules), failure.At(failure.Position{File: r.File}, failure.Cassette, "not imported: %w", err)
	case clean != nil:
		return clean, nil
	}
	return file, nil
}

// describe fills the header with what the exchanges say.
func (r *Recording) describe(h *cassette.Header) {
	vendor, model := "", ""
	for i := range r.Exchanges {
		x := &r.Exchanges[i]
		if v := Vendor(x.URL); v != "" && vendor == "" {
			vendor = v
		}
		if m := Model(x); m != "" && model == "" {
			model = m
		}
		if h.RecordedAt.IsZero() {
			h.RecordedAt = x.At
		}
	}
	if h.Vendor == "" {
		h.Vendor = vendor
	}
	if h.Model == "" {
		h.Model = model
	}
	if h.RecordedAt.IsZero() || h.RecordedAt.Year() > 9999 {
		h.RecordedAt = time.Unix(0, 0).UTC()
		r.Report.Add(imports.Changed, failure.Position{File: r.File}, "", "when it was recorded is not known: its clock begins in 1970")
	}
}

func (r *Recording) interaction(x *Exchange, rules *cassette.Rules, applied map[string]bool, lost *headersLost) cassette.Interaction {
	request, response := x.Request.Header.Clone(), x.Response.Header.Clone()
	r.contentType(x.Pos, "request", &request, x.Request.Body)
	r.contentType(x.Pos, "response", &response, x.Response.Body)
	note := func(names []string) {
		for _, name := range names {
			applied[name] = true
		}
	}
	var i cassette.Interaction
	var names []string
	i.Request, names = cassette.Canonical(x.Method, x.URL, request, x.Request.Body, rules)
	note(names)
	if _, names = cassette.Canonical(x.Method, x.URL, nil, nil, rules); slices.Contains(names, "credential") || slices.Contains(names, "url-user") {
		r.Report.Add(imports.Changed, x.Pos, "revoke it if it was a key that works", "a credential in the address is replaced by a placeholder or left out")
	}
	i.Response = cassette.Response{Status: x.Status, Code: x.Code, Duration: x.Duration}
	i.Response.Headers, i.Response.Body, names = rules.Seal(x.Code, response, string(x.Response.Body))
	note(names)
	i.Extra.Encoding, i.Extra.Partial = x.Response.Encoding, x.Response.Partial
	lost.compare(x.Pos, "request", request, i.Request.Headers)
	lost.compare(x.Pos, "response", response, i.Response.Headers)
	return i
}

// headersLost collects the names of headers that no cassette keeps.
type headersLost struct {
	names map[string]map[string]bool // by side
	at    map[string][]failure.Position
}

func (l *headersLost) compare(pos failure.Position, side string, had, kept http.Header) {
	if l.names == nil {
		l.names, l.at = map[string]map[string]bool{"request": {}, "response": {}}, map[string][]failure.Position{}
	}
	any := false
	for name := range had {
		if _, is := kept[name]; !is && name != "Content-Length" { // the body has a length by itself
			l.names[side][name] = true
			any = true
		}
	}
	if any {
		l.at[side] = append(l.at[side], pos)
	}
}

func (l *headersLost) report(to *imports.Report) {
	for _, side := range []string{"request", "response"} {
		names := strings.Join(slices.Sorted(maps.Keys(l.names[side])), ", ")
		for _, pos := range l.at[side] {
			to.Add(imports.Lost, pos, "", "headers of the %s that no cassette keeps: %s", side, names)
		}
	}
}

// contentType adds a Content-Type where the recording has none, or one that was blacked out, and the body says itself what it is: without one neither a stream nor JSON is read as such in a replay.
func (r *Recording) contentType(pos failure.Position, side string, h *http.Header, body []byte) {
	had := h.Get("Content-Type")
	if _, _, err := mime.ParseMediaType(had); len(body) == 0 || strings.Contains(had, "/") || had != "" && err == nil && !strings.Contains(had, "*") {
		return
	}
	media := mediaOf(body)
	if media == "" {
		return
	}
	if *h == nil {
		*h = http.Header{}
	}
	h.Set("Content-Type", media)
	r.Report.Add(imports.Changed, pos, "", "no Content-Type of the %s is recorded: it is %s by its body", side, media)
}

// mediaOf says what a body is by its beginning; "" where that is not plain.
func mediaOf(body []byte) string {
	switch start := bytes.TrimLeft(body, " \t\r\n"); {
	case len(body) >= 16 && binary.BigEndian.Uint32(body[8:]) == crc32.ChecksumIEEE(body[:8]):
		return "application/vnd.amazon.eventstream"
	case bytes.HasPrefix(start, []byte("data:")), bytes.HasPrefix(start, []byte("event:")), bytes.HasPrefix(start, []byte(": ")), bytes.HasPrefix(start, []byte("id:")), bytes.HasPrefix(start, []byte("retry:")):
		return "text/event-stream"
	case len(start) > 0 && (start[0] == '{' || start[0] == '[') && jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)):
		return "application/json"
	}
	return ""
}
