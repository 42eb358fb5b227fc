package dataset

import (
	"slices"
	"time"

	"github.com/echoeval/echoeval/core/strict"
)

// The keys of an item, in the order in which they are explained.
const (
	keyID = iota
	keyInput
	keyTurns
	keyMessages
	keyUser
	keyExpected
	keyVars
	keyMetadata
	keyTags
	keyGroup
	keyToolContext
	keyToolMocks
	keyApprovals
	keyAnswers
	keyPolicy
	keyScript
	keyWorkspace
	keyChecks
	keyInvariants
	keyDrop
	keyLimits
	keyThreshold
	keyPassIf
	keyTimeout
	keyRepeat
	keySkip
	keyProviders
	keyQuarantine
	keyCount
)

// layering is how the layers of a key are laid upon each other.
type layering uint8

const (
	replaces layering = iota // the highest layer that has the key
	merges                   // by key at every level
	gathers                  // by key, whose values replace
	addsUp                   // one list of all
)

// itemKey is a key of an item: its name, what it does over inherited ones, whether {{name}} is rendered in its texts, and the type that its schema is made of.
type itemKey struct {
	name     string
	layering layering
	rendered bool
	of       any
	doc      string
}

var itemKeys = [keyCount]itemKey{
	keyID:          {"id", replaces, false, "", "unique in the dataset; it names the files of the item"},
	keyInput:       {"input", replaces, true, inputForm{}, "what the user says: a text, or parts {text}, {image}, {document}"},
	keyTurns:       {"turns", replaces, true, turnsForm{}, "what the user says turn by turn, each with the checks of its answer"},
	keyMessages:    {"messages", replaces, true, messagesForm{}, "the conversation so far"},
	keyUser:        {"user", merges, true, userKeys{}, "a simulated user, who drives the conversation"},
	keyExpected:    {"expected", replaces, false, strict.Node{}, "the answer looked for, for templates and checks"},
	keyVars:        {"vars", merges, false, map[string]any{}, "values for templates"},
	keyMetadata:    {"metadata", merges, false, map[string]any{}, "any values; they fill templates too"},
	keyTags:        {"tags", addsUp, false, []string{}, "words to select items by"},
	keyGroup:       {"group", replaces, false, filledForm{}, "the cluster of the item, for standard errors"},
	keyToolContext: {"tool_context", merges, true, map[string]any{}, "values for tools that no model sees"},
	keyToolMocks:   {"tool_mocks", gathers, true, map[string]mockForm{}, "answers in place of tools: a result, or a list of cases"},
	keyApprovals:   {"approvals", replaces, false, []approvalKeys{}, "answers to requests for approval; what none names is denied"},
	keyAnswers:     {"answers", gathers, true, map[string]any{}, "replies to the questions of tools, by the tool's name: one, or a list in order"},
	keyPolicy:      {"policy", merges, false, policyForm{}, "which tools the agent may use: the name of a library's policy, or a mapping"},
	keyScript:      {"script", replaces, true, []stepForm{}, "what the provider script answers"},
	keyWorkspace:   {"workspace", replaces, false, filledForm{}, "a folder that is copied for the item"},
	keyChecks:      {"checks", addsUp, true, []checkForm{}, "what is asked of the answer"},
	keyInvariants:  {"invariants", addsUp, true, []invariantForm{}, "invariants beside the standard ones"},
	keyDrop:        {"drop", addsUp, false, []string{}, "names of inherited checks, and of invariants, that are not asked"},
	keyLimits:      {"limits", merges, false, limitsKeys{}, "the limits of the invariant budget"},
	keyThreshold:   {"threshold", replaces, false, fractionForm{}, "asks the weighted mean of the checks for this, instead of each for its own"},
	keyPassIf:      {"pass_if", replaces, false, shareForm{}, "a bound on the share of repeats that pass: \">= 0.8\""},
	keyTimeout:     {"timeout", replaces, false, time.Duration(0), "how long one run of the item may take"},
	keyRepeat:      {"repeat", replaces, false, repeatForm{}, "how often the item runs"},
	keySkip:        {"skip", replaces, false, filledForm{}, "the reason why the item is not run"},
	keyProviders:   {"providers", replaces, false, namesForm{}, "ids of the providers that the item is for"},
	keyQuarantine:  {"quarantine", replaces, false, quarantineKeys{}, "run and shown, but out of the rates, until a day is over"},
}

