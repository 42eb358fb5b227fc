package cli

import (
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/target"
)

// targetColumn is the column of a program under test.
func targetColumn(project *dataset.Project, p dataset.Provider, t *dataset.Target) experiment.Column {
	c := experiment.Column{Provider: p, Target: t, Scripted: vendors[p.Vendor].scripted, CostOf: costByModel(pricesOf(project), p)}
	c.Cost = func(r llm.Response) (money.USD, bool) { return c.CostOf(p.Vendor, p.Model, r.Usage) }
	return c
}

// costByModel prices what a program asks of models: by the entry's own price, else by the table.
func costByModel(table func() (llm.Prices, error), p dataset.Provider) func(vendor, model string, u conversation.Usage) (money.USD, bool) {
	if p.Price != nil {
		own := costOf(table, p, false)
		return func(_, _ string, u conversation.Usage) (money.USD, bool) { return own(llm.Response{Usage: u}) }
	}
	return func(vendor, model string, u conversation.Usage) (money.USD, bool) {
		prices, err := table()
		if err != nil {
			return 0, false
		}
		return prices.Cost(vendor, model, u)
	}
}

// targets is what runs the programs of a run's columns, nil where none has one. Nothing is started before an item is.
func targets(s *State, d *dataset.Dataset, cols []experiment.Column, o *runOptions, mode, dialled replay.Mode, up upstreams, redact func(string) string) (*target.Pool, error) {
	if !slices.ContainsFunc(cols, func(c experiment.Column) bool { return c.Target != nil }) {
		return nil, nil
	}
	opts := target.Options{Root: d.Root, Environ: s.Environ, Mode: string(mode), Seed: o.seed, Redact: redact}
	var errs []error
	opts.Local = func(vendor string) bool { return up[vendor] != nil && loopback(up[vendor]) }
	if dialled != replay.Replay {
		doors := &doors{state: s, up: up, closed: s.ci() && !o.allowNetwork, mode: mode, limit: o.concurrency, open: map[target.Service]http.RoundTripper{}}
		for _, c := range cols {
			if c.Target == nil {
				continue
			}
			errs = append(errs, doors.check(c), unset(s, c.Target))
		}
		opts.Live = doors.dial
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return target.NewPool(opts), nil
}

// unset refuses a program that is to be given variables which there are not.
func unset(s *State, t *dataset.Target) error {
	var names []string
	for _, name := range t.EnvFrom {
		if _, set := s.lookupEnv(name); !set {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return failure.WithHint(failure.At(t.Pos, failure.Input, "the target is passed variables that are not set: %s", strings.Join(names, ", ")), "export them (an empty value will do), or take them out of env_from; a replay needs none")
}

// check refuses an address in place of a service that no program of the run has.
func (up upstreams) check(cols []experiment.Column) error {
	for _, name := range slices.Sorted(maps.Keys(up)) {
		if _, vendor := vendors[name]; vendor || target.VendorNamed(name) != nil {
			continue
		}
		if !slices.ContainsFunc(cols, func(c experiment.Column) bool { return c.Target != nil && c.Target.Proxy[name] != "" }) {
			return failure.WithHint(failure.New(failure.Input, "--upstream %s: no target has a service of this name", name), "name it: target: {proxy: {%s: \"https://...\"}}", name)
		}
	}
	return nil
}

// doors opens the connections of recorders.
type doors struct {
	state  *State
	up     upstreams
	closed bool // only addresses of this machine may be dialled
	mode   replay.Mode
	limit  int

	mu   sync.Mutex
	open map[target.Service]http.RoundTripper
}

// check refuses a program where connections are closed and nothing that it can reach is on this machine, or another service is not.
func (d *doors) check(c experiment.Column) error {
	if !d.closed {
		return nil
	}
	spec := target.Spec{Proxy: c.Target.Proxy}
	var far []string // models elsewhere
	local := false   // a model on this machine
	for _, service := range spec.Services() {
		address := d.address(service)
		switch here := address != nil && loopback(address); {
		case !here && !service.Model:
			return d.refuse(service.Base)
		case !here:
			far = append(far, service.Base)
		case service.Model:
			local = true
		}
	}
	if local {
		return nil
	}
	return d.refuse(far[0])
}

func (d *doors) refuse(address string) error {
	host := address
	if u, err := url.Parse(address); err == nil {
		host = u.Hostname()
	}
	return failure.WithHint(failure.New(failure.Input, "--mode %s would dial %s, and CI is set", d.mode, host), "replay (the default) needs no network; --allow-network permits it")
}

// address is what is dialled for a service.
func (d *doors) address(service target.Service) *url.URL {
	if u := d.up[service.Name]; u != nil {
		return u
	}
	u, err := url.Parse(service.Base)
	if err != nil {
		return nil
	}
	return u
}

func (d *doors) dial(service target.Service) (http.RoundTripper, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if rt := d.open[service]; rt != nil {
		return rt, nil
	}
	address := d.address(service)
	if d.closed && (address == nil || !loopback(address)) {
		return nil, d.refuse(service.Base)
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	var rt http.RoundTripper = transport.Net(dialer.DialContext, proxyOf(d.state))
	if u := d.up[service.Name]; u != nil {
		var err error
		if rt, err = transport.Redirect(strings.TrimSuffix(service.Base, "/"), u.String(), rt); err != nil {
			return nil, err
		}
	}
	limit := d.limit
	if limit == 0 {
		limit = experiment.DefaultConcurrency
	}
	if service.Model {
		rt = transport.Limiter(transport.Limits{Concurrency: limit, Clock: d.state.Clock}, rt)
	}
	d.open[service] = rt
	return rt, nil
}
