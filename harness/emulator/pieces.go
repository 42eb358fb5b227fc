package emulator

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// pieces are the parts in which a reply is streamed, already quoted as JSON strings.
type pieces struct {
	text  []piece   // of the text, or of the refusal
	calls [][]piece // of each call's arguments
}

type piece struct {
	quoted []byte
	runes  int // characters of quoted
}

func cutPieces(r *reply) *pieces {
	text := r.refusal
	if r.text != nil {
		text = *r.text
	}
	p := &pieces{text: cut(text, r.fragment)}
	for _, c := range r.calls {
		p.calls = append(p.calls, cut(c.args, r.fragment))
	}
	return p
}

// frames is the number of pieces.
func (p *pieces) frames() int {
	n := len(p.text)
	for _, call := range p.calls {
		n += len(call)
	}
	return n
}

// cut splits a text into pieces of size characters; 0 is the default of [Script.Fragment].
func cut(text string, size int) []piece {
	const normal, most = 4, 2000
	runes := utf8.RuneCountInString(text)
	if size == 0 {
		size = max(normal, (runes+most-1)/most)
	}
	count := (runes + size - 1) / size
	if count == 0 {
		return nil
	}
	out := make([]piece, 0, count)
	buf := make([]byte, 0, len(text)+len(text)/8+2*count)
	for len(text) > 0 {
		end, n := len(text), 0
		for i := range text {
			if n == size {
				end = i
				break
			}
			n++
		}
		start := len(buf)
		buf = appendQuoted(buf, text[:end])
		quoted := buf[start:len(buf):len(buf)]
		out = append(out, piece{quoted, utf8.RuneCount(quoted)})
		text = text[end:]
	}
	return out
}

// appendQuoted appends a JSON string: only what must be escaped is.
func appendQuoted(dst []byte, s string) []byte {
	// Invalid UTF-8 does not get here: scripts and requests are checked. Were it to, it would be replaced.
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}
