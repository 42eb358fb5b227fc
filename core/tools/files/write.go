package files

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/guard"
	"github.com/echoeval/echoeval/core/tool"
)

var writeSpec = tool.Spec{
	Name:        "write_file",
	Description: "Make a text the whole content of a file. A file that is there is overwritten, missing folders are made.",
	Effect:      tool.Write,
	Parameters: `{"type":"object","properties":{` +
		`"path":{"type":"string","description":"The file, relative to the workspace."},` +
		`"content":{"type":"string","description":"The whole new content."}` +
		`},"required":["path","content"]}`,
}

// writeFile writes the text exactly as it stands in the arguments, line ends included.
func writeFile(_ context.Context, ws *guard.Workspace, arguments conversation.JSON) (tool.Output, error) {
	var args struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	if err := tool.Decode(arguments, &args); err != nil {
		return tool.Output{}, err
	}
	r, err := ws.Resolve(args.Path, guard.Write)
	if err != nil {
		return tool.Output{}, err
	}
	if err := store(ws, r, args.Content, false, true); err != nil {
		return tool.Output{}, err
	}
	return touched(tool.Text(fmt.Sprintf("wrote %d characters to %s", utf8.RuneCountInString(args.Content), args.Path)), r), nil
}

var editSpec = tool.Spec{
	Name:        "edit_file",
	Description: "Replace a text in a file by another. The text must be exactly as in the file and occur once, unless replace_all is set.",
	Effect:      tool.Write,
	Parameters: `{"type":"object","properties":{` +
		`"path":{"type":"string","description":"The file, relative to the workspace."},` +
		`"old_string":{"type":"string","description":"The text to replace, without the line numbers that read_file puts before it."},` +
		`"new_string":{"type":"string","description":"The text to put in its place."},` +
		`"replace_all":{"type":"boolean","default":false,"description":"Replace every occurrence."}` +
		`},"required":["path","old_string","new_string"]}`,
}

// editFile replaces a text that occurs exactly once, occurrences that overlap counting as one, or with replace_all each of them. As it tells whether a text is in the file, it needs the right to read as well as to write. Replacing a text by itself succeeds.
func editFile(_ context.Context, ws *guard.Workspace, arguments conversation.JSON) (tool.Output, error) {
	var args struct {
		Path       string `json:"path"`
		Old        string `json:"old_string"`
		New        string `json:"new_string"`
		ReplaceAll bool   `json:"replace_all"`
	}
	if err := tool.Decode(arguments, &args); err != nil {
		return tool.Output{}, err
	}
	if args.Old == "" {
		return tool.Output{}, errors.New("old_string is empty; give the text to replace, or use write_file for a whole file")
	}
	r, err := ws.Resolve(args.Path, guard.Read|guard.Write)
	if err != nil {
		return tool.Output{}, err
	}
	text, crlf, err := load(ws, r)
	if err != nil {
		return tool.Output{}, err
	}
	if crlf {
		args.Old, args.New = strings.ReplaceAll(args.Old, "\r\n", "\n"), strings.ReplaceAll(args.New, "\r\n", "\n")
	}
	n := strings.Count(text, args.Old)
	switch {
	case n == 0:
		return tool.Output{}, fmt.Errorf("old_string is not in %q", args.Path)
	case n > 1 && !args.ReplaceAll:
		return tool.Output{}, fmt.Errorf("old_string is %d times in %q, not unique; add text around it, or set replace_all", n, args.Path)
	case len(text)+n*(len(args.New)-len(args.Old)) > MaxFile:
		return tool.Output{}, &guard.Error{Path: args.Path, Kind: guard.TooLarge, Limit: MaxFile}
	}
	if args.New != args.Old {
		if err := store(ws, r, strings.ReplaceAll(text, args.Old, args.New), crlf, false); err != nil {
			return tool.Output{}, err
		}
	}
	replacements := "1 replacement"
	if n > 1 {
		replacements = fmt.Sprintf("%d replacements", n)
	}
	return touched(tool.Text(fmt.Sprintf("edited %s: %s", args.Path, replacements)), r), nil
}
