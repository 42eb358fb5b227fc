package files

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/guard"
	"github.com/echoeval/echoeval/core/tool"
)

var listSpec = tool.Spec{
	Name:        "list_dir",
	Description: `List a folder: one line for each entry, "dir" or "file", a tab and the name.`,
	Effect:      tool.Read,
	Parameters: `{"type":"object","properties":{` +
		`"path":{"type":"string","description":"The folder, relative to the workspace; \".\" is the workspace."}` +
		`},"required":["path"]}`,
}

// listDir lists one level, hidden entries included, sorted by the bytes of the names, which is the order of their code points. A link counts as what it leads to; one that leads nowhere or out of the workspace is a file. A name with control characters, which no tool takes as a
// path, is shown in quotes so that each entry keeps to its line.
func listDir(_ context.Context, ws *guard.Workspace, arguments conversation.JSON) (tool.Output, error) {
	var args struct {
		Path string `json:"path"`
	}
	if err := tool.Decode(arguments, &args); err != nil {
		return tool.Output{}, err
	}
	r, err := ws.Resolve(args.Path, guard.List)
	if err != nil {
		return tool.Output{}, err
	}
	entries, err := ws.ReadDir(r)
	if err != nil {
		return tool.Output{}, err
	}
	list := make([]string, len(entries))
	for i, e := range entries {
		kind := "file"
		if isFolder(ws, r.Rel, e) {
			kind = "dir"
		}
		list[i] = kind + "\t" + displayName(e.Name())
	}
	out := tool.Text(strings.Join(list, "\n"))
	out.Meta = conversation.JSON(fmt.Sprintf(`{"count":%d}`, len(entries)))
	return touched(out, r), nil
}

func isFolder(ws *guard.Workspace, dir string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	target, err := ws.Resolve(path.Join(dir, e.Name()), 0)
	return err == nil && target.Exists() && target.Info.IsDir()
}

func displayName(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}
