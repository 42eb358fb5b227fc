package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"syscall"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/harness/dataset"
)

// hinted is a model whose errors say what the user can do about them.
type hinted struct {
	llm.Model
	hint func(*llm.Error) string
}

// Stream implements [llm.Model].
func (m hinted) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for event, err := range m.Model.Stream(ctx, req) {
			if !yield(event, withHint(err, m.hint)) {
				return
			}
		}
	}
}

// hintedEmbedder is the same of an embedder.
type hintedEmbedder struct {
	llm.Embedder
	hint func(*llm.Error) string
}

// Embed implements [llm.Embedder].
func (e hintedEmbedder) Embed(ctx context.Context, req llm.EmbedRequest) (llm.Embeddings, error) {
	got, err := e.Embedder.Embed(ctx, req)
	return got, withHint(err, e.hint)
}

// withHint adds what can be done about an error of a provider.
func withHint(err error, hintFor func(*llm.Error) string) error {
	var e *llm.Error
	if errors.As(err, &e) {
		if hint := hintFor(e); hint != "" {
			return failure.WithHint(err, "%s", hint)
		}
	}
	return err
}

// hintFor says what can be done about an error of a provider that is dialled; "" for nothing that is known.
func hintFor(s *State, p dataset.Provider, v vendor, upstream *url.URL) func(*llm.Error) string {
	key := cmp.Or(p.APIKeyEnv, v.keyName(s))
	flag, address := "base_url", cmp.Or(p.BaseURL, v.base)
	if upstream != nil {
		flag, address = "--upstream", upstream.String()
	}
	host := ""
	if u, err := url.Parse(address); err == nil {
		// A user or a query may hold a secret.
		host, address = u.Hostname(), (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return func(e *llm.Error) string {
		switch {
		case e.Status == http.StatusUnauthorized && key == "":
			return "the server wants a key: name the variable that holds it, as in api_key_env: MY_KEY"
		case e.Status == http.StatusUnauthorized:
			return fmt.Sprintf("the key in %s was refused: export the right one", key)
		case e.Status == http.StatusForbidden && key != "":
			return fmt.Sprintf("the key in %s may not do this: another key, another model or another region may", key)
		case e.Status == http.StatusNotFound:
			return fmt.Sprintf("check the model's name, and %s (%s)", flag, address)
		case e.Status == http.StatusProxyAuthRequired, e.Code == transport.CauseProxy:
			name, _ := proxyName(s, address)
			return fmt.Sprintf("check the proxy in %s, or except the host: NO_PROXY=%s", name, host)
		case e.Status == http.StatusTooManyRequests && e.Retryable:
			return "lower --concurrency, or set limits: {rpm, tpm} for the provider"
		case e.Code == transport.CauseDNS:
			return fmt.Sprintf("check the host in %s (%s), and that this machine resolves names", flag, address)
		case e.Code == transport.CauseTLS:
			return fmt.Sprintf("check %s (%s); where a proxy or server has a certificate of your own, name its authority: SSL_CERT_FILE=ca.pem", flag, address)
		case errors.Is(e, syscall.ECONNREFUSED):
			return fmt.Sprintf("nothing listens there: check %s (%s)", flag, address)
		case e.Status >= http.StatusMultipleChoices && e.Status < http.StatusBadRequest, e.Status == http.StatusOK && !e.Retryable && e.Type == "" && e.Err != nil && !errors.Is(e, context.Canceled) && !errors.Is(e, context.DeadlineExceeded):
			return fmt.Sprintf("what answers there does not speak the API of %s: check %s (%s)", p.Vendor, flag, address)
		}
		return ""
	}
}
