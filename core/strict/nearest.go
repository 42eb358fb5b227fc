package strict

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the choice that a person who wrote name most likely meant, letter case not counting: the one that name is with two neighbouring letters swapped, or the nearest by edit distance (Levenshtein 1966) where at most a third of the letters differ.
// Of equally near ones the first in alphabetical order is taken.
func Nearest(name string, choices []string) (string, bool) {
	const longest = 80 // no key is longer, and distances of long texts cost time
	letters := []rune(strings.ToLower(name))
	if len(letters) == 0 || len(letters) > longest {
		return "", false
	}
	lower := string(letters)
	best, nearest := max(1, (len(letters)+1)/3)+1, ""
	for _, choice := range slices.Sorted(slices.Values(choices)) {
		to := strings.ToLower(choice)
		d := levenshtein.ComputeDistance(lower, to)
		if d == 2 && swapped(letters, []rune(to)) {
			d = 1
		}
		if d < best && d < utf8.RuneCountInString(choice) {
			best, nearest = d, choice
		}
	}
	return nearest, nearest != ""
}

// swapped reports whether two neighbouring letters are all that differs.
func swapped(a, b []rune) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && slices.Equal(a[i+2:], b[i+2:])
		}
	}
	return false
}

// Suggest returns the hint for an unknown name: the nearest choice, or else all choices in alphabetical order.
func Suggest(name string, choices []string) string {
	if nearest, ok := Nearest(name, choices); ok {
		return "did you mean \"" + nearest + "\"?"
	}
	if len(choices) == 0 {
		return ""
	}
	return "choices: " + strings.Join(slices.Sorted(slices.Values(choices)), ", ")
}
