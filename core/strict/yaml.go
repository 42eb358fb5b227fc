package strict

import (
	"errors"
	"io"
	"math/big"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/echoeval/echoeval/core/failure"
)

// yamlParser turns the library's nodes into ours.
type yamlParser struct {
	src     *source
	p       Problems
	lines   []int32 // offsets of lines as the library counts them
	last    struct{ line, column, off int }
	anchors map[*yaml.Node]anchored
	grown   int // bytes that aliases repeat
	deep    bool
	failed  error
}

// anchored is a node that aliases may repeat. While open the node is being read: an alias to it would contain itself.
type anchored struct {
	node Node
	size size
	open bool
}

// size is what a node takes with all its aliases written out: bytes as [MaxExpansion] counts them, and levels of nesting.
type size struct{ weight, height int }

func (s *size) add(inner size) {
	s.weight += inner.weight
	s.height = max(s.height, inner.height+1)
}

var errDepth = errors.New("too deep")

func parseYAML(src *source) (Node, error) {
	y := &yamlParser{src: src, anchors: map[*yaml.Node]anchored{}}
	deep := loaderlimits.DepthFunc(func(depth int, _ *yaml.DepthContext) error {
		// Flow and block levels are counted apart, so this bound only protects the library; the exact one is checked below.
		if depth > 2*MaxDepth {
			y.deep = true
			return errDepth
		}
		return nil
	})
	loader, err := yaml.NewLoader(strings.NewReader(src.text), yaml.WithUniqueKeys(false), yaml.WithPlugin(loaderlimits.New(deep, loaderlimits.AliasNone())))
	if err != nil {
		return Node{}, y.syntax(err)
	}
	var doc yaml.Node
	if err := loader.Load(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return Node{}, src.error(0, "", "empty: want a YAML document")
		}
		return Node{}, y.syntax(err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return Node{}, src.error(0, "", "empty: want a YAML document")
	}
	n, _ := y.value(doc.Content[0], 0)
	if y.failed != nil {
		return Node{}, y.failed
	}
	var second yaml.Node
	switch err := loader.Load(&second); {
	case err == nil:
		y.p.Add(y.src.position(y.offset(second.Line, second.Column)), "keep one document to a file", "a second YAML document begins here")
	case !errors.Is(err, io.EOF):
		y.p.AddError(y.syntax(err))
	}
	return n, y.p.Err()
}

// value converts one node.
func (y *yamlParser) value(from *yaml.Node, depth int) (Node, size) {
	if y.failed != nil {
		return Node{}, size{}
	}
	if from.Kind == yaml.AliasNode {
		return y.alias(from, depth)
	}
	n := Node{src: y.src, off: int32(y.offset(from.Line, from.Column))}
	if from.Kind != yaml.ScalarNode && depth == MaxDepth {
		return y.tooDeep(int(n.off))
	}
	if from.Anchor != "" {
		y.anchors[from] = anchored{open: true}
	}
	y.checkTag(from, n)
	total := size{weight: 16}
	switch from.Kind {
	case yaml.SequenceNode:
		n.kind = Sequence
		n.sub = &composite{items: make([]Node, 0, len(from.Content))}
		for _, c := range from.Content {
			item, inner := y.value(c, depth+1)
			n.sub.items = append(n.sub.items, item)
			total.add(inner)
		}
		total.height = max(total.height, 1)
	case yaml.MappingNode:
		n.kind = Mapping
		n.sub, total = y.mapping(from, depth)
	default:
		y.scalar(from, &n)
		total.weight += len(n.text)
	}
	if from.Anchor != "" {
		y.anchors[from] = anchored{node: n, size: total}
	}
	return n, total
}

func (y *yamlParser) tooDeep(off int) (Node, size) {
	y.failed = y.src.error(off, "", "nested more than %d deep", MaxDepth)
	return Node{}, size{}
}

