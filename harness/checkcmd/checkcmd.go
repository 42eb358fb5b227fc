// Package checkcmd is for checks written in Go: programs that a dataset names under command.
//
//	func main() {
//		checkcmd.Main(func(c checkcmd.Case) checkcmd.Verdict {
//			return checkcmd.Score(wordScore(c.Output), "words")
//		})
//	}
//
// The same program serves both ways of working, once and workers: lines. A check should be pure: the same case, the same verdict.
package checkcmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/trace"
)

// version is the version of the format that this package speaks.
const version = 1

// Case is what is judged.
type Case struct {
	Check Check
	Item  Item
	// Output is the agent's final text, "" where it said nothing; of the turn where the check looks at one.
	Output string
	// Expected is the item's expected value in JSON; nil where it has none.
	Expected json.RawMessage

	messages []json.RawMessage
	events   json.RawMessage
}

// Check says which check of the dataset asks.
type Check struct {
	Name string `json:"name"`
	// Turn is the user turn that is judged, from 1; nil is the whole item.
	Turn *int `json:"turn"`
	// Threshold is the score from which the check passes.
	Threshold float64 `json:"threshold"`
	// With are the arguments that the dataset passes, a JSON object; see [Case.With].
	With json.RawMessage `json:"with"`
}

// Item is what is known of the item. What is hidden from the model is not part of it.
type Item struct {
	ID       string `json:"id"`
	Provider string `json:"provider"`
	// Repeat counts from 1.
	Repeat int `json:"repeat"`
	// Group is the item's cluster; "" is the item itself.
	Group string   `json:"group"`
	Tags  []string `json:"tags"`
	// Vars and Metadata are the item's values, each in JSON.
	Vars     map[string]json.RawMessage `json:"vars"`
	Metadata map[string]json.RawMessage `json:"metadata"`
}

// With decodes the arguments that the dataset passes into a struct or map. A key that the struct does not have is an error.
func (c Case) With(into any) error {
	d := json.NewDecoder(bytes.NewReader(c.Check.With))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("with: %w", err)
	}
	return nil
}

// Messages returns the conversation: what the agent was given, its replies and the tools' results, in order.
func (c Case) Messages() ([]conversation.Message, error) {
	out := make([]conversation.Message, 0, len(c.messages))
	for i, raw := range c.messages {
		m, err := conversation.DecodeMessage(raw)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// Trace returns the record of the run, or of the turn that is judged.
func (c Case) Trace() (trace.Trace, error) { return trace.Decode(c.events) }

// Verdict is what a check says of a case: a score or why there is none. The zero value is unjudged.
type Verdict struct {
	scored bool
	score  float64
	text   string
}

// Score is a verdict with a score in [0,1] and the reason for it. A score outside makes the case unjudged.
func Score(score float64, reason string) Verdict {
	if !(score >= 0 && score <= 1) {
		return Unjudged(fmt.Sprintf("the check scored %v, which is outside [0,1]", score))
	}
	return Verdict{scored: true, score: score, text: reason}
}

// Unjudged is the verdict of a check that cannot judge the case. It is neither a pass nor a failure.
func Unjudged(why string) Verdict { return Verdict{text: why} }

// Main answers every case on standard input on standard output and ends the process with the input: with code 0, or 1 where the input is no case or the output is gone.
func Main(judge func(Case) Verdict) {
	if err := Serve(os.Stdin, os.Stdout, judge); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Serve answers every case that r holds, a line each, until r ends. A check that panics has not judged the case, and the next one is asked all the same.
func Serve(r io.Reader, w io.Writer, judge func(Case) Verdict) error {
	in := json.NewDecoder(r)
	for {
		var wire struct {
			V        int               `json:"v"`
			Check    Check             `json:"check"`
			Item     Item              `json:"item"`
			Output   string            `json:"output"`
			Expected json.RawMessage   `json:"expected"`
			Messages []json.RawMessage `json:"messages"`
			Trace    struct {
				Events json.RawMessage `json:"events"`
			} `json:"trace"`
		}
		switch err := in.Decode(&wire); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading a case: %w", err)
		}
		c := Case{Check: wire.Check, Item: wire.Item, Output: wire.Output, Expected: wire.Expected, messages: wire.Messages, events: wire.Trace.Events}
		if string(c.Expected) == "null" {
			c.Expected = nil
		}
		if len(c.events) == 0 {
			c.events = json.RawMessage("[]")
		}
		verdict := Unjudged(fmt.Sprintf("the case is of version %d, and the check was built for version %d", wire.V, version))
		if wire.V == version {
			verdict = safely(judge, c)
		}
		if err := verdict.write(w); err != nil {
			return fmt.Errorf("writing a verdict: %w", err)
		}
	}
}

func safely(judge func(Case) Verdict, c Case) (v Verdict) {
	defer func() {
		if crash := recover(); crash != nil {
			v = Unjudged(fmt.Sprintf("the check crashed: %v", crash))
		}
	}()
	return judge(c)
}

// write writes the verdict in one write: a reader that looks in between finds nothing.
func (v Verdict) write(w io.Writer) error {
	var wire any = struct {
		Score  float64 `json:"score"`
		Reason string  `json:"reason"`
	}{v.score, v.text}
	if !v.scored {
		wire = struct {
			Unjudged string `json:"unjudged"`
		}{v.text}
	}
	line, err := json.Marshal(wire)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}
