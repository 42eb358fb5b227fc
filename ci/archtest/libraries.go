package archtest

// libraries lists what may be imported outside tests, and where. What each library is for, its licence and why it was chosen stand in docs/dependencies.md.
var libraries = []library{
	{"github.com/go-json-experiment/json", []string{"core", "harness", "providers"}, "the JSON codec of the formats that keep numbers and order"},
	{"go.yaml.in/yaml/v4", []string{"core", "harness"}, "files that users write"},
	{"github.com/google/jsonschema-go", []string{"core/tool", "harness/score"}, "JSON Schema of tools' arguments and of checks"},
	{"github.com/agnivade/levenshtein", []string{"core", "harness"}, "the nearest name in a hint"},
	{"github.com/andybalholm/brotli", []string{"harness/imports"}, "bodies of recordings"},
	{"github.com/dnaeon/go-vcr/v2", []string{"harness/cassette"}, "the cassette's types"},
	{"github.com/theory/jsonpath", []string{"harness/score"}, "the check json_path"},
	{"github.com/olekukonko/tablewriter", []string{"reports/terminal"}, "the terminal's table"},
	{"github.com/mattn/go-runewidth", []string{"reports/terminal"}, "the width of text on a terminal"},
	{"github.com/sashabaranov/go-openai", []string{"providers/openai"}, "the vendor's SDK"},
	{"github.com/anthropics/anthropic-sdk-go/v2", []string{"providers/anthropic"}, "the vendor's SDK"},
	{"github.com/aws/aws-sdk-go-v2", []string{"providers/bedrock"}, "the vendor's SDK, its signatures and its event streams"},
	{"github.com/aws/smithy-go", []string{"providers/bedrock"}, "the chain of handlers of the vendor's SDK"},
	{"google.golang.org/genai", []string{"providers/gemini"}, "the vendor's SDK"},
	{"cel.dev/cel-go", []string{"harness/filter", "harness/rule", "harness/score"}, "the expressions of --filter, of overrides, of rules and of the check cel"},
	{"github.com/spf13/cobra", []string{cli}, "commands and flags"},
	{"github.com/spf13/pflag", []string{cli}, "flags, as cobra knows them"},
	{"golang.org/x/text", []string{"harness/score"}, "Unicode normalisation in the checks of text"},
	{"gonum.org/v1/gonum", []string{"harness/stats"}, "distributions, for intervals and tests"},
	{"golang.org/x/term", []string{cli}, "whether stdout is a terminal, and how wide"},
}
