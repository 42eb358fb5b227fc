package matchers

import (
	"strconv"
	"testing"
	"unicode/utf8"
)

// What is shown is valid, on one line, and holds nothing that a terminal acts on or a reader cannot see; what holds nothing of that is shown as it is.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{"", "a b", "\x1b[2J\r\n\t", "\u202egnp.exe", "🧠\U000e0041", "\xff\xc0", "\\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		shown := plain(s)
		harmless := utf8.ValidString(s)
		for _, r := range s {
			harmless = harmless && strconv.IsPrint(r)
		}
		if harmless && shown != s {
			t.Errorf("%q is shown as %q", s, shown)
		}
		for i, r := range shown {
			if !strconv.IsPrint(r) || r == utf8.RuneError && !utf8.ValidString(shown) {
				t.Errorf("%q is shown with %U at %d", s, r, i)
			}
		}
		if len(short(s)) > len(shown)+len("… (9223372036854775807 bytes in all)") {
			t.Errorf("%q is longer when it is cut", s)
		}
	})
}
