package dataset

import (
	"time"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
)

// Turn is one thing that the user says in a conversation of several turns.
type Turn struct {
	// Input is what the user says, as [Item.Input].
	Input []conversation.Content
	// Checks look at the answer to this turn. Their names are unique in the turn.
	Checks []Check
	Pos    failure.Position
}

// User is a simulated user who drives the conversation; a model of role user speaks for it.
type User struct {
	// Persona says who the user is, Goal what the user wants; Goal is never empty.
	Persona, Goal string
	// Knows are facts that the user tells when asked, a mapping; the zero node where there are none.
	Knows strict.Node
	// MaxTurns bounds the user's turns: 8 unless given, at least 1.
	MaxTurns int
	// Stop says, in words for the simulator, when the conversation is over; "" is when the goal is reached.
	Stop string
	// Provider is the id of the provider of role user that speaks; "" is the only one. [Dataset.Role] finds it.
	Provider string
	Pos      failure.Position
}

// Mock answers the calls of one tool in place of the tool.
type Mock struct {
	// Cases are tried in order; the first that matches the arguments and is not used up serves. Where none does, the call goes where --tools says.
	Cases []MockCase
	Pos   failure.Position
}

// MockCase is one answer of a [Mock].
type MockCase struct {
	// Args must be in the arguments of the call: a mapping, whose values are compared as those of the check tool_calls; the zero node matches every call.
	Args strict.Node
	// Result is what the tool returns. It is the zero node where the case is an error.
	Result strict.Node
	// Error is the text of the error that the tool returns; "" where the case is a result.
	Error string
	// Times is how often the case serves; 0 is without end.
	Times int
	Pos   failure.Position
}

// Approval is the answer to a request for approval of a tool's calls. What no approval names is denied.
type Approval struct {
	Tool  string
	Allow bool
	// Scope is how far the answer reaches: "once" (unless given), "session" or "always".
	Scope string
	// Pos is the place of the tool's name.
	Pos failure.Position
}

// Limits are those of the invariant budget; nil is without limit.
type Limits struct {
	CostUSD                  *money.USD
	Tokens, ToolCalls, Steps *int
}

// Quarantine takes an item out of the rates and of exit code 5 until a day is over. It is run and shown; invariants still gate.
type Quarantine struct {
	Owner, Reason string
	// Until is the last day, at midnight UTC.
	Until time.Time
	Pos   failure.Position
}

// Over reports whether the last day lies before now, so that the item gates again.
func (q *Quarantine) Over(now time.Time) bool { return !now.UTC().Before(q.Until.AddDate(0, 0, 1)) }

// ProviderLimits bound the requests of a provider; 0 is without limit.
type ProviderLimits struct {
	RPM, TPM    int // requests and tokens a minute
	Concurrency int // requests at the same time
}

// The roles of providers that are no columns.
const (
	RoleJudge = "judge" // scores answers
	RoleUser  = "user"  // speaks for simulated users
	RoleEmbed = "embed" // turns texts into vectors
	RoleSpare = "spare" // is a column only where the command line names it
)

// Normalize replaces what differs from one run to the next, on both sides, before a request is compared with a recorded one.
type Normalize struct {
	// In is where it looks: "system", "user", "tool" or "any".
	In string
	// Regex is an RE2 expression that compiles, As the text put in place of what it matches.
	Regex, As string
	Pos       failure.Position
}
