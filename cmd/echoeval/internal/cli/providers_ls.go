package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/providers/abilities"
	"github.com/echoeval/echoeval/providers/compat"
	"github.com/echoeval/echoeval/providers/script"
)

// addresses says what a vendor is whose address is not fixed.
var addresses = map[string]string{
	compat.Name: "any server that speaks OpenAI's chat completions: base_url in the dataset",
	script.Name: "no model: the item's script answers",
}

func newProviders(s *State) *cobra.Command {
	return group("providers", "Whom a dataset can ask", "more", newProvidersLs(s), newProvidersCheck(s))
}

// listedProvider is one provider as it is set up on this machine. No value of a variable is in it.
type listedProvider struct {
	Name    string   `json:"name"`
	BaseURL *string  `json:"base_url"` // null: the dataset names it, or nothing is sent
	KeyEnv  *string  `json:"key_env"`  // null: none by default
	KeySet  *bool    `json:"key_set"`
	Ready   bool     `json:"ready"` // nothing on this machine is missing
	Can     []string `json:"can"`
	Note    *string  `json:"note"`
}

func listProviders(s *State) []listedProvider {
	var list []listedProvider
	for _, name := range vendorNames() {
		v := vendors[name]
		l := listedProvider{Name: name, Ready: true, Can: abilities.Words(name)}
		if v.scripted {
			l.Can = []string{"tools"}
		}
		if v.base != "" {
			l.BaseURL = &v.base
		}
		if v.regions != nil {
			// A region that is none is told of where it is used.
			if base, err := v.regions(regionOf(s, dataset.Provider{}, v)); err == nil {
				l.BaseURL = &base
			} else {
				note := "the region in the environment is none"
				l.Note, l.Ready = &note, false
			}
		}
		if name := v.keyName(s); name != "" {
			set := s.Getenv(name) != ""
			l.KeyEnv, l.KeySet, l.Ready = &name, &set, set && l.Ready && (name != accessKey || s.Getenv(secretKey) != "")
		}
		if note, ok := addresses[name]; ok {
			l.Note = &note
		}
		list = append(list, l)
	}
	return list
}

func newProvidersLs(s *State) *cobra.Command {
	var asJSON, models bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List providers, what each can do, and whether it is set up", Args: between(0, 0, "no arguments"),
		Long: "List providers, what each can do, and whether it is set up on this machine. Keys are named, never shown. A replay needs none of them.\n\n" +
			"With --models list what is known of models instead: how many tokens they take and give, what these cost, and what the models can do. The project's prices lie over the built-in table.",
		RunE: func(*cobra.Command, []string) error {
			if models {
				return listModels(s, asJSON)
			}
			list := listProviders(s)
			if asJSON {
				return printJSON(s, list)
			}
			for _, l := range list {
				setup := "no key needed"
				if l.KeyEnv != nil {
					setup = *l.KeyEnv + " is not set"
					if *l.KeySet {
						setup = *l.KeyEnv + " is set"
					}
				}
				where := ""
				switch {
				case l.BaseURL != nil:
					where = *l.BaseURL
				case l.Note != nil:
					where = *l.Note
				}
				if _, err := fmt.Fprintf(s.Stdout, "%-9s %-28s %-54s %s\n", l.Name, setup, strings.Join(l.Can, ", "), where); err != nil {
					return unwritable(err)
				}
			}
			return sayIgnored(s)
		},
	}
	cmd.Flags().BoolVar(&models, "models", false, "list models with their sizes, prices and abilities")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
