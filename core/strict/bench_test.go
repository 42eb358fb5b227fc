package strict_test

import (
	"bytes"
	"testing"

	"github.com/echoeval/echoeval/core/strict"
)

const benchLine = `{"id":"item-000001","input":"What is the capital of France, and how many people live there?","expected":"Paris","checks":[{"contains":"Paris"},{"regex":"(?i)paris"}],"tags":["geo","easy"],"metadata":{"source":"handmade","level":3}}` + "\n"

// BenchmarkLines reads 100,000 lines of JSONL.
func BenchmarkLines(b *testing.B) {
	data := bytes.Repeat([]byte(benchLine), 100_000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		count := 0
		for _, err := range strict.Lines("q.jsonl", bytes.NewReader(data), 1<<20) {
			if err != nil {
				b.Fatal(err)
			}
			count++
		}
		if count != 100_000 {
			b.Fatal(count)
		}
	}
}

// BenchmarkEntries reads 10,000 entries of a YAML list.
func BenchmarkEntries(b *testing.B) {
	entry := "- id: item-000001\n  input: What is the capital of France, and how many people live there?\n  expected: Paris\n  checks:\n    - contains: Paris\n    - regex: (?i)paris\n  tags: [geo, easy]\n  metadata: {source: handmade, level: 3}\n"
	data := bytes.Repeat([]byte(entry), 10_000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		_, list, err := strict.Split("q.yaml", bytes.NewReader(data), "")
		if err != nil {
			b.Fatal(err)
		}
		count := 0
		for _, err := range list.Entries(bytes.NewReader(data), 1<<20) {
			if err != nil {
				b.Fatal(err)
			}
			count++
		}
		if count != 10_000 {
			b.Fatal(count)
		}
	}
}
