package emulator

import (
	"crypto/sha256"
	"encoding/binary"
)

// query is what a request asks, in no vendor's format: what a script is matched with and filled from.
type query struct {
	model     string
	turns     []turn
	firstUser int // index of the first user message, -1 without one
	lastUser  int
	attempt   int               // how often this request was tried before
	schemas   int               // bytes of the tool definitions
	digest    [sha256.Size]byte // of the request's content, whatever its formatting
}

type role uint8

const (
	roleSystem role = iota
	roleUser
	roleAssistant
	roleTool
)

// turn is one message. A format whose tool results are parts of user messages gives each result a turn of its own.
type turn struct {
	role   role
	text   string // the text parts, joined by a line feed
	calls  []callRef
	callID string // of a tool's result: the call that it answers
	images int
}

type callRef struct{ id, name, args string }

// index finds the first and the last user message, once the turns are complete.
func (q *query) index() {
	q.firstUser, q.lastUser = -1, -1
	for i := range q.turns {
		if q.turns[i].role == roleUser {
			if q.firstUser < 0 {
				q.firstUser = i
			}
			q.lastUser = i
		}
	}
}

// answersAfter counts the assistant messages that follow turn i.
func (q *query) answersAfter(i int) int {
	n := 0
	for _, t := range q.turns[i+1:] {
		if t.role == roleAssistant {
			n++
		}
	}
	return n
}

// toolResult returns the last result of the named tool, of any tool where the name is empty.
func (q *query) toolResult(tool string) (string, bool) {
	for i := len(q.turns) - 1; i >= 0; i-- {
		if t := &q.turns[i]; t.role == roleTool && (tool == "" || q.toolOf(i) == tool) {
			return t.text, true
		}
	}
	return "", false
}

// toolOf returns the name of the tool whose result is turn i. Ids may be used again later, so the nearest call before the result counts.
func (q *query) toolOf(i int) string {
	for j := i - 1; j >= 0; j-- {
		for _, c := range q.turns[j].calls {
			if c.id == q.turns[i].callID {
				return c.name
			}
		}
	}
	return ""
}

// tokens estimates how many tokens a text has: a quarter of its bytes, rounded up. It stands in for the vendors' tokenizers, which differ and need their vocabularies.
func tokens(s string) int { return (len(s) + 3) / 4 }

// inputTokens estimates the size of the request.
func (q *query) inputTokens() int {
	const perMessage, perImage, primer = 4, 85, 3
	n := primer + (q.schemas+3)/4
	for i := range q.turns {
		t := &q.turns[i]
		n += perMessage + tokens(t.text) + perImage*t.images
		for _, c := range t.calls {
			n += perMessage + tokens(c.name) + tokens(c.args)
		}
	}
	return n
}

// seed is where all that looks random in a reply comes from.
type seed [sha256.Size]byte

// derive returns bytes for one purpose; different purposes and ordinals give unrelated bytes.
func (s seed) derive(purpose string, ordinal int) [sha256.Size]byte {
	var room [96]byte
	b := append(room[:0], s[:]...)
	b = append(b, purpose...)
	b = binary.BigEndian.AppendUint64(b, uint64(ordinal))
	return sha256.Sum256(b)
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// appendAlphanumeric appends n (at most 32) letters and digits made of the bytes of sum.
func appendAlphanumeric(dst []byte, sum [sha256.Size]byte, n int) []byte {
	for _, b := range sum[:n] {
		dst = append(dst, alphanumeric[int(b)%len(alphanumeric)])
	}
	return dst
}

// mix returns the hash of s and another hash.
func (s seed) mix(other [sha256.Size]byte) seed {
	var both [2 * sha256.Size]byte
	copy(both[:], s[:])
	copy(both[sha256.Size:], other[:])
	return sha256.Sum256(both[:])
}
