package recordings

import (
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/echoeval/echoeval/harness/imports"
)

func isHAR(n *node) bool { return n.get("log").get("entries").is(list) }

// isPolly recognises what the persisters of Polly.js write: HAR, with bodies that are coded kept as they came, in pieces.
func isPolly(n *node) bool { return isHAR(n) && n.get("log").has("_recordingName") }

func readHAR(r *reader, root *node) (out []Exchange) {
	o := r.object(root, "the file")
	l := r.object(o.get("log"), "log")
	l.skip("version", "creator", "_recordingName")
	for i, n := range r.list(l.get("entries"), "log.entries") {
		entry := r.object(n, item(i))
		x := Exchange{Pos: r.pos(n), At: date(r.text(entry.get("startedDateTime"), "startedDateTime"))}
		if ms, err := strconv.ParseFloat(r.text(entry.get("time"), "time"), 64); err == nil && ms >= 0 && ms < 1e10 {
			x.Duration = time.Duration(ms * float64(time.Millisecond)).Round(time.Microsecond)
		}
		r.harRequest(entry.need("request"), &x)
		r.harResponse(entry.need("response"), &x)
		entry.skip("_id", "_order", "timings")
		entry.done()
		if r.err != nil {
			return nil
		}
		out = append(out, x)
	}
	l.done()
	o.done()
	r.sort(out)
	return out
}

// sort puts exchanges in the order in which they began, where the file says when that was.
func (r *reader) sort(list []Exchange) {
	began := func(a, b Exchange) int { return a.At.Compare(b.At) }
	if slices.ContainsFunc(list, func(x Exchange) bool { return x.At.IsZero() }) || slices.IsSortedFunc(list, began) {
		return
	}
	slices.SortStableFunc(list, began)
	r.note(imports.Changed, nil, "", "the exchanges are put in the order in which they began")
}

func (r *reader) harRequest(n *node, x *Exchange) {
	o := r.object(n, "request")
	x.Method, x.URL = o.needText("method"), o.needText("url")
	x.Request.Header = r.pairs(o.get("headers"), "request.headers")
	if data := o.get("postData"); !data.empty() {
		p := r.object(data, "request.postData")
		x.Request.Body = r.harBody(p, &x.Request)
		if params := p.get("params"); len(x.Request.Body) == 0 && !params.empty() {
			form := url.Values{}
			for _, param := range r.list(params, "request.postData.params") {
				v := r.object(param, "request.postData.params")
				form.Add(v.needText("name"), r.text(v.get("value"), "value"))
				v.done()
			}
			x.Request.Body = []byte(form.Encode())
			r.note(imports.Changed, params, "", "request.postData.params are kept as the body, which is not there")
		}
		p.done()
	}
	o.skip("httpVersion", "queryString", "cookies", "headersSize", "bodySize")
	r.version(o.n.get("httpVersion"))
	o.done()
}

func (r *reader) harResponse(n *node, x *Exchange) {
	o := r.object(n, "response")
	code := o.need("status")
	if code.is(word) && code.text == "0" {
		r.fail(code, "response.status is 0: no response came")
		r.hint("take the entry out of the file")
	}
	x.Code = r.status(code, "response.status")
	x.Status = statusLine(x.Code, r.text(o.get("statusText"), "response.statusText"))
	x.Response.Header = r.pairs(o.get("headers"), "response.headers")
	if content := o.get("content"); !content.empty() {
		c := r.object(content, "response.content")
		x.Response.Body = r.harBody(c, &x.Response)
		if len(x.Response.Body) == 0 && !c.get("size").empty() && x.Method != http.MethodHead {
			r.note(imports.Lost, content, "save the file with contents", "response.content has a size and no text: the body was not saved")
		}
		c.skip("size", "compression", "_isBinary")
		c.done()
	}
	o.skip("httpVersion", "cookies", "headersSize", "bodySize", "redirectURL")
	r.version(o.n.get("httpVersion"))
	o.done()
}

// pairs reads headers that are a list of names and values. Names of HTTP/2 that begin with a colon are no headers.
func (r *reader) pairs(n *node, what string) http.Header {
	h := http.Header{}
	for _, line := range r.list(n, what) {
		o := r.object(line, what)
		name, value := o.need("name"), o.get("value")
		o.skip("_fromType")
		o.done()
		if r.err != nil {
			return h
		}
		if s := r.text(name, what); len(s) > 0 && s[0] == ':' {
			continue
		}
		r.header(h, &node{kind: text, text: r.text(name, what), line: name.line, col: name.col}, value, what)
	}
	return h
}

// harBody reads the text of postData or content.
func (r *reader) harBody(o *object, m *Message) []byte {
	n, what := o.get("text"), o.what+".text"
	s := r.text(n, what)
	if media := r.text(o.get("mimeType"), o.what+".mimeType"); media != "" && media != "x-unknown" && m.Header.Get("Content-Type") == "" {
		m.Header.Set("Content-Type", media)
	}
	coding := o.get("encoding")
	is := r.text(coding, o.what+".encoding")
	if r.Format == "Polly HAR" {
		if data, ok := chunks(s, is); ok {
			return data
		}
	}
	switch is {
	case "":
		return []byte(s)
	case "base64":
		return r.base64(n, what)
	}
	r.fail(coding, "%s.encoding: %s is not known", o.what, short(is))
	return nil
}

// chunks joins a body that Polly keeps as the text of a list of strings: base64, or hexadecimal digits in files of its early releases.
func chunks(s, encoding string) ([]byte, bool) {
	var pieces []string
	if len(s) == 0 || s[0] != '[' || json.Unmarshal([]byte(s), &pieces) != nil || len(pieces) == 0 {
		return nil, false
	}
	var out []byte
	for _, piece := range pieces {
		var data []byte
		var err error
		if encoding == "base64" {
			data, err = decode64(piece)
		} else {
			data, err = hex.DecodeString(piece)
		}
		if err != nil {
			return nil, false
		}
		out = append(out, data...)
	}
	return out, true
}
