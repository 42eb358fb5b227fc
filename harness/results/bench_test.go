package results_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/harness/results"
	"github.com/echoeval/echoeval/harness/results/resultstest"
)

// BenchmarkAppend is the journal's part of an item, from 16 goroutines, with traces of 4 and 20 KB.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{4 << 10, 20 << 10} {
		b.Run(fmt.Sprintf("trace=%dKB", size>>10), func(b *testing.B) {
			journal, err := results.Create(b.TempDir(), clock.Wall{})
			if err != nil {
				b.Fatal(err)
			}
			line := resultstest.Line(1, 0, 1)
			trace := resultstest.RawTrace(line, size)
			var index atomic.Int64
			b.SetBytes(int64(size))
			b.SetParallelism(8)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				line := line
				for pb.Next() {
					line.Index = int(index.Add(1))
					if err := journal.Append(line, trace, 0); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
			if err := journal.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkLine is the encoding of a result line alone.
func BenchmarkLine(b *testing.B) {
	line := resultstest.Line(1, 0, 1)
	var buffer []byte
	b.ReportAllocs()
	for b.Loop() {
		buffer = results.AppendLine(buffer[:0], &line)
	}
}

// BenchmarkFold folds 100,000 lines with traces of 4 KB that finished nearly in order, and in any order, and reports how much memory that takes.
func BenchmarkFold(b *testing.B) {
	for _, order := range []string{"nearly", "shuffled"} {
		b.Run(order, func(b *testing.B) { benchmarkFold(b, order == "shuffled") })
	}
}

func benchmarkFold(b *testing.B, shuffled bool) {
	size := resultstest.Size{Items: 50_000, Providers: 2, Repeats: 1}
	runs := b.TempDir()
	source := filepath.Join(runs, "journal")
	if err := os.Mkdir(source, 0o755); err != nil {
		b.Fatal(err)
	}
	journal, err := results.Create(source, clock.Wall{})
	if err != nil {
		b.Fatal(err)
	}
	list := places(size)
	random := rand.New(rand.NewPCG(1, 2))
	if shuffled {
		random.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	} else {
		for i := range len(list) - 16 {
			k := i + random.IntN(16)
			list[i], list[k] = list[k], list[i]
		}
	}
	for _, p := range list {
		line := resultstest.Line(p.index, p.column, p.repeat)
		if err := journal.Append(line, resultstest.RawTrace(line, 4<<10), p.column); err != nil {
			b.Fatal(err)
		}
	}
	if err := journal.Close(); err != nil {
		b.Fatal(err)
	}
	list = nil
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		dir := filepath.Join(runs, fmt.Sprint(n))
		if err := os.Mkdir(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.Link(filepath.Join(source, "journal.jsonl"), filepath.Join(dir, "journal.jsonl")); err != nil {
			b.Fatal(err)
		}
		peak := watch()
		b.StartTimer()
		if _, err := results.Fold(dir, size.Plan()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		b.ReportMetric(float64(peak())/(1<<20), "peak-MB")
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(size.Items*size.Providers*b.N)/b.Elapsed().Seconds(), "lines/s")
}

// watch samples how much the heap grows until the returned function is called.
func watch() (stop func() uint64) {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	done, result := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
			select {
			case <-done:
				result <- most - min(most, before.HeapAlloc)
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(done); return <-result }
}

// BenchmarkRead reads the lines of a finished run of 10,000.
func BenchmarkRead(b *testing.B) {
	size := resultstest.Size{Items: 10_000, Providers: 1, Repeats: 1}
	dir := b.TempDir()
	if err := results.WriteManifest(dir, results.Manifest{Plan: size.Head()}); err != nil {
		b.Fatal(err)
	}
	journal, err := results.Create(dir, clock.Wall{})
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range places(size) {
		if err := appendPlace(journal, p); err != nil {
			b.Fatal(err)
		}
	}
	if err := journal.Close(); err != nil {
		b.Fatal(err)
	}
	if _, err := results.Fold(dir, size.Plan()); err != nil {
		b.Fatal(err)
	}
	run, err := results.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer run.Close() // only read
	b.ReportAllocs()
	for b.Loop() {
		var last eval.Result
		for line, err := range run.Lines() {
			if err != nil {
				b.Fatal(err)
			}
			last = line
		}
		fmt.Fprint(io.Discard, last.Item)
	}
	b.ReportMetric(float64(size.Items*b.N)/b.Elapsed().Seconds(), "lines/s")
}
