package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// FileName returns the name, without extension, of the files that belong to an item: its id where that matches [A-Za-z0-9][A-Za-z0-9._-]{0,79} and is no reserved name of Windows.
// Otherwise each byte that the pattern does not allow in its place becomes "_", the result is cut to 80 bytes, and "~" and ten hex digits of the id's SHA-256 follow.
func FileName(id string) string {
	if len(id) <= maxFile && id != "" && alnum(id[0]) && onlyBytes(id, ".-_") && !reservedName(id) {
		return id
	}
	name := []byte(id[:min(len(id), maxFile)])
	for i, c := range name {
		if !alnum(c) && (i == 0 || !strings.ContainsRune("._-", rune(c))) {
			name[i] = '_'
		}
	}
	if stem, _, ok := strings.Cut(string(name), "."); ok && reservedName(stem) {
		name[len(stem)] = '_' // Windows looks at what stands before the first dot
	}
	sum := sha256.Sum256([]byte(id))
	return string(name) + "~" + hex.EncodeToString(sum[:5])
}

const maxFile = 80

// FolderName returns the name of a provider's folder: its id with ":" and "/" as "_".
func FolderName(id string) string { return separators.Replace(id) }

var separators = strings.NewReplacer(":", "_", "/", "_")

func alnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// onlyBytes reports whether s holds nothing but ASCII letters, digits and the bytes of more.
func onlyBytes(s, more string) bool {
	for i := range len(s) {
		if !alnum(s[i]) && strings.IndexByte(more, s[i]) < 0 {
			return false
		}
	}
	return true
}

// reservedName reports whether Windows keeps the name for a device, whatever its extension.
func reservedName(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch stem {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(stem) == 4 && (stem[:3] == "com" || stem[:3] == "lpt") && stem[3] >= '0' && stem[3] <= '9'
}

// datasetNameProblem says what is wrong with a dataset's name, which names folders and files; "" for nothing.
func datasetNameProblem(name string) string {
	switch {
	case name == "":
		return "a name is empty"
	case len(name) > maxFile:
		return "a name has at most 80 characters"
	case !onlyBytes(name, "._-") || strings.ToLower(name) != name:
		return "a name has only the characters a-z, 0-9, dot, underscore and hyphen"
	case !alnum(name[0]):
		return "a name begins with a letter or a digit"
	case reservedName(name):
		return "the name is reserved by Windows"
	}
	return ""
}

// providerIDProblem says what is wrong with a provider's id; "" for nothing.
func providerIDProblem(id string) string {
	switch {
	case id == "":
		return "an id is empty"
	case len(id) > 2*maxFile:
		return "an id has at most 160 characters"
	case !onlyBytes(id, "._:/@-"):
		return "an id has only letters, digits and the characters . _ : / @ -"
	case !alnum(id[0]):
		return "an id begins with a letter or a digit, since it names a folder"
	case reservedName(FolderName(id)):
		return "the id names a folder, and Windows reserves its name"
	}
	return ""
}

// itemIDProblem says what is wrong with an item's id; "" for nothing.
func itemIDProblem(id string) string {
	const longest = 1000
	if strings.TrimSpace(id) == "" {
		return "an id is empty"
	}
	if utf8.RuneCountInString(id) > longest {
		return "an id has at most 1000 characters"
	}
	for _, r := range id {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return "an id holds no control characters and no line breaks"
		}
	}
	return ""
}

// foldID returns what two ids that differ only in case have in common.
func foldID(id string) string {
	for _, c := range []byte(id) {
		if c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			return strings.ToLower(strings.ToUpper(id))
		}
	}
	return id
}
