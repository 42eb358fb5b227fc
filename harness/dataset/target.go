package dataset

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
)

// TargetProvider is the id of the one column of a dataset that has a target and names no providers.
const TargetProvider = "target"

// MaxTargetFiles bounds how many files a target may name: the hash of each stands in every cassette.
const MaxTargetFiles = 1000

// Target is a program under test, in the place of an agent.
type Target struct {
	// Node is the target as it is written.
	Node strict.Node
	// Command is the program and its arguments; it is never empty.
	Command []string
	// Lines says that a process stays and is asked a line a turn; else there is a process for each turn.
	Lines bool
	// Dir is the folder that the program starts in, relative to the root, with slashes.
	Dir string
	// Env are variables with their values, EnvFrom the names of those that are passed on.
	Env     map[string]string
	EnvFrom []string
	// Proxy are the addresses of services that are recorded beside models, by the variable that the program reads.
	Proxy map[string]string
	// Files are the program's own, relative to the root, with slashes, sorted. A change of one makes recordings stale.
	Files []string
	// WithoutModel says that an item may be answered without any request to a model.
	WithoutModel bool
	Pos          failure.Position
}

type targetKeys struct {
	Command    strict.Node       `yaml:"command" schema:"words" doc:"the program and its arguments"`
	Workers    *string           `yaml:"workers" values:"lines,once" doc:"lines: a process that answers a line for each turn; once, unless given: a process for each turn"`
	Cwd        strict.Node       `yaml:"cwd" schema:"text" doc:"the folder that it starts in, unless given that of this file"`
	Env        map[string]string `yaml:"env" doc:"variables and their values"`
	EnvFrom    []string          `yaml:"env_from" doc:"names of variables that are passed on; in replay their value is the word replay"`
	Proxy      map[string]string `yaml:"proxy" doc:"other services to record: a variable that the program reads, and the address in its place"`
	Files      strict.Node       `yaml:"files" schema:"use" doc:"paths and globs of the program's own files, ** for any folders: a change makes recordings stale"`
	ModelCalls *string           `yaml:"model_calls" values:"required,optional" doc:"optional: an item may be answered without a request to a model"`
}

// UnknownKey implements [strict.UnknownKey].
func (*targetKeys) UnknownKey(name string) (message, hint string) {
	if slices.Contains(laterTargetKeys, name) {
		return "key \"" + name + "\" is not read by this version", "start the program as a command: target: {command: [python, -m, evals.adapter]}"
	}
	return "", ""
}

// laterTargetKeys are keys of the format that this version does not read.
var laterTargetKeys = []string{"http", "listen"}

// target reads the program of a dataset or of a provider; nil where there is none or it is wrong.
func (d *Dataset) target(n strict.Node, p *strict.Problems) *Target {
	if n.IsZero() {
		return nil
	}
	if n.Kind() != strict.Mapping {
		p.WrongType(n, "a mapping such as {command: [python, -m, evals.adapter]}")
		return nil
	}
	found := p.Len()
	t := &Target{Node: n, Dir: path.Dir(n.Pos().File), Pos: n.Pos()}
	var keys targetKeys
	strict.Decode(n, &keys, p)
	t.Lines = keys.Workers != nil && *keys.Workers == "lines"
	t.WithoutModel = keys.ModelCalls != nil && *keys.ModelCalls == "optional"
	t.Env, t.EnvFrom, t.Proxy = keys.Env, keys.EnvFrom, keys.Proxy
	t.command(n, keys.Command, p)
	if !keys.Cwd.IsZero() {
		t.Dir = d.targetFolder(keys.Cwd, p.Key("cwd"))
	}
	d.variables(n, p)
	t.Files = d.targetFiles(keys.Files, p.Key("files"))
	if p.Len() != found {
		return nil
	}
	return t
}

func (t *Target) command(n, command strict.Node, p *strict.Problems) {
	const example = "command: [python, -m, evals.adapter]"
	switch {
	case command.IsZero():
		if !slices.ContainsFunc(laterTargetKeys, func(key string) bool { return !n.Get(key).IsZero() }) {
			p.Add(n.Pos(), "add it: "+example, "key \"command\" is missing")
		}
	case command.Kind() != strict.Sequence || command.Len() == 0:
		p.Key("command").Add(command.Pos(), "write "+example, "want a list that is not empty: the program and its arguments")
	default:
		strict.Decode(command, &t.Command, p.Key("command"))
		if len(t.Command) > 0 && t.Command[0] == "" {
			p.Key("command").At(0).Add(command.Index(0).Pos(), "write "+example, "the program has no name")
		}
	}
}

// targetFolder is the folder of cwd, relative to the root.
func (d *Dataset) targetFolder(n strict.Node, p *strict.Problems) string {
	if n.Kind() != strict.String {
		p.WrongType(n, "a string, the path of a folder")
		return ""
	}
	dir, ok := d.resolveInside(n, p)
	if !ok {
		return ""
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		p.Add(n.Pos(), "the path is relative to the file that names it", "there is no folder %s", d.show(dir))
	}
	return d.show(dir)
}

