package recordings_test

import (
	"testing"

	"github.com/echoeval/echoeval/ci/suite"
)

func TestRecordings(t *testing.T) { suite.Run(t, "recordings") }
