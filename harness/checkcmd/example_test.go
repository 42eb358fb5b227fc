package checkcmd_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/echoeval/echoeval/harness/checkcmd"
)

func wordScore(text string) float64 { return min(1, 80/float64(max(len(strings.Fields(text)), 1))) }

// The whole program of a check that wants short answers.
func ExampleMain() {
	checkcmd.Main(func(c checkcmd.Case) checkcmd.Verdict { return checkcmd.Score(wordScore(c.Output), "words") })
}

// A check is tested without a process.
func ExampleServe() {
	in := strings.NewReader(`{"v":1,"output":"Call 112 now."}`)
	err := checkcmd.Serve(in, os.Stdout, func(c checkcmd.Case) checkcmd.Verdict { return checkcmd.Score(wordScore(c.Output), "words") })
	if err != nil {
		fmt.Println(err)
	}
	// Output: {"score":1,"reason":"words"}
}
