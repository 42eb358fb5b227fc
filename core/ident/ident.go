// Package ident makes the ids of a run. An id is a keyed hash of where it is made, so that the same item run again, on any machine and in any order, gets the same ids.
package ident

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Source makes the ids of one item and repeat. The zero value is usable; sources that differ in any field give different ids. It is a value and safe to share.
type Source struct {
	Seed   uint64
	Item   string
	Repeat int
}

// ID returns 24 hex digits of HMAC-SHA-256 over step, purpose and ordinal, keyed by the source.
func (s Source) ID(step int, purpose string, ordinal int) string {
	key := binary.BigEndian.AppendUint64(nil, s.Seed)
	key = binary.BigEndian.AppendUint64(key, uint64(s.Repeat))
	// HMAC pads short keys with zeros: without its length an item could not be told from one with a NUL behind it.
	key = binary.BigEndian.AppendUint64(key, uint64(len(s.Item)))
	key = append(key, s.Item...)
	mac := hmac.New(sha256.New, key)
	msg := binary.BigEndian.AppendUint64(nil, uint64(step))
	msg = binary.BigEndian.AppendUint64(msg, uint64(ordinal))
	mac.Write(append(msg, purpose...))
	return hex.EncodeToString(mac.Sum(nil)[:12])
}
