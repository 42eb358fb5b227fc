package target

import (
	"slices"
	"strings"
)

// reader understands the traffic of one path. A further format is a further row.
type reader struct {
	// path is the end of the request's path.
	path string
	// read gives the step of a model; nil for traffic that is none, such as embeddings. reply is nil where none came that is worth reading.
	read func(request, reply []byte, stream bool, messageID string) (Step, error)
	// bound gives the model of a request, and how many tokens it lets the answer have, 0 where it does not say.
	bound func(request []byte) (model string, most int)
}

// readers is the table of formats.
var readers = []reader{
	{path: "/chat/completions", read: readChat, bound: boundChat},
	{path: "/embeddings"},
	{path: "/moderations"},
}

// readerOf finds the reader of a path, nil for none.
func readerOf(path string) *reader {
	i := slices.IndexFunc(readers, func(r reader) bool { return strings.HasSuffix(path, r.path) })
	if i < 0 {
		return nil
	}
	return &readers[i]
}
