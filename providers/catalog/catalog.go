// Package catalog is the table of providers for programs that use them as a library: [Get] makes the model that an [llm.Config] names. A new provider is one line of [Table].
package catalog

import (
	"cmp"
	"context"
	"net/http"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/core/transport"
	"github.com/echoeval/echoeval/providers/anthropic"
	"github.com/echoeval/echoeval/providers/bedrock"
	"github.com/echoeval/echoeval/providers/compat"
	"github.com/echoeval/echoeval/providers/gemini"
	"github.com/echoeval/echoeval/providers/openai"
)

// localURL is where a server that speaks OpenAI's API is looked for when nothing says where it is.
const localURL = "http://localhost:11434/v1"

// Table returns the providers by name. openai_compatible is another name of compat.
func Table() map[string]llm.Constructor {
	server := func(c llm.Config, rt http.RoundTripper) (llm.Model, error) {
		return compat.New(compat.Config{BaseURL: cmp.Or(c.BaseURL, localURL), Model: c.Model}, keyed(c, transport.Bearer, rt))
	}
	return map[string]llm.Constructor{
		anthropic.Name: func(c llm.Config, rt http.RoundTripper) (llm.Model, error) {
			return anthropic.New(anthropic.Config{BaseURL: c.BaseURL, Model: c.Model}, keyed(c, transport.Scheme{Header: "X-Api-Key"}, rt))
		},
		bedrock.Name: func(c llm.Config, rt http.RoundTripper) (llm.Model, error) {
			return bedrock.New(bedrock.Config{BaseURL: c.BaseURL, Region: c.Region, Model: c.Model}, keyed(c, transport.Bearer, rt))
		},
		compat.Name: server,
		gemini.Name: func(c llm.Config, rt http.RoundTripper) (llm.Model, error) {
			return gemini.New(gemini.Config{BaseURL: c.BaseURL, Model: c.Model}, keyed(c, transport.Scheme{Header: gemini.KeyHeader}, rt))
		},
		openai.Name: func(c llm.Config, rt http.RoundTripper) (llm.Model, error) {
			return openai.New(openai.Config{BaseURL: c.BaseURL, Model: c.Model}, keyed(c, transport.Bearer, rt))
		},
		"openai_compatible": server,
	}
}

// Get is [llm.Get] with this package's table. A key of the configuration is put into each request above rt; without one rt must add it.
func Get(c llm.Config, rt http.RoundTripper) (llm.Model, error) {
	return llm.Get(Table(), c, rt)
}

func keyed(c llm.Config, scheme transport.Scheme, rt http.RoundTripper) http.RoundTripper {
	if c.APIKey.IsZero() || rt == nil {
		return rt
	}
	return transport.Auth(scheme, func(context.Context) (transport.Secret, error) { return c.APIKey, nil }, rt)
}
