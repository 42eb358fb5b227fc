package cassette_test

import (
	"testing"

	"github.com/echoeval/echoeval/ci/suite"
)

func TestCassette(t *testing.T) { suite.Run(t, "cassette") }
