package files

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/guard"
	"github.com/echoeval/echoeval/core/tool"
)

var patchSpec = tool.Spec{
	Name: "patch",
	Description: "Change a file by a unified diff, or by blocks of the form\n<<<SEARCH\ntext to find\n===\ntext to put there\nREPLACE>>>\n" +
		"A text that is not exactly in the file is looked for by similarity. Parts that fit nowhere are left out and named in the result.",
	Effect: tool.Write,
	Parameters: `{"type":"object","properties":{` +
		`"file_path":{"type":"string","description":"The file, relative to the workspace."},` +
		`"patch":{"type":"string","description":"The unified diff of this one file, or the blocks."},` +
		`"fuzzy_threshold":{"type":"number","default":0.6,"description":"From 0 to 1: how similar a place must be, more than this."}` +
		`},"required":["file_path","patch"]}`,
}

const (
	defaultThreshold = 0.6
	// reach is how many lines from where a hunk says it belongs it may still be placed.
	reach = 50
)

// patchFile applies what it can; that some parts fit nowhere is a success as long as one does. A place must be more similar than the threshold, so that with the threshold 1 only a text of a block that is exactly in the file is found.
func patchFile(ctx context.Context, ws *guard.Workspace, arguments conversation.JSON) (tool.Output, error) {
	args := struct {
		Path      string  `json:"file_path"`
		Patch     string  `json:"patch"`
		Threshold float64 `json:"fuzzy_threshold"`
	}{Threshold: defaultThreshold}
	if err := tool.Decode(arguments, &args); err != nil {
		return tool.Output{}, err
	}
	if !(args.Threshold >= 0 && args.Threshold <= 1) {
		return tool.Output{}, errors.New("fuzzy_threshold must be from 0 to 1")
	}
	parsed, err := parsePatch(args.Patch)
	if err != nil {
		return tool.Output{}, err
	}
	r, err := ws.Resolve(args.Path, guard.Read|guard.Write)
	if err != nil {
		return tool.Output{}, err
	}
	var text string
	var crlf bool
	// A diff may create a file, its folder must be there.
	if r.Exists() || parsed.blocks != nil {
		if text, crlf, err = load(ws, r); err != nil {
			return tool.Output{}, err
		}
	}
	p := &patcher{ctx: ctx, threshold: args.Threshold}
	unit, total := "block", len(parsed.blocks)
	if parsed.blocks != nil {
		text, err = p.blocks(text, parsed.blocks)
	} else {
		unit, total = "hunk", len(parsed.hunks)
		text, err = p.hunks(text, parsed.hunks)
	}
	if err != nil {
		return tool.Output{}, err
	}
	report := p.report(unit)
	if len(p.missed) == total {
		return tool.Output{}, fmt.Errorf("nothing was applied to %q: no place is similar enough (more than %s) for %s", args.Path, strconv.FormatFloat(args.Threshold, 'g', -1, 64), report)
	}
	if err := store(ws, r, text, crlf, false); err != nil {
		return tool.Output{}, err
	}
	result := fmt.Sprintf("applied %d of %s to %s", total-len(p.missed), plural(total, unit), args.Path)
	if report != "" {
		result += "; no place was found for " + report
	}
	return touched(tool.Text(result), r), nil
}

