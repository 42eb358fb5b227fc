package cli

import (
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// upstreams maps a vendor to the base URL that is dialled in its place.
type upstreams map[string]*url.URL

func parseUpstreams(flags []string) (upstreams, error) {
	out := upstreams{}
	for _, flag := range flags {
		vendor, address, ok := strings.Cut(flag, "=")
		u, err := url.Parse(address)
		if !ok || err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, failure.WithHint(failure.New(failure.Input, "--upstream %s: want VENDOR=URL", flag), "--upstream openai=http://127.0.0.1:8080/v1")
		}
		if _, ok := vendors[vendor]; !ok {
			return nil, unknownVendor(failure.Position{}, vendor)
		}
		out[vendor] = u
	}
	return out, nil
}

// loopback says whether a URL leads to this machine.
func loopback(u *url.URL) bool {
	host := u.Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

func unknownVendor(pos failure.Position, name string) error {
	names := slices.Sorted(maps.Keys(vendors))
	err := failure.At(pos, failure.Input, "unknown provider %q", name)
	if near, ok := strict.Nearest(name, names); ok {
		return failure.WithHint(err, "did you mean %q?", near)
	}
	return failure.WithHint(err, "choose one of %s", strings.Join(names, ", "))
}

// refused is the transport of a column that must not reach the network.
type refused struct{ vendor string }

func (r refused) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, failure.New(failure.Internal, "%s was to be dialled although this run must not", r.vendor)
}
