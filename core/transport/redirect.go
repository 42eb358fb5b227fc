package transport

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
)

// Redirect dials another base URL than the one that the provider was built with: a request to from or below it goes to the same place below to, query and body unchanged. Layers above see only the provider's URL, in the reply's Request too.
//
// A request to any other place is refused: whoever redirects does not want the vendor to be called. Both URLs are absolute http or https URLs without user, query and fragment.
func Redirect(from, to string, next http.RoundTripper) (http.RoundTripper, error) {
	source, err := parseBase(from)
	if err != nil {
		return nil, err
	}
	target, err := parseBase(to)
	if err != nil {
		return nil, err
	}
	return &redirect{from: source, to: target, next: next}, nil
}

func parseBase(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, failure.New(failure.Input, "the base URL cannot be read: %w", urlCause(err))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, failure.New(failure.Input, "base URL %q: want http:// or https:// and a host", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, failure.New(failure.Input, "base URL %q: no user, query or fragment may stand in it", (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String())
	}
	return u, nil
}

// urlCause is the reason without the URL, which may hold a password.
func urlCause(err error) error {
	if e, ok := err.(*url.Error); ok { // url.Parse returns it unwrapped
		return e.Err
	}
	return err
}

type redirect struct {
	from, to *url.URL
	next     http.RoundTripper
}

func (r *redirect) RoundTrip(req *http.Request) (*http.Response, error) {
	rest, ok := r.below(req.URL)
	if !ok {
		closeBody(req)
		return nil, final{fmt.Errorf("%s://%s%s is not below %s, which is redirected to %s", req.URL.Scheme, req.URL.Host, req.URL.EscapedPath(), r.from, r.to)}
	}
	out := clone(req)
	target := *r.to
	target.RawQuery = req.URL.RawQuery
	escaped := strings.TrimSuffix(r.to.EscapedPath(), "/") + rest
	path, err := url.PathUnescape(escaped)
	if err != nil {
		closeBody(req)
		return nil, final{err}
	}
	target.Path, target.RawPath = path, escaped
	out.URL, out.Host = &target, ""
	resp, err := r.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	resp.Request = req
	return resp, nil
}

// below returns the escaped path after from's, "" or beginning with a slash.
func (r *redirect) below(u *url.URL) (rest string, ok bool) {
	if !strings.EqualFold(u.Scheme, r.from.Scheme) || !strings.EqualFold(u.Host, r.from.Host) {
		return "", false
	}
	rest, ok = strings.CutPrefix(u.EscapedPath(), strings.TrimSuffix(r.from.EscapedPath(), "/"))
	return rest, ok && (rest == "" || rest[0] == '/')
}
