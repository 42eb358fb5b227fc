// Package baseline is the committed reference of a dataset: what every item did on every provider when somebody last said that this is right. A run is compared with it, and its git diff is what a reviewer reads.
//
//	now, err := baseline.FromRun(run)       // refuses a run with lines that got no verdict
//	file := baseline.Accept(old, now, true) // or only the lines that ran
//	err = baseline.Write("baselines/clinic.json", file)
//
// A [Comparer] takes the lines of a run in their order, holds the baseline and of the run one item at a time, and says what is worse, better, new, removed, asked otherwise and newly violated, and how far the means over items lie apart, with intervals. What follows from it is for harness/gate to say.
//
// # The file
//
//	{"v":1,"dataset":"clinic","dataset_hash":"7a1f0c33d2b94e58","repeat":1,
//	"providers":{"haiku":{"model":"claude-haiku-4-5","agent_hash":"...","prompt_hash":"...","tools_hash":"..."}},
//	"items":[
//	{"item":"chest-pain","provider":"haiku",...,"passed":[true],"scores":[1],"failed":[],"violations":[],"calls":["contacts"],"cost_usd":0.0013,"latency_ms":1790,"answer":"Call 112 now."}
//	]}
//
// One line per item and provider, sorted by item, then provider, bytewise; one line per provider, sorted. It holds no time, no commit and no machine, so that accepting the same outcomes again changes no byte.
// passed and scores have one entry per repeat, null where it was not judged. failed names the checks that failed, violations the broken invariants of severity error, in any repeat, sorted. calls (the tools called, in order) and answer are those of repeat 1; cost and latency are means over the judged repeats.
package baseline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/money"
)

// Version is the format version of the file.
const Version = 1

// MaxAnswer is how many characters of an answer a line holds.
const MaxAnswer = 1_000

// RunFile is the name of the copy in the folder of a run that was compared.
const RunFile = "baseline.json"

// File is a baseline.
type File struct {
	Dataset     string
	DatasetHash string
	// Repeat is the largest number of repeats of any item.
	Repeat    int
	Providers []Provider // sorted by ID
	Items     []Item     // sorted by Item, then Provider
}

// Provider is what a column was when it was accepted.
type Provider struct {
	ID, Model, AgentHash, PromptHash, ToolsHash string
}

// Item is what one item did on one provider.
type Item struct {
	Item, Provider       string
	ItemHash, ChecksHash string
	// Passed and Scores have an entry per repeat, nil where the repeat was not judged or has no score.
	Passed []*bool
	Scores []*eval.Fraction
	// Failed names the checks that failed and Violations the broken invariants of severity error, sorted, each once.
	Failed, Violations []string
	// Calls are the tools that were called; nil is unknown, empty is none.
	Calls     []string
	CostUSD   *money.USD
	LatencyMS *int64
	// Answer is the beginning of the final text, nil where there was none.
	Answer *string
	// Checks are the verdicts of those checks that a regression gate looks at alone; a check that is not there is unknown.
	Checks map[string]Verdicts
}

// Verdicts are those of one check of an item. Both have an entry per repeat, nil where the check gave no verdict or has no score.
type Verdicts struct {
	Passed []*bool
	Scores []*eval.Fraction
}

type key struct{ item, provider string }

func (i *Item) key() key { return key{i.Item, i.Provider} }

func (k key) compare(other key) int {
	if c := strings.Compare(k.item, other.item); c != 0 {
		return c
	}
	return strings.Compare(k.provider, other.provider)
}

// Provider returns the column of that id.
func (f *File) Provider(id string) (Provider, bool) {
	i, ok := slices.BinarySearchFunc(f.Providers, id, func(p Provider, id string) int { return strings.Compare(p.ID, id) })
	if !ok {
		return Provider{}, false
	}
	return f.Providers[i], true
}

// Append appends the file.
func (f *File) Append(dst []byte) []byte {
	dst = append(dst, `{"v":`...)
	dst = strconv.AppendInt(dst, Version, 10)
	dst = appendField(dst, "dataset", f.Dataset)
	dst = appendField(dst, "dataset_hash", f.DatasetHash)
	dst = append(dst, `,"repeat":`...)
	dst = strconv.AppendInt(dst, int64(f.Repeat), 10)
	dst = append(dst, ",\n\"providers\":{"...)
	for i, p := range f.Providers {
		if i > 0 {
			dst = append(dst, ",\n"...)
		}
		dst = appendText(dst, p.ID)
		dst = append(dst, `:{"model":`...)
		dst = appendText(dst, p.Model)
		dst = appendField(dst, "agent_hash", p.AgentHash)
		dst = appendField(dst, "prompt_hash", p.PromptHash)
		dst = appendField(dst, "tools_hash", p.ToolsHash)
		dst = append(dst, '}')
	}
	dst = append(dst, "},\n\"items\":["...)
	for i := range f.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = f.Items[i].append(append(dst, '\n'))
	}
	return append(dst, "\n]}\n"...)
}

