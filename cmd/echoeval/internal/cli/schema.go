package cli

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/baseline"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/harness/inject"
	"github.com/echoeval/echoeval/harness/results"
)

// written are the values of files that the program writes, by the kind of file.
var written = map[string]any{"results": eval.Result{}, "summary": results.Summary{}}

// made are the schemas of the other files that the program reads, by the kind of file.
var made = map[string]func() strict.Schema{"script": emulator.Schema, "prices": llm.PricesSchema, "baseline": baseline.Schema, "faults": inject.Schema}

// schemaKinds are all that schema knows, in the order of its help.
func schemaKinds() []string {
	return append(append([]string{}, dataset.SchemaKinds...), "script", "prices", "baseline", "faults", "results", "summary")
}

func newSchema(s *State) *cobra.Command {
	kinds := strings.Join(schemaKinds(), "|")
	return &cobra.Command{
		Use: "schema " + kinds, Short: "Print the JSON Schema of a kind of file", GroupID: "files",
		Long: "Print the JSON Schema (draft 2020-12) of a kind of file. An editor checks and completes a file whose first line names one:\n\n" +
			"  # yaml-language-server: $schema=../.echoeval/dataset.schema.json\n\n" +
			"script describes a script of the emulator, prices a file with prices, faults a plan of run --faults, results one line of results.jsonl, summary the file summary.json.",
		Example:   "  echoeval schema dataset > .echoeval/dataset.schema.json",
		Args:      between(1, 1, "one of "+strings.Join(schemaKinds(), ", ")),
		ValidArgs: schemaKinds(),
		RunE: func(_ *cobra.Command, args []string) error {
			schema, err := schemaOf(s, args[0])
			if err != nil {
				return err
			}
			text, err := json.MarshalIndent(schema, "", "  ")
			if err != nil {
				return failure.WithCode(err, failure.Internal)
			}
			_, err = s.Stdout.Write(append(text, '\n'))
			return unwritable(err)
		},
	}
}

// schemaOf makes the schema of a kind of file from the types that read or write it.
func schemaOf(s *State, kind string) (any, error) {
	if schema, ok := dataset.Schema(kind, datasetOptions(s)); ok {
		return schema, nil
	}
	if schema, ok := made[kind]; ok {
		return schema(), nil
	}
	value, ok := written[kind]
	if !ok {
		return nil, failure.WithHint(failure.New(failure.Input, "unknown kind of file %q", kind), "%s", strict.Suggest(kind, schemaKinds()))
	}
	schemas := &strict.Schemas{Written: true, Types: map[reflect.Type]func() strict.Schema{
		reflect.TypeFor[money.USD]():   func() strict.Schema { return strict.Schema{"type": "number", "description": "USD"} },
		reflect.TypeFor[eval.Status](): func() strict.Schema { return enum(eval.Statuses) },
		reflect.TypeFor[eval.CheckStatus](): func() strict.Schema {
			return enum([]eval.CheckStatus{eval.CheckPass, eval.CheckFail, eval.CheckUnjudged})
		},
		reflect.TypeFor[eval.FaultStatus](): func() strict.Schema {
			return enum([]eval.FaultStatus{eval.FaultSurvived, eval.FaultBroke, eval.FaultNotInjected})
		},
		reflect.TypeFor[eval.Severity](): func() strict.Schema { return enum([]eval.Severity{eval.SeverityError, eval.SeverityWarn}) },
	}}
	return schemas.Root(value, "echoeval "+kind), nil
}

func enum[T ~string](values []T) strict.Schema {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return strict.Enum(list...)
}