func (y *yamlParser) alias(from *yaml.Node, depth int) (Node, size) {
	off := y.offset(from.Line, from.Column)
	to, ok := y.anchors[from.Alias]
	switch {
	case !ok || to.open:
		y.failed = y.src.error(off, "", "anchor %q contains itself", from.Value)
		return Node{}, size{}
	case y.grown+to.size.weight > MaxExpansion:
		y.failed = y.src.error(off, "write the values out or make them smaller", "aliases repeat more than %d MiB", MaxExpansion>>20)
		return Node{}, size{}
	case depth+to.size.height > MaxDepth:
		return y.tooDeep(off)
	}
	y.grown += to.size.weight
	return to.node, to.size
}

func (y *yamlParser) mapping(from *yaml.Node, depth int) (*composite, size) {
	sub := &composite{keys: make([]Key, 0, len(from.Content)/2), items: make([]Node, 0, len(from.Content)/2)}
	total := size{16, 1}
	var merges []merge
	for i := 0; i+1 < len(from.Content); i += 2 {
		k := from.Content[i]
		off := int32(y.offset(k.Line, k.Column))
		if k.Kind == yaml.ScalarNode && k.Value == "<<" && plain(k) {
			value, inner := y.value(from.Content[i+1], depth+1)
			merges = append(merges, merge{len(sub.keys), off, value})
			total.add(inner)
			continue
		}
		name, ok := y.key(k, off)
		value, inner := y.value(from.Content[i+1], depth+1)
		total.add(inner)
		total.weight += 16 + len(name)
		if ok {
			sub.keys = append(sub.keys, Key{Name: name, src: y.src, off: off})
			sub.items = append(sub.items, value)
		}
	}
	if y.failed != nil {
		return sub, total
	}
	checkUnique(sub.keys, &y.p)
	if len(merges) > 0 {
		sub = y.merged(sub, merges)
	}
	return sub, total
}

// merge is a merge key: where it stands among the keys of its mapping, and its value.
type merge struct {
	at    int
	off   int32
	value Node
}

// merged puts the fields of merge keys in the place of the merge key. A key of the mapping itself wins over them, an earlier source over a later.
func (y *yamlParser) merged(sub *composite, merges []merge) *composite {
	if len(merges) > 1 {
		y.p.Add(y.src.position(int(merges[1].off)), "write << once, with a list", `key "<<" stands here a second time`)
	}
	taken := make(map[string]bool, len(sub.keys))
	for _, k := range sub.keys {
		taken[k.Name] = true
	}
	m := merges[0]
	from := []Node{m.value}
	if m.value.kind == Sequence {
		from = m.value.sub.items
	}
	out := &composite{}
	out.keys = append(out.keys, sub.keys[:m.at]...)
	out.items = append(out.items, sub.items[:m.at]...)
	for _, n := range from {
		if n.kind != Mapping {
			y.p.Add(y.src.position(int(m.off)), `quote it where a key of that name is meant: "<<"`, "a merge key wants a mapping or a list of mappings, got %s", n.kind)
			continue
		}
		for k, v := range n.Fields() {
			if !taken[k.Name] {
				taken[k.Name] = true
				out.keys = append(out.keys, k)
				out.items = append(out.items, v)
			}
		}
	}
	out.keys = append(out.keys, sub.keys[m.at:]...)
	out.items = append(out.items, sub.items[m.at:]...)
	return out
}

func (y *yamlParser) key(k *yaml.Node, off int32) (string, bool) {
	if k.Kind == yaml.AliasNode {
		k = k.Alias
	}
	if k.Kind != yaml.ScalarNode {
		kind := Mapping
		if k.Kind == yaml.SequenceNode {
			kind = Sequence
		}
		y.p.Add(y.src.position(int(off)), "", "a key is a string, not %s", kind)
		return "", false
	}
	n := Node{src: y.src, off: off}
	if k.Anchor != "" {
		y.anchors[k] = anchored{node: n.WithText(k.Value), size: size{weight: 16 + len(k.Value)}}
	}
	y.checkTag(k, n)
	if plain(k) && k.Style&yaml.TaggedStyle == 0 {
		if kind, _, _ := resolve(k.Value); kind != String {
			y.p.Add(n.Pos(), "quote it: \""+k.Value+"\"", "a key is a string, not %s", kind)
		}
	}
	return k.Value, true
}

