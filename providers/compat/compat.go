// Package compat gives models of servers that speak OpenAI's chat completions: local ones such as Ollama, vLLM and llama.cpp, and hosted ones. It is the protocol of package openai with an address that must be named, and with other defaults:
// the output limit is sent as max_tokens, reasoning_effort is left out, and so are documents. What a server does differently from that is data, in [openai.Quirks]; nothing depends on a server's or a model's name.
package compat

import (
	"net/http"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/providers/openai"
)

// Name is the vendor's name.
const Name = "compat"

// Config says which model of which server to talk to.
type Config struct {
	// Vendor names the server in errors; [Name] by default.
	Vendor string
	// BaseURL is what /chat/completions is appended to, such as http://127.0.0.1:11434/v1. It must be given.
	BaseURL string
	// Model is the model's name as the server knows it.
	Model string
	// API says which of OpenAI's two ways the server speaks; chat completions by default.
	API openai.API
	// Placeholder is sent as the credential, for the transport to replace or to take away; "placeholder" by default.
	Placeholder string
	// Clock dates a Retry-After; the machine's clock by default.
	Clock clock.Clock
	// Quirks are the server's differences; [Quirks] by default.
	Quirks *openai.Quirks
}

// Quirks returns what is assumed of a server that nothing is known of.
func Quirks() openai.Quirks {
	return openai.Quirks{Rules: []openai.Rule{{MaxTokens: "max_tokens"}}, NoDocuments: true, NoPromptCacheKey: true}
}

// New returns a model that sends its requests through rt. No key is needed: where the server wants one, rt adds it.
func New(config Config, rt http.RoundTripper) (llm.Model, error) {
	under, err := config.underneath()
	if err != nil {
		return nil, err
	}
	return openai.New(under, rt)
}

// underneath is the configuration of the protocol's package.
func (config Config) underneath() (openai.Config, error) {
	if config.Vendor == "" {
		config.Vendor = Name
	}
	if config.BaseURL == "" {
		return openai.Config{}, failure.WithHint(failure.New(failure.Input, "%s: no base_url is given", config.Vendor), "add the server's address, as in base_url: http://127.0.0.1:11434/v1")
	}
	if config.Quirks == nil {
		quirks := Quirks()
		config.Quirks = &quirks
	}
	return openai.Config{Vendor: config.Vendor, BaseURL: config.BaseURL, Model: config.Model, API: config.API, Placeholder: config.Placeholder, Clock: config.Clock, Quirks: config.Quirks}, nil
}
