package results

import (
	"strings"

	"github.com/echoeval/echoeval/core/eval"
)

// Command joins a command's words to a line that a POSIX shell splits into the same words again: what holds anything but plain characters stands in single quotes.
func Command(words ...string) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if word != "" && strings.Trim(word, plain) == "" {
			b.WriteString(word)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(word, "'", `'\''`) + "'")
	}
	return b.String()
}

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,"

// ReplayCommand is the command that runs the item of a line again, alone, as the run did.
func (s *Summary) ReplayCommand(line eval.Result) string {
	words := []string{"echoeval", "replay", s.Dataset.File}
	if s.Mode != "replay" {
		words = []string{"echoeval", "run", s.Dataset.File, "--mode", s.Mode}
	}
	return Command(append(words, "--item", line.Item, "--provider", line.Provider)...)
}
