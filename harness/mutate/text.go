package mutate

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// half is the first half of an answer, in characters.
func half(answer string) (string, bool) {
	n := utf8.RuneCountInString(answer)
	if n == 0 {
		return "", false
	}
	i := 0
	for range n / 2 {
		_, size := utf8.DecodeRuneInString(answer[i:])
		i += size
	}
	return strings.TrimSpace(answer[:i]), true
}

// turns are words that turn a statement around, in both directions where the second is no "not".
var turns = [][2]string{
	{"cannot", "can"}, {"can't", "can"}, {"won't", "will"}, {"isn't", "is"}, {"aren't", "are"}, {"wasn't", "was"}, {"weren't", "were"},
	{"don't", "do"}, {"doesn't", "does"}, {"didn't", "did"}, {"hasn't", "has"}, {"haven't", "have"},
	{"yes", "no"}, {"no", "yes"}, {"true", "false"}, {"false", "true"}, {"never", "always"}, {"always", "never"}, {"none", "all"}, {"all", "none"},
	{"is", "is not"}, {"are", "are not"}, {"was", "was not"}, {"were", "were not"}, {"has", "has not"}, {"have", "have not"}, {"had", "had not"},
	{"can", "cannot"}, {"will", "will not"}, {"must", "must not"}, {"should", "should not"}, {"may", "may not"}, {"does", "does not"}, {"do", "do not"}, {"did", "did not"},
}

// words finds what [turns] may hold.
var words = regexp.MustCompile(`[\pL\pN_]+(?:['’]\pL+)?`)

// denial stands before an answer in which no word can be turned around.
const denial = "It is not true that "

// opposite says the opposite of an answer: it turns the first word around that can be, takes a "not" away, and else denies the whole. A number becomes its negative, the texts of JSON are left alone.
func opposite(answer string) (string, bool) {
	text := strings.TrimSpace(answer)
	if text == "" {
		return "", false
	}
	if number.MatchString(text) {
		if strings.Trim(text, "-0.,") == "" {
			return "", false // nothing has no negative
		}
		if rest, negative := strings.CutPrefix(text, "-"); negative {
			return rest, true
		}
		return "-" + text, true
	}
	quoted := isJSON(text)
	inText := quotedParts(text, quoted)
	for _, at := range words.FindAllStringIndex(text, -1) {
		word := strings.ReplaceAll(strings.ToLower(text[at[0]:at[1]]), "’", "'")
		i := slices.IndexFunc(turns, func(t [2]string) bool { return t[0] == word })
		if i < 0 || inText(at[0]) {
			continue
		}
		turned := turns[i][1]
		rest := text[at[1]:]
		if turned == word+" not" {
			if after, negated := cutWord(rest, "not"); negated {
				return text[:at[1]] + after, true
			}
		}
		first, _ := utf8.DecodeRuneInString(text[at[0]:])
		if unicode.IsUpper(first) {
			turned = strings.ToUpper(turned[:1]) + turned[1:]
		}
		return text[:at[0]] + turned + rest, true
	}
	if quoted {
		return "", false
	}
	return denial + text, true
}

var number = regexp.MustCompile(`^-?\d[\d.,]*$`)

// cutWord takes a word off the beginning of a text, with the space before it.
func cutWord(text, word string) (string, bool) {
	rest, ok := strings.CutPrefix(text, " "+word)
	if next, _ := utf8.DecodeRuneInString(rest); !ok || unicode.IsLetter(next) || unicode.IsDigit(next) {
		return text, false
	}
	return rest, true
}

// quotedParts tells which places of a JSON text lie within strings.
func quotedParts(text string, json bool) func(int) bool {
	if !json {
		return func(int) bool { return false }
	}
	inside := make([]bool, len(text))
	open, escaped := false, false
	for i := range len(text) {
		switch {
		case escaped:
			escaped = false
		case open && text[i] == '\\':
			escaped = true
		case text[i] == '"':
			open = !open
		}
		inside[i] = open
	}
	return func(i int) bool { return inside[i] }
}
