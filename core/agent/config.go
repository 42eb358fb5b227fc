package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/core/tool"
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
	Name    string
	Persona Persona
	Task    Task
	// Tools are the names of the tools that the agent has, those of CommandTools included. Nil means all of [Options.Tools] to a program that builds an agent; an agent file that lists none has none.
	Tools []string
	// CommandTools are the tools that the agent file itself describes, in its order.
	CommandTools []CommandTool
	// BaseToolNames are the tools that the model sees; nil means all, an empty list none.
	BaseToolNames *[]string
	// MaxIterations bounds the model steps of a run; 0 means the default of [llm.Loop].
	MaxIterations int
}

// CommandTool is a tool that an agent file describes: a program of the user, or, without a command, one that the dataset mocks.
type CommandTool struct {
	Name        string
	Description string
	// Parameters is the JSON Schema of the arguments, an object; {"type":"object"} where none is given.
	Parameters strict.Node
	// Effect is "pure", "read", "write" or "irreversible"; "write" where none is given, since nothing is known of the program.
	Effect tool.Effect
	// Scope is "item": what the tool changes belongs to the item.
	Scope string
	// Command is the program and its arguments; nil where the tool has none and must be mocked. It starts in the folder of the file that names it, Pos.File.
	Command []string
	Pos     failure.Position
}

// configKeys are the keys of an agent file.
type configKeys struct {
	Version       *int       `yaml:"version" schema:"version"`
	Name          string     `yaml:"name"`
	Persona       Persona    `yaml:"persona"`
	Task          Task       `yaml:"task,required"`
	Tools         []toolKeys `yaml:"tools"`
	BaseToolNames *[]string  `yaml:"base_tool_names"`
	MaxIterations int        `yaml:"max_iterations" schema:"count"`
}

// toolKeys are one entry of tools: a name, or a description.
type toolKeys struct {
	name string
	own  *commandToolKeys
	pos  failure.Position
}

type commandToolKeys struct {
	Name        string      `yaml:"name,required" schema:"filled"`
	Description string      `yaml:"description,required"`
	Parameters  strict.Node `yaml:"parameters" schema:"values" doc:"the JSON Schema of the arguments"`
	Effect      *string     `yaml:"effect" values:"pure,read,write,irreversible" doc:"what it does to the world, write unless given"`
	Scope       *string     `yaml:"scope" values:"item,run" doc:"item; run is not in this version"`
	Command     []string    `yaml:"command" schema:"command"`
}

// DecodeStrict implements [strict.Decoder].
func (k *toolKeys) DecodeStrict(n strict.Node, p *strict.Problems) {
	k.pos = n.Pos()
	switch n.Kind() {
	case strict.String:
		k.name = n.Text()
	case strict.Mapping:
		k.own = &commandToolKeys{}
		strict.Decode(n, k.own, p)
		k.name = k.own.Name
		k.own.check(n, p)
	default:
		p.WrongType(n, "a string with the name of a tool, or {name: ..., description: ..., command: [...]}")
	}
}

func (k *commandToolKeys) check(n strict.Node, p *strict.Problems) {
	if v := n.Get("name"); v.Kind() == strict.String && k.Name == "" {
		p.Key("name").Add(v.Pos(), "", "a name is empty")
	}
	if v := k.Parameters; !v.IsZero() && v.Kind() != strict.Mapping {
		p.Key("parameters").WrongType(v, "a mapping with the JSON Schema of the arguments")
	} else if t := v.Get("type"); !t.IsZero() && t.Text() != "object" {
		p.Key("parameters").Key("type").Add(t.Pos(), "write type: object", "the arguments of a tool are an object")
	}
	if v := n.Get("scope"); v.Text() == "run" {
		p.Key("scope").Add(v.Pos(), "leave it out: each call starts the program", "a process that lives as long as the run is not in this version")
	}
	if v := n.Get("command"); v.Kind() == strict.Sequence && (v.Len() == 0 || len(k.Command) > 0 && k.Command[0] == "") {
		p.Key("command").Add(v.Pos(), "write the program first: [./weather]", "the command is empty")
	}
}

// tool returns the tool that the keys describe.
func (k *commandToolKeys) tool(pos failure.Position) CommandTool {
	t := CommandTool{Name: k.Name, Description: k.Description, Parameters: k.Parameters, Effect: tool.Write, Scope: "item", Command: k.Command, Pos: pos}
	if k.Effect != nil {
		t.Effect = tool.Effect(*k.Effect)
	}
	if k.Scope != nil {
		t.Scope = *k.Scope
	}
	if t.Parameters.IsZero() {
		t.Parameters = strict.NewString("object").NewMapping([]strict.Field{{Key: strict.Key{Name: "type"}, Value: strict.NewString("object")}})
	}
	return t
}

// laterKeys are keys of the agent file that this version does not read yet.
var laterKeys = []string{"skills", "skill_activation", "active_skills", "mcp", "postgres"}

// Decode reads a configuration strictly; what is wrong with it is added to problems.
func Decode(n strict.Node, problems *strict.Problems) Config {
	var k configKeys
	strict.Decode(n, &k, problems)
	c := Config{Name: k.Name, Persona: k.Persona, Task: k.Task, BaseToolNames: k.BaseToolNames, MaxIterations: k.MaxIterations}
	if k.Version != nil && *k.Version != 1 {
		problems.Key("version").Add(n.Get("version").Pos(), "write version: 1", "this version of the program reads version 1")
	}
	if c.MaxIterations < 0 {
		problems.Key("max_iterations").Add(n.Get("max_iterations").Pos(), "", "want a number of model steps, from 1")
	}
	if k.Tools != nil {
		c.Tools = make([]string, 0, len(k.Tools))
	}
	first := map[string]failure.Position{}
	for i, t := range k.Tools {
		if at, twice := first[t.name]; twice && t.name != "" {
			problems.Key("tools").At(i).Add(t.pos, "remove one of the two", "tool %q stands here a second time, first at %s", t.name, at)
			continue
		}
		first[t.name] = t.pos
		c.Tools = append(c.Tools, t.name)
		if t.own != nil {
			c.CommandTools = append(c.CommandTools, t.own.tool(t.pos))
		}
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
func (*configKeys) UnknownKey(name string) (message, hint string) {
	if slices.Contains(laterKeys, name) {
		return fmt.Sprintf("key %q is not read by this version", name), "remove it, or use a version that reads it"
	}
	return "", ""
}
