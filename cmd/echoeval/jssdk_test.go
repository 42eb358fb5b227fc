//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/echoeval/echoeval/ci/suite"
)

// clientTurn is what a vendor's JavaScript client made of one reply.
type clientTurn struct {
	Text  string `json:"text"`
	Calls []struct {
		Name string         `json:"name"`
		Args map[string]any `json:"args"`
	} `json:"calls"`
	Stop  string         `json:"stop"`
	Usage map[string]int `json:"usage"`
}

var _ = Describe("the vendors' JavaScript clients", func() {
	It("hold the same conversation with the emulator, streamed and blocking, with the same calls, usage and stop reasons", func() {
		folder := filepath.Join(suite.Root(), "ci", "jssdk")
		if _, err := exec.LookPath("node"); err != nil {
			Skip("no JavaScript clients: node is not installed")
		}
		for _, client := range []string{"openai", "@anthropic-ai/sdk", "@google/genai"} {
			if _, err := os.Stat(filepath.Join(folder, "node_modules", filepath.FromSlash(client), "package.json")); err != nil {
				Skip("no JavaScript clients: run npm ci in ci/jssdk to install " + client)
			}
		}
		p := emptyProject()
		e := p.emulate(filepath.Join(folder, "script.yaml"))
		o := p.await(p.start(p.program("node", filepath.Join(folder, "check.mjs"), "http://"+e.address)))
		Expect(o.code).To(Equal(0), "%s", o)
		var told []struct {
			Client   string
			Streamed bool
			Turns    []clientTurn
			Status   json.RawMessage // of a request that the vendor refuses; a text where no error came
			Error    string
		}
		Expect(json.Unmarshal([]byte(o.stdout), &told)).To(Succeed(), "%s", o)

		var want []clientTurn
		Expect(json.Unmarshal([]byte(`[
			{"text": "Looking “twice” 漢字 🧪.", "calls": [{"name": "read_file", "args": {"path": "stöck 🧪.csv", "lines": [1, 2]}}, {"name": "read_file", "args": {"path": "quotes \" and \\"}}],
				"stop": "tool_calls", "usage": {"input": 120, "cached": 100, "output": 34}},
			{"text": "", "calls": [{"name": "read_file", "args": {"path": "last.csv"}}], "stop": "tool_calls", "usage": {"input": 200, "cached": 0, "output": 9}},
			{"text": "It is in the contents of last.csv.", "calls": [], "stop": "length", "usage": {"input": 300, "cached": 0, "output": 12}}
		]`), &want)).To(Succeed())
		ways := map[string]int{}
		for _, t := range told {
			ways[t.Client]++
			Expect(t.Error).To(BeEmpty(), "%s, streamed %v", t.Client, t.Streamed)
			Expect(t.Turns).To(Equal(want), "%s, streamed %v", t.Client, t.Streamed)
			Expect(string(t.Status)).To(Equal("429"), "%s, streamed %v", t.Client, t.Streamed)
		}
		Expect(ways).To(Equal(map[string]int{"openai chat": 2, "openai responses": 2, "anthropic": 2, "gemini": 2}))
	})
})
