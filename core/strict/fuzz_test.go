package strict_test

import (
	"strings"
	"testing"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

var seeds = []string{
	"a: 1\nb: [x, 'y', \"z\"]\n", "items:\n- a\n- {b: c}\nd: |\n  x\n", `{"items":[1,{"a":"b"},null],"c":-1.50e3}`, "[]", "\"\\ud83d\\ude00\"", "a: &x {b: *x}\n<<: *x\n",
	"\ufeff- a\r\n-\tb\r\n", "? [a]\n: b\n", "%YAML 1.2\n---\na: !!str 1\n...\n", "a: 012\n12: b\n", "\x00", "\xff", "[[[[", "- - - a\n", "a:\n\tb: c\n", "\u2028\u0085", "{\"a\":1,\"a\":2}", "a: 'x\n  y'\n",
}

// FuzzParse looks for input that crashes a parser, that the two parsers read as different values, or whose text does not give the same tree again.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fromJSON, jsonErr := strict.Parse("f.json", data)
		fromYAML, yamlErr := strict.Parse("f.yaml", data)
		for _, err := range []error{jsonErr, yamlErr} {
			if err != nil {
				checkError(t, err)
			}
		}
		for _, n := range []strict.Node{fromJSON, fromYAML} {
			walk(n)
		}
		// YAML 1.1 line breaks within a quoted text are folded by YAML.
		if jsonErr == nil && yamlErr == nil && !strings.ContainsAny(string(data), "\u0085\u2028\u2029") && !fromJSON.Equal(fromYAML) {
			t.Fatalf("as JSON %s, as YAML %s", fromJSON.JSON(), fromYAML.JSON())
		}
		if jsonErr == nil {
			again(t, fromJSON)
		}
		if yamlErr == nil {
			again(t, fromYAML)
		}
	})
}

// again reads what the tree writes.
func again(t *testing.T, n strict.Node) {
	t.Helper()
	same, err := strict.Parse("f.json", []byte(n.JSON()))
	if err != nil || !same.Equal(n) || same.JSON() != n.JSON() {
		t.Fatalf("%s became %s, %v", n.JSON(), same.JSON(), err)
	}
}

func checkError(t *testing.T, err error) {
	t.Helper()
	if failure.CodeOf(err) != failure.Input {
		t.Fatalf("code %d: %v", failure.CodeOf(err), err)
	}
	if pos, ok := failure.PositionOf(err); !ok || pos.Line < 1 || pos.Column < 1 {
		t.Fatalf("no place: %v", err)
	}
}

// walk uses everything of a tree.
func walk(n strict.Node) {
	n.Pos()
	n.Any()
	n.AppendCanonical(nil)
	for key, v := range n.Fields() {
		key.Pos()
		walk(v)
	}
	for _, v := range n.Items() {
		walk(v)
	}
}

// FuzzSplit looks for input that crashes the splitter, or that a list read entry by entry gives differently from the whole file.
func FuzzSplit(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, json bool) {
		file := "f.yaml"
		if json {
			file = "f.json"
		}
		for _, key := range []string{"", "items"} {
			whole, wholeErr := strict.Parse(file, data)
			head, list, err := strict.Split(file, strings.NewReader(string(data)), key)
			if err != nil {
				checkError(t, err)
			}
			var entries []strict.Node
			var wrong error
			if list != nil {
				for n, err := range list.Entries(strings.NewReader(string(data)), 1<<20) {
					if err != nil {
						checkError(t, err)
						wrong = err
					}
					walk(n)
					entries = append(entries, n)
				}
			}
			walk(head)
			if wholeErr != nil || err != nil || wrong != nil {
				continue
			}
			if key == "items" {
				whole, head = whole.Get(key), head.Get(key)
			}
			if list == nil {
				if !head.Equal(whole) {
					t.Fatalf("whole %s, split %s", whole.JSON(), head.JSON())
				}
				continue
			}
			if whole.Kind() != strict.Sequence || whole.Len() != len(entries) {
				t.Fatalf("whole %s, %d entries", whole.JSON(), len(entries))
			}
			for i, e := range entries {
				if !e.Equal(whole.Index(i)) {
					t.Fatalf("entry %d is %s, in the whole %s", i, e.JSON(), whole.Index(i).JSON())
				}
				if e.Pos() != whole.Index(i).Pos() {
					t.Fatalf("entry %d at %s, in the whole at %s", i, e.Pos(), whole.Index(i).Pos())
				}
			}
		}
	})
}

// FuzzLines looks for lines that crash the reader.
func FuzzLines(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for n, err := range strict.Lines("f.jsonl", strings.NewReader(string(data)), 64) {
			if err != nil {
				checkError(t, err)
			}
			walk(n)
		}
	})
}
