package cli

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/tool"
	"github.com/echoeval/echoeval/core/tools/files"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/harness/dataset"
	"github.com/echoeval/echoeval/harness/experiment"
	"github.com/echoeval/echoeval/harness/replay"
	"github.com/echoeval/echoeval/harness/target"
	"github.com/echoeval/echoeval/providers/anthropic"
	"github.com/echoeval/echoeval/providers/bedrock"
	"github.com/echoeval/echoeval/providers/compat"
	"github.com/echoeval/echoeval/providers/gemini"
	"github.com/echoeval/echoeval/providers/openai"
	"github.com/echoeval/echoeval/providers/script"
)

// tools is the table of the built-in tools' families.
var tools experiment.Tools = func(workspace experiment.Workspace) []tool.Tool {
	return files.New(workspace)
}

// vendor is a row of the table of providers.
type vendor struct {
	// base is the address that requests go to where the entry names none; "" where it must.
	base string
	// keyEnv is the variable that holds the key where the entry names none; "" where no key is needed.
	keyEnv string
	// keyElse is the variable that holds it where keyEnv is not set; "" for none.
	keyElse string
	// apis says that there are two ways to ask, as OpenAI has.
	apis bool
	// auth is how the vendor wants its key; as a bearer token where it is not set.
	auth transport.Scheme
	// under stands directly above the network, where what a vendor says in its own way is said as others do; nil for nothing.
	under func(http.RoundTripper) http.RoundTripper
	// regions says that the vendor has an address in each region; base names it then.
	regions func(region string) (string, error)
	// sign puts signatures in the place of a key; nil where a key is all there is. It is asked for where no bearer token is set.
	sign func(s *State, p dataset.Provider, region string) (func(http.RoundTripper) http.RoundTripper, error)
	// scripted providers send nothing.
	scripted bool
	new      func(p dataset.Provider, item *dataset.Item, rt http.RoundTripper, c clock.Clock) (llm.Model, error)
	// embed makes what turns texts into vectors; nil where the vendor has none.
	embed func(p dataset.Provider, rt http.RoundTripper, c clock.Clock) (llm.Embedder, error)
}

// vendors is the table of providers.
var vendors = map[string]vendor{
	openai.Name: {
		base: openai.BaseURL, keyEnv: "OPENAI_API_KEY", apis: true,
		new: func(p dataset.Provider, _ *dataset.Item, rt http.RoundTripper, c clock.Clock) (llm.Model, error) {
			return openai.New(openai.Config{BaseURL: p.BaseURL, Model: p.Model, API: openai.API(p.API), Clock: c}, rt)
		},
		embed: func(p dataset.Provider, rt http.RoundTripper, c clock.Clock) (llm.Embedder, error) {
			return openai.NewEmbedder(openai.Config{BaseURL: p.BaseURL, Model: p.Model, Clock: c}, rt)
		},
	},
	anthropic.Name: {
		base: anthropic.BaseURL, keyEnv: "ANTHROPIC_API_KEY", auth: transport.Scheme{Header: "X-Api-Key"},
		new: func(p dataset.Provider, _ *dataset.Item, rt http.RoundTripper, c clock.Clock) (llm.Model, error) {
			return anthropic.New(anthropic.Config{BaseURL: p.BaseURL, APIVersion: p.APIVersion, Model: p.Model, Clock: c}, rt)
		},
	},
	bedrock.Name: {
		keyEnv: "AWS_BEARER_TOKEN_BEDROCK", keyElse: accessKey, regions: bedrock.BaseURL, sign: signAWS,
		new: func(p dataset.Provider, _ *dataset.Item, rt http.RoundTripper, c clock.Clock) (llm.Model, error) {
			return bedrock.New(bedrock.Config{BaseURL: p.BaseURL, Region: p.Region, Model: p.Model, Clock: c}, rt)
		},
		embed: func(p dataset.Provider, rt http.RoundTripper, c clock.Clock) (llm.Embedder, error) {
			return bedrock.NewEmbedder(bedrock.Config{BaseURL: p.BaseURL, Region: p.Region, Model: p.Model, Clock: c}, rt)
		},
	},
	compat.Name: {
		apis: true,
		new: func(p dataset.Provider, _ *dataset.Item, rt http.RoundTripper, c clock.Clock) (llm.Model, error) {
			return compat.New(compat.Config{BaseURL: p.BaseURL, Model: p.Model, API: openai.API(p.API), Clock: c}, rt)
		},
		embed: func(p dataset.Provider, rt http.RoundTripper, c clock.Clock) (llm.Embedder, error) {
			return compat.NewEmbedder(compat.Config{BaseURL: p.BaseURL, Model: p.Model, Clock: c}, rt)
		},
	},
	gemini.Name: {
		base: gemini.BaseURL, keyEnv: "GEMINI_API_KEY", keyElse: "GOOGLE_API_KEY", auth: transport.Scheme{Header: gemini.KeyHeader}, under: gemini.RetryAfter,
		new: func(p dataset.Provider, _ *dataset.Item, rt http.RoundTripper, c clock.Clock) (llm.Model, error) {
			return gemini.New(gemini.Config{BaseURL: p.BaseURL, Model: p.Model, Clock: c}, rt)
		},
		embed: func(p dataset.Provider, rt http.RoundTripper, c clock.Clock) (llm.Embedder, error) {
			return gemini.NewEmbedder(gemini.Config{BaseURL: p.BaseURL, Model: p.Model, Clock: c}, rt)
		},
	},
	script.Name: {
		scripted: true,
		new: func(_ dataset.Provider, item *dataset.Item, _ http.RoundTripper, _ clock.Clock) (llm.Model, error) {
			return script.New(scriptSteps(item.Script)...), nil
		},
	},
}

