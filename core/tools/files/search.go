package files

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/guard"
	"github.com/echoeval/echoeval/core/tool"
)

var searchSpec = tool.Spec{
	Name:        "search_files",
	Description: "Find lines of files by a regular expression (RE2 syntax: no look-around, no back-references), or files by a glob pattern such as *.go, src/*.go or src/**/*.go.",
	Effect:      tool.Read,
	Parameters: `{"type":"object","properties":{` +
		`"pattern":{"type":"string","description":"The regular expression or the glob pattern."},` +
		`"mode":{"type":"string","enum":["content","glob"],"description":"content finds lines, glob finds files; content when left out."},` +
		`"path":{"type":"string","description":"The folder to search, relative to the workspace; the whole workspace when left out."},` +
		`"max_results":{"type":"integer","default":50,"description":"How many results to return at most."}` +
		`},"required":["pattern"]}`,
}

// Bounds of a search.
const (
	defaultResults = 50
	maxResults     = 10_000
	maxScanned     = 20_000    // files
	maxSearched    = 1_000_000 // bytes of a file whose lines are searched
	maxLine        = 200       // characters of a line that are shown
)

// skipped are the folders that a search never enters. The search may begin in one.
var skipped = []string{".git", "__pycache__", "node_modules", ".venv", "venv"}

// searchFiles walks the folder depth first, the names of each folder sorted by their bytes, without following links to folders. What may not be read by its name is passed over, file by file.
//
// In the regular expressions, \d, \w, \s and \b know ASCII only. A glob is matched from the right against the path within the workspace: *.go at any depth, src/*.go against the last two names, /*.go only at the top; ** stands for any number of folders, also none; * and ? do not
// match a slash; [abc] and [!abc] are sets.
//
// Reaching max_results counts as truncated even where nothing more would have come.
func searchFiles(ctx context.Context, ws *guard.Workspace, arguments conversation.JSON) (tool.Output, error) {
	args := struct {
		Pattern    string `json:"pattern"`
		Mode       string `json:"mode"`
		Path       string `json:"path"`
		MaxResults int    `json:"max_results"`
	}{MaxResults: defaultResults}
	if err := tool.Decode(arguments, &args); err != nil {
		return tool.Output{}, err
	}
	if args.Path == "" {
		args.Path = "."
	}
	s := &search{ctx: ctx, ws: ws, most: args.MaxResults}
	switch {
	case args.Pattern == "":
		return tool.Output{}, errors.New("pattern is empty")
	case args.MaxResults < 1 || args.MaxResults > maxResults:
		return tool.Output{}, fmt.Errorf("max_results must be from 1 to %d", maxResults)
	case args.Mode == "glob":
		glob := newGlob(args.Pattern)
		s.visit = func(rel string, _ guard.Resolved) error {
			if glob.match(rel) {
				s.hit(rel, displayName(rel))
			}
			return nil
		}
	default:
		re, err := compile(args.Pattern)
		if err != nil {
			return tool.Output{}, err
		}
		s.visit = func(rel string, r guard.Resolved) error { return s.content(re, rel, r) }
	}
	root, err := ws.Resolve(args.Path, guard.List)
	if err != nil {
		return tool.Output{}, err
	}
	if err := s.walk(root); err != nil {
		return tool.Output{}, err
	}
	text := strings.Join(s.results, "\n")
	if len(s.results) == 0 {
		text = fmt.Sprintf("nothing in %s matches %s", args.Path, args.Pattern)
	}
	out := tool.Text(text)
	truncated := ""
	if s.truncated {
		truncated = `,"truncated":true`
	}
	out.Meta = conversation.JSON(fmt.Sprintf(`{"count":%d,"scanned":%d%s}`, len(s.results), s.scanned, truncated))
	out.Paths = s.paths
	slices.Sort(out.Paths)
	return out, nil
}

type search struct {
	ctx       context.Context
	ws        *guard.Workspace
	visit     func(rel string, r guard.Resolved) error
	most      int
	results   []string
	paths     []string
	scanned   int
	truncated bool
}

// hit keeps a result.
func (s *search) hit(rel, text string) {
	if n := len(s.paths); n == 0 || s.paths[n-1] != rel {
		s.paths = append(s.paths, rel)
	}
	s.results = append(s.results, text)
	s.truncated = s.truncated || len(s.results) >= s.most
}

func (s *search) walk(dir guard.Resolved) error {
	entries, err := s.ws.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if s.truncated {
			return nil
		}
		if err := context.Cause(s.ctx); err != nil {
			return err
		}
		rel := path.Join(dir.Rel, e.Name())
		switch {
		case e.IsDir() && slices.Contains(skipped, e.Name()):
		case e.IsDir():
			sub, err := s.ws.Resolve(rel, guard.List)
			if err != nil {
				// Withheld, or gone meanwhile.
				continue
			}
			if err := s.walk(sub); err != nil && !fileGone(err) {
				return err
			}
		case s.scanned == maxScanned:
			s.truncated = true
		default:
			r, err := s.ws.Resolve(rel, 0)
			if err != nil || !r.Exists() || r.Info.IsDir() {
				continue
			}
			s.scanned++
			if err := s.visit(rel, r); err != nil && !fileGone(err) {
				return err
			}
		}
	}
	return nil
}

// fileGone reports whether one file of many may be passed over.
func fileGone(err error) bool {
	var e *guard.Error
	return errors.As(err, &e)
}

