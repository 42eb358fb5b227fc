package dataset_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/dataset"
)

// BenchmarkItems reads 100,000 items of JSONL: Validate is the first pass, Items the second. live-B is what is live on the heap in the middle of a pass, beyond what was before.
func BenchmarkItems(b *testing.B) {
	const items = 100_000
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "d.yaml"), []byte(head+"defaults: {checks: [{contains: \"{{expected}}\"}], timeout: 30s}\nitems: q.jsonl\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	out, err := os.Create(filepath.Join(dir, "q.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(out)
	for i := range items {
		fmt.Fprintf(w, `{"id":"item-%06d","input":"What is the capital of France, and how many people live there?","expected":"Paris","checks":[{"regex":"(?i)paris"}],"tags":["geo","easy"],"metadata":{"source":"handmade","level":3}}`+"\n", i)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := out.Close(); err != nil {
		b.Fatal(err)
	}
	open := func() *dataset.Dataset {
		d, err := dataset.Open(filepath.Join(dir, "d.yaml"), known)
		if err != nil {
			b.Fatal(err)
		}
		return d
	}
	b.Run("Validate", func(b *testing.B) {
		b.ReportAllocs()
		d := open()
		for b.Loop() {
			if err := d.Validate(nil); err != nil || d.Count != items {
				b.Fatal(d.Count, err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/items, "ns/item")
	})
	b.Run("Items", func(b *testing.B) {
		b.ReportAllocs()
		d := open()
		var before, middle runtime.MemStats
		for b.Loop() {
			count := 0
			for _, err := range d.Items() {
				if err != nil {
					b.Fatal(err)
				}
				if count++; count == items/2 && middle.HeapAlloc == 0 {
					b.StopTimer()
					runtime.GC()
					runtime.ReadMemStats(&middle)
					b.StartTimer()
				} else if count == 1 && before.HeapAlloc == 0 {
					b.StopTimer()
					runtime.GC()
					runtime.ReadMemStats(&before)
					b.StartTimer()
				}
			}
			if count != items {
				b.Fatal(count)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/items, "ns/item")
		b.ReportMetric(max(0, float64(middle.HeapAlloc)-float64(before.HeapAlloc)), "live-B")
	})
}

// BenchmarkSources validates 100,000 items from other sources, and under overrides. live-B is what is live on the heap in the middle of the pass, beyond what was at its beginning.
func BenchmarkSources(b *testing.B) {
	const items = 100_000
	dir := b.TempDir()
	write := func(name string, line func(i int) string) {
		out, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		w := bufio.NewWriter(out)
		for i := range items + 1 {
			fmt.Fprintln(w, line(i))
		}
		if err := errors.Join(w.Flush(), out.Close()); err != nil {
			b.Fatal(err)
		}
	}
	write("q.csv", func(i int) string {
		if i == 0 {
			return "id,input,expected,tags,source"
		}
		return fmt.Sprintf(`item-%06d,"What is the capital of France, and how many people live there?",Paris,"geo,easy",handmade`, i)
	})
	write("q.jsonl", func(i int) string {
		if i == 0 {
			return ""
		}
		return fmt.Sprintf(`{"id":"item-%06d","input":"What is the capital of France, and how many people live there?","expected":"Paris","tags":["geo","easy"],"metadata":{"level":3}}`, i)
	})
	for _, source := range []struct{ name, text string }{
		{"csv", "items: q.csv\n"},
		{"overrides", "items: q.jsonl\noverrides: [{match: \"metadata.level > 2 && 'geo' in tags\", tags: [x]}, {match: \"id == 'item-000007'\", skip: x}]\n"},
	} {
		b.Run(source.name, func(b *testing.B) {
			file := filepath.Join(dir, source.name+".yaml")
			if err := os.WriteFile(file, []byte(head+"defaults: {checks: [{contains: \"{{expected}}\"}]}\n"+source.text), 0o644); err != nil {
				b.Fatal(err)
			}
			d, err := dataset.Open(file, known)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var before, middle runtime.MemStats
			for b.Loop() {
				measure := func(item *dataset.Item, _ *strict.Problems) {
					to := &before
					if item.Index == items/2 {
						to = &middle
					} else if item.Index != 1 {
						return
					}
					if to.HeapAlloc == 0 {
						b.StopTimer()
						runtime.GC()
						runtime.ReadMemStats(to)
						b.StartTimer()
					}
				}
				if err := d.Validate(measure); err != nil || d.Count != items {
					b.Fatal(d.Count, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/items, "ns/item")
			b.ReportMetric(max(0, float64(middle.HeapAlloc)-float64(before.HeapAlloc)), "live-B")
		})
	}
}
