package results

import (
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/eval"
	"github.com/echoeval/echoeval/core/money"
)

// scanner reads result lines in the one form that [AppendLine] writes, several times as fast as a reader of any JSON. A line in another form is not for it: what it refuses goes to that reader, so that it need not judge what is wrong. Texts that come again and again, such as names, are made once.
//
// The zero value is ready for use. It must not be used from several goroutines at once.
type scanner struct {
	data  []byte
	ok    bool
	texts map[string]string
}

// Bounds on the texts that are kept.
const (
	keptTexts  = 1024
	keptLength = 64
)

// line reads a line, or says that it is not in the form.
func (s *scanner) line(data []byte) (r eval.Result, ok bool) {
	s.data, s.ok = data, true
	s.literal(`{"v":`)
	r.V = s.integer()
	s.literal(`,"item":`)
	r.Item = s.text()
	s.literal(`,"index":`)
	r.Index = s.integer()
	s.literal(`,"provider":`)
	r.Provider = s.name()
	s.literal(`,"repeat":`)
	r.Repeat = s.integer()
	s.literal(`,"group":`)
	r.Group = optional(s, s.name)
	s.literal(`,"tags":`)
	r.Tags = s.names()
	s.literal(`,"quarantined":`)
	r.Quarantined = s.boolean()
	s.literal(`,"item_hash":`)
	r.ItemHash = s.text()
	s.literal(`,"checks_hash":`)
	r.ChecksHash = s.name()
	s.literal(`,"status":`)
	r.Status = eval.Status(s.name())
	s.literal(`,"cause":`)
	r.Cause = optional(s, s.name)
	s.literal(`,"score":`)
	r.Score = optional(s, s.fraction)
	s.literal(`,"output":`)
	r.Output = optional(s, s.text)
	s.literal(`,"output_cut":`)
	r.OutputCut = s.boolean()
	s.literal(`,"stop":`)
	r.Stop = optional(s, s.name)
	s.literal(`,"checks":`)
	r.Checks = list(s, s.check)
	s.literal(`,"invariants":{"held":`)
	r.Invariants.Held = s.integer()
	s.literal(`,"not_applicable":`)
	r.Invariants.NotApplicable = s.names()
	s.literal(`,"triggered":`)
	r.Invariants.Triggered = s.names()
	s.literal(`,"violations":`)
	r.Invariants.Violations = list(s, s.violation)
	s.literal(`},"error":`)
	r.Error = optional(s, s.errorInfo)
	s.literal(`,"cassette":`)
	r.Cassette = optional(s, s.cassette)
	s.literal(`,"usage":{"input_tokens":`)
	r.Usage.InputTokens = s.integer()
	s.literal(`,"cached_input_tokens":`)
	r.Usage.CachedInputTokens = s.integer()
	s.literal(`,"output_tokens":`)
	r.Usage.OutputTokens = s.integer()
	s.literal(`,"reasoning_tokens":`)
	r.Usage.ReasoningTokens = s.integer()
	s.literal(`},"cost_usd":`)
	r.CostUSD = optional(s, s.usd)
	s.literal(`,"overhead_usd":`)
	r.OverheadUSD = s.usd()
	s.literal(`,"latency_ms":`)
	r.LatencyMS = optional(s, s.integer64)
	s.literal(`,"ttft_ms":`)
	r.TTFTMS = optional(s, s.integer64)
	s.literal(`,"turns":`)
	r.Turns = s.integer()
	s.literal(`,"steps":`)
	r.Steps = s.integer()
	s.literal(`,"tool_calls":`)
	r.ToolCalls = s.integer()
	s.literal(`,"retries":`)
	r.Retries = s.integer()
	if s.is(`,"faults":`) {
		r.Faults = list(s, s.fault)
	}
	s.literal(traceKey)
	r.Trace = optional(s, s.place)
	s.literal("}")
	return r, s.ok && len(s.data) == 0
}

