package results

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/money"
)

// Manifest is manifest.json: everything about a run that may differ between two runs of the same thing, and what was planned. It is written when the run starts and again when it ends.
type Manifest struct {
	V    int    `json:"v"`
	ID   string `json:"id"`
	Tool Tool   `json:"tool"`
	// Started and Finished are in UTC; Finished is null while the run goes on, and stays so where it was killed.
	Started  time.Time  `json:"started"`
	Finished *time.Time `json:"finished"`
	Host     string     `json:"host"`
	// Git is null outside a repository.
	Git *Git `json:"git"`
	// Flags are the command's arguments, redacted.
	Flags []string `json:"flags"`
	Shard *string  `json:"shard"`
	// SpentUSD is what a run with --max-cost has paid, items that were cut off included; a resumed run goes on from it. It is there only where money was spent.
	SpentUSD money.USD `json:"spent_usd,omitzero"`
	// Warnings are those that the run's own part of the summary holds, counted, so that shards can be joined.
	Warnings []WarningCount `json:"warnings"`
	Plan     Head           `json:"plan"`
	// Environment holds the names of the variables that were set, never their values, sorted.
	Environment []string `json:"environment"`
}

// WarningCount is a warning and how often it was given.
type WarningCount struct {
	Code  string `json:"code"`
	Text  string `json:"text"`
	Count int    `json:"count"`
}

// Tool is the program that made the run.
type Tool struct {
	Version  string `json:"version"`
	Platform string `json:"platform"`
}

// Git is the repository when the run started.
type Git struct {
	Commit string `json:"commit"`
}

// WriteManifest replaces the manifest of the run in dir, atomically. V is set.
func WriteManifest(dir string, m Manifest) error {
	m.V = Version
	data, err := json.Marshal(m, encodeOptions, jsontext.WithIndent("  "))
	if err != nil {
		return writing(filepath.Join(dir, ManifestFile), err)
	}
	data = append(data, '\n')
	for attempt := 1; ; attempt++ {
		err := writeFile(filepath.Join(dir, ManifestFile), data)
		if !errors.Is(err, fs.ErrNotExist) || m.Finished != nil || attempt == maxSwept {
			return err
		}
		// The sweep of another run has taken the draft between its making and its claim, and the folder with it.
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return writing(dir, err)
		}
	}
}

// ReadManifest reads the manifest of the run in dir.
func ReadManifest(dir string) (Manifest, error) {
	var m Manifest
	err := readJSON(filepath.Join(dir, ManifestFile), &m, func() int { return m.V })
	return m, err
}

// damage says why a file of one value could not be decoded, in words that know nothing of the decoder.
func damage(err error) string {
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too early"
	case errors.As(err, &syntax):
		return fmt.Sprintf("from byte %d on it is no JSON", syntax.ByteOffset)
	case errors.As(err, &semantic):
		return fmt.Sprintf("%q has a value of a kind that it cannot have", semantic.JSONPointer)
	}
	return err.Error()
}

// readJSON reads a file of one value, and refuses a later version of its format.
func readJSON(path string, into any, version func() int) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return failure.New(failure.Input, "reading the run %s: %s: %s", filepath.Base(filepath.Dir(path)), filepath.Base(path), failure.Reason(err))
	}
	decodeErr := json.Unmarshal(data, into, jsontext.AllowInvalidUTF8(true))
	// A later version may well not decode; what it is goes before how it fails.
	var head struct {
		V int `json:"v"`
	}
	if json.Unmarshal(data, &head, jsontext.AllowInvalidUTF8(true)) == nil && head.V > Version {
		return fmt.Errorf("%s: %w", filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)), versionError(head.V))
	}
	if decodeErr == nil && version() < 1 {
		decodeErr = fmt.Errorf(`"v" is missing or not positive`)
	}
	if decodeErr != nil {
		return damaged(failure.At(failure.Position{File: filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))}, failure.Internal, "the file is damaged: %s", damage(decodeErr)))
	}
	return nil
}
