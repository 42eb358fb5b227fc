package recordings

import (
	"net/url"
	"time"

	"github.com/echoeval/echoeval/harness/imports"
)

// isGoVCR recognises the files of github.com/dnaeon/go-vcr: version 1 is written by its releases 1 and 2, version 2 by 3 and 4. VCR.py has the same two keys, and calls an address uri.
func isGoVCR(version string) func(*node) bool {
	return func(n *node) bool {
		v := n.get("version")
		return v.is(word) && v.text == version && n.get("interactions").is(list) && n.get("echoeval") == nil &&
			(n.get("interactions").first().get("request").has("url") || n.get("interactions").first().get("response").has("code"))
	}
}

func readGoVCR(r *reader, root *node) (out []Exchange) {
	o := r.object(root, "the file")
	o.skip("version")
	for i, n := range r.list(o.need("interactions"), "interactions") {
		x := Exchange{Pos: r.pos(n)}
		pair := r.object(n, item(i))
		pair.skip("id")
		r.goVCRRequest(pair.need("request"), &x)
		r.goVCRResponse(pair.need("response"), &x)
		pair.done()
		if r.err != nil {
			return nil
		}
		out = append(out, x)
	}
	o.done()
	return out
}

func (r *reader) goVCRRequest(n *node, x *Exchange) {
	o := r.object(n, "request")
	x.Method, x.URL = o.needText("method"), o.needText("url")
	x.Request.Header = r.headers(o.get("headers"), "request.headers")
	x.Request.Body = r.bytes(o.need("body"), "request.body")
	if form := o.get("form"); len(x.Request.Body) == 0 && !form.empty() && x.Method != "GET" && x.Method != "HEAD" {
		values := url.Values{}
		for i, key := range r.object(form, "request.form").n.keys {
			for _, v := range r.list(form.kids[i], "request.form."+key.text) {
				values.Add(key.text, r.text(v, "request.form."+key.text))
			}
		}
		x.Request.Body = []byte(values.Encode())
		r.note(imports.Changed, form, "", "request.form is kept as the body, which is not there")
	}
	o.skip("host", "content_length", "request_uri", "proto", "proto_major", "proto_minor")
	r.version(o.n.get("proto"))
	o.done()
}

func (r *reader) goVCRResponse(n *node, x *Exchange) {
	o := r.object(n, "response")
	x.Code = r.status(o.need("code"), "response.code")
	x.Status = statusLine(x.Code, r.text(o.get("status"), "response.status"))
	x.Response.Header = r.headers(o.get("headers"), "response.headers")
	x.Response.Body = r.bytes(o.need("body"), "response.body")
	duration := o.need("duration")
	if s := r.text(duration, "response.duration"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			r.fail(duration, "response.duration: %s is no duration, such as 412ms: the file is cut short, or was edited by hand", short(s))
		}
		x.Duration = d
	}
	if o.get("uncompressed").is(word) && o.get("uncompressed").text == "true" && x.Response.Header.Get("Content-Encoding") == "" {
		x.Response.Encoding = "gzip" // what Go's transport asks for by itself and undoes
	}
	o.skip("content_length", "proto", "proto_major", "proto_minor")
	r.version(o.n.get("proto"))
	o.done()
}