func vendorNames() []string { return slices.Sorted(maps.Keys(vendors)) }

// embedding names the vendors that have embeddings.
func embedding() []string {
	return slices.DeleteFunc(vendorNames(), func(name string) bool { return vendors[name].embed == nil })
}

func scriptSteps(steps []dataset.Step) []script.Step {
	out := make([]script.Step, len(steps))
	for i, s := range steps {
		if s.Text != nil {
			out[i].Text = *s.Text
		}
		for _, c := range s.Calls {
			arguments := conversation.JSON("{}")
			if !c.Args.IsZero() {
				arguments = conversation.JSON(c.Args.JSON())
			}
			out[i].Calls = append(out[i].Calls, script.Call{Name: c.Name, Arguments: arguments})
		}
	}
	return out
}

// upstreams maps a vendor to the base URL that is dialled in its place.
type upstreams map[string]*url.URL

func parseUpstreams(flags []string) (upstreams, error) {
	out := upstreams{}
	for _, flag := range flags {
		name, address, ok := strings.Cut(flag, "=")
		u, err := url.Parse(address)
		if !ok || err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, failure.WithHint(failure.New(failure.Input, "--upstream %s: want VENDOR=URL", flag), "--upstream openai=http://127.0.0.1:8080/v1")
		}
		if _, ok := vendors[name]; !ok && target.VendorNamed(name) == nil && name != strings.ToUpper(name) {
			return nil, unknownVendor(name) // names in capitals are variables of services; the dataset tells which there are
		}
		out[name] = u
	}
	return out, nil
}

