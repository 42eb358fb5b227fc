package score_test

import (
	"context"
	"fmt"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/score"
)

// The checks of an item are compiled before anything runs, then judge what the agent said.
func ExampleCompile() {
	args, err := strict.Parse("datasets/d.yaml", []byte("{value: call 112, ignore_case: true}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var p strict.Problems
	checks := score.Compile([]score.Spec{{Kind: "contains", Args: args, Pos: args.Pos()}}, score.Env{}, &p)
	if err := p.Err(); err != nil {
		fmt.Println(err)
		return
	}
	var results []eval.CheckResult
	for _, c := range checks {
		results = append(results, c.Run(context.Background(), score.Case{Output: "Please call your doctor."}))
	}
	_, verdict := score.Total(results, nil)
	fmt.Println(verdict, "-", results[0].Name, results[0].Reason)
	// Output: fail - contains not found
}
