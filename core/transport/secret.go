package transport

import (
	"fmt"
	"strings"
)

// Secret holds a key. However it is printed or encoded, it shows a placeholder; only [Secret.Reveal] gives the value.
type Secret struct{ value string }

const hidden = "[secret]"

// NewSecret wraps a key. White space around it, such as the line end of a file, does not belong to it.
func NewSecret(value string) Secret { return Secret{strings.TrimSpace(value)} }

// Reveal returns the key, "" for none.
func (s Secret) Reveal() string { return s.value }

// IsZero reports whether there is no key.
func (s Secret) IsZero() bool { return s.value == "" }

// String returns a placeholder.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return hidden
}

// Format prints the placeholder for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText encodes the placeholder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
