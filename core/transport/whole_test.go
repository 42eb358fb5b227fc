package transport_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/echoeval/echoeval/core/transport"
)

func TestWhole(t *testing.T) {
	for _, limit := range []int64{5, 6} {
		if data, err := transport.Whole(iotest.OneByteReader(strings.NewReader("hello")), limit); err != nil || string(data) != "hello" {
			t.Errorf("Whole(hello, %d) = %q, %v", limit, data, err)
		}
	}
	_, err := transport.Whole(strings.NewReader("hello"), 4)
	var final interface{ Final() bool }
	if !errors.As(err, &final) || !final.Final() || err.Error() != "the reply has more than 4 bytes" {
		t.Errorf("a reply that is too large: %v", err)
	}
	if _, err := transport.Whole(io.MultiReader(strings.NewReader("he"), iotest.ErrReader(io.ErrUnexpectedEOF)), 4); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut: %v", err)
	}
}