func plain(n *yaml.Node) bool {
	return n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

// tagKinds are the tags of the core schema by the kinds that may bear them.
var tagKinds = map[string][]Kind{
	"!!null": {Null}, "!!bool": {Bool}, "!!int": {Int}, "!!float": {Float, Int}, "!!str": {String}, "!!seq": {Sequence}, "!!map": {Mapping},
}

func (y *yamlParser) checkTag(from *yaml.Node, n Node) {
	if from.Style&yaml.TaggedStyle == 0 {
		return
	}
	kinds, ok := tagKinds[from.ShortTag()]
	if !ok {
		y.p.Add(n.Pos(), "remove it", "tag %s is not known here", from.Tag)
		return
	}
	collection := from.Kind == yaml.SequenceNode && kinds[0] != Sequence || from.Kind == yaml.MappingNode && kinds[0] != Mapping
	if collection || from.Kind == yaml.ScalarNode && (kinds[0] == Sequence || kinds[0] == Mapping) {
		y.p.Add(n.Pos(), "remove it", "tag %s does not fit the value", from.Tag)
	}
}

// scalar sets kind and text by the core schema.
func (y *yamlParser) scalar(from *yaml.Node, n *Node) {
	tag := ""
	if from.Style&yaml.TaggedStyle != 0 {
		tag = from.ShortTag()
	}
	if tag == "!!str" || tag == "" && (!plain(from) || from.Tag == "!") {
		n.kind, n.text = String, from.Value
		return
	}
	kind, text, why := resolve(from.Value)
	if why != "" {
		hint := "quote it: \"" + from.Value + "\""
		if text != "" {
			hint = "write " + text + ", or " + hint
		}
		y.p.Add(n.Pos(), hint, "%s %s", from.Value, why)
	}
	if want, ok := tagKinds[tag]; ok && kind != want[0] && kind != want[len(want)-1] {
		y.p.Add(n.Pos(), "remove it", "tag %s does not fit the value", from.Tag)
	}
	n.kind, n.text = kind, text
}

// offset returns the byte of a line and column as the library counts them. Nodes come nearly in the order of the text, so each search goes on from the last.
func (y *yamlParser) offset(line, column int) int {
	if y.lines == nil {
		y.lines = breaks(y.src.text)
	}
	if line < 1 {
		return 0
	}
	if line > len(y.lines) {
		return len(y.src.text)
	}
	off, at := int(y.lines[line-1]), 1
	if y.last.line == line && y.last.column <= column {
		off, at = y.last.off, y.last.column
	}
	for ; at < column && off < len(y.src.text); at++ {
		_, size := utf8.DecodeRuneInString(y.src.text[off:])
		off += size
	}
	y.last.line, y.last.column, y.last.off = line, at, off
	return off
}

// breaks returns where lines begin. The library also ends lines at NEL, LS and PS, as YAML 1.1 did.
func breaks(text string) []int32 {
	lines := []int32{0}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\r' && i+1 < len(text) && text[i+1] == '\n':
		case c == '\n' || c == '\r':
			lines = append(lines, int32(i+1))
		case c == 0xc2 && strings.HasPrefix(text[i:], "\u0085"):
			lines = append(lines, int32(i+2))
		case c == 0xe2 && (strings.HasPrefix(text[i:], "\u2028") || strings.HasPrefix(text[i:], "\u2029")):
			lines = append(lines, int32(i+3))
		}
	}
	return lines
}

