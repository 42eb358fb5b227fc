package terminal

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// columns measures text. Ambiguous characters count one column and emoji two, whatever the locale: a report is the same everywhere.
var columns = &runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}

func width(s string) int { return columns.StringWidth(s) }

// cut shortens a text to at most n columns.
func cut(s string, n int) string {
	if width(s) <= n {
		return s
	}
	return columns.Truncate(s, max(n, 1), "…")
}

// wrap breaks a text of one line at spaces, and long words anywhere, into at most most lines of at most n columns; the last says that there was more.
func wrap(s string, n, most int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		for line != "" && width(line)+1+width(word) > n {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		for width(line)+width(word) > n {
			head := columns.Truncate(word, n-width(line), "")
			if head == "" {
				break
			}
			lines, line, word = append(lines, line+head), "", word[len(head):]
		}
		line += word
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] = cut(lines[most-1]+" …", n)
		if !strings.HasSuffix(lines[most-1], "…") {
			lines[most-1] = cut(lines[most-1], n-1) + "…"
		}
	}
	return lines
}

// style is an SGR sequence of a terminal.
type style string

// The styles. The reports are readable without them.
const (
	plain  style = ""
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	bold   style = "1"
	dim    style = "2"
)

// paint colours a text, if colours are allowed.
func (p *printer) paint(s style, text string) string {
	if !p.opts.Color || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}
