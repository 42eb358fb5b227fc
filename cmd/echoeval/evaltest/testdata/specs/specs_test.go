// Package specs_test makes specs of the dataset that DATASET names, in the folder that the test starts in. The specs of evaltest compile it once and run it in projects of their own.
package specs_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/cmd/echoeval/evaltest"
	. "github.com/echoeval/echoeval/harness/matchers"
)

func TestSpecs(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "specs")
}

var _ = evaltest.Items(os.Getenv("DATASET"), evaltest.Flags(strings.Fields(os.Getenv("FLAGS"))...), evaltest.Each(func(o Outcome) {
	GinkgoWriter.Println("each saw", o.Result.Item, o.Result.Repeat, len(o.Trace.Events) > 0)
	if os.Getenv("EACH") == "fails" {
		Expect(o).To(CallNoTools())
	}
}))
