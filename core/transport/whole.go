package transport

import (
	"fmt"
	"io"
)

// Whole reads a body to its end. One of more than limit bytes is an error that no repetition of the request mends.
func Whole(body io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, tooLarge(limit)
	}
	return data, err
}

type tooLarge int64

func (e tooLarge) Error() string { return fmt.Sprintf("the reply has more than %d bytes", int64(e)) }

// Final says that the same request would get the same.
func (tooLarge) Final() bool { return true }
