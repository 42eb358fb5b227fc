// Package results is the folder that a run leaves behind: how it is written while items finish, how it is put in order when they have, and how it is read.
//
// While a run goes on there is a manifest and a journal: [Journal.Append] writes one line per finished item, in order of completion, from any number of goroutines. [Fold] turns the journal into results.jsonl, traces/ and summary.json, in the order of the plan, and removes it.
// [Open] reads either: a run that was killed is read from its journal and says that it is incomplete.
//
//	id, dir, err := results.NewFolder(".echoeval/runs", started, "clinic-triage")
//	err = results.WriteManifest(dir, manifest)
//	journal, err := results.Create(dir, clock.Wall{})
//	err = journal.Append(line, trace, column) // per item
//	err = journal.Close()
//	summary, err := results.Fold(dir, plan)
//
// While journal.jsonl is there it alone counts, and whatever else lies in the folder is left from an earlier fold. So a crash at any moment leaves one or the other whole, and nothing has to be repaired.
//
// # Formats
//
// Every file carries the version of its format in "v". Keys are only added, readers ignore those they do not know, and a file of a later version is refused. Two runs of the same plan with the same outcomes have equal bytes in everything but the manifest.
package results

// The files of a run's folder.
const (
	ManifestFile = "manifest.json"
	JournalFile  = "journal.jsonl"
	ResultsFile  = "results.jsonl"
	SummaryFile  = "summary.json"
	TracesDir    = "traces"
	// LatestName names the newest run beside the runs: a symbolic link, or a file of one line where the system has none.
	LatestName = "latest"
)

// Version is the format version of manifest.json, summary.json and journal.jsonl. That of a result line is eval.Version.
const Version = 1

// SegmentSize is how many traces stand in one file of traces/.
const SegmentSize = 10_000
