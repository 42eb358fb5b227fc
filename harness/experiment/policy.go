package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/agent"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/policy"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/dataset"
)

// Codes of warnings about what an agent may use and whom it may ask.
const (
	// CodePolicyLifted is a tool that the security profile denies and the policy allows by name.
	CodePolicyLifted = "policy-lifted"
	// CodePolicyUnclassified are tools that a security profile lets pass because nothing is known of what they do.
	CodePolicyUnclassified = "policy-unclassified"
	// CodeNobodyAsks are approvals and answers that no tool of the run asks for.
	CodeNobodyAsks = "nobody-asks"
)

func ruling(item *dataset.Item, name string) policy.Decision {
	return policy.Decide(item.Policy.Policy, policy.Tool{Name: name})
}

// permitted are those of the names that the item's policy allows.
func permitted(item *dataset.Item, names []string) []string {
	if item.Policy.Pos.IsZero() {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !ruling(item, name).Allowed })
}

// agentOf is the configuration of a column's agent as an item's policy leaves it: a tool that is denied is not offered, and a call of it is one of a tool that there is not.
func agentOf(item *dataset.Item, c *Column) agent.Config {
	config := c.Agent
	config.Tools = permitted(item, config.Tools)
	if config.BaseToolNames != nil {
		names := permitted(item, *config.BaseToolNames)
		config.BaseToolNames = &names
	}
	return config
}

// cautions gathers what the items as a whole are to be warned of.
type cautions struct {
	lifted       map[string]dataset.Warning // by text
	unclassified map[string]*unclassified   // by security profile
	asked        int                        // items with approvals or answers
	askedAt      failure.Position           // of the first
}

type unclassified struct {
	names map[string]bool
	at    failure.Position // of the first policy
}

// checkPolicy looks at the names of an item's policy and notes what it lets pass.
func (e *Experiment) checkPolicy(item *dataset.Item, p *strict.Problems) {
	of := &item.Policy
	if of.Pos.IsZero() {
		return
	}
	for _, named := range of.Names {
		if slices.Contains(e.everyName, named.Name) || slices.Contains(e.unsure, true) {
			continue
		}
		p.Root().Key("policy").Key("tools").Add(named.Pos, strict.Suggest(named.Name, e.everyName), "unknown tool %q", named.Name)
	}
	for i := range e.opts.Columns {
		c := &e.opts.Columns[i]
		if !runsOn(item, c) {
			continue
		}
		for _, name := range c.Agent.Tools {
			switch d := ruling(item, name); {
			case d.Lifted:
				e.cautions.lift(dataset.Warning{Code: CodePolicyLifted, Text: fmt.Sprintf("tool %s is %s", name, d.Reason), At: of.Pos, Hint: "name it under deny, or leave it out of allow and also_allow"})
			case d.Unclassified && !of.Hardened:
				e.cautions.pass(of.Security, name, of.Pos)
			}
		}
	}
}

func (c *cautions) lift(w dataset.Warning) {
	if c.lifted == nil {
		c.lifted = map[string]dataset.Warning{}
	}
	if _, said := c.lifted[w.Text]; !said {
		c.lifted[w.Text] = w
	}
}

func (c *cautions) pass(security, name string, at failure.Position) {
	if c.unclassified == nil {
		c.unclassified = map[string]*unclassified{}
	}
	if c.unclassified[security] == nil {
		c.unclassified[security] = &unclassified{names: map[string]bool{}, at: at}
	}
	c.unclassified[security].names[name] = true
}

// checkAsked looks at what is prepared for tools that ask. known are the tools of the item's agents.
func (e *Experiment) checkAsked(item *dataset.Item, known []string, p *strict.Problems) {
	if len(item.Approvals) == 0 && len(item.Answers) == 0 {
		return
	}
	for _, a := range item.Approvals {
		if !slices.Contains(known, a.Tool) {
			p.Add(a.Pos, strict.Suggest(a.Tool, known), "approvals: the agent has no tool %q", a.Tool)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.Answers)) {
		if !slices.Contains(known, name) {
			p.Add(item.Answers[name][0].Pos(), strict.Suggest(name, known), "answers: the agent has no tool %q", name)
		}
	}
	if e.cautions.asked++; e.cautions.asked == 1 {
		e.cautions.askedAt = item.Pos
	}
}

// Warnings are what every report of the run says although the dataset is right, what the run itself will find aside.
func (e *Experiment) Warnings() []dataset.Warning {
	out := slices.Clone(e.opts.Dataset.Warnings)
	c := &e.cautions
	for _, text := range slices.Sorted(maps.Keys(c.lifted)) {
		out = append(out, c.lifted[text])
	}
	for _, security := range slices.Sorted(maps.Keys(c.unclassified)) {
		of := c.unclassified[security]
		names := strings.Join(slices.Sorted(maps.Keys(of.names)), ", ")
		out = append(out, dataset.Warning{Code: CodePolicyUnclassified, Text: fmt.Sprintf("the security profile %s knows nothing of what these tools do, and lets them pass: %s", security, names), At: of.at, Hint: "name under deny what the agent must not use"})
	}
	if c.asked > 0 {
		// No tool of this version asks: when one does, only agents without it are warned of.
		noun := "item has"
		if c.asked > 1 {
			noun = "items have"
		}
		out = append(out, dataset.Warning{Code: CodeNobodyAsks, Text: fmt.Sprintf("%d %s approvals or answers, and no tool of the agent asks: they have no effect", c.asked, noun), At: c.askedAt, Hint: "to keep a tool from running, deny it (policy: {tools: {deny: [...]}}) or mock it (tool_mocks)"})
	}
	return out
}
