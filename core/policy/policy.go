// Package policy decides which tools an agent may use: by lists that name tools, by a profile of tools and by a profile of security. [Decide] is the one place where that is decided; who offers tools asks it for each.
//
// The tables cover the names of the built-in tools, those that are not there yet included, so that a policy means the same in every version.
package policy

import (
	"fmt"
	"slices"
	"strings"
)

// The profiles of tools. Each holds those before it; [Full] holds every tool, the project's own included.
const (
	Minimal   = "minimal"
	Messaging = "messaging"
	Coding    = "coding"
	Full      = "full"
)

// The profiles of security.
const (
	PersonalCLI   = "personal_cli" // denies nothing
	Daemon        = "daemon"
	PublicGateway = "public_gateway"
)

// ToolProfiles and SecurityProfiles list the profiles, the smallest and the most trusting first.
var (
	ToolProfiles     = []string{Minimal, Messaging, Coding, Full}
	SecurityProfiles = []string{PersonalCLI, Daemon, PublicGateway}
)

// Policy says what an agent may use. The zero value allows everything.
type Policy struct {
	// Profile is one of [ToolProfiles]; "" is [Full].
	Profile string
	// Allow, where it is not empty, are the only tools allowed, whatever the profile. AlsoAllow are allowed beside the profile. Deny are denied, whatever else is said. All are names of tools.
	Allow, AlsoAllow, Deny []string
	// Security is one of [SecurityProfiles]; "" is [PersonalCLI].
	Security string
	// Hardened closes two gaps of daemon and public_gateway: they deny skill_run and what has the capability mcp.call too.
	Hardened bool
}

// Tool is what a decision looks at.
type Tool struct {
	Name string
	// Capabilities are those that the tool declares; where it declares none, those of the table of its name count.
	Capabilities []string
}

// Decision says whether a tool may be used.
type Decision struct {
	Allowed bool
	// Reason says why, for people: "denied by name", "the profile minimal does not hold it".
	Reason string
	// Lifted says that the security profile denies the tool, and that Allow or AlsoAllow names it all the same.
	Lifted bool
	// Unclassified says that the security profile would have had to look at the tool's capabilities, and that it has none.
	Unclassified bool
}

// Decide says whether a tool may be used. Deny counts first, then Allow or else the profile and AlsoAllow, then the security profile, whose denial Allow and AlsoAllow lift. A profile that is not listed denies.
func Decide(p Policy, t Tool) Decision {
	listed := slices.Contains(p.Allow, t.Name) || slices.Contains(p.AlsoAllow, t.Name)
	switch {
	case slices.Contains(p.Deny, t.Name):
		return Decision{Reason: "denied by name"}
	case len(p.Allow) > 0 && !slices.Contains(p.Allow, t.Name):
		return Decision{Reason: "not among the only tools allowed"}
	case len(p.Allow) == 0 && !listed && !holds(p.Profile, t.Name):
		return Decision{Reason: fmt.Sprintf("the profile %s does not hold it", p.Profile)}
	}
	capabilities := t.Capabilities
	if len(capabilities) == 0 {
		capabilities = Capabilities(t.Name)
	}
	why := denies(p, t.Name, capabilities)
	switch {
	case why != "" && !listed:
		return Decision{Reason: why}
	case why != "":
		return Decision{Allowed: true, Lifted: true, Reason: "allowed by name, although " + why}
	case listed:
		return Decision{Allowed: true, Reason: "allowed by name"}
	}
	return Decision{Allowed: true, Reason: "the profile holds it", Unclassified: p.strict() && len(capabilities) == 0}
}

// strict says whether the security profile denies anything.
func (p Policy) strict() bool { return p.Security != "" && p.Security != PersonalCLI }

// holds says whether a profile of tools holds a tool. The tools that load skills are in every profile.
func holds(profile, name string) bool {
	if profile == "" || profile == Full || name == "load_skill" || name == "unload_skill" {
		return true
	}
	row, known := builtIn[name]
	own, asked := slices.Index(ToolProfiles, row.profile), slices.Index(ToolProfiles, profile)
	return known && own <= asked
}

// denies says why the security profile denies a tool; "" where it does not.
func denies(p Policy, name string, capabilities []string) string {
	if !p.strict() {
		return ""
	}
	d, known := denials[p.Security]
	if !known {
		return fmt.Sprintf("there is no security profile %s", p.Security)
	}
	if slices.Contains(d.names, name) || p.Hardened && name == "skill_run" {
		return fmt.Sprintf("the security profile %s denies it", p.Security)
	}
	for _, c := range capabilities {
		if slices.Contains(d.capabilities, c) || p.Hardened && c == "mcp.call" {
			return fmt.Sprintf("the security profile %s denies %s", p.Security, c)
		}
	}
	return ""
}

// Capabilities returns what a tool of that name can do, by the table; nil for one that is unclassified. Tools of MCP servers have mcp.call.
func Capabilities(name string) []string {
	if row, known := builtIn[name]; known {
		return row.capabilities
	}
	if strings.HasPrefix(name, "mcp_") {
		return []string{"mcp.call"}
	}
	return nil
}

// HighRisk reports whether a tool's calls can do harm that is hard to undo, by the table.
func HighRisk(name string) bool { return builtIn[name].risky }

// Names returns the names of the table, sorted, those that are only reserved included.
func Names() []string {
	names := make([]string, 0, len(builtIn))
	for name := range builtIn {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