func plural(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// patch holds either blocks or hunks.
type patch struct {
	blocks []block
	hunks  []hunk
}

// block is a text to find and one to put in its place, without the white space around them.
type block struct{ search, replace string }

// hunk is a part of a unified diff.
type hunk struct {
	// at is the place that the header names: the index of the first line, or for a hunk that only adds of the line before which it does.
	at    int
	lines []diffLine
	// unended says of the old and the new file that its last line has no LF, as far as the diff tells.
	oldUnended, newUnended bool
}

type diffLine struct {
	op   byte // ' ', '-' or '+'
	text string
}

const (
	opener    = "<<<SEARCH"
	separator = "==="
	closer    = "REPLACE>>>"
)

var (
	hunkHeader    = regexp.MustCompile(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@`)
	separatorLine = regexp.MustCompile(`(?m)^===+[ \t]*$`)
)

// parsePatch tells the two forms apart by the opener of a block, in letters of either case; a block itself needs it in capitals.
func parsePatch(text string) (patch, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if strings.Contains(strings.ToUpper(text), opener) {
		blocks, err := parseBlocks(text)
		return patch{blocks: blocks}, err
	}
	hunks, err := parseHunks(text)
	return patch{hunks: hunks}, err
}

// parseBlocks reads all complete blocks. Of the separators within a block the first that has a line for itself counts, so that === in code does not end the text; without one, the first of all.
func parseBlocks(text string) ([]block, error) {
	var blocks []block
	for {
		_, rest, ok := strings.Cut(text, opener)
		if !ok {
			break
		}
		body, after, ok := strings.Cut(rest, closer)
		if !ok {
			break
		}
		text = after
		search, replace, ok := strings.Cut(body, separator)
		if at := separatorLine.FindStringIndex(body); at != nil {
			search, replace, ok = body[:at[0]], body[at[1]:], true
		}
		if !ok {
			continue
		}
		b := block{search: strings.TrimSpace(search), replace: strings.TrimSpace(replace)}
		if b.search == "" {
			return nil, fmt.Errorf("block %d has no text to find", len(blocks)+1)
		}
		blocks = append(blocks, b)
	}
	if len(blocks) == 0 {
		return nil, errors.New("the patch has no valid blocks; a block is <<<SEARCH, the text to find, ===, the text to put there, REPLACE>>>")
	}
	return blocks, nil
}

// parseHunks reads the hunks of a unified diff of one file. Lines before the first hunk and lines of no known kind are passed over. An empty line within a hunk is a context line whose space was lost.
func parseHunks(text string) ([]hunk, error) {
	var hunks []hunk
	var names []string
	blank := 0
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(all); i++ {
		line := all[i]
		if strings.HasPrefix(line, "--- ") && i+1 < len(all) && strings.HasPrefix(all[i+1], "+++ ") && (len(hunks) == 0 || i+2 < len(all) && hunkHeader.MatchString(all[i+2])) {
			name, _, _ := strings.Cut(all[i+1][len("+++ "):], "\t")
			if names = append(names, name); name != names[0] {
				return nil, fmt.Errorf("the patch changes several files, %q and %q; send one call for each", names[0], name)
			}
			blank = 0
			i++
			continue
		}
		if m := hunkHeader.FindStringSubmatch(line); m != nil {
			start, _ := strconv.Atoi(m[1])
			h := hunk{at: start - 1}
			if m[2] == "0" {
				// Nothing is removed: the lines are added behind the one that is named.
				h.at = start
			}
			hunks = append(hunks, h)
			blank = 0
			continue
		}
		if len(hunks) == 0 {
			continue
		}
		h := &hunks[len(hunks)-1]
		switch {
		case line == "":
			blank++
			continue
		case strings.HasPrefix(line, `\`):
			if n := len(h.lines); n > 0 {
				h.oldUnended = h.oldUnended || h.lines[n-1].op != '+'
				h.newUnended = h.newUnended || h.lines[n-1].op != '-'
			}
			continue
		case line[0] != ' ' && line[0] != '-' && line[0] != '+':
			continue
		}
		for ; blank > 0; blank-- {
			h.lines = append(h.lines, diffLine{op: ' '})
		}
		h.lines = append(h.lines, diffLine{op: line[0], text: line[1:]})
	}
	hunks = slices.DeleteFunc(hunks, func(h hunk) bool { return len(h.lines) == 0 })
	if len(hunks) == 0 {
		return nil, errors.New("the patch is neither a unified diff (no @@ -line,count +line,count @@ with lines below it) nor blocks of <<<SEARCH")
	}
	return hunks, nil
}

// patcher applies the parts of a patch in order.
type patcher struct {
	ctx       context.Context
	threshold float64
	spent     int
	missed    []int // parts that fit nowhere, from 1
}

// report names the parts that fit nowhere.
func (p *patcher) report(unit string) string {
	if len(p.missed) == 0 {
		return ""
	}
	numbers := make([]string, len(p.missed))
	for i, n := range p.missed {
		numbers[i] = strconv.Itoa(n)
	}
	if len(numbers) > 1 {
		unit += "s"
	}
	return unit + " " + strings.Join(numbers, ", ")
}

func (p *patcher) blocks(text string, blocks []block) (string, error) {
	for i, b := range blocks {
		if before, after, ok := strings.Cut(text, b.search); ok {
			text = before + b.replace + after
			continue
		}
		replaced, ok, err := p.similarBlock(text, b)
		if err != nil {
			return "", err
		}
		if !ok {
			p.missed = append(p.missed, i+1)
			continue
		}
		text = replaced
	}
	return text, nil
}

// similarBlock replaces the most similar run of as many lines as the text to find has, the first of several. As the block lost the white space around its texts, so the lines are compared without theirs, and keep it: the indentation of the first line, and the end of the last. An
// empty replacement takes the lines away whole.
func (p *patcher) similarBlock(text string, b block) (string, bool, error) {
	all := lines(text)
	n := strings.Count(b.search, "\n") + 1
	s := newSimilarity(b.search, &p.spent)
	best, at := p.threshold, -1
	for i := 0; i+n <= len(all); i++ {
		if err := context.Cause(p.ctx); err != nil {
			return "", false, err
		}
		ratio, err := s.ratio(strings.TrimSpace(strings.Join(all[i:i+n], "")), best)
		if err != nil {
			return "", false, err
		}
		if ratio > best {
			best, at = ratio, i
		}
	}
	if at < 0 {
		return "", false, nil
	}
	before, window, after := strings.Join(all[:at], ""), strings.Join(all[at:at+n], ""), strings.Join(all[at+n:], "")
	if b.replace == "" {
		return before + after, true, nil
	}
	tail := window[len(strings.TrimRightFunc(window, unicode.IsSpace)):]
	head := window[:len(window)-len(strings.TrimLeftFunc(window, unicode.IsSpace))]
	return before + head + b.replace + tail + after, true, nil
}

func (p *patcher) hunks(text string, hunks []hunk) (string, error) {
	unended := text != "" && !strings.HasSuffix(text, "\n")
	var all []string
	for _, line := range lines(text) {
		all = append(all, strings.TrimSuffix(line, "\n"))
	}
	offset := 0
	for i, h := range hunks {
		at, removed, ok, err := p.place(all, h, h.at+offset)
		if err != nil {
			return "", err
		}
		if !ok {
			p.missed = append(p.missed, i+1)
			continue
		}
		var added []string
		from := at
		for _, line := range h.lines {
			switch line.op {
			case '+':
				added = append(added, line.text)
			case ' ':
				// The place may be similar only. Lines that are not meant to change keep the text of the file.
				added = append(added, all[from])
				from++
			default:
				from++
			}
		}
		if at+removed == len(all) && (h.oldUnended || h.newUnended) {
			unended = h.newUnended
		}
		all = slices.Replace(all, at, at+removed, added...)
		offset += len(added) - removed
	}
	if len(all) == 0 {
		return "", nil
	}
	text = strings.Join(all, "\n")
	if !unended {
		text += "\n"
	}
	return text, nil
}

// place finds where the lines that a hunk removes or keeps are: the most similar place within reach of the hint, of several the nearest. A hunk that only adds goes where it says.
func (p *patcher) place(all []string, h hunk, hint int) (at, removed int, ok bool, err error) {
	var old []string
	for _, line := range h.lines {
		if line.op != '+' {
			old = append(old, line.text)
		}
	}
	n := len(old)
	if n == 0 {
		return min(max(hint, 0), len(all)), 0, true, nil
	}
	s := newSimilarity(strings.Join(old, "\n"), &p.spent)
	best := p.threshold
	for distance := 0; distance <= reach && best < 1; distance++ {
		for _, i := range []int{hint - distance, hint + distance} {
			if i < 0 || i+n > len(all) {
				continue
			}
			if err := context.Cause(p.ctx); err != nil {
				return 0, 0, false, err
			}
			ratio, err := s.ratio(strings.Join(all[i:i+n], "\n"), best)
			if err != nil {
				return 0, 0, false, err
			}
			if ratio > best {
				best, at, ok = ratio, i, true
			}
		}
	}
	return at, n, ok, nil
}