func (s *scanner) check() (c eval.CheckResult) {
	s.literal(`{"name":`)
	c.Name = s.name()
	s.literal(`,"turn":`)
	c.Turn = optional(s, s.integer)
	s.literal(`,"status":`)
	c.Status = eval.CheckStatus(s.name())
	s.literal(`,"score":`)
	c.Score = optional(s, s.fraction)
	s.literal(`,"threshold":`)
	c.Threshold = s.fraction()
	s.literal(`,"weight":`)
	c.Weight = eval.Number(s.fraction())
	s.literal(`,"required":`)
	c.Required = s.boolean()
	s.literal(`,"expected":`)
	c.Expected = optional(s, s.name)
	s.literal(`,"actual":`)
	c.Actual = optional(s, s.text)
	s.literal(`,"reason":`)
	c.Reason = s.name()
	s.literal(`,"at":`)
	c.At = s.name()
	s.literal("}")
	return c
}

func (s *scanner) violation() (v eval.Violation) {
	s.literal(`{"name":`)
	v.Name = s.name()
	s.literal(`,"severity":`)
	v.Severity = eval.Severity(s.name())
	s.literal(`,"events":`)
	v.Events = list(s, s.integer)
	s.literal(`,"evidence":`)
	v.Evidence = s.text()
	s.literal(`,"at":`)
	v.At = s.name()
	s.literal("}")
	return v
}

func (s *scanner) errorInfo() (e eval.ErrorInfo) {
	s.literal(`{"kind":`)
	e.Kind = eval.ErrorKind(s.name())
	s.literal(`,"code":`)
	e.Code = optional(s, s.name)
	s.literal(`,"http_status":`)
	e.HTTPStatus = optional(s, s.integer)
	s.literal(`,"message":`)
	e.Message = s.text()
	s.literal(`,"retries":`)
	e.Retries = s.integer()
	s.literal(`,"hint":`)
	e.Hint = optional(s, s.name)
	s.literal("}")
	return e
}

func (s *scanner) cassette() (c eval.CassetteInfo) {
	s.literal(`{"file":`)
	c.File = s.text()
	s.literal(`,"state":`)
	c.State = eval.CassetteState(s.name())
	s.literal(`,"drift":`)
	c.Drift = list(s, s.drift)
	s.literal(`,"left_over":`)
	c.LeftOver = s.integer()
	s.literal("}")
	return c
}

func (s *scanner) drift() (d eval.Drift) {
	s.literal(`{"class":`)
	d.Class = s.name()
	s.literal(`,"request":`)
	d.Request = s.integer()
	s.literal(`,"path":`)
	d.Path = s.name()
	s.literal(`,"old":`)
	d.Old = s.text()
	s.literal(`,"new":`)
	d.New = s.text()
	s.literal(`,"action":`)
	d.Action = s.name()
	s.literal("}")
	return d
}

func (s *scanner) fault() (f eval.FaultResult) {
	s.literal(`{"name":`)
	f.Name = s.name()
	s.literal(`,"kind":`)
	f.Kind = s.name()
	s.literal(`,"request":`)
	f.Request = s.integer()
	s.literal(`,"call":`)
	f.Call = s.integer()
	s.literal(`,"status":`)
	f.Status = eval.FaultStatus(s.name())
	s.literal(`,"ending":`)
	f.Ending = s.name()
	s.literal(`,"stop":`)
	f.Stop = s.name()
	s.literal(`,"retries":`)
	f.Retries = s.integer()
	s.literal(`,"reason":`)
	f.Reason = s.name()
	s.literal(`,"violations":`)
	f.Violations = list(s, s.violation)
	s.literal("}")
	return f
}

func (s *scanner) place() (p eval.TracePlace) {
	s.literal(`{"segment":`)
	p.Segment = s.integer()
	s.literal(`,"offset":`)
	p.Offset = s.integer64()
	s.literal(`,"length":`)
	p.Length = s.integer64()
	s.literal("}")
	return p
}

func (s *scanner) refuse() { s.data, s.ok = nil, false }

// is takes a literal, if it comes next.
func (s *scanner) is(literal string) bool {
	if len(s.data) < len(literal) || string(s.data[:len(literal)]) != literal {
		return false
	}
	s.data = s.data[len(literal):]
	return true
}

func (s *scanner) literal(literal string) {
	if !s.is(literal) {
		s.refuse()
	}
}