// itemKeyNames are the names in the order of the constants.
var itemKeyNames = func() []string {
	names := make([]string, keyCount)
	for i, key := range itemKeys {
		names[i] = key.name
	}
	return names
}()

// laterItemKeys are keys of the format that this version does not read.
var laterItemKeys = []string{"audio", "database", "channels", "artifacts"}

// instead tells what a layer takes back without saying so: one way of speaking takes the place of another.
var instead = []struct {
	key  int
	over []int
}{
	{keyInput, []int{keyTurns}},
	{keyTurns, []int{keyInput, keyUser}},
	{keyUser, []int{keyTurns}},
}

type turnKeys struct {
	Input  strict.Node `yaml:"input,required" schema:"input" doc:"what the user says"`
	Checks strict.Node `yaml:"checks" schema:"checks" doc:"what is asked of the answer to this turn"`
}

type userKeys struct {
	Persona  *string     `yaml:"persona" doc:"who the user is"`
	Goal     *string     `yaml:"goal" doc:"what the user wants"`
	Knows    strict.Node `yaml:"knows" schema:"values_or_null" doc:"facts that the user tells when asked"`
	MaxTurns *int        `yaml:"max_turns" schema:"turns_or_null" doc:"bound on the user's turns, 8 unless given"`
	Stop     *string     `yaml:"stop" doc:"when the conversation is over, in words"`
	Provider *string     `yaml:"provider" doc:"id of the provider of role user that speaks"`
}

type limitsKeys struct {
	CostUSD   *float64 `yaml:"cost_usd" schema:"amount"`
	Tokens    *int     `yaml:"tokens" schema:"count"`
	ToolCalls *int     `yaml:"tool_calls" schema:"count"`
	Steps     *int     `yaml:"steps" schema:"count"`
}

// messageKeys, storedPartKeys and usageKeys are the keys of stored messages, in the conversation codec.
type messageKeys struct {
	Role      strict.Node `yaml:"role,required" schema:"role"`
	Content   strict.Node `yaml:"content,required" schema:"content" doc:"a text, or parts"`
	MsgID     *string     `yaml:"msg_id" doc:"unique in the conversation"`
	Usage     *usageKeys  `yaml:"usage" doc:"of a reply"`
	Timestamp *int64      `yaml:"timestamp"`
}

type storedPartKeys struct {
	Type         strict.Node     `yaml:"type,required" schema:"part"`
	Text         *string         `yaml:"text"`
	MediaType    *string         `yaml:"media_type"`
	SourceType   *string         `yaml:"source_type"`
	Data         *string         `yaml:"data"`
	URL          *string         `yaml:"url"`
	Name         *string         `yaml:"name"`
	ToolCallID   *string         `yaml:"tool_call_id"`
	ToolID       *string         `yaml:"tool_id"`
	ToolName     *string         `yaml:"tool_name"`
	ToolInput    strict.Node     `yaml:"tool_input"`
	ToolInputRaw *string         `yaml:"tool_input_raw"`
	Result       strict.Node     `yaml:"result"`
	Meta         strict.Node     `yaml:"meta"`
	IsError      *bool           `yaml:"is_error"`
	Extras       *map[string]any `yaml:"extras"`
}

