package invariant

import "github.com/echoeval/echoeval/core/eval"

// catalogue is the table of all invariants, sorted by name.
var catalogue = []Invariant{
	{
		Name: "arguments-match-schema", Severity: eval.SeverityError, Blame: Model, Standard: true, Needs: Tools,
		Statement: "arguments satisfy the tool's JSON Schema",
		Notes:     "Looks at every call in the model's replies of a tool that the model was shown in that step, malformed arguments included, whether or not the agent executed it. A call of a tool that was not shown is visible-tools-only's. Not applicable without such calls.",
		rule:      argumentsMatch, Keeps: keepsArguments, Breaks: breaksArguments,
	},
	{
		Name: "input-context-unchanged", Severity: eval.SeverityError, Blame: Agent, Standard: true,
		Statement: "the context passed in is a prefix of the one returned; tools never changed messages",
		Notes:     "Compares the digests of the input before and after the run and of the returned conversation, in which every reply and every message with results must stand as it was added; after an error the last ones may be missing. A trace read from a file may be redacted, so that only the digests taken by the run are compared. Not applicable where the run did not end, or was given no message.",
		rule:      inputUnchanged, Keeps: keepsInput, Breaks: breaksInput,
	},
	{
		Name: "iteration-limit", Severity: eval.SeverityError, Blame: Agent, Standard: true,
		Statement: "model steps stay within max_iterations",
		Notes:     "Counts requests to the model; repeated ones of a step (retries) count once. Not applicable where the run has no limit or asked no model.",
		Params:    []Param{{"max", "at most this many model steps, in place of max_iterations of the agent"}},
		rule:      iterationLimit, Keeps: keepsIterations, Breaks: breaksIterations,
	},
	{
		Name: "no-hidden-parameter-leak", Severity: eval.SeverityError, Blame: Agent, Standard: true, Needs: ToolContext,
		Statement: "no value of tool_context appears in any request to a model, in a tool schema or in a message, and no schema has a property of its name",
		Notes:     "Looks at system prompts, tool descriptions and schemas, all messages, arguments and results, also as escaped JSON within JSON, and at what the transport saw in the requests. Texts under 8 characters, numbers and booleans count only as whole JSON values of messages, arguments and results, and then as a warning. Values inside objects and lists are looked for one by one. A trace read from a file has no values: what the transport noted and the names of properties remain. Not applicable without tool_context.",
		rule:      noHidden, Keeps: keepsHidden, Breaks: breaksHidden,
	},
	{
		Name: "no-secret-in-content", Severity: eval.SeverityError, Blame: Agent, Standard: true,
		Statement: "no key-shaped secret in any message, tool argument or result",
		Notes:     "Looks at system prompts, messages, arguments and results for the shapes of keys that vendors document. Names the shape and the place, never the secret. Not applicable to an empty trace.",
		rule:      noSecret, Keeps: keepsSecret, Breaks: breaksSecret,
	},
	{
		Name: "one-terminal-event", Severity: eval.SeverityError, Blame: Agent, Standard: true,
		Statement: "a stream ends in exactly one done or error, nothing after it",
		Notes:     "Not applicable where the run never began or the trace does not show its end.",
		rule:      oneTerminal, Keeps: keepsTerminal, Breaks: breaksTerminal,
	},
	{
		Name: "path-confined", Severity: eval.SeverityError, Blame: Agent, Standard: true, Needs: Tools,
		Statement: "no file tool left the workspace",
		Notes:     "Looks at executed workspace tools that reported no error: at the files that they say they touched, and at their arguments named path, file, dir, cwd and the like. A relative path that climbs out by way of .. breaks the rule; an absolute one does where the tool does not name the file it touched instead. Links are not followed here. Not applicable without such a path.",
		rule:      pathConfined, Keeps: keepsPath, Breaks: breaksPath,
	},
	{
		Name: "role-content", Severity: eval.SeverityError, Blame: Agent, Standard: true,
		Statement: "each role carries only the content it may carry",
		Notes:     "system: text. user: text, image, document. assistant: text, reasoning, image, document, calls. tool: results, image, document. Media are of a known type and have the source that they name; replies are of the assistant, results of the tool. Not applicable without a message.",
		rule:      roleContent, Keeps: keepsRole, Breaks: breaksRole,
	},
	{
		Name: "tool-call-pairing", Severity: eval.SeverityError, Blame: Agent, Standard: true, Needs: Tools,
		Statement: "every tool call has exactly one result with the same tool_call_id, in the next tool message, before the next model step, or the run ended paused on that call; no result without a call",
		Notes:     "Looks at the input, the replies and the results. Calls of the last reply may be open where the run ended in an error, or where the trace does not show its end; where it paused, those that paused or were not begun. Not applicable without a call and a result.",
		rule:      pairing, Keeps: keepsPairing, Breaks: breaksPairing,
	},
	{
		Name: "tool-call-unique-ids", Severity: eval.SeverityError, Blame: Model, Standard: true, Needs: Tools,
		Statement: "ids are unique within one assistant message (error); one that returns later in the conversation is a warning; vendor ids are never rewritten",
		Notes:     "Not applicable without a call. A call without an id is tool-call-pairing's.",
		rule:      uniqueIDs, Keeps: keepsIDs, Breaks: breaksIDs,
	},
	{
		Name: "usage-accounted", Severity: eval.SeverityError, Blame: Agent, Standard: true,
		Statement: "token counts of the steps add up to the result's",
		Notes:     "Compares input, output, cached and reasoning tokens. Not applicable where neither a step nor the result has any, where the trace does not show the run's end, and where the agent broke down without a result.",
		rule:      usageAccounted, Keeps: keepsUsage, Breaks: breaksUsage,
	},
	{
		Name: "visible-tools-only", Severity: eval.SeverityError, Blame: Model, Standard: true,
		Statement: "the model calls only tools that were visible in that step",
		Notes:     "Compares each call with the tools of the request before it. Not applicable without a call whose request was seen.",
		rule:      visibleOnly, Keeps: keepsVisible, Breaks: breaksVisible,
	},
}