// variables looks at the names and values of env, env_from and proxy.
func (d *Dataset) variables(n strict.Node, p *strict.Problems) {
	taken := map[string]string{} // by name: the key that sets it
	see := func(key string, at *strict.Problems, pos failure.Position, name string) {
		switch {
		case !variableName(name):
			at.Add(pos, "letters, digits and underscores, such as CRM_URL", "%q is no name of an environment variable", name)
		case slices.Contains(d.options.TargetVariables, name) && key != "proxy":
			at.Add(pos, "another address of a vendor stands under proxy, or as base_url of a provider", "the recorder sets %s itself", name)
		case taken[name] != "":
			at.Add(pos, "leave one of them out", "%s is set by %s already", name, taken[name])
		default:
			taken[name] = key
		}
	}
	for key := range n.Get("env").Fields() {
		see("env", p.Key("env"), key.Pos(), key.Name)
	}
	for i, name := range n.Get("env_from").Items() {
		if name.Kind() == strict.String {
			see("env_from", p.Key("env_from").At(i), name.Pos(), name.Text())
		}
	}
	for key, address := range n.Get("proxy").Fields() {
		at := p.Key("proxy")
		see("proxy", at, key.Pos(), key.Name)
		if address.Kind() != strict.String {
			continue
		}
		u, err := url.Parse(address.Text())
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			at.Key(key.Name).Add(address.Pos(), "write it whole: https://crm.example.com", "want an http or https address")
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			at.Key(key.Name).Add(address.Pos(), "the program adds these itself", "the address of a service has no credentials, no query and no fragment")
		}
	}
}

func variableName(name string) bool {
	return name != "" && (name[0] < '0' || name[0] > '9') && onlyBytes(name, "_")
}

// targetFiles are the files that paths and globs name, relative to the root, sorted, each once.
func (d *Dataset) targetFiles(n strict.Node, p *strict.Problems) []string {
	if n.IsZero() {
		return nil
	}
	if n.Kind() != strict.Sequence {
		p.WrongType(n, "a list of strings, paths and globs of files")
		return nil
	}
	var files []string
	for i, entry := range n.Items() {
		at := p.At(i)
		if entry.Kind() != strict.String {
			at.WrongType(entry, "a string")
			continue
		}
		files = append(files, d.targetGlob(entry, at)...)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	if len(files) > MaxTargetFiles {
		p.Add(n.Pos(), "name what makes the program answer as it does: its prompts and its code, not what it installs", "these are %d files, and at most %d may be named", len(files), MaxTargetFiles)
		return nil
	}
	return files
}

func (d *Dataset) targetGlob(n strict.Node, p *strict.Problems) []string {
	file, ok := d.resolve(n, p)
	if !ok {
		return nil
	}
	fixed, pattern := file, ""
	if isGlob(n.Text()) {
		// The longest beginning without a wildcard is a folder, and no pattern, whatever the project's own folder is called.
		parts := strings.Split(n.Text(), "/")
		at := slices.IndexFunc(parts, isGlob)
		fixed = filepath.Join(d.folderOf(n), filepath.FromSlash(strings.Join(parts[:at], "/")))
		pattern = strings.Join(parts[at:], "/")
	}
	if !inside(d.Root, fixed) {
		p.Add(n.Pos(), "move it under the folder that holds echoeval.yaml or .git", "%s leaves the project's folder", n.Text())
		return nil
	}
	if pattern == "" {
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			p.Add(n.Pos(), "the path is relative to the file that names it", "there is no file %s", d.show(file))
			return nil
		}
		return []string{d.show(file)}
	}
	files, err := matchTree(fixed, pattern)
	switch {
	case errors.Is(err, path.ErrBadPattern):
		p.Add(n.Pos(), "* and ? stand for characters of one name, ** for any folders", "%q is no pattern", n.Text())
	case err != nil:
		p.Add(n.Pos(), "", "%s cannot be searched: %s", d.show(fixed), failure.Reason(err))
	case len(files) == 0:
		p.Add(n.Pos(), "the pattern is relative to the file that names it", "no file matches %s", n.Text())
	}
	for i := range files {
		files[i] = d.show(filepath.Join(fixed, filepath.FromSlash(files[i])))
	}
	return files
}

// matchTree returns the regular files below a folder that a pattern matches, with slashes. ** stands for any number of folders; hidden names are matched by no wildcard.
func matchTree(dir, pattern string) ([]string, error) {
	parts := strings.Split(path.Clean(pattern), "/")
	for _, part := range parts {
		if _, err := path.Match(part, ""); err != nil {
			return nil, err
		}
	}
	var files []string
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) && file == dir {
				return fs.SkipAll
			}
			return err
		}
		if file == dir {
			return nil
		}
		if strings.HasPrefix(entry.Name(), ".") {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil || entry.IsDir() {
			return err
		}
		rel = filepath.ToSlash(rel)
		if !matchParts(parts, strings.Split(rel, "/")) {
			return nil
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			files = append(files, rel)
		}
		return nil
	})
	return files, err
}

func matchParts(pattern, names []string) bool {
	if len(pattern) == 0 {
		return len(names) == 0
	}
	if pattern[0] == "**" {
		return matchParts(pattern[1:], names) || len(names) > 0 && matchParts(pattern, names[1:])
	}
	if len(names) == 0 {
		return false
	}
	ok, _ := path.Match(pattern[0], names[0])
	return ok && matchParts(pattern[1:], names[1:])
}

// TargetOf is the program that runs on a provider, nil where an agent does.
func (d *Dataset) TargetOf(v Provider) *Target {
	switch {
	case v.Target != nil:
		return v.Target
	case !v.Agent.Node.IsZero():
		return nil
	}
	return d.Target
}
