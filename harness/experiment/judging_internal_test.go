package experiment

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/gate"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/providers/script"
)

// BenchmarkJudged measures what comes after the agent: b.N items with three text checks are scored, looked at by the invariants, journaled and folded, by as many workers as a replay has. The outcomes are those of a thousand runs of the agent, which are made before.
func BenchmarkJudged(b *testing.B) {
	dir := b.TempDir()
	var lines strings.Builder
	for i := range b.N {
		fmt.Fprintf(&lines, "{\"id\":\"item-%06d\",\"input\":\"Question number %d\",\"script\":[{\"text\":\"ok, number %d\"}]}\n", i, i, i)
	}
	for name, text := range map[string]string{
		"items.jsonl": lines.String(),
		"d.yaml":      "version: 1\nname: d\nagent: {task: {description: Answer.}}\nproviders: [script:one]\ndefaults: {checks: [{contains: ok}, {starts_with: ok}, {regex: 'number [0-9]+'}]}\nitems: items.jsonl\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	d, err := dataset.Open(filepath.Join(dir, "d.yaml"), dataset.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	e, err := New(Options{
		Dataset: d, Mode: replay.Live, Temp: dir, Clock: clock.Wall{}, Traces: results.KeepFailed,
		Tools:         func(Workspace) []tool.Tool { return nil },
		RecordCommand: func(string, string) string { return "" },
		Columns: []Column{{
			Provider: d.Providers[0], Scripted: true,
			Model: func(item *dataset.Item, _ http.RoundTripper, _ clock.Clock) (llm.Model, error) {
				return script.New(script.Text(*item.Script[0].Text)), nil
			},
			Cost: func(llm.Response) (money.USD, bool) { return 0, true },
		}},
	})
	if err != nil {
		b.Fatal(err)
	}
	run := filepath.Join(dir, "run")
	if err := os.Mkdir(run, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := results.WriteManifest(run, results.Manifest{ID: "x", Plan: e.Head()}); err != nil {
		b.Fatal(err)
	}
	journal, err := results.Create(run, clock.Wall{})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	r := newRunner(e, journal, &results.Finished{})
	var items []*dataset.Item
	var outcomes []Outcome
	for item, err := range r.Selected() {
		if err != nil {
			b.Fatal(err)
		}
		items = append(items, item)
		if len(outcomes) < 1000 {
			prepared, err := r.prepare(job{item: item, repeat: 1, mode: replay.Live}, &r.opts.Columns[0])
			if err != nil {
				b.Fatal(err)
			}
			outcomes = append(outcomes, prepared.run(ctx))
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the command does
	b.ReportAllocs()
	b.ResetTimer()

	jobs := make(chan int)
	failed := make(chan error, 1)
	var wg sync.WaitGroup
	for range r.concurrency() {
		wg.Go(func() {
			for i := range jobs {
				j := job{item: items[i], repeat: 1, mode: replay.Live}
				prepared, err := r.prepare(j, &r.opts.Columns[0])
				if err == nil {
					done := prepared.judge(ctx, r.line(j.item, prepared.column, 1), outcomes[i%len(outcomes)])
					err = journal.Append(done.line, done.trace, 0)
				}
				if err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for i := range items {
		jobs <- i
	}
	close(jobs)
	wg.Wait()
	if err := journal.Close(); err != nil {
		b.Fatal(err)
	}
	plan, err := e.plan(r.warnings, &r.repeated, "", false, gate.Judge(nil, gate.Input{}))
	if err != nil {
		b.Fatal(err)
	}
	summary, err := results.Fold(run, plan)
	if err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	select {
	case err := <-failed:
		b.Fatal(err)
	default:
	}
	if passed := summary.Counts.Pass; passed != b.N {
		b.Fatalf("%d of %d items passed", passed, b.N)
	}
}
