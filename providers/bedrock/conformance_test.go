package bedrock_test

import (
	"net/http"

	"github.com/echoeval/echoeval/core/llm"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/providers/bedrock"
	"github.com/echoeval/echoeval/providers/providertest"
)

const claude = "us.anthropic.claude-haiku-4-5-20251001-v1:0"

var _ = providertest.Run(providertest.Suite{
	Name: "bedrock",
	New: func(url string, rt http.RoundTripper) (llm.Model, error) {
		return bedrock.New(bedrock.Config{BaseURL: url, Model: claude}, rt)
	},
	Serve:        func(s emulator.Script) (http.Handler, error) { return emulator.New(s, emulator.Options{}) },
	Asked:        providertest.ConverseAsked,
	BrokenStream: providertest.ConverseBrokenStream,
	ContentType:  "application/vnd.amazon.eventstream",
	Frames:       providertest.ConverseFrames,
	UnknownBlock: providertest.ConverseUnknownBlock,
	Stretch:      providertest.ConverseStretch,
})

func ptr[T any](v T) *T { return &v }
