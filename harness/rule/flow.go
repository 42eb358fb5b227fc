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
	// mostPlaces is how many places of one piece are looked at, the last ones: a line of dashes has one everywhere.
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

	known   []knownText // that stood in the conversation before
	sources []source
	values  map[string]int   // whole values, with the last source that has them
	pieces  map[uint64]int32 // the place that was added last, from 1
	places  []place
	asked   map[string]bool
	steps   int
}

// source is a result that data may flow from.
type source struct {
	result *result
	known  int // how many of the known texts were there before it
	texts  []string
}

// place is where a piece of a result stands, and the place of the same piece that was added before, from 1.
type place struct{ source, text, offset, before int32 }

// knownText is a text of the conversation. It is read only when something is looked for in it.
type knownText struct {
	text string
	json bool // the result of a tool
	read bool
}

func (k *knownText) holds(text string) bool {
	if !k.read {
		k.read = true
		if k.json {
			var all strings.Builder
			scalars(k.text, 0, func(text string, _ bool) { all.WriteString(text + "\n") })
			k.text = all.String()
		} else {
			k.text = blanks(k.text)
		}
	}
	return strings.Contains(k.text, text)
}

// know notes a text that was no result of a source.
func (f *flow) know(wanted bool, text string, json bool) {
	if wanted && text != "" {
		f.known = append(f.known, knownText{text: text, json: json})
	}
}

// forget lifts the ban from all results so far.
func (f *flow) forget() {
	for i := range f.sources {
		f.know(true, string(f.sources[i].result.value), true)
	}
	f.sources, f.values, f.pieces, f.places, f.asked = nil, nil, nil, nil, nil
}

func (f *flow) taint(r *result) {
	if f.values == nil {
		f.values, f.pieces, f.asked = map[string]int{}, map[uint64]int32{}, map[string]bool{}
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
			f.places = append(f.places, place{int32(n), at, int32(i), f.pieces[key]})
			f.pieces[key] = int32(len(f.places))
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
		next := f.pieces[pieceAt(text, i)]
		for range mostPlaces {
			if next == 0 {
				break
			}
			at := f.places[next-1]
			next = at.before
			diagonal := place{at.source, at.text, at.offset - int32(i), 0}
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
	for i := range f.sources[n].known {
		if f.known[i].holds(text) {
			known = true
			break
		}
	}
	f.asked[key] = known
	return known
}

// blanks makes one blank of each run of white space, and none at the ends.
func blanks(s string) string {
	plain := s == strings.TrimSpace(s)
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] > ' ' && s[i] < utf8.RuneSelf || s[i] == ' ' && s[i-1] != ' '
	}
	if plain {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

// scalars visits the texts and numbers of a JSON text, also those of JSON within its strings. What is no JSON is a text itself.
func scalars(s string, depth int, visit func(text string, number bool)) {
	const maxDepth = 3
	if strings.HasPrefix(s, `"`) {
		if text, err := jsontext.AppendUnquote(nil, s); err == nil {
			if inner := strings.TrimSpace(string(text)); inner == "" || inner[0] != '{' && inner[0] != '[' {
				visit(blanks(inner), false)
				return
			}
		}
	}
	lenient := jsontext.AllowDuplicateNames(true)
	if !jsontext.Value(s).IsValid(lenient, jsontext.AllowInvalidUTF8(true)) {
		visit(blanks(s), false)
		return
	}
	dec := jsontext.NewDecoder(strings.NewReader(s), lenient, jsontext.AllowInvalidUTF8(true))
	for {
		kind := dec.PeekKind()
		token, err := dec.ReadToken()
		if err != nil {
			return
		}
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
