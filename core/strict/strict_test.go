package strict_test

import (
	"testing"

	"github.com/echoeval/echoeval/ci/suite"
)

func TestStrict(t *testing.T) { suite.Run(t, "strict") }
