// Package cassette is the file that holds what one item said to the world and what it heard: reading, writing, the canonical form of requests, and the comparison of two requests.
//
// A cassette is a file of go-vcr v2 (https://github.com/dnaeon/go-vcr, version 1 of its format) and can be loaded by it with the same bodies. What go-vcr does not know stands under the key echoeval, once at the top ([Header]) and, where there is something to
// say, in an interaction ([Extra]). A file that lost that key, as when go-vcr saves it again, is refused: nothing tells any longer what it was recorded for.
//
// Start with [Load] and [Save]. [Canonical] makes the request that is stored and matched, [Seal] and [Open] do the placeholders of responses, [Compare] says how two requests differ.
//
// Compatibility: a file says the version of its format and of its canonical form. Every later release reads all versions that an earlier one wrote; keys are only added.
package cassette

import (
	"strings"
	"time"

	vcr "github.com/dnaeon/go-vcr/v2/cassette"
)

// Request and Response are go-vcr's own types; their fields are what the file holds.
type (
	Request  = vcr.Request
	Response = vcr.Response
)

// The versions that this release writes. It reads all from 1 to these.
const (
	Format = 1 // of the echoeval blocks
	Canon  = 1 // of the canonical form
)

// EmulatorServer begins the Server header of a server that stands in for a vendor. What such a server calls itself is kept as [Header.Upstream].
const EmulatorServer = "echoeval-emulator"

// vcrVersion is the version of go-vcr's format.
const vcrVersion = 1

// File is a whole cassette. Interactions are in the order in which the calls were made.
type File struct {
	Header       Header
	Interactions []Interaction
}

// Header says what a cassette was recorded for and how.
type Header struct {
	Format, Canon int // 0 is written as the current version
	Dataset, Item string
	Repeat        int // from 1
	Provider      string
	Vendor, Model string
	RecordedAt    time.Time // start of the item's clock; kept in UTC, to the nanosecond
	Seed          uint64
	Upstream      string            // what was dialled in the vendor's place, such as an emulator with the hash of its script; "" for the vendor itself
	Imported      string            // the format of the recording that it was made of; "" for one of our own
	Hashes        map[string]string // of what the recording depends on, by name; a name that is absent was not known to the release that recorded, "" is a thing that was not there
	Rules         []string          // names of the rules of the canonical form that changed something, sorted
}

// Interaction is one request with its response. For a tool the method is TOOL, see [Method].
type Interaction struct {
	Request  Request
	Response Response
	Extra    Extra
}

// Extra is what go-vcr does not know of an interaction. Zero values are not written.
type Extra struct {
	TTFT    time.Duration // from the start of the request to the first byte of the body of a stream
	Partial bool          // the body was cut short by one side and replays as a cut
	// Encoding is the Content-Encoding that an imported response had: its body is stored decoded, without the header.
	Encoding string
	// Of tools.
	Seq        int    // number of the call within the item, from 1
	Effect     string // pure, read, write, irreversible
	Scope      string // workspace, external
	Occurrence int    // how many equal calls came before, plus 1
	// Judge is the id of the provider that was asked to score the answer; "" is what the agent said to the world. The interactions of judges stand behind all others.
	Judge string
}

// SetupFile is the name of the cassette of a dataset that holds what a run fetches once for all its items. It belongs to the dataset itself, is never an orphan, and its header names no item. No item's file has this name, as those begin with a letter or a digit.
const SetupFile = "_setup.yaml"

// Method is the method of an interaction that is the call of a tool. Its URL is that of [ToolURL], the body of the request holds the arguments of the model and the body of the response the output.
const Method = "TOOL"

// InputFiles names those hashes of the header that no request shows: files that tools and databases read. A change of one makes a cassette stale with class input-files.
var InputFiles = []string{TargetFiles, "queries", "schema", "seed", "skills", "workspace"}

// TargetFiles names the hashes of the files of a program under test: a text of one line a file, the hash, a space and the path, in order of the paths.
const TargetFiles = "files"

// ChangedFile returns the first path by name whose hash differs between two texts of [TargetFiles], with both hashes; "" is a file that was not there.
func ChangedFile(recorded, now string) (path, old, new string) {
	was, is := fileHashes(recorded), fileHashes(now)
	changed := ""
	for _, of := range []map[string]string{was, is} {
		for path := range of {
			if was[path] != is[path] && (changed == "" || path < changed) {
				changed = path
			}
		}
	}
	return changed, was[changed], is[changed]
}

func fileHashes(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		hash, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		all[path] = hash
	}
	return all
}

// ChangedInputs returns the names of [InputFiles] whose hashes differ between two headers, in order. Only names that both know are compared.
func ChangedInputs(recorded, now map[string]string) []string {
	var changed []string
	for _, name := range InputFiles {
		old, knew := recorded[name]
		new, knows := now[name]
		if knew && knows && old != new {
			changed = append(changed, name)
		}
	}
	return changed
}

// The bounds of a file.
const (
	maxSize  = 256 << 20
	maxDepth = 16 // of nested YAML; a cassette has 6 levels
)
