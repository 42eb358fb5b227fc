package archtest

// Rule is one rule of the tree.
type Rule struct {
	Name string
	// Why is the reason for the rule; it is printed with every violation.
	Why string
	// Check returns the violations, and how many things it looked at.
	Check func(*Tree) (looked int, found []Violation)
}

// Rules lists all rules but the one that needs types, see [Codec].
var Rules = []Rule{
	{Name: "import-direction", Check: checkDirection,
		Why: "the layers can be understood, tested and replaced one at a time only while each knows those below it alone"},
	{Name: "test-helpers", Check: checkHelpers,
		Why: "what serves tests must not reach the binary"},
	{Name: "libraries", Check: checkLibraries,
		Why: "each library stays where its job is; above all no vendor's SDK shapes the core"},
	{Name: "process-doors", Check: checkDoors,
		Why: "time, randomness, environment and network are passed in, so that a replay is the same everywhere and a test can set them"},
	{Name: "package-doc", Check: checkPackageDocs,
		Why: "the package comment is where a reader starts"},
	{Name: "doc-comments", Check: checkDocComments,
		Why: "the contract of a name is what its callers may rely on, and it is not in the code"},
	{Name: "machine-paths", Check: checkMachinePaths,
		Why: "a path of one machine is wrong on every other, and tells about its owner"},
	{Name: "registry-hosts", Check: checkRegistryHosts,
		Why: "where packages come from is a setting of the machine that builds"},
	{Name: "merge-marks", Check: checkMergeMarks,
		Why: "a file that git could not merge says two things at once"},
	{Name: "links", Check: checkLinks,
		Why: "a dead link costs each reader the same search"},
	{Name: "doc-paths", Check: checkDocPaths,
		Why: "a document that names a folder or file which has moved describes another program"},
	{Name: "doc-names", Check: checkDocNames,
		Why: "a document that names a function or table which is gone sends its reader to look for it"},
	{Name: "decisions", Check: checkDecisions,
		Why: "decisions are cited by number"},
	{Name: "dependencies", Check: checkDependencies,
		Why: "every library is there for a reason that somebody wrote down"},
}
