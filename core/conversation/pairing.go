package conversation

import (
	"fmt"
	"iter"
)

// PairingProblem is a tool call without its result or a result without its call. Message and Part count from 0 within the messages that were checked.
type PairingProblem struct {
	Kind    PairingKind
	CallID  string
	Tool    string // the call's tool, where known
	Message int
	Part    int
}

// PairingKind says what is wrong.
type PairingKind string

// The ways in which calls and results can fail to pair.
const (
	Unanswered       PairingKind = "unanswered"        // a call has no result in the next tool messages before the next message of another role
	LateResult       PairingKind = "late-result"       // its result comes only after another message
	OrphanResult     PairingKind = "orphan-result"     // a result answers no call
	DuplicateResult  PairingKind = "duplicate-result"  // a call is answered twice
	DuplicateCallID  PairingKind = "duplicate-call-id" // two calls of one message share an id
	MissingCallID    PairingKind = "missing-call-id"
	UnansweredAtTail PairingKind = "unanswered-at-end" // the conversation ends on the call
)

// String describes the problem in one line.
func (p PairingProblem) String() string {
	tool := ""
	if p.Tool != "" {
		tool = " of " + p.Tool
	}
	at := fmt.Sprintf("message %d, part %d", p.Message+1, p.Part+1)
	switch p.Kind {
	case Unanswered:
		return fmt.Sprintf("%s: call %q%s has no result before the next message", at, p.CallID, tool)
	case UnansweredAtTail:
		return fmt.Sprintf("%s: call %q%s has no result and the conversation ends", at, p.CallID, tool)
	case LateResult:
		return fmt.Sprintf("%s: the result of call %q%s comes too late", at, p.CallID, tool)
	case OrphanResult:
		return fmt.Sprintf("%s: result %q answers no call", at, p.CallID)
	case DuplicateResult:
		return fmt.Sprintf("%s: call %q%s is answered twice", at, p.CallID, tool)
	case DuplicateCallID:
		return fmt.Sprintf("%s: call id %q%s is used twice in one message", at, p.CallID, tool)
	case MissingCallID:
		return fmt.Sprintf("%s: a tool call or result has no id", at)
	}
	return fmt.Sprintf("%s: %s %q", at, p.Kind, p.CallID)
}

type openCall struct {
	id, tool      string
	message, part int
	answered      bool
}

// CheckPairing looks for calls and results that do not pair: each call needs exactly one result with its id in the tool messages that directly follow its message. Ids may return in later messages. Problems come in the order of the messages.
func CheckPairing(messages iter.Seq2[int, Message]) []PairingProblem {
	var problems []PairingProblem
	var open []openCall         // calls of the latest assistant message
	late := map[string]string{} // unanswered calls of earlier messages, to tell a late result from an orphan
	report := func(kind PairingKind, id, tool string, message, part int) {
		problems = append(problems, PairingProblem{Kind: kind, CallID: id, Tool: tool, Message: message, Part: part})
	}
	flush := func(kind PairingKind) {
		for _, c := range open {
			if !c.answered {
				report(kind, c.id, c.tool, c.message, c.part)
				late[c.id] = c.tool
			}
		}
		open = nil
	}
	for i, m := range messages {
		if m.Role() != RoleTool {
			flush(Unanswered)
		}
		for j, p := range m.Parts() {
			switch p := p.(type) {
			case ToolCall:
				if p.ID == "" {
					report(MissingCallID, "", p.Name, i, j)
					continue
				}
				if find(open, p.ID) >= 0 {
					report(DuplicateCallID, p.ID, p.Name, i, j)
					continue
				}
				open = append(open, openCall{id: p.ID, tool: p.Name, message: i, part: j})
			case ToolResult:
				k := find(open, p.ID)
				switch {
				case p.ID == "":
					report(MissingCallID, "", "", i, j)
				case k >= 0 && open[k].answered:
					report(DuplicateResult, p.ID, open[k].tool, i, j)
				case k >= 0:
					open[k].answered = true
				default:
					if tool, ok := late[p.ID]; ok {
						report(LateResult, p.ID, tool, i, j)
						delete(late, p.ID)
					} else {
						report(OrphanResult, p.ID, "", i, j)
					}
				}
			}
		}
	}
	flush(UnansweredAtTail)
	return problems
}

func find(calls []openCall, id string) int {
	for i, c := range calls {
		if c.id == id {
			return i
		}
	}
	return -1
}
