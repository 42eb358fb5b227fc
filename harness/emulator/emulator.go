// Package emulator is a server that speaks a vendor's wire format and answers from a script. It is an [http.Handler]: run it in the process with [Start], or serve it with [Serve].
//
//	script, err := emulator.Load("weather.yaml", data)
//	...
//	handler, err := emulator.New(script, emulator.Options{})
//
// It speaks
//
//   - OpenAI's Chat Completions at POST /v1/chat/completions and Responses at POST /v1/responses, and Anthropic's Messages at POST /v1/messages, blocking and streamed;
//   - the Gemini API at POST /v1beta/models/MODEL:generateContent and :streamGenerateContent (or /v1/...), the latter as a JSON array or, with alt=sse, as events;
//   - Bedrock's Converse at POST /model/MODEL/converse and /converse-stream, the latter as frames of the binary event stream;
//   - embeddings at POST /v1/embeddings, at /v1beta/models/MODEL:embedContent and :batchEmbedContents, and for the models of Titan and of Cohere at /model/MODEL/invoke.
//
// A script says the same in each. Where a format has no word for something it takes that of its vendor: Gemini has no refusal, so that one is a text that a filter ended, and it withholds calls whose arguments are no JSON object.
//
// Embeddings need no script. A vector counts words and runs of letters: texts with many words in common have similar vectors, and nothing is known of meaning.
//
// # State
//
// There is none. Every id, the time of creation, the backend's fingerprint and the padding of streams are derived from the hash of the script and the hash of the request's content; equal requests get equal bytes, in any order, from any process. No reply has a Date.
//
// # Scripts
//
// A script is a YAML file:
//
//	version: 1
//	name: weather
//	conversations:
//	  - match: {user_contains: weather, model: gpt-4o*}
//	    steps:
//	      - calls: [{name: forecast, args: {city: Florence}}]
//	      - text: 'It will be {{last_tool_result}}.'
//	  - match: {user: Are you there?}
//	    steps:
//	      - attempts:
//	          - error: {status: 429, retry_after: 1s}
//	          - text: Yes.
//	default:
//	  steps: [{text: Hello.}]
//
// A conversation is chosen by what its match gives: model (a name or a pattern with * and ?), user, user_contains, user_regex (all of the same user message) and system_contains. All must hold. First the last user message of the request is tried with every conversation in order, then the first one; the conversation default answers the rest.
// Step k answers the request in which k-1 assistant messages follow the user message that matched. So a conversation that matches an opening message can go on over later user messages, unless another one matches these.
// A request without a step is refused with code emulator_no_script and a message that says what was asked and which conversation is nearest.
//
// A step has text, calls (name, and args or raw, and id), both, or a refusal; or an error (status, type, code, param, message, retry_after). It may have finish, usage (input, cached_input, output, reasoning), reasoning, latency, ttft, fragment, "cut: {after: 3 frames}" or "120 bytes", "slow: {chunk_delay: 5ms}". See [Step].
// With attempts the request's header X-Stainless-Retry-Count chooses the entry.
//
// Texts, raw arguments and the strings in args may hold placeholders: {{last_user}} is the last user message, {{last_tool_result}} the last tool result, {{tool_result "NAME"}} the last result of that tool. \{{ is text. Nothing else is computed.
//
// # What is not emulated
//
// Tools that run at the vendor are taken in a request of Messages and never called. More than one choice (n) or candidate, log probabilities, audio output, the deprecated functions, and elsewhere tools that a vendor runs itself are refused with code emulator_unsupported rather than answered wrongly. Output limits do not shorten a scripted answer. Images are accepted and only take part in the hash; none is fetched.
package emulator

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/cassette"
	"github.com/echoeval/echoeval/harness/localhost"
)

// Options are the settings of a handler. The zero value is ready for use.
type Options struct {
	// Keys are the API keys that are accepted. Without any, every key is, but one must be sent.
	Keys []string
	// MaxBody is the largest request in bytes; 0 is 25 MiB.
	MaxBody int64
	// RealTime waits out the latencies that replies report.
	RealTime bool
	// Clock does the waiting; nil is the machine's.
	Clock clock.Clock
}

// New returns a handler that answers from the script. It is safe for concurrent use and needs no closing. A script that does not hold together is an error of code [failure.Input]; what [Load] returned does.
//
// Slow streams and cuts need a server that can flush; a cut of a stream takes over the connection.
func New(script Script, opts Options) (http.Handler, error) {
	plan, faults := newPlan(script)
	if len(faults) > 0 {
		var errs []error
		for _, f := range faults {
			errs = append(errs, failure.New(failure.Input, "%s", f))
		}
		return nil, errors.Join(errs...)
	}
	if opts.MaxBody <= 0 {
		opts.MaxBody = 25 << 20
	}
	if opts.Clock == nil {
		opts.Clock = clock.Wall{}
	}
	server := []string{fmt.Sprintf("%s (script %s)", cassette.EmulatorServer, hex.EncodeToString(plan.sum[:8]))}
	e := &engine{server: server, plan: plan, keys: slices.Clone(opts.Keys), maxBody: opts.MaxBody, realTime: opts.RealTime, clock: opts.Clock}
	return newVendors(e), nil
}

// Serve answers on the listener, behind [Guard], as [localhost.Serve] does.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	return localhost.Serve(ctx, listener, Guard(handler))
}

// Guard refuses with 403 every request that came by a name other than a loopback host's, see [localhost.Guard].
func Guard(handler http.Handler) http.Handler {
	return localhost.Guard(handler, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeOpenAIError(w, &openAIError{http.StatusForbidden, "the emulator answers only requests whose Host and Origin are localhost or a loopback address", invalidRequest, "", "emulator_host"})
	}))
}

// Running is an emulator that serves on a loopback port of its own.
type Running struct {
	// URL is the address to give to a client as base URL, without the path /v1.
	URL    string
	cancel context.CancelFunc
	ended  chan error
}

// Start serves the script on a free loopback port until ctx ends or Close is called, for tests and for use inside a process. The caller must call Close.
func Start(ctx context.Context, script Script, opts Options) (*Running, error) {
	handler, err := New(script, opts)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &Running{URL: "http://" + listener.Addr().String(), cancel: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- Serve(ctx, listener, handler) }()
	return r, nil
}

// Close stops serving and waits until all is ended; see [Serve]. It may be called once.
func (r *Running) Close() error {
	r.cancel()
	return <-r.ended
}
