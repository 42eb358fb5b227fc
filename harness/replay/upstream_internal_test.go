package replay

import "testing"

func TestAnsweredBy(t *testing.T) {
	for _, c := range []struct{ name, beginning, ending, want string }{
		{"the vendor alone", "", "", ""},
		{"the emulator alone", "emulator (a)", "emulator (a)", "emulator (a)"},
		{"another script", "emulator (a)", "emulator (b)", "emulator (a), then emulator (b)"},
		{"the vendor at the end", "emulator (a)", "", "emulator (a), then the vendor"},
		{"the vendor at the beginning", "", "emulator (a)", "the vendor, then emulator (a)"},
	} {
		if got := answeredBy(c.beginning, c.ending); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
