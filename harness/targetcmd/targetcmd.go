// Package targetcmd is for programs under test that are written in Go: those that a dataset names under target.
//
//	func main() {
//		targetcmd.Main(func(ctx context.Context, t targetcmd.Turn) (string, error) {
//			return answer(ctx, t.Input) // asks its models as it always does
//		})
//	}
//
// The same program serves both ways of working, once and workers: lines. It asks its models at the address that OPENAI_BASE_URL or the variable of another vendor gives, as every client of these vendors does by itself.
package targetcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// version is the version of the format that this package speaks.
const version = 1

// Turn is what the program is asked.
type Turn struct {
	// Session names the item, provider and repeat: item/provider/repeat. The turns of a session come one after the other.
	Session string `json:"session"`
	// Turn counts from 1.
	Turn int `json:"turn"`
	// Input is the text of what the user says.
	Input string `json:"input"`
	// Messages are the conversation up to and with that, each a message of OpenAI's Chat Completions.
	Messages []json.RawMessage `json:"messages"`
	// Vars and ToolContext are the item's values, each in JSON. What is in ToolContext must reach no model.
	Vars        map[string]json.RawMessage `json:"vars"`
	ToolContext map[string]json.RawMessage `json:"tool_context"`
	// Workspace is the absolute path of the item's own folder, "" where it has none.
	Workspace string   `json:"workspace"`
	Provider  Provider `json:"provider"`
	// Now is the time of the item: that of the recording in a replay. Seed is the run's.
	Now  time.Time `json:"now"`
	Seed uint64    `json:"seed"`
}

// Provider is the column that is asked for: its id, and vendor and model where the dataset names them.
type Provider struct {
	ID     string `json:"id"`
	Vendor string `json:"vendor"`
	Model  string `json:"model"`
}

// Answer is what a [Handler] says of a turn.
type Answer struct {
	Output string
	// Messages, in the form of OpenAI's Chat Completions from the first of the assistant on, and Usage tell what the recorder does not see: leave both empty where models are asked through it.
	Messages []json.RawMessage
	Usage    *Usage
}

// Usage counts tokens as OpenAI does.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
}

// Handler answers one turn.
type Handler func(context.Context, Turn) (Answer, error)

// Main answers every turn on standard input on standard output with the text that answer gives, and ends the process with the input: with code 0, or 1 where the input is no turn or the output is gone.
func Main(answer func(context.Context, Turn) (string, error)) {
	MainHandler(func(ctx context.Context, t Turn) (Answer, error) {
		output, err := answer(ctx, t)
		return Answer{Output: output}, err
	})
}

// MainHandler is [Main] for programs that say more than a text.
func MainHandler(handler Handler) {
	if err := Serve(context.Background(), os.Stdin, os.Stdout, handler); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Serve answers every turn that r holds, a line each, until r ends. An error of the handler, or its panic, is the answer to the turn, and the next one is asked all the same.
func Serve(ctx context.Context, r io.Reader, w io.Writer, handler Handler) error {
	in := json.NewDecoder(r)
	for {
		var wire struct {
			V int `json:"v"`
			Turn
		}
		switch err := in.Decode(&wire); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading a turn: %w", err)
		}
		answer, err := Answer{}, fmt.Errorf("the turn is of version %d, and the program was built for version %d", wire.V, version)
		if wire.V == version {
			answer, err = safely(ctx, handler, wire.Turn)
		}
		if err := write(w, answer, err); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
}

func safely(ctx context.Context, handler Handler, t Turn) (a Answer, err error) {
	defer func() {
		if crash := recover(); crash != nil {
			err = fmt.Errorf("the program crashed: %v", crash)
		}
	}()
	return handler(ctx, t)
}

// write writes an answer in one write: a reader that looks in between finds nothing.
func write(w io.Writer, a Answer, failed error) error {
	var wire any = struct {
		Output   string            `json:"output"`
		Messages []json.RawMessage `json:"messages,omitempty"`
		Usage    *Usage            `json:"usage,omitempty"`
	}{a.Output, a.Messages, a.Usage}
	if failed != nil {
		text := failed.Error()
		if text == "" {
			text = "the program failed and does not say why"
		}
		wire = struct {
			Error string `json:"error"`
		}{text}
	}
	line, err := json.Marshal(wire)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}
