package promptfoo

import (
	"encoding/csv"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/imports"
)

// csv reads a table of tests: a column for each variable, and those that begin with two underscores for the rest.
func (im *importer) csv(name string, at failure.Position) {
	data, err := im.Folder.Read(name)
	if err != nil {
		im.unreadable(at, err)
		return
	}
	file := im.shown(name)
	text := strings.TrimPrefix(strings.ToValidUTF8(string(data), "\ufffd"), "\ufeff")
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	header, err := r.Read()
	if err != nil {
		im.note(imports.Wrong, failure.Position{File: file, Line: 1, Column: 1}, "", "a table without a head")
		return
	}
	header = append([]string(nil), header...)
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
		line, column := r.FieldPos(i)
		pos := failure.Position{File: file, Line: line, Column: column}
		for k := range i {
			if header[k] == header[i] && header[i] != "" {
				im.note(imports.Wrong, pos, "give it another name", "column %q a second time", header[i])
			}
		}
		if header[i] == "" {
			im.note(imports.Wrong, pos, "give it a name", "a column without a name")
		}
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		var bad *csv.ParseError
		if errors.As(err, &bad) {
			im.note(imports.Wrong, failure.Position{File: file, Line: bad.Line, Column: bad.Column}, "the row is left out", "no CSV: %s", bad.Err)
			continue
		}
		if err != nil {
			im.note(imports.Wrong, failure.Position{File: file}, "", "the table cannot be read")
			return
		}
		line, _ := r.FieldPos(0)
		pos := failure.Position{File: file, Line: line, Column: 1}
		if len(row) != len(header) {
			im.note(imports.Wrong, pos, "the row is left out", "a row with more or fewer cells than the head")
			continue
		}
		im.sources++
		t := im.row(header, row, func(i int) failure.Position {
			line, column := r.FieldPos(i)
			return failure.Position{File: file, Line: line, Column: column}
		})
		t.pos, t.number = pos, "test-"+strconv.Itoa(im.sources)
		im.tests = append(im.tests, t)
	}
}

var (
	expectedColumn = regexp.MustCompile(`^__expected[0-9]*$`)
	configColumn   = regexp.MustCompile(`^__config:(__expected[0-9]*):([a-z]+)$`)
)

func (im *importer) row(header, row []string, at func(int) failure.Position) test {
	var t test
	thresholds := map[string]strict.Node{}
	for i, name := range header {
		if m := configColumn.FindStringSubmatch(name); m != nil && m[2] == "threshold" && row[i] != "" {
			if n, err := strict.ParseJSON("", 1, []byte(row[i])); err == nil {
				thresholds[m[1]] = n
			}
		}
	}
	metric := ""
	for i, name := range header {
		if name == "__metric" {
			metric = row[i]
		}
	}
	var metadata []string
	for i, name := range header {
		cell := row[i]
		switch {
		case name == "" || name == "__metric":
		case expectedColumn.MatchString(name):
			if strings.TrimSpace(cell) == "" {
				continue
			}
			a := parseCell(cell)
			a.pos, a.metric = at(i), metric
			for _, key := range []string{"__expected", name} {
				if n := thresholds[key]; !n.IsZero() && a.threshold.IsZero() {
					a.threshold = n
				}
			}
			t.asserted = true
			a.transform = im.defaults.transformed
			t.checks = append(t.checks, im.convert(a))
		case name == "__description":
			t.description = strings.TrimSpace(cell)
		case name == "__prefix":
			t.prefix = cell
		case name == "__suffix":
			t.suffix = cell
		case name == "__threshold":
			if f, err := strconv.ParseFloat(cell, 64); err == nil && f >= 0 && f <= 1 {
				t.threshold = &f
			} else if cell != "" {
				im.note(imports.Wrong, at(i), "a fraction from 0 to 1", "a threshold that no mean can be compared with")
			}
		case name == "__provider" || name == "__providers":
			if cell != "" {
				t.providers = append(t.providers, splitList(cell)...)
			}
		case strings.HasPrefix(name, "__metadata:"):
			if cell == "" {
				continue
			}
			key, list := strings.CutSuffix(strings.TrimPrefix(name, "__metadata:"), "[]")
			value := strict.NewString(cell)
			if list {
				value = listNode(splitList(cell))
			}
			metadata = append(metadata, strict.NewString(key).JSON()+":"+value.JSON())
		case configColumn.MatchString(name):
			if m := configColumn.FindStringSubmatch(name); m[2] != "threshold" {
				im.note(imports.Lost, at(i), "", "column %s", name)
			}
		case strings.HasPrefix(name, "__"):
			im.note(imports.Wrong, at(i), strict.Suggest(name, []string{"__expected", "__description", "__prefix", "__suffix", "__metric", "__threshold", "__metadata:KEY"}), "unknown column %q", name)
		default:
			v := strict.NewString(cell)
			if ref, ok := im.ref(cell); ok {
				v = im.variableFile(ref, v, &t)
			}
			t.set(name, v)
		}
	}
	if metadata != nil {
		if n, err := strict.ParseJSON("", 1, []byte("{"+strings.Join(metadata, ",")+"}")); err == nil {
			t.metadata = n
		}
	}
	return t
}

var cellType = regexp.MustCompile(`^(not-)?([a-z][a-z0-9:-]*?)(?:\(([0-9.]+)\))?:\s*`)

// parseCell reads what a cell asks of the answer: "type: value", "type(threshold): value", or the text that the answer must be.
func parseCell(cell string) assertion {
	cell = strings.TrimSpace(cell)
	for _, short := range []struct{ prefix, kind string }{{"javascript:", "javascript"}, {"fn:", "javascript"}, {"eval:", "javascript"}, {"python:", "python"}, {"grade:", "llm-rubric"}} {
		if rest, ok := strings.CutPrefix(cell, short.prefix); ok {
			return assertion{kind: short.kind, value: strict.NewString(strings.TrimSpace(rest))}
		}
	}
	if m := cellType.FindStringSubmatch(cell); m != nil {
		if _, known := assertionTypes[m[2]]; known {
			a := assertion{kind: m[2], not: m[1] != ""}
			if rest := cell[len(m[0]):]; rest != "" {
				a.value = strict.NewString(rest)
			}
			if m[3] != "" {
				if n, err := strict.ParseJSON("", 1, []byte(m[3])); err == nil {
					a.threshold = n
				}
			}
			return a
		}
	}
	if bare, not := strings.CutPrefix(cell, "not-"); bare == "is-json" || bare == "contains-json" {
		return assertion{kind: bare, not: not}
	}
	return assertion{kind: "equals", value: strict.NewString(cell)}
}
