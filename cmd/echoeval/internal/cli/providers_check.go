package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/providers/anthropic"
	"github.com/echoeval/echoeval/providers/bedrock"
	"github.com/echoeval/echoeval/providers/gemini"
	"github.com/echoeval/echoeval/providers/openai"
	"github.com/echoeval/echoeval/reports/escape"
)

// probes names a cheap model of each vendor whose address is known, for a call that only shows whether the vendor answers.
var probes = map[string]string{anthropic.Name: "claude-haiku-4-5", openai.Name: "gpt-4o-mini", gemini.Name: "gemini-2.5-flash", bedrock.Name: "amazon.nova-lite-v1:0"}

// probeTimeout bounds one such call.
const probeTimeout = 30 * time.Second

// checkedProvider is what a check found of one provider. No value of a variable is in it.
type checkedProvider struct {
	Name   string  `json:"name"`
	KeyEnv *string `json:"key_env"`
	KeySet *bool   `json:"key_set"`
	Ready  bool    `json:"ready"`
	// Model is the model that was asked; null where none was.
	Model *string `json:"model"`
	// Answered is null where nothing was asked.
	Answered *bool `json:"answered"`
	// Error says why there was no answer, Hint what can be done about it; null where nothing is known.
	Error *string `json:"error"`
	Hint  *string `json:"hint"`
}

type providersCheck struct {
	live, asJSON, allowNetwork bool
	upstream, models           []string
}

func newProvidersCheck(s *State) *cobra.Command {
	var o providersCheck
	cmd := &cobra.Command{
		Use: "check", Short: "Say which providers are set up; with --live, whether they answer", Args: between(0, 0, "no arguments"),
		Long: "Say which providers are set up on this machine. Keys are named, never shown, and nothing is dialled.\n\n" +
			"With --live every provider that has a key is asked for one token. The exit code is 5 where one of them does not answer, or where none has a key.",
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.live, "live", false, "ask every provider that has a key for one token")
	f.StringArrayVar(&o.models, "model", nil, "VENDOR=MODEL: ask this model (repeat)")
	f.StringArrayVar(&o.upstream, "upstream", nil, "VENDOR=URL: dial this address instead (repeat)")
	f.BoolVar(&o.allowNetwork, "allow-network", false, "let --live dial although CI is set")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	return cmd
}

func (o *providersCheck) run(ctx context.Context, s *State) error {
	up, err := parseUpstreams(o.upstream)
	if err != nil {
		return err
	}
	models, err := probeModels(o.models)
	if err != nil {
		return err
	}
	var list []checkedProvider
	var columns []dataset.Provider
	for _, l := range listProviders(s) {
		c := checkedProvider{Name: l.Name, KeyEnv: l.KeyEnv, KeySet: l.KeySet, Ready: l.Ready}
		model := cmp.Or(models[l.Name], probes[l.Name])
		target := up[l.Name]
		set := l.KeySet != nil && *l.KeySet
		if o.live && model != "" && !vendors[l.Name].scripted && (set || target != nil && loopback(target)) {
			if target == nil {
				if target, err = url.Parse(vendors[l.Name].base); err != nil {
					return err
				}
			}
			if s.ci() && !o.allowNetwork && !loopback(target) {
				return failure.WithHint(failure.New(failure.Input, "--live would dial %s, and CI is set", cmp.Or(target.Hostname(), l.Name)), "--allow-network permits it")
			}
			c.Model = &model
			p := dataset.Provider{ID: l.Name, Vendor: l.Name, Model: model}
			if vendors[l.Name].base == "" {
				p.BaseURL = target.String()
			}
			columns = append(columns, p)
		}
		list = append(list, c)
	}
	code := failure.OK
	if o.live && len(columns) == 0 {
		code = failure.Unavailable
	}
	for _, p := range columns {
		err := probe(ctx, s, p, up)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for i := range list {
			if list[i].Name != p.ID {
				continue
			}
			answered := err == nil
			list[i].Answered = &answered
			if err != nil {
				text := err.Error()
				list[i].Error = &text
				if hints := failure.Hints(err); len(hints) > 0 {
					list[i].Hint = &hints[0]
				}
				code = failure.Unavailable
			}
		}
	}
	if err := o.print(s, list, len(columns)); err != nil {
		return err
	}
	if code != failure.OK {
		return exit{code}
	}
	return nil
}

// probeModels reads the flag --model.
func probeModels(flags []string) (map[string]string, error) {
	out := map[string]string{}
	for _, flag := range flags {
		name, model, ok := strings.Cut(flag, "=")
		if !ok || model == "" {
			return nil, failure.WithHint(failure.New(failure.Input, "--model %s: want VENDOR=MODEL", flag), "--model openai=gpt-4o-mini")
		}
		if _, ok := vendors[name]; !ok {
			return nil, unknownVendor(name)
		}
		out[name] = model
	}
	return out, nil
}

