package imports

import (
	"path"
	"strconv"
	"strings"
	"unicode"
)

// Slug makes a readable name of a text: lower case, letters and digits of any script, one hyphen for everything else, cut after a word at most characters. It is "" where nothing is left.
func Slug(text string, most int) string {
	var b strings.Builder
	n, hyphen := 0, false
	cut := 0
	for _, r := range text {
		if n >= most {
			if cut > 0 && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
				return b.String()[:cut]
			}
			break
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			hyphen = n > 0
			continue
		}
		if hyphen {
			cut = b.Len()
			b.WriteByte('-')
			n++
			hyphen = false
		}
		b.WriteRune(unicode.ToLower(r))
		n++
	}
	return strings.Trim(b.String(), "-")
}

// DatasetName makes the name of a dataset of the path of its file.
func DatasetName(file string) string {
	base := strings.ReplaceAll(file, `\`, "/")
	base = path.Base(base)
	base = strings.ToLower(strings.TrimSuffix(base, path.Ext(base)))
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, base)
	name = strings.TrimLeft(name, "._-")
	if len(name) > 60 {
		name = name[:60]
	}
	stem, _, _ := strings.Cut(name, ".")
	switch {
	case name == "":
		return "imported"
	case stem == "con" || stem == "prn" || stem == "aux" || stem == "nul" || len(stem) == 4 && (strings.HasPrefix(stem, "com") || strings.HasPrefix(stem, "lpt")):
		return "imported-" + name // Windows keeps the name for a device
	}
	return name
}

// Names gives out names that differ in more than case. The zero value is ready for use.
type Names struct{ taken map[string]bool }

// Unique returns the name, with -2, -3 and so on behind it where it is taken.
func (u *Names) Unique(name string) string {
	if u.taken == nil {
		u.taken = map[string]bool{}
	}
	result := name
	for n := 2; u.taken[fold(result)]; n++ {
		result = name + "-" + strconv.Itoa(n)
	}
	u.taken[fold(result)] = true
	return result
}

func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }
