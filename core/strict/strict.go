// Package strict reads YAML and JSON files that people write, and tells them exactly where they went wrong.
//
// [Parse] turns a file into a tree of [Node] values, the same tree for YAML and for JSON, in which every value and every key knows its place.
// [Decode] fills Go values from a tree: a key that the Go type does not have, a value of another type, a missing key are collected in a [Problems] with place, key path and hint, so that a user sees all of them at once:
//
//	n, err := strict.Parse("agents/a.yaml", data)
//	if err != nil {
//		return err
//	}
//	var p strict.Problems
//	var config Config
//	strict.Decode(n, &config, &p)
//	return p.Err()
//
// [Split] and [Entries] read files that hold a list too long for one tree, entry by entry.
//
// # What is accepted
//
// JSON is RFC 8259. YAML is read by the core schema of YAML 1.2: yes, no, on, off, dates and 1_000 are strings. Differently from it, or beyond it:
//
//   - Keys are strings and unique in their mapping; a key such as 12 or true must be quoted.
//   - A number with a leading zero (012) is refused: YAML 1.1, YAML 1.2 and the writer may each mean something else. So are .inf and .nan, which JSON does not have.
//   - Hexadecimal and octal (0x1f, 0o17) are integers and become decimal; +5, .5 and 5. become 5, 0.5 and 5.0. Every other number keeps its text, digits beyond the range of Go's types included.
//   - Tags are refused but for those of the core schema (!!str, !!int, ...). One file holds one document.
//   - Anchors, aliases and merge keys (<<) work within one document; what aliases repeat is bounded by [MaxExpansion].
//   - A byte order mark at the beginning, CRLF and CR line ends are accepted; bytes that are not UTF-8, NUL and (in YAML) raw control characters are refused.
//   - Nesting is at most [MaxDepth] deep, a document at most [MaxDocument] bytes long.
package strict

// Bounds on what is read. They are far above what a person writes and low enough that no input takes more than a fraction of a second and a few times its own size of memory.
const (
	MaxDepth     = 100     // nested sequences and mappings
	MaxDocument  = 8 << 20 // bytes of one document
	MaxExpansion = 4 << 20 // bytes that aliases and merge keys repeat, a node counting 16 bytes and its text
)