// probe asks a provider for one token and repeats nothing.
func probe(ctx context.Context, s *State, p dataset.Provider, up upstreams) error {
	v := vendors[p.Vendor]
	live, err := dial(s, p, v, up[p.Vendor], replay.Live, true)
	if err != nil {
		return err
	}
	model, err := v.new(p, nil, live, s.Clock)
	if err != nil {
		return err
	}
	model = hinted{model, hintFor(s, p, v, up[p.Vendor])}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	one := 1
	ask := conversation.User("check", conversation.Text{Text: "Hi"})
	_, err = llm.Generate(ctx, model, llm.Request{Messages: []conversation.Message{ask}, Settings: llm.Settings{MaxTokens: &one}, Blocking: true})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", probeTimeout)
	}
	return err
}

func (o *providersCheck) print(s *State, list []checkedProvider, asked int) error {
	if o.asJSON {
		return printJSON(s, list)
	}
	for _, c := range list {
		setup := "no key needed"
		if c.KeyEnv != nil {
			setup = *c.KeyEnv + " is not set"
			if *c.KeySet {
				setup = *c.KeyEnv + " is set"
			}
		}
		said := ""
		switch {
		case c.Answered == nil && o.live:
			said = "not asked"
		case c.Answered == nil:
		case *c.Answered:
			said = *c.Model + " answers"
		default:
			said = *c.Model + " does not answer: " + *c.Error
		}
		line := strings.TrimRight(fmt.Sprintf("%-9s %-28s %s", c.Name, setup, escape.Line(said)), " ")
		if _, err := fmt.Fprintln(s.Stdout, line); err != nil {
			return unwritable(err)
		}
		if c.Hint != nil {
			if _, err := fmt.Fprintf(s.Stderr, "hint: %s: %s\n", c.Name, escape.Line(*c.Hint)); err != nil {
				return unwritable(err)
			}
		}
	}
	if o.live && asked == 0 {
		if _, err := fmt.Fprintln(s.Stderr, "no provider has a key: nothing was asked\nhint: echoeval providers ls names the variables of the keys"); err != nil {
			return unwritable(err)
		}
	}
	return sayIgnored(s)
}

// sayIgnored names the variables of the library's configuration that are set: the command does not read them, so that a run depends on its dataset alone.
func sayIgnored(s *State) error {
	for _, name := range []string{llm.EnvProvider, llm.EnvModel, llm.EnvTemperature, llm.EnvMaxTokens, llm.EnvMaxIterations} {
		if s.Getenv(name) == "" {
			continue
		}
		if _, err := fmt.Fprintf(s.Stderr, "note: %s is set and not read: a dataset says which model it asks and how\n", name); err != nil {
			return unwritable(err)
		}
	}
	return nil
}

// listModels prints what is known of models, by the project's table over the built-in one.
func listModels(s *State, asJSON bool) error {
	project, err := currentProject(s)
	if err != nil {
		return err
	}
	table, err := pricesOf(project)()
	if err != nil {
		return err
	}
	type listed struct {
		Vendor  string   `json:"vendor"`
		Model   string   `json:"model"`
		Context *int     `json:"context"` // null: unknown
		Output  *int     `json:"output"`
		Input   *float64 `json:"input_usd"` // per million tokens
		Price   *float64 `json:"output_usd"`
		Can     []string `json:"can"` // null: unknown
	}
	list := []listed{}
	for _, m := range table.Models() {
		l := listed{Vendor: m.Vendor, Model: m.Model, Can: m.Abilities}
		if m.Context > 0 {
			l.Context = &m.Context
		}
		if m.Output > 0 {
			l.Output = &m.Output
		}
		if price, ok := table.Price(m.Vendor, m.Model); ok {
			in, out := price.Input.Float(), price.Output.Float()
			l.Input, l.Price = &in, &out
		}
		list = append(list, l)
	}
	if asJSON {
		return printJSON(s, list)
	}
	count := func(n *int) string {
		if n == nil {
			return "unknown"
		}
		return strconv.Itoa(*n)
	}
	dollars := func(f *float64) string {
		if f == nil {
			return "unknown"
		}
		return strconv.FormatFloat(*f, 'f', -1, 64)
	}
	if _, err := fmt.Fprintf(s.Stdout, "as of %s: %s\n%-10s %-47s %-9s %-8s %-9s %-9s %s\n", escape.Line(table.Date), escape.Line(table.Source), "provider", "model", "context", "output", "$/M in", "$/M out", "can"); err != nil {
		return unwritable(err)
	}
	for _, l := range list {
		can := "unknown"
		if l.Can != nil {
			can = strings.Join(l.Can, ", ")
		}
		if _, err := fmt.Fprintf(s.Stdout, "%-10s %-47s %-9s %-8s %-9s %-9s %s\n", escape.Line(l.Vendor), escape.Line(l.Model), count(l.Context), count(l.Output), dollars(l.Input), dollars(l.Price), can); err != nil {
			return unwritable(err)
		}
	}
	return nil
}
