package recordings

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/echoeval/echoeval/harness/imports"
)

const (
	httprrName  = "httprr"
	httprrMagic = "httprr trace v"
)

// httprr reads the traces of rsc.io/httprr and of its copies: after the first line, for each exchange a line with the lengths of request and response, then both as they went over the wire.
func (r *reader) httprr(data []byte) (out []Exchange) {
	at := places{data: data}
	fail := func(offset int, format string, args ...any) {
		at.to(offset)
		r.failAt(at.line+1, at.col+1, format, args...)
	}
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	if version := strings.TrimSpace(strings.TrimPrefix(string(first), httprrMagic)); version != "1" {
		fail(0, "version %s of httprr; known is 1", short(version))
		r.hint("save it with a release of its program that writes version 1")
		return nil
	}
	offset := len(data) - len(rest)
	for offset < len(data) {
		line, _, whole := bytes.Cut(data[offset:], []byte("\n"))
		var request, response int
		if n, err := fmt.Sscanf(string(line[:min(len(line), 64)]), "%d %d", &request, &response); n != 2 || err != nil || !whole || request <= 0 || response <= 0 {
			fail(offset, "want a line with the lengths of a request and its response: the file is cut short, or damaged")
			r.hint("take the file anew from where it comes from; a checkout that changes line ends damages it")
			return nil
		}
		begin := offset + len(line) + 1
		if left := len(data) - begin; request > left || response > left-request {
			fail(offset, "the file is cut short: request and response have %d bytes, and %d follow", request+response, left)
			r.hint("take the file anew from where it comes from; a checkout that changes line ends damages it")
			return nil
		}
		at.to(offset)
		x := Exchange{Pos: r.pos(&node{line: at.line + 1, col: at.col + 1})}
		if err := r.wire(&x, data[begin:begin+request], data[begin+request:begin+request+response]); err != nil {
			fail(begin, "%w", err)
		}
		if r.err != nil {
			return nil
		}
		out = append(out, x)
		offset = begin + request + response
	}
	return out
}

func (r *reader) wire(x *Exchange, request, response []byte) error {
	from := bufio.NewReader(bytes.NewReader(request))
	q, err := http.ReadRequest(from)
	if err != nil {
		return fmt.Errorf("the request is none of HTTP: %s", short(err.Error()))
	}
	x.Method, x.URL, x.Request.Header = q.Method, q.URL.String(), q.Header
	pos := &node{line: x.Pos.Line, col: x.Pos.Column}
	if q.URL.Host == "" {
		q.URL.Scheme, q.URL.Host = "https", q.Host
		x.URL = q.URL.String()
		r.note(imports.Changed, pos, "", "the request does not say whether it went over TLS: it is taken for https")
	}
	if x.Request.Body, err = wireBody(q.Body, &x.Request); err != nil {
		return fmt.Errorf("the body of the request is damaged: %s", short(err.Error()))
	}
	if left, _ := io.Copy(io.Discard, from); left > 0 {
		r.note(imports.Lost, pos, "", "bytes that follow the end of the request are not kept")
	}
	if x.Request.Partial {
		r.note(imports.Lost, pos, "", "the request ends before its end: what is missing is not recorded")
	}
	from = bufio.NewReader(bytes.NewReader(response))
	p, err := http.ReadResponse(from, q)
	if err != nil {
		return fmt.Errorf("the response is none of HTTP: %s", short(err.Error()))
	}
	x.Code, x.Status, x.Response.Header = p.StatusCode, statusLine(p.StatusCode, p.Status), p.Header
	if x.Response.Body, err = wireBody(p.Body, &x.Response); err != nil {
		return fmt.Errorf("the body of the response is damaged: %s", short(err.Error()))
	}
	if left, _ := io.Copy(io.Discard, from); left > 0 {
		r.note(imports.Lost, pos, "", "bytes that follow the end of the response are not kept")
	}
	if len(p.Trailer) > 0 {
		r.note(imports.Lost, pos, "", "trailers of the response are not kept")
	}
	if x.Response.Partial {
		r.note(imports.Changed, pos, "", "the response ends before its end; it replays as one that was cut short")
	}
	return nil
}

// wireBody reads a body. One that ends early is partial.
func wireBody(body io.ReadCloser, m *Message) ([]byte, error) {
	data, err := io.ReadAll(body) // no longer than the file
	if errors.Is(err, io.ErrUnexpectedEOF) {
		m.Partial = true
		err = nil
	}
	return data, err
}
