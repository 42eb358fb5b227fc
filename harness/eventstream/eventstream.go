// Package eventstream writes and reads frames of the binary format application/vnd.amazon.eventstream: the lengths of the frame and of its headers, a checksum of both, headers, a payload, and a checksum of all (CRC-32 of IEEE 802.3, numbers of four bytes with the highest first).
package eventstream

import (
	"encoding/binary"
	"hash/crc32"
)

// MediaType is the media type of a stream.
const MediaType = "application/vnd.amazon.eventstream"

// Frame is one frame. Head are its headers as they stand there, see [AppendHeader].
type Frame struct{ Head, Payload string }

const (
	preludeSize = 12
	sumSize     = 4
	overhead    = preludeSize + sumSize
	// MaxSize is the largest frame.
	MaxSize    = 16 << 20
	stringType = 7
)

// AppendHeader appends a header whose value is a string. The name has at most 255 bytes, the value 65,535; longer ones are cut.
func AppendHeader(dst []byte, name, value string) []byte {
	name, value = name[:min(len(name), 255)], value[:min(len(value), 65_535)]
	dst = append(append(dst, byte(len(name))), name...)
	dst = binary.BigEndian.AppendUint16(append(dst, stringType), uint16(len(value)))
	return append(dst, value...)
}

// Append appends a frame.
func Append(dst []byte, f Frame) []byte {
	at := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(f.Head)+len(f.Payload)+overhead))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(f.Head)))
	dst = binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[at:]))
	dst = append(append(dst, f.Head...), f.Payload...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[at:]))
}

// Cut takes the first frame off a body. It reports false where none begins there: too little is left, or a length or a checksum is wrong.
func Cut(body string) (f Frame, rest string, ok bool) {
	if len(body) < overhead || body[0] > MaxSize>>24 {
		return Frame{}, body, false
	}
	prelude := []byte(body[:preludeSize])
	size, head := int(binary.BigEndian.Uint32(prelude)), int(binary.BigEndian.Uint32(prelude[4:]))
	if size > min(len(body), MaxSize) || head > size-overhead || size < overhead || crc32.ChecksumIEEE(prelude[:8]) != binary.BigEndian.Uint32(prelude[8:]) {
		return Frame{}, body, false
	}
	whole := []byte(body[:size])
	if crc32.ChecksumIEEE(whole[:size-sumSize]) != binary.BigEndian.Uint32(whole[size-sumSize:]) {
		return Frame{}, body, false
	}
	return Frame{body[preludeSize : preludeSize+head], body[preludeSize+head : size-sumSize]}, body[size:], true
}

// widths are the sizes of the values of the other types of headers; -1 has a length of its own.
var widths = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

// Get returns the string of a header, "" where there is none of the name.
func (f Frame) Get(name string) string {
	for h := f.Head; len(h) > 1; {
		n := int(h[0])
		if len(h) < n+2 || int(h[n+1]) >= len(widths) {
			return ""
		}
		found, kind := h[1:n+1], h[n+1]
		h = h[n+2:]
		width := widths[kind]
		if width < 0 {
			if len(h) < 2 {
				return ""
			}
			width = int(h[0])<<8 | int(h[1])
			h = h[2:]
		}
		if len(h) < width {
			return ""
		}
		if found == name && kind == stringType {
			return h[:width]
		}
		h = h[width:]
	}
	return ""
}
