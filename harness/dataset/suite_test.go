package dataset_test

import (
	"testing"

	"github.com/echoeval/echoeval/ci/suite"
)

func TestDataset(t *testing.T) { suite.Run(t, "dataset") }
