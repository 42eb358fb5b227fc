package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// Persona says who the agent is. All fields may be empty.
type Persona struct {
	Role      string `yaml:"role"`
	Goal      string `yaml:"goal"`
	Backstory string `yaml:"backstory"`
}

// Task says what the agent does. Description is required.
type Task struct {
	Description    string `yaml:"description,required"`
	ExpectedOutput string `yaml:"expected_output"`
}

// Config describes an agent, as an agent file does.
type Config struct {
	Name    string  `yaml:"name"`
	Persona Persona `yaml:"persona"`
	Task    Task    `yaml:"task,required"`
	// Tools are the names of the tools that the agent has. Nil means all of [Options.Tools] to a program that builds an agent; an agent file that lists none has none.
	Tools []string `yaml:"tools"`
	// BaseToolNames are the tools that the model sees; nil means all, an empty list none.
	BaseToolNames *[]string `yaml:"base_tool_names"`
	// MaxIterations bounds the model steps of a run; 0 means the default of [llm.Loop].
	MaxIterations int `yaml:"max_iterations"`
}

// laterKeys are keys of the agent file that this version does not read yet.
var laterKeys = []string{"skills", "skill_activation", "active_skills", "mcp", "postgres"}

// Decode reads a configuration strictly; what is wrong with it is added to problems.
func Decode(n strict.Node, problems *strict.Problems) Config {
	var c Config
	strict.Decode(n, &c, problems)
	if c.MaxIterations < 0 {
		problems.Key("max_iterations").Add(n.Get("max_iterations").Pos(), "", "want a number of model steps, from 1")
	}
	return c
}

// Load reads an agent file.
func Load(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, failure.WithHint(failure.New(failure.Input, "agent file %s cannot be read", filepath.Base(path)), "check the path that names it")
	}
	n, err := strict.Parse(path, data)
	if err != nil {
		return Config{}, err
	}
	var problems strict.Problems
	c := Decode(n, &problems)
	return c, problems.Err()
}

// UnknownKey tells keys of later versions from misspelt ones; see [strict.UnknownKey].
func (c *Config) UnknownKey(name string) (message, hint string) {
	if slices.Contains(laterKeys, name) {
		return fmt.Sprintf("key %q is not read by this version", name), "remove it, or use a version that reads it"
	}
	return "", ""
}
