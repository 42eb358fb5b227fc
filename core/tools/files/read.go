package files

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/guard"
	"github.com/echoeval/echoeval/core/tool"
)

var readSpec = tool.Spec{
	Name:        "read_file",
	Description: "Show the lines of a text file, each with its number and a tab before it. Read a long file in parts with offset and limit.",
	Effect:      tool.Read,
	Parameters: `{"type":"object","properties":{` +
		`"path":{"type":"string","description":"The file, relative to the workspace."},` +
		`"offset":{"type":"integer","description":"Number of the first line to show, from 1. Without it the file is shown from its beginning."},` +
		`"limit":{"type":"integer","description":"How many lines to show, at most 2000 when left out."}` +
		`},"required":["path"]}`,
}

// defaultLines is how many lines read_file shows when it is not told.
const defaultLines = 2000

// readFile shows lines as number, tab, text. Past the end there is nothing to show, which is no error. How much of it reaches the model is for the loop to decide.
func readFile(_ context.Context, ws *guard.Workspace, arguments conversation.JSON) (tool.Output, error) {
	args := struct {
		Path   string `json:"path"`
		Offset int    `json:"offset"`
		Limit  int    `json:"limit"`
	}{Offset: 1, Limit: defaultLines}
	if err := tool.Decode(arguments, &args); err != nil {
		return tool.Output{}, err
	}
	switch {
	case args.Offset < 1:
		return tool.Output{}, errors.New("offset must be at least 1, the number of the first line")
	case args.Limit < 1:
		return tool.Output{}, errors.New("limit must be at least 1")
	}
	r, err := ws.Resolve(args.Path, guard.Read)
	if err != nil {
		return tool.Output{}, err
	}
	data, err := ws.ReadFile(r, MaxFile)
	if err != nil {
		return tool.Output{}, err
	}
	if binary(data) {
		return tool.Output{}, fmt.Errorf("%q is a binary file of %d bytes; only text can be shown", r.Given, len(data))
	}
	all := lines(shown(data))
	var b strings.Builder
	for i := args.Offset - 1; i < len(all) && i-args.Offset+1 < args.Limit; i++ {
		b.WriteString(strconv.Itoa(i + 1))
		b.WriteByte('\t')
		if text, ok := strings.CutSuffix(all[i], "\r\n"); ok {
			b.WriteString(text)
			b.WriteByte('\n')
		} else {
			b.WriteString(all[i])
		}
	}
	out := tool.Text(b.String())
	out.Meta = conversation.JSON(fmt.Sprintf(`{"total_lines":%d}`, len(all)))
	return touched(out, r), nil
}
