package recordings

import (
	"encoding/base64"

	"github.com/echoeval/echoeval/harness/imports"
)

// isVCRPy recognises the files of VCR.py, YAML or JSON.
func isVCRPy(n *node) bool {
	v := n.get("version")
	return v.is(word) && v.text == "1" && n.get("interactions").is(list) && n.get("echoeval") == nil && n.get("interactions").first().get("request").has("uri")
}

func readVCRPy(r *reader, root *node) (out []Exchange) {
	o := r.object(root, "the file")
	o.skip("version")
	for i, n := range r.list(o.need("interactions"), "interactions") {
		pair := r.object(n, item(i))
		x := Exchange{Pos: r.pos(n)}
		r.vcrPyRequest(pair.need("request"), &x)
		r.vcrPyResponse(pair.need("response"), &x)
		x.At = date(r.text(pair.get("recorded_at"), "recorded_at"))
		pair.done()
		if r.err != nil {
			return nil
		}
		out = append(out, x)
	}
	o.done()
	return out
}

// isTwoLists recognises the variant of VCR.py that keeps requests and responses apart, which a serializer of LangChain writes.
func isTwoLists(n *node) bool {
	return n.get("requests").is(list) && n.get("responses").is(list) && n.get("requests").first().has("uri")
}

func readTwoLists(r *reader, root *node) (out []Exchange) {
	o := r.object(root, "the file")
	requests, responses := r.list(o.need("requests"), "requests"), r.list(o.need("responses"), "responses")
	o.done()
	if len(requests) != len(responses) {
		r.fail(root, "%d requests and %d responses: the file is cut short, or was edited by hand", len(requests), len(responses))
		return nil
	}
	for i, n := range requests {
		x := Exchange{Pos: r.pos(n)}
		r.vcrPyRequest(n, &x)
		r.vcrPyResponse(responses[i], &x)
		if r.err != nil {
			return nil
		}
		out = append(out, x)
	}
	return out
}

func (r *reader) vcrPyRequest(n *node, x *Exchange) {
	o := r.object(n, "request")
	x.Method, x.URL = o.needText("method"), o.needText("uri")
	x.Request.Header = r.headers(o.get("headers"), "request.headers")
	x.Request.Body = r.vcrPyBody(o, "body", &x.Request)
	o.done()
}

func (r *reader) vcrPyResponse(n *node, x *Exchange) {
	o := r.object(n, "response")
	switch status := o.get("status"); {
	case status.is(mapping):
		s := r.object(status, "response.status")
		x.Code = r.status(s.need("code"), "response.status.code")
		x.Status = statusLine(x.Code, r.text(s.get("message"), "response.status.message"))
		s.done()
	default: // of early releases for httpx
		x.Code = r.status(o.need("status_code"), "response.status_code")
	}
	x.Response.Header = r.headers(o.get("headers"), "response.headers")
	switch {
	case o.get("content") != nil:
		x.Response.Body = r.vcrPyBody(o, "content", &x.Response)
	default:
		x.Response.Body = r.vcrPyBody(o, "body", &x.Response)
	}
	if address := o.get("url"); address.is(text) && address.text != x.URL && address.text != x.URL+"/" {
		r.note(imports.Lost, address, "", "response.url differs from the request's and is not kept")
	}
	o.done()
}

// vcrPyBody reads a body: a text or bytes under key, where that is a mapping under string within it, or as data under parsed_body beside it. A file that was sent is an object of io.BytesIO, whose bytes come first in its state.
func (r *reader) vcrPyBody(o *object, key string, m *Message) []byte {
	n := o.get(key)
	if data := o.get("parsed_body"); data != nil {
		if !n.empty() {
			r.note(imports.Lost, data, "", "%s.parsed_body stands beside %s, which is kept", o.what, key)
		} else {
			return r.rendered(data, o.what+".parsed_body", m.Header)
		}
	}
	what := o.what + "." + key
	if !n.is(mapping) {
		return r.bytes(n, what)
	}
	in := r.object(n, what)
	defer in.done()
	switch {
	case in.get("string") != nil:
		return r.bytes(in.get("string"), what+".string")
	case in.get("base64_string") != nil:
		return r.base64(in.get("base64_string"), what+".base64_string")
	case in.get("state").first() != nil:
		r.note(imports.Changed, n, "", "%s is an object of Python: its first value is kept", what)
		in.skip("state")
		return r.bytes(in.get("state").first(), what+".state")
	}
	return nil
}

// base64 reads bytes that are written as base64.
func (r *reader) base64(n *node, what string) []byte {
	data, err := decode64(r.text(n, what))
	if err != nil {
		r.fail(n, "%s: no base64", what)
	}
	return data
}

// decode64 takes base64 with line ends in it, and with or without padding.
func decode64(s string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		data, err = base64.RawStdEncoding.DecodeString(s)
	}
	return data, err
}