// loopback says whether a URL leads to this machine.
func loopback(u *url.URL) bool {
	host := u.Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

func unknownVendor(name string) error {
	err := failure.New(failure.Input, "unknown provider %q", name)
	if near, ok := strict.Nearest(name, vendorNames()); ok {
		return failure.WithHint(err, "did you mean %q?", near)
	}
	return failure.WithHint(err, "choose one of %s", strings.Join(vendorNames(), ", "))
}

// columns makes the columns of a run: one for each provider, with the transport that dials it where the mode dials at all. The error joins what is wrong with each of them; of those that are asked at the same door only the first is named. Columns that cannot be dialled are among those returned, so that the rest of a plan can be looked at; of an unknown vendor there is none at all.
//
// Columns of one vendor, key and address share the transport, and so the number of requests that may be under way, limit or the lowest that one of them sets.
func columns(s *State, project *dataset.Project, providers []dataset.Provider, mode replay.Mode, up upstreams, allowNetwork bool, limit int) ([]experiment.Column, error) {
	var out []experiment.Column
	var errs []error
	closed := map[string]bool{} // doors that cannot be opened
	shared := map[string]http.RoundTripper{}
	limits := map[string]transport.Limits{}
	for _, p := range providers {
		limits[door(s, p)] = stricter(limits[door(s, p)], transport.Limits{Concurrency: min(limit, cmp.Or(p.Limits.Concurrency, limit)), PerMinute: p.Limits.RPM, TokensPerMinute: p.Limits.TPM, Clock: s.Clock})
	}
	for _, p := range providers {
		v, ok := vendors[p.Vendor]
		if !ok {
			return nil, unknownVendor(p.Vendor)
		}
		if p.API != "" && !v.apis {
			errs = append(errs, failure.WithHint(failure.At(p.Pos, failure.Input, "provider %s: %s has one way to be asked, and takes no api", p.ID, p.Vendor), "leave out the key api"))
		}
		if p.Role == dataset.RoleEmbed && v.embed == nil {
			return nil, failure.WithHint(failure.At(p.Pos, failure.Input, "provider %s: %s has no embeddings", p.ID, p.Vendor), "choose one of %s", strings.Join(embedding(), ", "))
		}
		asked := p
		asked.Region = regionOf(s, p, v)
		if p.Role == dataset.RoleEmbed {
			if _, err := v.embed(asked, nowhere{}, s.Clock); err != nil {
				return nil, failure.At(p.Pos, failure.Input, "provider %s: %w", p.ID, err)
			}
		}
		c := experiment.Column{
			Provider: p,
			Model: func(item *dataset.Item, rt http.RoundTripper, c clock.Clock) (llm.Model, error) {
				model, err := v.new(asked, item, rt, c)
				if err != nil || mode == replay.Replay || v.scripted {
					return model, err
				}
				return hinted{model, hintFor(s, p, v, up[p.Vendor])}, nil
			},
			Embedder: func(rt http.RoundTripper, c clock.Clock) (llm.Embedder, error) {
				embedder, err := v.embed(asked, rt, c)
				if err != nil || mode == replay.Replay {
					return embedder, err
				}
				return hintedEmbedder{embedder, hintFor(s, p, v, up[p.Vendor])}, nil
			},
			Scripted: v.scripted,
			Settings: p.Settings,
			Cost:     costOf(pricesOf(project), p, v.scripted),
		}
		if mode != replay.Replay && !v.scripted {
			key := door(s, p)
			if shared[key] == nil && !closed[key] {
				live, err := dial(s, asked, v, up[p.Vendor], mode, allowNetwork)
				if err != nil {
					errs, closed[key] = append(errs, err), true
				} else {
					shared[key] = transport.Limiter(limits[key], live)
				}
			}
			c.Live = transport.ForModel(p.Model, shared[key])
		}
		out = append(out, c)
	}
	return out, errors.Join(errs...)
}

// nowhere sends nothing: what can be said of a provider before it is dialled.
type nowhere struct{}

// RoundTrip implements [http.RoundTripper].
func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, failure.New(failure.Internal, "nothing is dialled yet")
}

// door names what the vendor's own limits count by: who asks, and where. It is the same whether an entry names key and address or leaves them to their defaults.
func door(s *State, p dataset.Provider) string {
	v := vendors[p.Vendor]
	return strings.Join([]string{p.Vendor, cmp.Or(p.APIKeyEnv, v.keyName(s)), strings.TrimSuffix(cmp.Or(p.BaseURL, v.base), "/"), p.Region}, " ")
}

// stricter is the lower of each limit; 0 is none.
func stricter(a, b transport.Limits) transport.Limits {
	lower := func(x, y int) int {
		if x == 0 || y == 0 {
			return max(x, y)
		}
		return min(x, y)
	}
	return transport.Limits{Concurrency: lower(a.Concurrency, b.Concurrency), PerMinute: lower(a.PerMinute, b.PerMinute), TokensPerMinute: lower(a.TokensPerMinute, b.TokensPerMinute), Clock: b.Clock}
}