func optional[T any](s *scanner, read func() T) *T {
	if s.is(null) {
		return nil
	}
	v := read()
	return &v
}

func list[T any](s *scanner, read func() T) []T {
	if s.is(null) {
		return nil
	}
	s.literal("[")
	out := []T{}
	if s.is("]") {
		return out
	}
	for s.ok {
		out = append(out, read())
		if s.is("]") {
			break
		}
		s.literal(",")
	}
	return out
}

func (s *scanner) names() []string { return list(s, s.name) }

func (s *scanner) boolean() bool {
	if s.is("true") {
		return true
	}
	s.literal("false")
	return false
}

func (s *scanner) integer() int { return int(s.integer64()) }

// integer64 reads a whole number of at most 18 digits.
func (s *scanner) integer64() int64 {
	const most = 18
	negative := s.is("-")
	var n int64
	i := 0
	for ; i < len(s.data) && i < most && isDigit(s.data[i]); i++ {
		n = n*10 + int64(s.data[i]-'0')
	}
	if i == 0 || i > 1 && s.data[0] == '0' || i < len(s.data) && (isDigit(s.data[i]) || s.data[i] == '.' || s.data[i]|0x20 == 'e') {
		s.refuse()
		return 0
	}
	s.data = s.data[i:]
	if negative {
		return -n
	}
	return n
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// number takes a decimal without an exponent.
func (s *scanner) number() []byte {
	i := 0
	if i < len(s.data) && s.data[i] == '-' {
		i++
	}
	whole := i
	for i < len(s.data) && isDigit(s.data[i]) {
		i++
	}
	if i == whole || i > whole+1 && s.data[whole] == '0' {
		s.refuse()
		return nil
	}
	if i < len(s.data) && s.data[i] == '.' {
		i++
		decimals := i
		for i < len(s.data) && isDigit(s.data[i]) {
			i++
		}
		if i == decimals {
			s.refuse()
			return nil
		}
	}
	if i < len(s.data) && s.data[i]|0x20 == 'e' {
		s.refuse()
		return nil
	}
	number := s.data[:i]
	s.data = s.data[i:]
	return number
}

func (s *scanner) fraction() eval.Fraction {
	number := s.number()
	if len(number) == 1 {
		return eval.Fraction(number[0] - '0')
	}
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		s.refuse()
	}
	return eval.Fraction(f)
}

func (s *scanner) usd() (amount money.USD) {
	number := s.number()
	if len(number) == 1 {
		return money.USD(number[0]-'0') * money.Dollar
	}
	if s.ok && amount.UnmarshalJSON(number) != nil {
		s.refuse()
	}
	return amount
}

// text reads a string.
func (s *scanner) text() string {
	if raw, plain := s.quoted(); plain {
		return string(raw)
	} else if s.ok {
		return s.unquote(raw)
	}
	return ""
}

// name reads a string that is likely to come again.
func (s *scanner) name() string {
	raw, plain := s.quoted()
	switch {
	case !s.ok:
		return ""
	case !plain:
		return s.unquote(raw)
	case len(raw) > keptLength:
		return string(raw)
	}
	if known, ok := s.texts[string(raw)]; ok {
		return known
	}
	text := string(raw)
	if s.texts == nil {
		s.texts = map[string]string{}
	}
	if len(s.texts) < keptTexts {
		s.texts[text] = text
	}
	return text
}

func (s *scanner) unquote(quoted []byte) string {
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		s.refuse()
	}
	return string(text)
}

// quoted takes a string. A plain one is returned without its quotes: it is what it says. Any other is returned with them.
func (s *scanner) quoted() (raw []byte, plain bool) {
	if len(s.data) == 0 || s.data[0] != '"' {
		s.refuse()
		return nil, false
	}
	plain = true
	ascii := true
	for i := 1; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			raw, quoted := s.data[1:i], s.data[:i+1]
			s.data = s.data[i+1:]
			if plain && (ascii || utf8.Valid(raw)) {
				return raw, true
			}
			return quoted, false
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			s.refuse()
			return nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	s.refuse()
	return nil, false
}
