package dataset

import (
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/policy"
	"github.com/echoeval/echoeval/core/strict"
)

// Policy says which tools the agent of an item may use.
type Policy struct {
	policy.Policy
	// Names are the tools that Allow, AlsoAllow and Deny name, each with its place.
	Names []PolicyName
	// Pos is the place of the policy; zero where there is none.
	Pos failure.Position
}

// PolicyName is the name of a tool in a policy.
type PolicyName struct {
	Name string
	Pos  failure.Position
}

// policy gives the mapping that a key policy holds or names. It is missing where something is wrong.
func (d *Dataset) policy(n strict.Node, p *strict.Problems) strict.Node {
	found := p.Len()
	if n.Kind() == strict.String {
		of, known := d.libraries.policies[n.Text()]
		if !known && !d.libraries.mayDefine("policy", n.Text()) {
			p.Add(n.Pos(), suggestPolicy(n.Text(), namesOf(d.libraries.policies)), "no library defines a policy %q", n.Text())
		}
		return of // the library looked at it
	}
	if n.Kind() != strict.Mapping {
		p.WrongType(n, "the name of a library's policy, or a mapping such as {tools: {profile: coding}}")
	} else {
		policyOf(n, p)
	}
	if p.Len() != found {
		return strict.Node{}
	}
	return n
}

func suggestPolicy(name string, names []string) string {
	if len(names) == 0 {
		return "write it out: policy: {tools: {profile: coding}}, or name the library: use: [...]"
	}
	return strict.Suggest(name, names)
}

// policyOf decodes a policy, a mapping.
func policyOf(n strict.Node, p *strict.Problems) Policy {
	var keys policyKeys
	strict.Decode(n, &keys, p)
	out := Policy{Pos: n.Pos()}
	out.Hardened = value(keys.Hardened)
	if s := keys.Security; s != nil {
		out.Security = value(s.Profile)
	}
	t := keys.Tools
	if t == nil {
		return out
	}
	out.Profile, out.Allow, out.AlsoAllow, out.Deny = value(t.Profile), value(t.Allow), value(t.AlsoAllow), value(t.Deny)
	for _, key := range []string{"allow", "also_allow", "deny"} {
		list := n.Get("tools").Get(key)
		for i, name := range list.Items() {
			if name.Kind() == strict.String && name.Text() == "" {
				p.Key("tools").Key(key).At(i).Add(name.Pos(), "name the tool", "the name of a tool is empty")
			}
			out.Names = append(out.Names, PolicyName{name.Text(), name.Pos()})
		}
		if key == "allow" && list.Kind() == strict.Sequence && list.Len() == 0 {
			p.Key("tools").Key(key).Add(list.Pos(), "leave it out for no bound; profile: minimal allows the fewest", "no tool is allowed by an empty list")
		}
	}
	return out
}
