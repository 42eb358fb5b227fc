package emulator

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/echoeval/echoeval/core/strict"
)

// Script says what the emulator answers. [Load] reads one from YAML; the package's documentation shows the file.
type Script struct {
	// Version is the version of the format: 1.
	Version int `yaml:"version,required" schema:"version" json:"version"`
	// Name names the script in messages; it takes no part in matching.
	Name string `yaml:"name,required" schema:"filled" json:"name"`
	// Models are the models that may be asked for, each a name or a pattern with * and ?.
	// Without any, those that the conversations match are allowed, and every model where a conversation names none.
	Models []string `yaml:"models" json:"models,omitempty"`
	// Fragment is how many characters a piece of a streamed text or of streamed arguments has, unless the step says otherwise; 0 is 4, or more in a text of over 8,000 characters, so that none has more than 2,000 pieces.
	Fragment int `yaml:"fragment" schema:"count" json:"fragment,omitempty"`
	// Conversations are tried in order: first all of them with the last user message of the request, then all of them with its first.
	Conversations []Conversation `yaml:"conversations" json:"conversations,omitempty"`
	// Default answers what no conversation matches. Its Match must be empty.
	Default *Conversation `yaml:"default" json:"default,omitempty"`
}

// Conversation is a list of answers to one user message.
type Conversation struct {
	// Name names the conversation in messages; without one it is called by its number in the file.
	Name  string `yaml:"name" json:"name,omitempty"`
	Match Match  `yaml:"match" json:"match,omitzero"`
	// Steps are the answers: step k (from 1) answers the request in which k-1 assistant messages follow the user message that matched.
	Steps []Step `yaml:"steps,required" schema:"steps" json:"steps"`
}

// Match says which requests belong to a conversation. All that is given must hold; a Match without anything matches every request.
type Match struct {
	// Model is the model asked for, or a pattern with * and ?.
	Model string `yaml:"model" schema:"filled" json:"model,omitempty"`
	// User is the whole text of the user message: the text parts joined by a line feed.
	User string `yaml:"user" schema:"filled" json:"user,omitempty"`
	// UserContains is a part of that text, letter by letter.
	UserContains string `yaml:"user_contains" schema:"filled" json:"user_contains,omitempty"`
	// UserRegex is a regular expression (RE2) that is found in that text.
	UserRegex string `yaml:"user_regex" schema:"filled" json:"user_regex,omitempty"`
	// SystemContains is a part of the system (or developer) messages, joined by a line feed.
	SystemContains string `yaml:"system_contains" schema:"filled" json:"system_contains,omitempty"`
}

// IsZero reports whether nothing is asked for.
func (m Match) IsZero() bool { return m == Match{} }

// Step is one answer. It holds a text, calls (with or without text), a refusal or an error, or only Attempts.
type Step struct {
	// Text is the answer's text; a template. A nil Text is null on the wire where the answer is calls.
	Text *string `yaml:"text" json:"text,omitempty"`
	// Reasoning is what the model thought; a template. Formats that do not show reasoning, such as Chat Completions, only count its tokens; Gemini shows it to who asks for it.
	Reasoning string `yaml:"reasoning" json:"reasoning,omitempty"`
	// Calls are the tool calls, in order.
	Calls []Call `yaml:"calls" schema:"calls" json:"calls,omitempty"`
	// Refusal is the text of a refusal; a template.
	Refusal string `yaml:"refusal" json:"refusal,omitempty"`
	// Finish is why the answer ended: stop, length, content_filter or tool_calls; without it tool_calls where there are calls, else stop.
	Finish string `yaml:"finish" schema:"finish" json:"finish,omitempty"`
	// Usage are the token counts; without it they are estimated from the texts, four bytes a token.
	Usage *Usage `yaml:"usage" json:"usage,omitempty"`
	// Latency is how long the whole answer takes, TTFT how long it takes to its first byte. They are reported in headers, and waited out only by a handler with [Options.RealTime].
	// Without them the first byte takes 180 ms and each token of the answer 8 ms.
	Latency *time.Duration `yaml:"latency" json:"latency,omitempty"`
	TTFT    *time.Duration `yaml:"ttft" json:"ttft,omitempty"`
	// Error answers with an error.
	Error *Error `yaml:"error" json:"error,omitempty"`
	// Cut closes the connection in the middle of the answer.
	Cut *Cut `yaml:"cut" json:"cut,omitempty"`
	// Slow streams slowly.
	Slow *Slow `yaml:"slow" json:"slow,omitempty"`
	// Fragment is the piece size of this step; see [Script.Fragment].
	Fragment int `yaml:"fragment" schema:"count" json:"fragment,omitempty"`
	// Attempts answer the first, second, ... try of the same request, which the client numbers in the header X-Stainless-Retry-Count from 0. The last one answers all further tries.
	Attempts []Step `yaml:"attempts" schema:"steps" json:"attempts,omitempty"`
}

// Call is one tool call.
type Call struct {
	Name string `yaml:"name,required" schema:"filled" json:"name"`
	// Args are the arguments: a JSON object, keys in order. The strings in it are templates. Nil is {}.
	Args Object `yaml:"args" json:"args,omitempty"`
	// Raw are arguments that need not be JSON, instead of Args; a template.
	Raw *string `yaml:"raw" json:"raw,omitempty"`
	// ID is the call's id; without it one is derived from the request.
	ID string `yaml:"id" json:"id,omitempty"`
}