// dial composes what lies below the limiter: authentication, the address that is dialled, the network.
func dial(s *State, p dataset.Provider, v vendor, upstream *url.URL, mode replay.Mode, allowNetwork bool) (http.RoundTripper, error) {
	base := p.BaseURL
	if base == "" {
		base = v.base
	}
	if base == "" && v.regions != nil {
		var err error
		if base, err = v.regions(p.Region); err != nil {
			return nil, failure.At(p.Pos, failure.Input, "provider %s: %w", p.ID, err)
		}
	}
	target := upstream
	if target == nil {
		var err error
		if target, err = url.Parse(base); err != nil || target.Host == "" {
			return nil, failure.At(p.Pos, failure.Input, "provider %s: base_url is no URL", p.ID)
		}
	}
	if s.ci() && !allowNetwork && !loopback(target) {
		return nil, failure.WithHint(failure.New(failure.Input, "--mode %s would dial %s, and CI is set", mode, target.Hostname()), "replay (the default) needs no network; --allow-network permits it")
	}
	if _, err := proxyOf(s)(&http.Request{URL: target}); err != nil {
		return nil, err
	}
	authorize, err := authorization(s, p, v, loopback(target))
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	var rt http.RoundTripper = transport.Net(dialer.DialContext, proxyOf(s))
	if v.under != nil {
		rt = v.under(rt)
	}
	if upstream != nil {
		if rt, err = transport.Redirect(base, upstream.String(), rt); err != nil {
			return nil, err
		}
	}
	return authorize(rt), nil
}

// authorization is what puts the key into requests, or signs them.
func authorization(s *State, p dataset.Provider, v vendor, local bool) (func(http.RoundTripper) http.RoundTripper, error) {
	if v.sign != nil && p.APIKeyEnv == "" && s.Getenv(v.keyEnv) == "" {
		if sign, err := v.sign(s, p, p.Region); sign != nil || err != nil {
			return sign, err
		}
	}
	key, err := keyOf(s, p, v, local)
	if err != nil {
		return nil, err
	}
	return func(rt http.RoundTripper) http.RoundTripper {
		return transport.Auth(cmp.Or(v.auth, transport.Bearer), func(context.Context) (transport.Secret, error) { return key, nil }, rt)
	}, nil
}

// regionOf is where a vendor that has regions is asked: as the entry says, else the environment; "" is the vendor's usual one.
func regionOf(s *State, p dataset.Provider, v vendor) string {
	if v.regions == nil || p.Region != "" {
		return p.Region
	}
	return cmp.Or(s.Getenv("AWS_REGION"), s.Getenv("AWS_DEFAULT_REGION"))
}

// The variables of a key that signs.
const (
	accessKey = "AWS_ACCESS_KEY_ID"
	secretKey = "AWS_SECRET_ACCESS_KEY"
)

// signAWS signs with the key in the environment; nil where there is none.
func signAWS(s *State, p dataset.Provider, region string) (func(http.RoundTripper) http.RoundTripper, error) {
	id, key := s.Getenv(accessKey), s.Getenv(secretKey)
	if id == "" {
		return nil, nil
	}
	if key == "" {
		return nil, failure.WithHint(failure.At(p.Pos, failure.Input, "provider %s needs a key, and %s is set without %s", p.ID, accessKey, secretKey), "export %s=..., or run in replay, which needs none", secretKey)
	}
	credentials := bedrock.Credentials{KeyID: id, Key: transport.NewSecret(key), Session: transport.NewSecret(s.Getenv("AWS_SESSION_TOKEN"))}
	return func(rt http.RoundTripper) http.RoundTripper {
		return bedrock.Sign(credentials, region, s.Clock, rt)
	}, nil
}

// keyOf takes the key from the environment. A server on this machine gets a placeholder where there is none.
func keyOf(s *State, p dataset.Provider, v vendor, local bool) (transport.Secret, error) {
	name := p.APIKeyEnv
	if name == "" {
		name = v.keyName(s)
	}
	if name == "" {
		return transport.Secret{}, nil
	}
	if value := s.Getenv(name); value != "" {
		return transport.NewSecret(value), nil
	}
	if local {
		return transport.NewSecret("no-key-needed-on-loopback"), nil
	}
	return transport.Secret{}, failure.WithHint(failure.At(p.Pos, failure.Input, "provider %s needs a key, and %s is not set", p.ID, name), "export %s=..., or run in replay, which needs none", name)
}

// keyName names the variable that the vendor's key is taken from: the first that is set, else the first.
func (v vendor) keyName(s *State) string {
	if v.keyElse != "" && s.Getenv(v.keyEnv) == "" && s.Getenv(v.keyElse) != "" {
		return v.keyElse
	}
	return v.keyEnv
}

