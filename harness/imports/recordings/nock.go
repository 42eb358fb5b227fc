package recordings

import (
	"encoding/hex"
	"net/http"
	"strings"
)

// isNock recognises what nock records: a list of definitions.
func isNock(n *node) bool {
	return n.is(list) && n.first().has("scope", "path", "method")
}

func readNock(r *reader, root *node) (out []Exchange) {
	for i, n := range root.kids {
		o := r.object(n, item(i))
		x := Exchange{Pos: r.pos(n), Method: o.needText("method"), URL: strings.TrimSuffix(o.needText("scope"), "/") + o.needText("path")}
		x.Request.Header = r.headers(o.get("reqheaders"), "reqheaders")
		x.Request.Body = r.nockBody(o.get("body"), "body", x.Request.Header, false)
		x.Code = 200 // what nock replies where a definition says nothing
		if status := o.get("status"); status != nil {
			x.Code = r.status(status, "status")
		}
		if raw := o.get("rawHeaders"); raw != nil {
			x.Response.Header = r.rawHeaders(raw)
			o.skip("headers")
		} else {
			x.Response.Header = r.headers(o.get("headers"), "headers")
		}
		binary := o.get("responseIsBinary")
		x.Response.Body = r.nockBody(o.get("response"), "response", x.Response.Header, binary.is(word) && binary.text == "true")
		o.done()
		if r.err != nil {
			return nil
		}
		out = append(out, x)
	}
	return out
}

// rawHeaders reads names and values that take turns, or a mapping.
func (r *reader) rawHeaders(n *node) http.Header {
	if !n.is(list) {
		return r.headers(n, "rawHeaders")
	}
	h := http.Header{}
	if len(n.kids)%2 != 0 {
		r.fail(n, "rawHeaders: a name without a value")
		return h
	}
	for i := 0; i < len(n.kids); i += 2 {
		name := n.kids[i]
		if name.kind != text {
			r.fail(name, "rawHeaders: a name must be a text")
			return h
		}
		r.header(h, name, n.kids[i+1], "rawHeaders")
	}
	return h
}

// nockBody reads a body: a text; JSON as data; hexadecimal digits where it is binary; a list of them where it is coded.
func (r *reader) nockBody(n *node, what string, header http.Header, binary bool) []byte {
	digits := func(n *node) []byte {
		data, err := hex.DecodeString(n.text)
		if err != nil {
			r.fail(n, "%s: no hexadecimal digits", what)
		}
		return data
	}
	switch {
	case n == nil || n.kind == null && header.Get("Content-Type") == "":
		return nil
	case n.kind == text && binary:
		return digits(n)
	case n.kind == text:
		return []byte(n.text)
	case n.kind == list && header.Get("Content-Encoding") != "":
		var out []byte
		for _, piece := range n.kids {
			if piece.kind != text {
				r.fail(piece, "%s: a piece of a coded body must be a text", what)
				return nil
			}
			out = append(out, digits(piece)...)
		}
		return out
	}
	return r.rendered(n, what, header)
}