type usageKeys struct {
	In         *int `yaml:"in_t" doc:"tokens"`
	Out        *int `yaml:"op_t" doc:"tokens"`
	LatencyMS  *int `yaml:"latency_ms"`
	CacheWrite *int `yaml:"cache_write_t" doc:"tokens"`
	CacheRead  *int `yaml:"cache_read_t" doc:"tokens"`
	Reasoning  *int `yaml:"reasoning_t" doc:"tokens"`
}

type approvalKeys struct {
	Tool   string  `yaml:"tool,required" schema:"filled" doc:"the tool's name"`
	Answer string  `yaml:"answer,required" values:"allow,deny"`
	Scope  *string `yaml:"scope" values:"once,session,always" doc:"how far the answer reaches, once unless given"`
}

type policyKeys struct {
	Tools    *policyToolsKeys    `yaml:"tools"`
	Security *policySecurityKeys `yaml:"security"`
	Hardened *bool               `yaml:"hardened" doc:"daemon and public_gateway deny skill_run and the tools of MCP servers too"`
}

type policyToolsKeys struct {
	Profile   *string   `yaml:"profile" values:"minimal,messaging,coding,full" doc:"which tools it may use, full unless given"`
	Allow     *[]string `yaml:"allow" schema:"names" doc:"the only tools, whatever the profile"`
	AlsoAllow *[]string `yaml:"also_allow" schema:"names_or_none" doc:"tools beside the profile"`
	Deny      *[]string `yaml:"deny" schema:"names_or_none" doc:"tools that are denied whatever else is said"`
}

type policySecurityKeys struct {
	Profile *string `yaml:"profile" values:"personal_cli,daemon,public_gateway" doc:"what is denied because of who may ask, personal_cli unless given"`
}

type quarantineKeys struct {
	Owner  string `yaml:"owner,required" schema:"filled" doc:"who looks after it"`
	Until  string `yaml:"until,required" schema:"day" doc:"the last day, 2027-01-31"`
	Reason string `yaml:"reason,required" schema:"filled"`
}

type caseKeys struct {
	Args   strict.Node `yaml:"args" schema:"values" doc:"what must be in the arguments of the call"`
	Result strict.Node `yaml:"result"`
	Error  *string     `yaml:"error" schema:"filled_or_null" doc:"the text of the error that the tool returns"`
	Times  *int        `yaml:"times" schema:"positive" doc:"how often the case serves; without end unless given"`
}

type normalizeKeys struct {
	In    string `yaml:"in,required" values:"system,user,tool,any" doc:"where it looks"`
	Regex string `yaml:"regex,required" schema:"filled" doc:"an RE2 expression"`
	As    string `yaml:"as,required" schema:"word" doc:"what stands in place of what matches"`
}

type providerLimitsKeys struct {
	RPM         *int `yaml:"rpm" schema:"positive" doc:"requests a minute"`
	TPM         *int `yaml:"tpm" schema:"positive" doc:"tokens a minute"`
	Concurrency *int `yaml:"concurrency" schema:"positive" doc:"requests at the same time"`
}

// Types that stand for schemas which are made of tables, see [Schema].
type (
	inputForm     struct{}
	messagesForm  struct{}
	turnsForm     struct{}
	filledForm    struct{}
	namesForm     struct{}
	mockForm      struct{}
	stepForm      struct{}
	checkForm     struct{}
	invariantForm struct{}
	fractionForm  struct{}
	shareForm     struct{}
	repeatForm    struct{}
	policyForm    struct{}
)

// modifiers stand beside a check's kind.
var modifiers = strict.Keys(modifierKeys{})

type modifierKeys struct {
	Name      string       `yaml:"name" schema:"filled" doc:"what the check is called in reports"`
	Weight    *float64     `yaml:"weight" schema:"amount" doc:"in the item's score; 0 reports without counting"`
	Threshold fractionForm `yaml:"threshold" doc:"the score from which the check holds"`
	Required  bool         `yaml:"required" doc:"must hold also where the item has a threshold"`
}

func isItemKey(name string) bool { return slices.Contains(itemKeyNames, name) }
