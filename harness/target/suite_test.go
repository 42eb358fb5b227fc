package target_test

import (
	"testing"

	"github.com/echoeval/echoeval/ci/suite"
)

func TestTarget(t *testing.T) { suite.Run(t, "target") }
