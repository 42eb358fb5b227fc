package bedrock_test

import (
	"testing"

	"github.com/echoeval/echoeval/ci/suite"
)

func TestBedrock(t *testing.T) { suite.Run(t, "bedrock") }
