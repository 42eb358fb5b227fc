// Package files holds the built-in tools that work on the files of an item's workspace: read_file, write_file, edit_file, patch, list_dir and search_files.
//
// All of them go through a [guard.Workspace], so that they see nothing else. They are deterministic: paths are printed as they were given, walks are sorted, bounds count and do not time, and errors of the operating system are reduced to their kind.
//
// # Text
//
// A line ends with LF; the CR of a CRLF belongs to the end of the line, a CR alone or a form feed does not end one. A file whose lines all end with CRLF is shown and searched as if they ended with LF, and keeps CRLF when it is edited or patched: the LF of a model's
// text then stand for CRLF. In a file with mixed ends texts are taken as they are. A byte order mark is not shown and stays in the file. A last line without LF stays one.
//
// read_file and search_files show bytes that are not UTF-8 as U+FFFD. edit_file and patch refuse a file that is not UTF-8, as writing it back would change what was not meant. A file with a NUL among its first 8,000 bytes counts as binary: read_file refuses it, search_files
// passes over it. No tool reads or writes a file of more than 10 MiB.
//
// Writing is all or nothing: a file is replaced by its new version in one step, and keeps its permissions.
package files

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/guard"
	"github.com/echoeval/echoeval/core/tool"
)

// MaxFile bounds the files that the tools read and write, in bytes.
const MaxFile = 10 << 20

// Source gives the workspace for a call that only reads ([guard.Read]) or that may write ([guard.Write]). It is asked by each call, so that a run that touches no file prepares nothing, and one that only reads needs no copy of its own. What was written
// before must be seen by every later call.
type Source func(guard.Access) (*guard.Workspace, error)

// Opened is the source of a workspace that is there already.
func Opened(ws *guard.Workspace) Source {
	return func(guard.Access) (*guard.Workspace, error) { return ws, nil }
}

// New returns the tools, sorted as in the reference of the built-in tools. They share one workspace.
//
// When source fails, the call returns a [tool.AbortError]: that there is no workspace is nothing that a model could mend.
func New(source Source) []tool.Tool {
	specs := []struct {
		spec tool.Spec
		run  runner
	}{
		{readSpec, readFile},
		{writeSpec, writeFile},
		{editSpec, editFile},
		{patchSpec, patchFile},
		{listSpec, listDir},
		{searchSpec, searchFiles},
	}
	tools := make([]tool.Tool, len(specs))
	for i, s := range specs {
		s.spec.Scope = tool.Workspace
		tools[i] = &fileTool{spec: s.spec, source: source, run: s.run}
	}
	return tools
}

type runner func(ctx context.Context, ws *guard.Workspace, arguments conversation.JSON) (tool.Output, error)

type fileTool struct {
	spec   tool.Spec
	source Source
	run    runner
}

// Spec implements [tool.Tool].
func (t *fileTool) Spec() tool.Spec { return t.spec }

// Run implements [tool.Tool]. What the model can put right is an output with IsError; an error is returned when there is no workspace, which ends the run, or ctx has ended.
func (t *fileTool) Run(ctx context.Context, call tool.Call) (tool.Output, error) {
	if err := context.Cause(ctx); err != nil {
		return tool.Output{}, err
	}
	access := guard.Write
	if t.spec.Effect.Parallel() {
		access = guard.Read
	}
	ws, err := t.source(access)
	if err != nil {
		return tool.Output{}, &tool.AbortError{Err: err}
	}
	out, err := t.run(ctx, ws, call.Arguments)
	if err != nil && context.Cause(ctx) == nil {
		return tool.Failed(err.Error()), nil
	}
	return out, err
}

// touched returns the output for one file.
func touched(out tool.Output, r guard.Resolved) tool.Output {
	out.Paths = []string{r.Rel}
	return out
}

// load reads a text file that is to be changed. The text has LF; crlf says that all its lines ended with CRLF.
func load(ws *guard.Workspace, r guard.Resolved) (text string, crlf bool, err error) {
	data, err := ws.ReadFile(r, MaxFile)
	if err != nil {
		return "", false, err
	}
	if !utf8.Valid(data) {
		return "", false, fmt.Errorf("%q is not UTF-8 text", r.Given)
	}
	text, crlf = withoutCR(string(data))
	return text, crlf, nil
}

// store writes what load has read.
func store(ws *guard.Workspace, r guard.Resolved, text string, crlf, parents bool) error {
	if crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if len(text) > MaxFile {
		return &guard.Error{Path: r.Given, Kind: guard.TooLarge, Limit: MaxFile}
	}
	return ws.WriteFile(r, []byte(text), parents)
}

// withoutCR turns CRLF into LF if every line ends so; only then can it be undone.
func withoutCR(text string) (string, bool) {
	n := strings.Count(text, "\r\n")
	if n == 0 || n != strings.Count(text, "\n") {
		return text, false
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), true
}

// lines splits after each LF. An empty text has no lines.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	list := strings.SplitAfter(text, "\n")
	if list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// shown is the text of a file as a model sees it.
func shown(data []byte) string {
	return strings.ToValidUTF8(strings.TrimPrefix(string(data), "\ufeff"), "\ufffd")
}

// binary reports whether a file holds no text.
func binary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0
}