func (i *Item) append(dst []byte) []byte {
	dst = append(dst, `{"item":`...)
	dst = appendText(dst, i.Item)
	dst = appendField(dst, "provider", i.Provider)
	dst = appendField(dst, "item_hash", i.ItemHash)
	dst = appendField(dst, "checks_hash", i.ChecksHash)
	dst = Verdicts{i.Passed, i.Scores}.append(append(dst, ','))
	dst = appendNames(append(dst, `,"failed":`...), i.Failed)
	dst = appendNames(append(dst, `,"violations":`...), i.Violations)
	dst = append(dst, `,"calls":`...)
	if i.Calls == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendNames(dst, i.Calls)
	}
	dst = append(dst, `,"cost_usd":`...)
	if i.CostUSD == nil {
		dst = append(dst, "null"...)
	} else {
		dst = i.CostUSD.AppendJSON(dst)
	}
	dst = append(dst, `,"latency_ms":`...)
	if i.LatencyMS == nil {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, *i.LatencyMS, 10)
	}
	dst = append(dst, `,"answer":`...)
	if i.Answer == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendText(dst, *i.Answer)
	}
	if len(i.Checks) > 0 {
		begin := `,"checks":{`
		for _, name := range slices.Sorted(maps.Keys(i.Checks)) {
			dst = appendText(append(dst, begin...), name)
			dst = append(i.Checks[name].append(append(dst, ":{"...)), '}')
			begin = ","
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func (v Verdicts) append(dst []byte) []byte {
	dst = append(dst, `"passed":[`...)
	for n, passed := range v.Passed {
		if n > 0 {
			dst = append(dst, ',')
		}
		if passed == nil {
			dst = append(dst, "null"...)
		} else {
			dst = strconv.AppendBool(dst, *passed)
		}
	}
	dst = append(dst, `],"scores":[`...)
	for n, score := range v.Scores {
		if n > 0 {
			dst = append(dst, ',')
		}
		if score == nil {
			dst = append(dst, "null"...)
		} else {
			dst = score.AppendJSON(dst)
		}
	}
	return append(dst, ']')
}

// unseen are the characters that would show a line of the git diff in another order than it has, or not at all. The table never changes, so that the bytes do not; joiners, which emoji need, are not in it.
var unseen = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x007f, Hi: 0x009f, Stride: 1}, // DEL, C1
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1}, // soft hyphen
		{Lo: 0x061c, Hi: 0x061c, Stride: 1}, // Arabic letter mark
		{Lo: 0x180e, Hi: 0x180e, Stride: 1}, // Mongolian vowel separator
		{Lo: 0x200b, Hi: 0x200b, Stride: 1}, // zero-width space
		{Lo: 0x200e, Hi: 0x200f, Stride: 1}, // marks of direction
		{Lo: 0x2028, Hi: 0x202e, Stride: 1}, // line separators, embeddings, overrides
		{Lo: 0x2060, Hi: 0x206f, Stride: 1}, // word joiner, isolates
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1}, // byte order mark
		{Lo: 0xfff9, Hi: 0xfffb, Stride: 1}, // annotations
	},
	R32:         []unicode.Range32{{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1}}, // tags
	LatinOffset: 2,
}

// appendText appends a JSON string in which what cannot be seen is an escape.
func appendText(dst []byte, s string) []byte {
	from := len(dst)
	dst = conversation.AppendString(dst, s)
	if !bytes.ContainsFunc(dst[from:], func(r rune) bool { return unicode.Is(unseen, r) }) {
		return dst
	}
	text := string(dst[from:])
	dst = dst[:from]
	for _, r := range text {
		if !unicode.Is(unseen, r) {
			dst = utf8.AppendRune(dst, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			dst = fmt.Appendf(dst, `\u%04x`, unit)
		}
	}
	return dst
}

func appendField(dst []byte, name, value string) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	return appendText(dst, value)
}

func appendNames(dst []byte, names []string) []byte {
	dst = append(dst, '[')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, name)
	}
	return append(dst, ']')
}

// Hash tells baselines apart: 16 hex digits of the SHA-256 of what [File.Append] writes, so that line ends which git has changed do not count.
func (f *File) Hash() string {
	sum := sha256.Sum256(f.Append(nil))
	return hex.EncodeToString(sum[:8])
}

// Write replaces the file atomically, and makes its folder where it is absent. Errors have code Internal.
func Write(path string, f *File) (err error) {
	defer func() {
		if err != nil {
			err = failure.WithCode(fmt.Errorf("writing %s: %w", filepath.Base(path), err), failure.Internal)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	_, err = draft.Write(f.Append(nil))
	err = errors.Join(err, draft.Chmod(0o644), draft.Sync(), draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}
