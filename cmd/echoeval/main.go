// Command echoeval evaluates tool-calling agents: it runs them over datasets, records and replays what they exchange with the world, and tells whether a change is a regression.
package main

import (
	"os"

	"github.com/echoeval/echoeval/cmd/echoeval/internal/cli"
)

func main() { os.Exit(cli.Main(cli.System())) }
