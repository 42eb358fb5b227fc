// Command echoeval evaluates tool-calling agents: it runs them over datasets, records and replays what they exchange with the world, and tells whether a change is a regression.
package main

import (
	"io"
	"log"
	"os"
	"runtime/debug"

	"github.com/echoeval/echoeval/cmd/echoeval/internal/cli"
)

func main() {
	// Little is alive at any time and much is made: a larger heap between collections costs a few megabytes and saves a fifth of the time.
	debug.SetGCPercent(400)
	// The SDKs of vendors log there what is an error, a warning or nobody's business here.
	log.SetOutput(io.Discard)
	os.Exit(cli.Main(cli.System()))
}