// syntax puts the library's error at its place and says plainly what writers of YAML most often meant.
func (y *yamlParser) syntax(err error) error {
	var at *yaml.LoadError
	if !errors.As(err, &at) {
		return failure.WithCode(err, failure.Input)
	}
	off := y.offset(at.Mark.Line, at.Mark.Column)
	if y.deep {
		y.tooDeep(off)
		return y.failed
	}
	start := y.src.lineStart(off)
	if indent := y.src.text[start:y.src.lineEnd(start)]; strings.Contains(indent[:len(indent)-len(strings.TrimLeft(indent, " \t-"))], "\t") {
		tab := start + strings.IndexByte(indent, '\t')
		return y.src.error(tab, "YAML is indented with spaces: replace the tab", "a tab in the indentation")
	}
	message := at.Message
	if at.ContextMsg != "" && at.ContextMark.Line > 0 && at.ContextMark != at.Mark {
		message += ", " + at.ContextMsg + " that begins at line " + failureLine(y.src.position(y.offset(at.ContextMark.Line, at.ContextMark.Column)))
	}
	return y.src.error(off, quoteHint(y.src.text[start:y.src.lineEnd(start)]), "not YAML: %s", message)
}

// quoteHint looks for the things that most often make a line, or a value alone, no YAML.
func quoteHint(line string) string {
	_, value, found := strings.Cut(line, ": ")
	if !found {
		value = line
	}
	value = strings.TrimLeft(value, " ")
	if strings.HasPrefix(value, ">") || strings.HasPrefix(value, "|") {
		return "put the text in quotes, \">= 0.9\": " + value[:1] + " begins a block of lines"
	}
	if strings.Contains(value, ": ") || value != "" && strings.Contains("@`%", value[:1]) {
		return "put the text in quotes: it holds \": \" or begins with one of @ ` %"
	}
	return ""
}

func failureLine(pos failure.Position) string {
	pos.File = ""
	return strings.TrimPrefix(pos.String(), ":")
}

// resolve gives kind and text of a plain scalar by the core schema of YAML 1.2. A number is given as JSON writes it. why is set for a number that this package refuses; text then is what may be meant.
func resolve(s string) (kind Kind, text, why string) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return Null, "null", ""
	case "true", "True", "TRUE":
		return Bool, "true", ""
	case "false", "False", "FALSE":
		return Bool, "false", ""
	case ".nan", ".NaN", ".NAN":
		return Float, "", "is no number that JSON has"
	}
	sign, rest := "", s
	if rest[0] == '-' || rest[0] == '+' {
		sign, rest = strings.TrimPrefix(rest[:1], "+"), rest[1:]
	}
	switch rest {
	case ".inf", ".Inf", ".INF":
		return Float, "", "is no number that JSON has"
	}
	if rest == s && len(rest) > 2 && rest[0] == '0' && (rest[1] == 'x' || rest[1] == 'o') {
		base, digits := 16, rest[2:]
		if rest[1] == 'o' {
			base = 8
		}
		const most = 64 // digits: enough for any id, and nothing to spend time on
		if i, ok := new(big.Int).SetString(digits[:min(len(digits), most)], base); ok && digits[0] != '+' && digits[0] != '-' && len(digits) <= most {
			return Int, i.String(), ""
		}
		return String, s, ""
	}
	whole := digits(rest)
	tail := rest[len(whole):]
	frac, dot := "", strings.HasPrefix(tail, ".")
	if dot {
		frac = digits(tail[1:])
		tail = tail[1+len(frac):]
	}
	if whole == "" && frac == "" {
		return String, s, ""
	}
	if tail != "" {
		exponent := tail[1:]
		if exponent != "" && (exponent[0] == '+' || exponent[0] == '-') {
			exponent = exponent[1:]
		}
		if tail[0] != 'e' && tail[0] != 'E' || exponent == "" || digits(exponent) != exponent {
			return String, s, ""
		}
	}
	if len(whole) > 1 && whole[0] == '0' {
		why = "is a number with a leading zero"
		if whole = strings.TrimLeft(whole, "0"); whole == "" {
			whole = "0"
		}
	}
	if whole == "" {
		whole = "0"
	}
	kind = Int
	text = sign + whole
	if dot {
		kind = Float
		if frac == "" {
			frac = "0"
		}
		text += "." + frac
	}
	if tail != "" {
		kind = Float
		text += tail
	}
	return kind, text, why
}

func digits(s string) string {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return s[:i]
		}
	}
	return s
}
