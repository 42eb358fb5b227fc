package dataset_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/dataset"
)

// FuzzOpen looks for dataset and item files that crash the reader, that have problems without a place, or whose items come out differently the second time.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	for name, text := range map[string]string{"echoeval.yaml": "", "x.png": png} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	f.Add([]byte(everyKey), []byte(`{"id":"a","input":"b"}`))
	f.Add([]byte(head+"items: q.jsonl\ndefaults: {checks: [{contains: \"{{expected}} {{a.b}} \\\\{{\"}], vars: {a: {b: 1}}}\n"), []byte("\ufeff{\"id\":\"a\",\"input\":[{\"image\":\"x.png\"}],\"expected\":[1]}\r\n\n{\"id\":\"A\",\"vars\":{\"a\":null}}"))
	f.Add([]byte(head+"items:\n- &a {id: a, input: \"{{x}}\", checks: [{not: {regex: '('}}, not: x]}\n- *a\n- id: 012\n"), []byte(""))
	f.Add([]byte("version: 1\nitems: [{id: a, script: [{calls: [{name: x}]}], drop: [x], timeout: 5}]\ngates: [{pass_rate: 1}]\n"), []byte("["))
	f.Add([]byte(head+"use: [lib.yaml]\noverrides: [{match: \"id == 'a'\", drop: [p], skip: x}]\nitems: [{id: a, input: b, checks: [p, {use: p, name: q}], invariants: [l]}]\n"), []byte("version: 1\nchecks: {p: {contains: \"{{x}}\"}}\ninvariants: {l: {use: iteration-limit, max: 1}}\n"))
	f.Add([]byte(head+"items: {path: q.csv, map: {input: q, metadata.m: m}}\n"), []byte("id,q,m,checks\na,\"x\ny\",1,\"[{\"\"contains\"\": \"\"z\"\"}]\"\n"))
	f.Add([]byte(head+"items: [{id: a, turns: [{input: x, checks: [no_tool_calls]}], tool_mocks: {t: [{args: {a: 1}, result: 2}]}, answers: {c: [1]}, pass_if: '> 0.5'}, {id: b, messages: [{role: user, content: x}]}]\n"), []byte(""))
	f.Fuzz(func(t *testing.T, file, lines []byte) {
		for name, data := range map[string][]byte{"d.yaml": file, "q.jsonl": lines, "q.csv": lines, "lib.yaml": lines} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		d, err := dataset.Open(filepath.Join(dir, "d.yaml"), known)
		if err != nil {
			placed(t, err)
			return
		}
		err = d.Validate(nil)
		if err != nil {
			placed(t, err)
		}
		hash := d.Hash
		count := 0
		for item, itemErr := range d.Items() {
			count++
			if (item == nil) != (itemErr != nil) {
				t.Fatal(item, itemErr)
			}
			if itemErr != nil {
				placed(t, itemErr)
				if err == nil {
					t.Fatalf("not found by Validate: %v", itemErr)
				}
				continue
			}
			if len(item.Input) == 0 && item.Turns == nil && item.Messages == nil && item.User == nil || item.ID == "" || item.ItemHash == "" || item.Timeout <= 0 || item.Repeat < 1 {
				t.Fatalf("%+v", item)
			}
		}
		if err == nil {
			if count != d.Count || count == 0 {
				t.Fatalf("%d items, then %d", d.Count, count)
			}
			if err := d.Validate(nil); err != nil || d.Hash != hash {
				t.Fatalf("hash %s, then %s, %v", hash, d.Hash, err)
			}
		}
	})
}

// placed checks that each part of an error that names a file names a line in it, or that the file cannot be read.
func placed(t *testing.T, err error) {
	t.Helper()
	if failure.CodeOf(err) != failure.Input {
		t.Fatalf("code %d: %v", failure.CodeOf(err), err)
	}
	if pos, ok := failure.PositionOf(err); !ok || pos.Line < 1 || pos.Column < 1 {
		t.Fatalf("no place: %v", err)
	}
}