// content searches the lines of a file that may be read.
func (s *search) content(re *regexp.Regexp, rel string, r guard.Resolved) error {
	if _, err := s.ws.Resolve(rel, guard.Read); err != nil || r.Info.Size() > maxSearched {
		return nil
	}
	data, err := s.ws.ReadFile(r, maxSearched)
	if err != nil || binary(data) {
		return err
	}
	number := 0
	for line := range strings.Lines(shown(data)) {
		number++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if !re.MatchString(line) {
			continue
		}
		s.hit(rel, fmt.Sprintf("%s:%d: %s", displayName(rel), number, cut(strings.TrimRightFunc(line, unicode.IsSpace))))
		if s.truncated {
			return nil
		}
	}
	return nil
}

// cut keeps the first characters of a line.
func cut(line string) string {
	if utf8.RuneCountInString(line) <= maxLine {
		return line
	}
	n := 0
	for i := range line {
		if n == maxLine {
			return line[:i]
		}
		n++
	}
	return line
}

// unsupported are constructs of other dialects, Python's above all, that RE2 does not have.
var unsupported = []struct{ mark, name string }{
	{"(?=", "look-ahead"}, {"(?!", "look-ahead"}, {"(?<=", "look-behind"}, {"(?<!", "look-behind"},
	{"(?P=", "a back-reference"}, {`\1`, "a back-reference"}, {`\2`, "a back-reference"}, {`\3`, "a back-reference"},
	{"(?(", "a condition"}, {"(?>", "an atomic group"}, {"(?#", "a comment"}, {`\Z`, `\Z (write \z)`}, {"++", "a possessive quantifier"}, {"*+", "a possessive quantifier"}, {"?+", "a possessive quantifier"},
}

func compile(pattern string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err == nil {
		return re, nil
	}
	for _, u := range unsupported {
		if strings.Contains(pattern, u.mark) {
			return nil, fmt.Errorf("invalid regex %q: %s is not supported", pattern, u.name)
		}
	}
	var e *syntax.Error
	if errors.As(err, &e) {
		return nil, fmt.Errorf("invalid regex %q: %s: %s", pattern, e.Code, e.Expr)
	}
	return nil, fmt.Errorf("invalid regex %q", pattern)
}

// glob is a pattern split at its slashes.
type glob struct {
	segments []string
	anchored bool
}

func newGlob(pattern string) glob {
	g := glob{anchored: strings.HasPrefix(pattern, "/")}
	for segment := range strings.SplitSeq(pattern, "/") {
		if segment != "" && segment != "." {
			g.segments = append(g.segments, segment)
		}
	}
	return g
}

// match reports whether the pattern fits the path, or the end of the path where it does not begin with a slash.
func (g glob) match(rel string) bool {
	if len(g.segments) == 0 {
		return false
	}
	segments := g.segments
	if !g.anchored {
		segments = append([]string{"**"}, segments...)
	}
	names := strings.Split(rel, "/")
	return wildcard(len(segments), len(names), func(i int) bool { return segments[i] == "**" }, func(i, j int) bool { return matchName(segments[i], names[j]) })
}

// wildcard matches a pattern of n elements, some of which are stars, against m elements, in a time of at most n times m.
func wildcard(n, m int, star func(i int) bool, one func(i, j int) bool) bool {
	i, j, lastStar, resume := 0, 0, -1, 0
	for j < m {
		switch {
		case i < n && star(i):
			lastStar, resume = i, j
			i++
		case i < n && one(i, j):
			i++
			j++
		case lastStar >= 0:
			resume++
			i, j = lastStar+1, resume
		default:
			return false
		}
	}
	for i < n && star(i) {
		i++
	}
	return i == n
}

// element is one part of a name's pattern: a star, or a set of characters.
type element struct {
	star   bool
	any    bool
	negate bool
	ranges [][2]rune
}

func (e element) has(r rune) bool {
	return e.any || e.negate != slices.ContainsFunc(e.ranges, func(x [2]rune) bool { return x[0] <= r && r <= x[1] })
}

func matchName(pattern, name string) bool {
	elements := parseName([]rune(pattern))
	runes := []rune(name)
	return wildcard(len(elements), len(runes), func(i int) bool { return elements[i].star }, func(i, j int) bool { return elements[i].has(runes[j]) })
}

func parseName(p []rune) []element {
	var out []element
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '*':
			out = append(out, element{star: true})
		case '?':
			out = append(out, element{any: true})
		case '[':
			if set, end, ok := parseSet(p, i); ok {
				out = append(out, set)
				i = end
				continue
			}
			fallthrough
		default:
			out = append(out, element{ranges: [][2]rune{{p[i], p[i]}}})
		}
	}
	return out
}

// parseSet reads [abc], [a-z] and [!abc]; a ] right after the opening belongs to the set. Without a closing ] the [ is a character like others.
func parseSet(p []rune, start int) (set element, end int, ok bool) {
	i := start + 1
	if i < len(p) && p[i] == '!' {
		set.negate = true
		i++
	}
	for first := true; i < len(p); first = false {
		if p[i] == ']' && !first {
			return set, i, true
		}
		if i+2 < len(p) && p[i+1] == '-' && p[i+2] != ']' {
			set.ranges = append(set.ranges, [2]rune{p[i], p[i+2]})
			i += 3
			continue
		}
		set.ranges = append(set.ranges, [2]rune{p[i], p[i]})
		i++
	}
	return element{}, 0, false
}
