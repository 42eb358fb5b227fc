package recordings

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/brotli"

	"github.com/echoeval/echoeval/harness/imports"
)

var gzipMagic = []byte{0x1f, 0x8b}

// coding is a value of Content-Encoding and how it is undone.
type coding struct {
	names []string
	// open begins to decode; it fails where the body is not coded like this.
	open func(body []byte) (io.Reader, error)
}

var codings = []coding{
	{[]string{"gzip", "x-gzip"}, func(b []byte) (io.Reader, error) {
		if !bytes.HasPrefix(b, gzipMagic) {
			return nil, errPlain
		}
		return gzip.NewReader(bytes.NewReader(b))
	}},
	{[]string{"deflate"}, func(b []byte) (io.Reader, error) {
		if z, err := zlib.NewReader(bytes.NewReader(b)); err == nil {
			return z, nil
		}
		return flate.NewReader(bytes.NewReader(b)), nil // what some servers call deflate
	}},
	{[]string{"br"}, func(b []byte) (io.Reader, error) { return brotli.NewReader(bytes.NewReader(b)), nil }},
}

// decode undoes Content-Encoding and takes the header away. Many recorders keep the header although they have decoded the body: such a body stays as it is. One that is damaged, or coded in a way that is not known, stays with its header, and is reported.
func (r *reader) decode(at *node, side string, m *Message) {
	said := strings.Join(m.Header.Values("Content-Encoding"), ", ")
	if said == "" {
		return // what the format knows of it stays
	}
	m.Encoding = said
	names := strings.Split(m.Encoding, ",")
	if slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(registered, strings.ToLower(strings.TrimSpace(name))) }) {
		m.Encoding = "unknown" // nobody knows what it is, so that it is not written down
	}
	slices.Reverse(names)
	body, coded := m.Body, false
	for _, name := range names {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" || name == "identity" || len(body) == 0 {
			continue
		}
		i := slices.IndexFunc(codings, func(c coding) bool { return slices.Contains(c.names, name) })
		if i < 0 {
			if plain(body) {
				continue
			}
			r.note(imports.Lost, at, "", "%s: the body is coded as %s, which is not undone: it stays as it came", side, short(name))
			return
		}
		out, err := codings[i].decode(body)
		switch {
		case errors.Is(err, errBomb):
			r.fail(at, "%s: the decoded body has more than %d MiB", side, MaxBody>>20)
			return
		case errors.Is(err, errPlain):
			continue
		case errors.Is(err, io.ErrUnexpectedEOF) && len(out) > 0:
			m.Partial = true
			r.note(imports.Changed, at, "", "%s: the %s body ends before its end; it replays as one that was cut short", side, name)
		case err != nil:
			r.note(imports.Lost, at, "", "%s: the body is called %s and cannot be decoded: it stays as it came", side, name)
			return
		}
		body, coded = out, true
	}
	if !coded && len(m.Body) > 0 && !r.decoded {
		r.note(imports.Changed, at, "", "%s: the header says %s and the body is plain: the header goes, the body stays", side, m.Encoding)
	}
	m.Body = body
	m.Header.Del("Content-Encoding")
}

// registered are the values of Content-Encoding that are written down.
var registered = []string{"aws-chunked", "br", "compress", "deflate", "gzip", "identity", "x-gzip", "zstd"}

var (
	errBomb  = errors.New("too long")
	errPlain = errors.New("not coded")
)

// decode undoes one coding. With [io.ErrUnexpectedEOF] it returns what there is.
func (c coding) decode(body []byte) ([]byte, error) {
	if plain(body) {
		return nil, errPlain
	}
	z, err := c.open(body)
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(z, MaxBody+1))
	if len(out) > MaxBody {
		return nil, errBomb
	}
	return out, err
}

// plain says that a body is text, which no coding gives: their first bytes or checksums are no text.
func plain(body []byte) bool {
	if bytes.HasPrefix(body, gzipMagic) || !utf8.Valid(body) {
		return false
	}
	return !bytes.ContainsFunc(body, func(c rune) bool { return c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' || c == 0x7F })
}
