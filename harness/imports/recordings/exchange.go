package recordings

// isOneExchange recognises a file of one request and its response, as the proxy of Datadog's test agent writes them.
func isOneExchange(n *node) bool {
	return n.get("request").has("method", "url") && n.get("response").has("status")
}

func readOneExchange(r *reader, root *node) []Exchange {
	x := Exchange{Pos: r.pos(root)}
	file := r.object(root, "the file")
	q := r.object(file.need("request"), "request")
	x.Method, x.URL = q.needText("method"), q.needText("url")
	x.Request.Header = r.headers(q.get("headers"), "request.headers")
	x.Request.Body = r.textOrData(q, &x.Request)
	q.done()
	p := r.object(file.need("response"), "response")
	switch status := p.need("status"); {
	case status.is(mapping):
		s := r.object(status, "response.status")
		x.Code = r.status(s.need("code"), "response.status.code")
		x.Status = statusLine(x.Code, r.text(s.get("message"), "response.status.message"))
		s.done()
	default:
		x.Code = r.status(status, "response.status")
	}
	x.Response.Header = r.headers(p.get("headers"), "response.headers")
	x.Response.Body = r.textOrData(p, &x.Response)
	p.done()
	file.done()
	if r.err != nil {
		return nil
	}
	return []Exchange{x}
}

// textOrData reads the body of a message: a text, or JSON as data.
func (r *reader) textOrData(o *object, m *Message) []byte {
	n := o.get("body")
	if n == nil || n.kind == null || n.kind == text {
		return r.bytes(n, o.what+".body")
	}
	return r.rendered(n, o.what+".body", m.Header)
}
