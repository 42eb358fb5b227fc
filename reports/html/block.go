package html

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
)

// blockBytes is how much JSON a block holds before it is closed: enough to compress well, little enough to open at once.
const blockBytes = 128 << 10

// blocks writes values of JSON as compressed blocks, each an array in a script element of its own:
//
//	<script type="application/octet-stream" id="r0d3">base64 of deflated JSON</script>
type blocks struct {
	out    *counter
	prefix string // of the ids
	// written is the bytes of all closed blocks, closed their number.
	written, closed int

	open   bytes.Buffer
	values int
	packed bytes.Buffer
	flate  *flate.Writer
}

func newBlocks(out *counter, prefix string) (*blocks, error) {
	b := &blocks{out: out, prefix: prefix}
	var err error
	b.flate, err = flate.NewWriter(&b.packed, flate.DefaultCompression)
	return b, err
}

// place is where a value lies: the block, from 0, and the place in it.
type place struct{ block, at int }

// add appends a value, and closes the block when it is full.
func (b *blocks) add(value any) (place, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return place{}, err
	}
	separator := byte(',')
	if b.values == 0 {
		separator = '['
	}
	b.open.WriteByte(separator)
	b.open.Write(data)
	at := place{b.closed, b.values}
	b.values++
	if b.open.Len() >= blockBytes {
		return at, b.close()
	}
	return at, nil
}

// close writes the block that is open, if it holds anything.
func (b *blocks) close() error {
	if b.values == 0 {
		return nil
	}
	b.open.WriteByte(']')
	b.packed.Reset()
	b.flate.Reset(&b.packed)
	if _, err := b.flate.Write(b.open.Bytes()); err != nil {
		return err
	}
	if err := b.flate.Close(); err != nil {
		return err
	}
	before := b.out.n
	b.out.printf("<script type=\"application/octet-stream\" id=\"%s%d\">", b.prefix, b.closed)
	encoder := base64.NewEncoder(base64.StdEncoding, b.out)
	if _, err := encoder.Write(b.packed.Bytes()); err != nil {
		return err
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	b.out.printf("</script>\n")
	b.written += b.out.n - before
	b.closed++
	b.open.Reset()
	b.values = 0
	return nil
}
