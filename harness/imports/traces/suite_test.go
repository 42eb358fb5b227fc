package traces_test

import (
	"testing"

	"github.com/echoeval/echoeval/ci/suite"
)

func TestTraces(t *testing.T) { suite.Run(t, "traces") }
