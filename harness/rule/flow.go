package rule

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// gram is how many bytes long the pieces are by which shared texts are found.
	gram = 8
	// leastValue is how many characters a whole value must have so that it is not shared by chance.
	leastValue = 4
	// mostPlaces is how many places of one piece are looked at: a line of dashes has one everywhere.
	mostPlaces = 8
	// mostAsked bounds how many shared texts are looked for in what was known before. Of more, none is taken for known.
	mostAsked = 1_000
	// mostSteps bounds how many bytes are compared, for texts that repeat themselves.
	mostSteps = 20_000_000
)

// flow follows data from the results of tools into the arguments of later calls: whole values of at least four characters (numbers by their value), and texts that share at least so many characters; runs of white space count as one blank. What the conversation held before, from the user, the system prompt or other tools, is no data of the result.
//
// Results are cut into pieces of [gram] bytes, and every so manieth is kept: a shared text of the length that is asked contains at least one of these, which is found in time that grows with the arguments alone.
type flow struct {
	shared int

	known   []string // texts that stood in the conversation before
	sources []source
	values  map[string]int // whole values, with the last source that has them
	pieces  map[uint64][]place
	asked   map[string]bool
	steps   int
}

// source is a result that data may flow from.
type source struct {
	result *result
	known  int // how many of the known texts were there before it
	texts  []string
}

// place is where a piece of a result stands.
type place struct{ source, text, offset int32 }

// know notes a text that was no result of a source.
func (f *flow) know(wanted bool, text string) {
	if wanted && text != "" {
		f.known = append(f.known, blanks(text))
	}
}

// knowResult notes the result of a tool that is no source.
func (f *flow) knowResult(wanted bool, r *result) {
	if wanted {
		scalars(string(r.value), 0, func(text string, _ bool) { f.know(true, text) })
	}
}

// forget lifts the ban from all results so far.
func (f *flow) forget() {
	for i := range f.sources {
		f.known = append(f.known, f.sources[i].texts...)
	}
	f.sources, f.values, f.pieces, f.asked = nil, nil, nil, nil
}

func (f *flow) taint(r *result) {
	if f.values == nil {
		f.values, f.pieces, f.asked = map[string]int{}, map[uint64][]place{}, map[string]bool{}
	}
	n := len(f.sources)
	s := source{result: r, known: len(f.known)}
	scalars(string(r.value), 0, func(text string, number bool) {
		if utf8.RuneCountInString(text) >= leastValue {
			f.values[text] = n
		}
		if number || len(text) < f.shared {
			return
		}
		at := int32(len(s.texts))
		s.texts = append(s.texts, text)
		for i := 0; i+gram <= len(text); i += f.shared - gram + 1 {
			key := pieceAt(text, i)
			if list := f.pieces[key]; len(list) < mostPlaces {
				f.pieces[key] = append(list, place{int32(n), at, int32(i)})
			}
		}
	})
	f.sources = append(f.sources, s)
}

func pieceAt(text string, i int) uint64 { return binary.LittleEndian.Uint64([]byte(text[i : i+gram])) }

// find returns the result that an argument of the call holds something of, and what.
func (f *flow) find(c *call) (from *result, shared string) {
	if len(f.sources) == 0 {
		return nil, ""
	}
	scalars(string(c.input), 0, func(text string, number bool) {
		if from != nil {
			return
		}
		if n, ok := f.values[text]; ok && !f.wasKnown(n, text) {
			from, shared = f.sources[n].result, text
			return
		}
		if !number {
			from, shared = f.piece(text)
		}
	})
	return from, shared
}

// piece looks for a text that is shared with a result.
func (f *flow) piece(text string) (*result, string) {
	looked := map[place]int{} // by where the texts would begin together: how far they were compared
	for i := 0; i+gram <= len(text); i++ {
		for _, at := range f.pieces[pieceAt(text, i)] {
			diagonal := place{at.source, at.text, at.offset - int32(i)}
			if i < looked[diagonal] {
				continue
			}
			s := &f.sources[at.source]
			begin, end := f.common(text, i, s.texts[at.text], int(at.offset))
			looked[diagonal] = end
			common := strings.ToValidUTF8(text[begin:end], "")
			if utf8.RuneCountInString(common) >= f.shared && !f.wasKnown(int(at.source), common) {
				return s.result, common
			}
		}
	}
	return nil, ""
}

// common is how far two texts agree around a place of each, at most some times the length that is asked.
func (f *flow) common(a string, i int, b string, j int) (begin, end int) {
	most := 4 * (f.shared + gram)
	begin, end = i, i
	for k := j; begin > 0 && k > 0 && i-begin < most && a[begin-1] == b[k-1]; k-- {
		begin--
	}
	for k := j; end < len(a) && k < len(b) && end-i < most && a[end] == b[k]; k++ {
		end++
	}
	f.steps += end - begin
	return begin, end
}

// wasKnown reports that a text stood in the conversation before it came with the result of a source.
func (f *flow) wasKnown(n int, text string) bool {
	key := strconv.Itoa(n) + " " + text
	if known, ok := f.asked[key]; ok {
		return known
	}
	if len(f.asked) >= mostAsked || f.steps > mostSteps {
		return false
	}
	known := false
	for _, before := range f.known[:f.sources[n].known] {
		if strings.Contains(before, text) {
			known = true
			break
		}
	}
	f.asked[key] = known
	return known
}

// blanks makes one blank of all white space.
func blanks(s string) string { return strings.Join(strings.Fields(s), " ") }

// scalars visits the texts and numbers of a JSON text, also those of JSON within its strings. What is no JSON is a text itself.
func scalars(s string, depth int, visit func(text string, number bool)) {
	const maxDepth = 3
	dec := jsontext.NewDecoder(strings.NewReader(s), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	first := true
	for {
		kind := dec.PeekKind()
		token, err := dec.ReadToken()
		if err != nil {
			if first {
				visit(blanks(s), false)
			}
			return
		}
		first = false
		switch kind {
		case '"':
			if parent, n := dec.StackIndex(dec.StackDepth()); parent == '{' && n%2 == 1 {
				continue // a name
			}
			text := token.String()
			if inner := strings.TrimSpace(text); depth < maxDepth && inner != "" && (inner[0] == '{' || inner[0] == '[') && jsontext.Value(inner).IsValid() {
				scalars(inner, depth+1, visit)
				continue
			}
			visit(blanks(text), false)
		case '0':
			visit(canonical(token.String()), true)
		}
	}
}

// canonical writes numbers of one value alike: 350.0 and 350.
func canonical(number string) string {
	if f, err := strconv.ParseFloat(number, 64); err == nil && strings.ContainsAny(number, ".eE") {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return number
}
