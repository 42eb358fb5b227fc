package cassette

import (
	"strings"

	"github.com/echoeval/echoeval/harness/eventstream"
)

// unframe gives the payloads of a body of the binary event stream, each as a data line, and false where it is none. What follows the last whole frame, as in a recording that was cut, is rest.
//
// Lengths and checksums stand in such a body, so that nothing may be replaced in its bytes: texts are looked at and changed in this form, and framed again.
func unframe(body string) (text string, frames []eventstream.Frame, rest string, ok bool) {
	var b strings.Builder
	for {
		f, after, is := eventstream.Cut(body)
		if !is {
			return b.String(), frames, body, len(frames) > 0
		}
		if strings.ContainsAny(f.Payload, "\r\n") {
			return "", nil, body, false
		}
		frames = append(frames, f)
		b.WriteString("data:" + f.Payload + "\n")
		body = after
	}
}

// reframe changes the payloads of a body of the binary event stream, and false says that it is none.
func reframe(body string, change func(text string) string) (string, bool) {
	text, frames, rest, ok := unframe(body)
	if !ok {
		return body, false
	}
	changed := change(text)
	if changed == text {
		return body, true
	}
	var out []byte
	lines := strings.Split(strings.TrimSuffix(changed, "\n"), "\n")
	for i, f := range frames {
		f.Payload = ""
		if i < len(lines) {
			f.Payload = strings.TrimPrefix(lines[i], "data:")
		}
		out = eventstream.Append(out, f)
	}
	return string(out) + rest, true
}

// Readable is a body as people can read it: that of a binary event stream as its payloads, each on a line of its own behind "data:". Other bodies are as they are.
func Readable(body string) string {
	if text, _, rest, ok := unframe(body); ok {
		return text + rest
	}
	return body
}
