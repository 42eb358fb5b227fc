package strict

import (
	"slices"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
)

// JSON returns the value as compact JSON text: keys in the order of the file, numbers as written, no escaping for HTML. A missing node is null.
func (n Node) JSON() string { return string(n.AppendJSON(nil)) }

// AppendJSON appends what [Node.JSON] returns.
func (n Node) AppendJSON(dst []byte) []byte { return n.append(dst, false) }

// AppendCanonical appends the value as canonical JSON: as RFC 8785 orders keys (by UTF-16 code units) and escapes strings, but with numbers as written, since that standard merges large integers.
// Equal trees have equal canonical text. It is what hashes are made of.
func (n Node) AppendCanonical(dst []byte) []byte { return n.append(dst, true) }

func (n Node) append(dst []byte, sorted bool) []byte {
	switch n.kind {
	case Sequence:
		dst = append(dst, '[')
		for i, item := range n.sub.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.append(dst, sorted)
		}
		return append(dst, ']')
	case Mapping:
		order := func(i int) int { return i }
		if sorted {
			order = n.sub.sorted()
		}
		dst = append(dst, '{')
		for at := range n.sub.keys {
			if at > 0 {
				dst = append(dst, ',')
			}
			i := order(at)
			dst = appendString(dst, n.sub.keys[i].Name)
			dst = append(dst, ':')
			dst = n.sub.items[i].append(dst, sorted)
		}
		return append(dst, '}')
	case String:
		return appendString(dst, n.text)
	case Missing:
		return append(dst, "null"...)
	default:
		return append(dst, n.text...)
	}
}

// sorted returns the order of the keys by UTF-16 code units; nothing is allocated where they are in order already.
func (c *composite) sorted() func(int) int {
	byUnits := func(a, b Key) int { return compareUTF16(a.Name, b.Name) }
	if slices.IsSortedFunc(c.keys, byUnits) {
		return func(i int) int { return i }
	}
	index := make([]int, len(c.keys))
	for i := range index {
		index[i] = i
	}
	slices.SortFunc(index, func(i, j int) int { return byUnits(c.keys[i], c.keys[j]) })
	return func(i int) int { return index[i] }
}

func compareUTF16(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			if a[i] < 0x80 && b[i] < 0x80 {
				return int(a[i]) - int(b[i])
			}
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		}
	}
	return len(a) - len(b)
}

func appendString(dst []byte, s string) []byte {
	// Parsed text is valid UTF-8. In what a caller put in, invalid bytes are replaced, and the error says only that.
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}
