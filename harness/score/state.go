package score

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/strict"
)

// Workspace opens the files of an item: before are those that the run began with, after those that it left. Both see nothing outside.
type Workspace func() (before, after fs.FS, err error)

// maxFile is the largest file that is looked at.
const maxFile = 16 << 20

// finalStateArgs are the arguments of the check final_state.
type finalStateArgs struct {
	Files  map[string]strict.Node `yaml:"files" doc:"what each file must be at the end, by its path in the workspace: a text, or tests"`
	Others *string                `yaml:"others" values:"unchanged" doc:"unchanged: no other file was written, made or removed"`
}

// UnknownKey implements [strict.UnknownKey].
func (*finalStateArgs) UnknownKey(name string) (message, hint string) {
	if name == "artifacts" || name == "rows" {
		return fmt.Sprintf("key %q is not in this version", name), "remove it; reading the file without it would run something else than it says"
	}
	return "", ""
}

// fileArgs are tests on a file.
type fileArgs struct {
	Exists    *bool       `yaml:"exists" doc:"whether the file is there"`
	Equals    *string     `yaml:"equals" doc:"its whole text"`
	Contains  *string     `yaml:"contains" schema:"filled_or_null" doc:"a text that it holds"`
	Matches   *string     `yaml:"matches" doc:"an RE2 expression that matches somewhere in it"`
	JSON      strict.Node `yaml:"json" doc:"it is JSON and this value, with the matchers of tool_calls"`
	Unchanged *bool       `yaml:"unchanged" doc:"whether it is as before the run"`
}

// fileTest is what one file must be.
type fileTest struct {
	path string
	args fileArgs
	re   *regexp.Regexp
	json matcher // nil: anything
}

func compileFinalState(args strict.Node, a at) judge {
	var in finalStateArgs
	a.decode(args, &in, "final_state: {files: {notes.txt: {contains: done}}}")
	if args.Kind() != strict.Mapping {
		return nil
	}
	if a.env.Turn {
		a.bad(args, "put it among the checks of the item", "files are looked at when the last turn is over")
	}
	var tests []fileTest
	files := args.Get("files")
	if files.Kind() == strict.Mapping && files.Len() == 0 {
		a.key("files").bad(files, "name at least one", "no file is named")
	}
	if files.IsZero() && in.Others == nil {
		a.bad(args, "add files: {notes.txt: {contains: done}}, or others: unchanged", "nothing is said of any file")
	}
	for key, value := range files.Fields() {
		tests = append(tests, compileFile(key, value, a.key("files").key(key.Name)))
	}
	expected := cut(args.JSON())
	return func(_ context.Context, c *Case) (Verdict, error) {
		if c.Workspace == nil {
			return Verdict{}, errors.New("the workspace is not there any more")
		}
		before, after, err := c.Workspace()
		if err != nil {
			return Verdict{}, err
		}
		var wrong []string
		for i := range tests {
			why, err := tests[i].wrong(before, after)
			if err != nil {
				return Verdict{}, err
			}
			if why != "" {
				wrong = append(wrong, excerpt(tests[i].path, 0, 120)+" "+why)
			}
		}
		asked, failed := len(tests), len(wrong)
		if in.Others != nil {
			asked++
			changed, err := changes(before, after)
			if err != nil {
				return Verdict{}, err
			}
			found := len(wrong)
			for _, change := range changed {
				if !slices.ContainsFunc(tests, func(t fileTest) bool { return t.path == change.path }) {
					wrong = append(wrong, excerpt(change.path, 0, 120)+" was "+change.what)
				}
			}
			if len(wrong) > found {
				failed++
			}
		}
		v := Verdict{Score: float64(asked-failed) / float64(asked), Expected: expected, Actual: "as expected", Reason: fmt.Sprintf("all %d as expected", asked)}
		if len(wrong) > 0 {
			v.Reason = cut(strings.Join(wrong, "; "))
			v.Actual = v.Reason
		}
		return v, nil
	}
}

