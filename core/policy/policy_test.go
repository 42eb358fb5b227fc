package policy_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
	"github.com/echoeval/echoeval/core/policy"
)

func TestPolicy(t *testing.T) { suite.Run(t, "policy") }

// reference are the lists that the tables are compared with.
type reference struct {
	Exposed         map[string]map[string][]string `json:"exposed"`
	HighRisk        []string                       `json:"high_risk"`
	Unclassified    []string                       `json:"unclassified"`
	Capabilities    map[string][]string            `json:"capabilities"`
	ToolProfiles    []string                       `json:"tools_profile_values"`
	Security        []string                       `json:"security_profile_values"`
	CapabilityProbe struct {
		Expect map[string]map[string]string `json:"expect"`
	} `json:"capability_probe"`
	UnclassifiedProbe struct {
		Expect map[string]string `json:"expect"`
	} `json:"unclassified_probe"`
	Hardening struct {
		Cells []struct{ Security, Tools, Tool string } `json:"cells"`
	} `json:"hardening_skill_run"`
}

func lists() reference {
	GinkgoHelper()
	data, err := os.ReadFile(suite.SharedData("seed-policy.json"))
	Expect(err).NotTo(HaveOccurred())
	var r reference
	Expect(json.Unmarshal(data, &r)).To(Succeed())
	return r
}

var _ = Describe("the tables", func() {
	It("give the whole matrix of exposure", func() {
		r := lists()
		Expect(policy.ToolProfiles).To(Equal(r.ToolProfiles))
		Expect(policy.SecurityProfiles).To(Equal(r.Security))
		Expect(policy.Names()).To(HaveLen(43))
		cells, exposed := 0, 0
		hardened := map[[3]string]bool{}
		for _, c := range r.Hardening.Cells {
			hardened[[3]string{c.Security, c.Tools, c.Tool}] = true
		}
		changed := 0
		for _, security := range r.Security {
			for _, profile := range r.ToolProfiles {
				want := r.Exposed[security][profile]
				Expect(want).NotTo(BeEmpty())
				for _, name := range policy.Names() {
					p := policy.Policy{Profile: profile, Security: security}
					got := policy.Decide(p, policy.Tool{Name: name})
					Expect(got.Allowed).To(Equal(slices.Contains(want, name)), "%s under %s and %s: %s", name, profile, security, got.Reason)
					Expect(got.Reason).NotTo(BeEmpty())
					Expect(got.Lifted).To(BeFalse())
					cells++
					if got.Allowed {
						exposed++
					}
					p.Hardened = true
					if policy.Decide(p, policy.Tool{Name: name}).Allowed != got.Allowed {
						changed++
						Expect(hardened).To(HaveKey([3]string{security, profile, name}))
					}
				}
			}
		}
		Expect([]int{cells, exposed, changed}).To(Equal([]int{516, 322, len(hardened)}))
	})

	It("know capabilities and risks", func() {
		r := lists()
		tagged := 0
		for capability, names := range r.Capabilities {
			for _, name := range policy.Names() {
				Expect(slices.Contains(policy.Capabilities(name), capability)).To(Equal(slices.Contains(names, name)), "%s of %s", capability, name)
			}
			tagged += len(names)
		}
		Expect(tagged).To(Equal(51))
		for _, name := range policy.Names() {
			Expect(policy.HighRisk(name)).To(Equal(slices.Contains(r.HighRisk, name)), name)
			Expect(len(policy.Capabilities(name)) == 0).To(Equal(slices.Contains(r.Unclassified, name)), name)
		}
		Expect(policy.Capabilities("mcp_crm_find")).To(Equal([]string{"mcp.call"}))
		Expect(policy.Capabilities("weather")).To(BeNil())
	})

	It("deny by capability what is in no table of names", func() {
		r := lists()
		Expect(len(r.CapabilityProbe.Expect)).To(Equal(25))
		for capability, by := range r.CapabilityProbe.Expect {
			for security, want := range by {
				got := policy.Decide(policy.Policy{Security: security}, policy.Tool{Name: "probe", Capabilities: []string{capability}})
				Expect(got.Allowed).To(Equal(want == "allow"), "%s under %s", capability, security)
				Expect(got.Unclassified).To(BeFalse())
			}
		}
		for security, want := range r.UnclassifiedProbe.Expect {
			got := policy.Decide(policy.Policy{Security: security}, policy.Tool{Name: "probe"})
			Expect(got.Allowed).To(Equal(want == "allow"))
			Expect(got.Unclassified).To(Equal(security != policy.PersonalCLI))
		}
	})
})

var _ = DescribeTable("Decide", func(p policy.Policy, name string, allowed, lifted bool, reason string) {
	got := policy.Decide(p, policy.Tool{Name: name})
	Expect(got.Allowed).To(Equal(allowed))
	Expect(got.Lifted).To(Equal(lifted))
	Expect(got.Reason).To(Equal(reason))
},
	Entry("nothing said", policy.Policy{}, "exec", true, false, "the profile holds it"),
	Entry("deny wins over allow", policy.Policy{Allow: []string{"exec"}, AlsoAllow: []string{"exec"}, Deny: []string{"exec"}}, "exec", false, false, "denied by name"),
	Entry("allow is exclusive", policy.Policy{Allow: []string{"read_file"}}, "write_file", false, false, "not among the only tools allowed"),
	Entry("allow is above the profile", policy.Policy{Profile: "minimal", Allow: []string{"write_file"}}, "write_file", true, false, "allowed by name"),
	Entry("and also_allow does not widen it", policy.Policy{Allow: []string{"read_file"}, AlsoAllow: []string{"exec"}}, "exec", false, false, "not among the only tools allowed"),
	Entry("also_allow adds to the profile", policy.Policy{Profile: "minimal", AlsoAllow: []string{"write_file"}}, "write_file", true, false, "allowed by name"),
	Entry("a tool of the project's own", policy.Policy{Profile: "coding"}, "weather", false, false, "the profile coding does not hold it"),
	Entry("a tool of the project's own that is named", policy.Policy{Profile: "coding", AlsoAllow: []string{"weather"}}, "weather", true, false, "allowed by name"),
	Entry("a denial lifted", policy.Policy{Security: "daemon", AlsoAllow: []string{"exec"}}, "exec", true, true, "allowed by name, although the security profile daemon denies it"),
	Entry("a denial lifted by the only tools allowed", policy.Policy{Security: "public_gateway", Allow: []string{"write_file"}}, "write_file", true, true, "allowed by name, although the security profile public_gateway denies it"),
	Entry("loading of skills", policy.Policy{Profile: "minimal"}, "load_skill", true, false, "the profile holds it"),
	Entry("MCP", policy.Policy{Security: "daemon"}, "mcp_x", true, false, "the profile holds it"),
	Entry("MCP, hardened", policy.Policy{Security: "daemon", Hardened: true}, "mcp_x", false, false, "the security profile daemon denies mcp.call"),
	Entry("hardened without a security profile", policy.Policy{Hardened: true}, "skill_run", true, false, "the profile holds it"),
	Entry("an unknown profile of tools", policy.Policy{Profile: "maximal"}, "read_file", false, false, "the profile maximal does not hold it"),
	Entry("an unknown profile of security", policy.Policy{Security: "none"}, "read_file", false, false, "there is no security profile none"),
)
