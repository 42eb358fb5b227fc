// Package evaltest runs datasets in Go tests. [Items] makes a Ginkgo spec of each item, [Replay] gives the outcomes to a test of any kind; both replay the committed recordings, within the process of the test, by the code of the command itself. Only tests import it.
//
//	func TestAgent(t *testing.T) {
//		RegisterFailHandler(Fail)
//		RunSpecs(t, "agent")
//	}
//
//	var _ = evaltest.Items("datasets/quickstart.yaml")
//
// Nothing dials and no key is needed. Programs that the dataset declares (targets, command checks) are started, as `echoeval replay` does.
package evaltest
