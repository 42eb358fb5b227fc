package tmpdeps

import (
	_ "github.com/agnivade/levenshtein"
	_ "github.com/dnaeon/go-vcr/v2/cassette"
	_ "github.com/dnaeon/go-vcr/v2/recorder"
	_ "github.com/go-json-experiment/json"
	_ "github.com/go-json-experiment/json/jsontext"
	_ "github.com/google/jsonschema-go/jsonschema"
	_ "github.com/mattn/go-runewidth"
	_ "github.com/olekukonko/tablewriter"
	_ "github.com/pmezard/go-difflib/difflib"
	_ "github.com/sashabaranov/go-openai"
	_ "github.com/spf13/cobra"
	_ "github.com/theory/jsonpath"
	_ "go.yaml.in/yaml/v4"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/term"
)