// missingKey names the variable of a key that asking the provider would need and that is not set; "" where none is missing. upstream is what is dialled in its place, or nil.
func missingKey(s *State, p dataset.Provider, upstream *url.URL) string {
	v := vendors[p.Vendor]
	name := cmp.Or(p.APIKeyEnv, v.keyName(s))
	if v.sign != nil && name == accessKey && s.Getenv(accessKey) != "" && p.APIKeyEnv == "" {
		name = secretKey
	}
	if upstream == nil {
		upstream, _ = url.Parse(cmp.Or(p.BaseURL, v.base))
	}
	if v.scripted || name == "" || s.Getenv(name) != "" || upstream != nil && loopback(upstream) {
		return ""
	}
	return name
}

// missingKeys names the variables of all keys that asking the providers would need and that are not set, sorted.
func missingKeys(s *State, providers []dataset.Provider, up upstreams) []string {
	missing := map[string]bool{}
	for _, p := range providers {
		if name := missingKey(s, p, up[p.Vendor]); name != "" {
			missing[name] = true
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

// proxyName names the variable that says which proxy an address is reached through, and what it says; the first of the names where none is set.
func proxyName(s *State, address string) (name, value string) {
	names := []string{"HTTPS_PROXY", "https_proxy"}
	if strings.HasPrefix(address, "http:") {
		names = []string{"HTTP_PROXY", "http_proxy"}
	}
	for _, name := range names {
		if value := s.Getenv(name); value != "" {
			return name, value
		}
	}
	return names[0], ""
}

// proxyOf honours HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the environment that the command was given. A proxy without a scheme is one of http.
func proxyOf(s *State) func(*http.Request) (*url.URL, error) {
	without := cmp.Or(s.Getenv("NO_PROXY"), s.Getenv("no_proxy"))
	return func(req *http.Request) (*url.URL, error) {
		name, proxy := proxyName(s, req.URL.Scheme+":")
		if proxy == "" || loopback(req.URL) || exempt(req.URL.Hostname(), without) {
			return nil, nil
		}
		if !strings.Contains(proxy, "://") {
			proxy = "http://" + proxy
		}
		u, err := url.Parse(proxy)
		if err != nil || u.Host == "" {
			// The text is not quoted: it may hold a password.
			return nil, failure.WithHint(failure.New(failure.Input, "%s is no address of a proxy", name), "export %s=http://HOST:PORT, or except hosts by NO_PROXY", name)
		}
		return u, nil
	}
}

func exempt(host, without string) bool {
	for _, name := range strings.Split(without, ",") {
		name = strings.TrimPrefix(strings.TrimSpace(name), ".")
		if name == "*" || (name != "" && (host == name || strings.HasSuffix(host, "."+name))) {
			return true
		}
	}
	return false
}

// pricesOf is the table of a project: its own prices over the built-in ones. It is read when it is first asked for.
func pricesOf(project *dataset.Project) func() (llm.Prices, error) {
	if project.Prices == "" {
		return llm.DefaultPrices
	}
	return sync.OnceValues(func() (llm.Prices, error) {
		data, err := os.ReadFile(filepath.Join(project.Root, filepath.FromSlash(project.Prices)))
		if err != nil {
			return llm.Prices{}, failure.At(failure.Position{File: project.Prices}, failure.Input, "the prices cannot be read: %s", failure.Reason(err))
		}
		own, err := llm.LoadPrices(project.Prices, data)
		if err != nil {
			return llm.Prices{}, err
		}
		built, err := llm.DefaultPrices()
		return built.Merge(own), err
	})
}

// costOf prices what a column's replies cost: by the entry's own price, else by the table.
func costOf(table func() (llm.Prices, error), p dataset.Provider, scripted bool) func(llm.Response) (money.USD, bool) {
	if scripted {
		return func(llm.Response) (money.USD, bool) { return 0, true }
	}
	if p.Price != nil {
		price := llm.Price{Input: p.Price.Input, CachedInput: p.Price.Input, CacheWrite: p.Price.Input, LongCacheWrite: p.Price.Input, Output: p.Price.Output}
		return func(r llm.Response) (money.USD, bool) { return price.For(p.Settings).Cost(r.Usage), true }
	}
	return func(r llm.Response) (money.USD, bool) {
		prices, err := table()
		if err != nil {
			return 0, false
		}
		price, ok := prices.Price(p.Vendor, p.Model)
		return price.For(p.Settings).Cost(r.Usage), ok
	}
}
