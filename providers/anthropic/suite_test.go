package anthropic_test

import (
	"testing"

	"github.com/echoeval/echoeval/ci/suite"
)

func TestAnthropic(t *testing.T) { suite.Run(t, "anthropic") }
