package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Scheme is how a vendor wants its key.
type Scheme struct {
	Header string
	Prefix string
}

// Bearer is the scheme of RFC 6750.
var Bearer = Scheme{Header: "Authorization", Prefix: "Bearer "}

// minKey is the length from which a key is looked for in refusals. A shorter one is no credential of any vendor, and occurs in ordinary text.
const minKey = 12

// maxErrorBody is how much of a refusal is searched for the key; the messages of the vendors are far shorter.
const maxErrorBody = 64 << 10

// Auth puts the key into each request, in the place of whatever the provider put there. It stands below the recorder, which therefore never sees a key; a refusal that repeats the key has it replaced by a placeholder on the way up.
//
// key is called once for each request. An empty key takes the header away, for servers that want none.
func Auth(scheme Scheme, key func(context.Context) (Secret, error), next http.RoundTripper) http.RoundTripper {
	return &auth{scheme: scheme, key: key, next: next}
}

type auth struct {
	scheme Scheme
	key    func(context.Context) (Secret, error)
	next   http.RoundTripper
}

func (a *auth) RoundTrip(req *http.Request) (*http.Response, error) {
	secret, err := a.key(req.Context())
	if err == nil && strings.ContainsFunc(secret.Reveal(), func(r rune) bool { return r < ' ' || r > '~' }) {
		// net/http would refuse the header too, but its message quotes it.
		err = fmt.Errorf("it has characters that no header may hold")
	}
	if err != nil {
		closeBody(req)
		return nil, final{fmt.Errorf("the key for %s: %w", req.URL.Host, err)}
	}
	out := clone(req)
	if secret.IsZero() {
		out.Header.Del(a.scheme.Header)
	} else {
		out.Header.Set(a.scheme.Header, a.scheme.Prefix+secret.Reveal())
	}
	resp, err := a.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	resp.Request = req
	Hide(resp, secret)
	return resp, nil
}

// Hide replaces keys by placeholders in the first part of a refusal's body; what follows is cut off rather than let through unread. Other replies, and keys that are too short to be any, are left as they are.
func Hide(resp *http.Response, keys ...Secret) {
	longest := 0
	for _, key := range keys {
		if n := len(key.Reveal()); n >= minKey {
			longest = max(longest, n)
		}
	}
	if resp.StatusCode < http.StatusBadRequest || longest == 0 {
		return
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	rest := resp.Body
	shown := data
	for _, key := range keys {
		if len(key.Reveal()) >= minKey {
			shown = bytes.ReplaceAll(shown, []byte(key.Reveal()), []byte(hidden))
		}
	}
	if len(data) == maxErrorBody && len(shown) > longest {
		// The cut may run through a key.
		shown = shown[:len(shown)-longest]
	}
	var r io.Reader = bytes.NewReader(shown)
	if err != nil {
		r = io.MultiReader(r, failing{err})
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{r, rest}
	if len(shown) != len(data) || resp.ContentLength > maxErrorBody {
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