func compileFile(key strict.Key, n strict.Node, a at) fileTest {
	t := fileTest{path: key.Name}
	if !fs.ValidPath(key.Name) || key.Name == "." || strings.Contains(key.Name, `\`) {
		a.Add(key.Pos(), "a path with slashes from the workspace, without . and ..", "%q is no path of a file in the workspace", key.Name)
	}
	if n.Kind() == strict.String {
		text := n.Text()
		t.args.Equals = &text
		return t
	}
	a.decode(n, &t.args, "{contains: done}, or {exists: false}")
	if n.Kind() != strict.Mapping {
		return t
	}
	content := t.args.Equals != nil || t.args.Contains != nil || t.args.Matches != nil || !t.args.JSON.IsZero()
	switch {
	case !content && t.args.Exists == nil && t.args.Unchanged == nil:
		a.bad(n, "add one of exists, equals, contains, matches, json, unchanged", "no test on the file")
	case t.args.Exists != nil && !*t.args.Exists && content:
		a.bad(n, "leave out the other tests", "a file that must not exist is tested")
	}
	if t.args.Contains != nil && *t.args.Contains == "" {
		a.key("contains").bad(n.Get("contains"), "it stands in every file", "the text is empty")
	}
	if t.args.Matches != nil {
		t.re = expression(*t.args.Matches, n.Get("matches"), a.key("matches"))
	}
	if !t.args.JSON.IsZero() {
		t.json = compileMatcher(t.args.JSON, true, a.key("json"))
	}
	return t
}

// read returns the content of a file; there says whether it exists. An error says why nobody can tell.
func read(files fs.FS, path string) (data []byte, there bool, err error) {
	info, err := fs.Stat(files, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("%s cannot be looked at: %w", path, reason(err))
	case info.IsDir():
		return nil, true, fmt.Errorf("%s is a folder", path)
	case !info.Mode().IsRegular():
		return nil, true, fmt.Errorf("%s is no regular file", path)
	case info.Size() > maxFile:
		return nil, true, fmt.Errorf("%s is larger than %d MiB", path, maxFile>>20)
	}
	data, err = fs.ReadFile(files, path)
	if err != nil {
		return nil, true, fmt.Errorf("%s cannot be read: %w", path, reason(err))
	}
	return data, true, nil
}

// reason is an error without the path that a machine puts before it.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// wrong says in what a file fails, or "".
func (t *fileTest) wrong(before, after fs.FS) (string, error) {
	tested := t.args.Equals != nil || t.args.Contains != nil || t.args.Matches != nil || t.json != nil
	data, there, err := read(after, t.path)
	if err != nil && (!there || tested || t.args.Unchanged != nil) {
		return "", err
	}
	if t.args.Exists != nil && *t.args.Exists != there {
		if there {
			return "exists", nil
		}
		return "does not exist", nil
	}
	if t.args.Unchanged != nil {
		old, was, err := read(before, t.path)
		if err != nil {
			return "", err
		}
		if was == there && bytes.Equal(old, data) != *t.args.Unchanged {
			if *t.args.Unchanged {
				return "was changed", nil
			}
			return "is as before", nil
		}
		if was != there && *t.args.Unchanged {
			if there {
				return "was made", nil
			}
			return "was removed", nil
		}
	}
	text := string(data)
	switch {
	case !tested:
		return "", nil
	case !there:
		return "does not exist", nil
	case !utf8.ValidString(text):
		return "is no text in UTF-8", nil
	case t.args.Equals != nil && text != *t.args.Equals:
		i := difference(*t.args.Equals, text)
		return fmt.Sprintf("differs at character %d: want %s, got %s", character(text, i), quote(*t.args.Equals, i), quote(text, i)) +
			form{}.hint(text, func(f form) bool {
				return f.Unicode == "nfc" && !f.IgnoreCase && f.apply(text) == f.apply(*t.args.Equals)
			}), nil
	case t.args.Contains != nil && !strings.Contains(text, *t.args.Contains):
		return "does not hold " + quote(*t.args.Contains, 0), nil
	case t.re != nil && !t.re.MatchString(text):
		return "does not match " + quote(*t.args.Matches, 0), nil
	case t.json == nil:
		return "", nil
	}
	n, why := parse(text, false)
	if why != "" {
		return "is no JSON: " + why, nil
	}
	return strings.Join(t.json.differences(n, ""), ", "), nil
}

// change is a file that is not as it was.
type change struct{ path, what string }

// changes lists the files that were made, changed or removed, sorted by path.
func changes(before, after fs.FS) (all []change, err error) {
	was, err := walk(before)
	if err != nil {
		return nil, err
	}
	is, err := walk(after)
	if err != nil {
		return nil, err
	}
	paths := append(slices.Clone(was), is...)
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		_, old := slices.BinarySearch(was, path)
		_, now := slices.BinarySearch(is, path)
		switch {
		case !old:
			all = append(all, change{path, "made"})
		case !now:
			all = append(all, change{path, "removed"})
		default:
			a, _, err := read(before, path)
			if err != nil {
				return nil, err
			}
			b, _, err := read(after, path)
			if err != nil {
				return nil, err
			}
			if !bytes.Equal(a, b) {
				all = append(all, change{path, "changed"})
			}
		}
	}
	return all, nil
}

// walk are the paths of all that is no folder, sorted.
func walk(files fs.FS) (paths []string, err error) {
	err = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the workspace cannot be listed: %w", reason(err))
	}
	slices.Sort(paths)
	return paths, nil
}
