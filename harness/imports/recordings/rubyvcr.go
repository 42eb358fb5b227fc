package recordings

import (
	"bytes"
	"compress/zlib"
	"io"

	"github.com/echoeval/echoeval/harness/imports"
)

// isRubyVCR recognises the files of VCR of Ruby and of its counterpart in R, YAML or JSON.
func isRubyVCR(n *node) bool { return n.get("http_interactions").is(list) }

func readRubyVCR(r *reader, root *node) (out []Exchange) {
	o := r.object(root, "the file")
	for i, n := range r.list(o.get("http_interactions"), "http_interactions") {
		pair := r.object(n, item(i))
		x := Exchange{Pos: r.pos(n), At: date(r.text(pair.get("recorded_at"), "recorded_at"))}
		r.rubyRequest(pair.need("request"), &x)
		r.rubyResponse(pair.need("response"), &x)
		pair.done()
		if r.err != nil {
			return nil
		}
		out = append(out, x)
	}
	if o.get("recorded_with") == nil {
		r.note(imports.Changed, nil, "compare it with where it comes from", "recorded_with, which is written last, is missing: the file may be cut short")
	}
	o.done()
	return out
}

func (r *reader) rubyRequest(n *node, x *Exchange) {
	o := r.object(n, "request")
	x.Method, x.URL = o.needText("method"), o.needText("uri")
	x.Request.Header = r.headers(o.get("headers"), "request.headers")
	x.Request.Body = r.rubyBody(o)
	o.done()
}

func (r *reader) rubyResponse(n *node, x *Exchange) {
	o := r.object(n, "response")
	switch status := o.need("status"); {
	case status.is(mapping):
		s := r.object(status, "response.status")
		code := s.get("code")
		if code == nil { // of R
			code = s.need("status_code")
		}
		x.Code = r.status(code, "response.status.code")
		x.Status = statusLine(x.Code, r.text(s.get("message"), "response.status.message"))
		s.skip("category", "reason", "explanation")
		s.done()
	default:
		x.Code = r.status(status, "response.status")
	}
	x.Response.Header = r.headers(o.get("headers"), "response.headers")
	x.Response.Body = r.rubyBody(o)
	o.done()
}

// rubyBody reads a body. The encoding beside it only tells Ruby what to call the bytes, which the file holds as UTF-8 or base64.
func (r *reader) rubyBody(of *object) []byte {
	n, what := of.get("body"), of.what+".body"
	if !n.is(mapping) {
		return r.bytes(n, what)
	}
	o := r.object(n, what)
	o.skip("encoding")
	defer o.done()
	switch {
	case o.get("base64_string") != nil:
		return r.base64(o.get("base64_string"), what+".base64_string")
	case o.get("raw_gzip") != nil: // of R: a stream of zlib, whatever its name
		return r.rawGzip(o.get("raw_gzip"), what+".raw_gzip")
	}
	return r.bytes(o.get("string"), what+".string")
}

func (r *reader) rawGzip(n *node, what string) []byte {
	data := r.base64(n, what)
	if r.err != nil {
		return nil
	}
	if bytes.HasPrefix(data, gzipMagic) {
		out, err := codings[0].decode(data)
		if err != nil {
			r.fail(n, "%s: %w", what, err)
		}
		return out
	}
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(z, MaxBody+1))
	}
	switch {
	case err != nil:
		r.fail(n, "%s: no stream of zlib: %w", what, err)
	case len(data) > MaxBody:
		r.fail(n, "%s: the decoded body has more than %d MiB", what, MaxBody>>20)
	}
	return data
}
