package promptfoo_test

import (
	"testing"

	"github.com/echoeval/echoeval/ci/suite"
)

func TestPromptfoo(t *testing.T) { suite.Run(t, "promptfoo") }