// Usage counts tokens. A count that is nil is estimated; CachedInput and Reasoning are 0 then, unless the step has a reasoning text.
type Usage struct {
	Input       *int `yaml:"input" schema:"count_or_null" json:"input,omitempty"`
	CachedInput *int `yaml:"cached_input" schema:"count_or_null" json:"cached_input,omitempty"` // part of Input
	Output      *int `yaml:"output" schema:"count_or_null" json:"output,omitempty"`
	Reasoning   *int `yaml:"reasoning" schema:"count_or_null" json:"reasoning,omitempty"` // part of Output
}

// Error is an error reply. Type, Code, Message and Param default to what the vendor sends with the status.
type Error struct {
	Status  int     `yaml:"status,required" schema:"status" json:"status"` // 400, 401, 403, 404, 408, 413, 429, 500, 503 or 529
	Type    string  `yaml:"type" json:"type,omitempty"`
	Code    *string `yaml:"code" json:"code,omitempty"`
	Param   *string `yaml:"param" json:"param,omitempty"`
	Message string  `yaml:"message" json:"message,omitempty"`
	// RetryAfter is given in the headers retry-after (in whole seconds, rounded up) and retry-after-ms, or as the vendor gives it: Gemini in the error's details.
	RetryAfter *time.Duration `yaml:"retry_after" json:"retry_after,omitempty"`
}

// Cut says where the connection is closed. It is closed before the terminal marker at the latest, so that a cut reply is never a whole one.
// A blocking reply is one frame: a count of frames cuts it in the middle.
type Cut struct {
	After Amount `yaml:"after,required" json:"after"`
}

// Amount is a count of frames of a stream or of bytes of a body, written "3 frames" or "120 bytes".
type Amount struct {
	Count int  `json:"count"`
	Bytes bool `json:"bytes"`
}

// DecodeStrict implements [strict.Decoder].
func (a *Amount) DecodeStrict(n strict.Node, p *strict.Problems) {
	count, unit, _ := strings.Cut(n.Text(), " ")
	number, err := strconv.Atoi(count)
	unit = strings.TrimSuffix(strings.TrimSpace(unit), "s")
	if n.Kind() != strict.String || err != nil || unit != "frame" && unit != "byte" {
		p.Add(n.Pos(), "write a number and its unit: 3 frames, or 120 bytes", "want a number of frames or bytes")
		return
	}
	a.Count, a.Bytes = number, unit == "byte"
}

// Object is the text of a JSON object.
type Object []byte

// DecodeStrict implements [strict.Decoder].
func (o *Object) DecodeStrict(n strict.Node, p *strict.Problems) {
	if n.Kind() != strict.Mapping {
		p.WrongType(n, "a mapping")
		return
	}
	*o = n.AppendJSON(nil)
}

// MarshalJSON gives the text itself.
func (o Object) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// Slow delays a stream.
type Slow struct {
	// ChunkDelay is really waited after each frame, whatever [Options.RealTime] says.
	ChunkDelay time.Duration `yaml:"chunk_delay,required" json:"chunk_delay"`
}

// Hash returns the hash of what the script says, in hexadecimal; how the file was formatted and commented takes no part. Every id in a reply depends on it.
func (s Script) Hash() (string, error) {
	sum, err := s.sum()
	return hex.EncodeToString(sum[:]), err
}

func (s Script) sum() ([sha256.Size]byte, error) {
	// What is not given must stay out of the text, so that a key added to the format does not change the hashes of older scripts.
	data, err := json.Marshal(s)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(data), nil
}

// Load reads a script and checks it. The file's name serves messages. All that is wrong is told at once, with places and hints, by errors of code [failure.Input].
func Load(file string, data []byte) (Script, error) {
	root, err := strict.Parse(file, data)
	if err != nil {
		return Script{}, err
	}
	var p strict.Problems
	var s Script
	strict.Decode(root, &s, &p)
	for i, c := range root.Get("conversations").Items() {
		for key, value := range c.Get("match").Fields() {
			if value.Kind() == strict.String && value.Text() == "" {
				p.Key("conversations").At(i).Key("match").Key(key.Name).Add(value.Pos(), "leave the key out, or write what it should match", "an empty text")
			}
		}
	}
	if err := p.Err(); err != nil {
		return Script{}, err
	}
	_, faults := newPlan(s)
	for _, f := range faults {
		f.add(root, &p)
	}
	return s, p.Err()
}

// add tells the fault at its place in the file, or at the nearest part of the file that is there.
func (f fault) add(n strict.Node, p *strict.Problems) {
	for _, step := range f.path {
		var next strict.Node
		switch step := step.(type) {
		case string:
			next, p = n.Get(step), p.Key(step)
		case int:
			next, p = n.Index(step), p.At(step)
		}
		if next.IsZero() {
			break
		}
		n = next
	}
	p.Add(n.Pos(), "", "%s", f.what)
}

//go:embed echo.yaml
var echo []byte

// Echo returns the built-in script that answers every request of one turn at once with a short text. It serves load tests.
func Echo() (Script, error) { return Load("echo.yaml", echo) }
