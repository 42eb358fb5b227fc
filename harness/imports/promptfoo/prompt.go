package promptfoo

import (
	"encoding/csv"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/imports"
)

// prompt is one prompt: what the system says, what was said before, and what the user says now.
type prompt struct {
	name   string // of its columns
	labels []string
	system template
	before []message // the conversation so far
	input  []part    // what the user says then; empty only where there is a problem
	// problem says why it cannot be asked as it is; "" for nothing.
	problem string
	pos     failure.Position
}

// message is a message of the conversation so far.
type message struct {
	role string // user or assistant
	text template
}

// part is a piece of an input.
type part struct {
	kind string // text or image
	text template
}

// key tells inputs that are the same.
func (p prompt) key() string {
	var b strings.Builder
	if p.problem != "" {
		fmt.Fprintf(&b, "problem %s\x00", p.problem)
	}
	for _, m := range p.before {
		b.WriteString(m.role + "\x00" + m.text.ours() + "\x00")
	}
	for _, part := range p.input {
		b.WriteString(part.kind + "\x00" + part.text.ours() + "\x00")
	}
	return b.String()
}

// names are the variables that the prompt uses.
func (p prompt) names() []string {
	names := p.system.names()
	for _, m := range p.before {
		names = append(names, m.text.names()...)
	}
	for _, part := range p.input {
		names = append(names, part.text.names()...)
	}
	return names
}

func (im *importer) readPrompts(n strict.Node) {
	prompts := n.Get("prompts")
	switch prompts.Kind() {
	case strict.Missing:
		// promptfoo then asks what the variable prompt holds.
		im.addPrompt(textPrompt("{{prompt}}", n.Pos()), "", "")
	case strict.Sequence:
		for _, entry := range prompts.Items() {
			im.prompt(entry)
		}
	case strict.Mapping:
		for key, v := range prompts.Fields() {
			im.promptText(key.Name, key.Pos(), v.Text(), strict.Node{})
		}
	default:
		im.prompt(prompts)
	}
	if len(im.prompts) == 0 {
		im.note(imports.Wrong, prompts.Pos(), "", "no prompts")
		im.addPrompt(prompt{problem: "the configuration has no prompt that can be read", pos: prompts.Pos()}, "", "")
	}
	// Names of columns tell the prompts apart.
	var names imports.Names
	for i := range im.prompts {
		p := &im.prompts[i]
		if p.name == "" {
			p.name = fmt.Sprintf("prompt-%d", i+1)
		}
		p.name = names.Unique(p.name)
	}
}

func (im *importer) prompt(n strict.Node) {
	switch n.Kind() {
	case strict.String:
		im.promptText(n.Text(), n.Pos(), "", n)
	case strict.Mapping:
		im.unknown(n, promptKeys, "a prompt")
		if c := n.Get("config"); !c.IsZero() {
			im.note(imports.Lost, n.KeyPos("config"), "settings of a model stand with its provider", "config of a prompt")
		}
		if f := n.Get("function"); !f.IsZero() {
			im.note(imports.Lost, f.Pos(), "it is code", "a function as a prompt")
		}
		label := n.Get("label").Text()
		switch {
		case n.Get("raw").Kind() == strict.String:
			im.promptText(n.Get("raw").Text(), n.Get("raw").Pos(), label, n.Get("raw"))
		case n.Get("id").Kind() == strict.String:
			im.promptText(n.Get("id").Text(), n.Get("id").Pos(), label, n.Get("id"))
		default:
			im.note(imports.Wrong, n.Pos(), "", "a prompt without id and raw")
		}
	default:
		im.note(imports.Wrong, n.Pos(), "", "a prompt that is %s", n.Kind())
	}
}

// promptFiles are the endings by which promptfoo takes a text for the name of a file.
var promptFiles = slices.Concat([]string{".txt", ".md", ".j2", ".json", ".jsonl", ".yaml", ".yml", ".csv"}, codeFiles)

// service tells a prompt that is kept elsewhere, such as langfuse://name:3.
var service = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://[^\s{}]+$`)

// promptText reads a prompt that is written out or names a file.
func (im *importer) promptText(text string, at failure.Position, label string, n strict.Node) {
	name, isFile := im.ref(text)
	if base, _, _ := strings.Cut(text, ":"); !isFile && !strings.ContainsAny(text, " \n{") && hasSuffix(base, promptFiles) {
		name, isFile = im.relative(text), true
	}
	switch {
	case strings.HasPrefix(text, "exec:") || isFile && code(name):
		im.note(imports.Lost, at, "write the prompt out: {{name}} stands for a variable", "a prompt that code makes")
		im.addPrompt(prompt{problem: "its prompt is made by code, " + text, pos: at}, label, text)
		return
	case !isFile && service.MatchString(text):
		im.note(imports.Lost, at, "write the prompt out", "a prompt that a service keeps")
		im.addPrompt(prompt{problem: "its prompt is kept by a service, " + text, pos: at}, label, text)
		return
	case !isFile:
		p := im.promptOf(text, at, n)
		im.addPrompt(p, label, "")
		return
	}
	files, err := im.Folder.Glob(name)
	if err != nil {
		im.unreadable(at, err)
		im.addPrompt(prompt{problem: "its prompt cannot be read: " + err.Error(), pos: at}, label, name)
		return
	}
	for _, file := range files {
		im.promptFile(file, at, label)
	}
}

func (im *importer) promptFile(name string, at failure.Position, label string) {
	data, err := im.Folder.Read(name)
	if err != nil {
		im.unreadable(at, err)
		im.addPrompt(prompt{problem: "its prompt cannot be read: " + err.Error(), pos: at}, label, name)
		return
	}
	text := strings.ReplaceAll(strings.TrimPrefix(strings.ToValidUTF8(string(data), "\ufffd"), "\ufeff"), "\r\n", "\n")
	pos := failure.Position{File: im.shown(name), Line: 1, Column: 1}
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".csv":
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			im.note(imports.Wrong, pos, "", "%s", err)
			return
		}
		for i, row := range rows {
			if i == 0 && slices.Contains(row, "prompt") {
				continue
			}
			p := textPrompt(row[0], failure.Position{File: pos.File, Line: i + 1})
			rowLabel := label
			if len(row) > 1 && row[1] != "" {
				rowLabel = row[1]
			}
			im.addPrompt(p, rowLabel, name)
		}
	case ".json", ".yaml", ".yml":
		n, err := strict.Parse(pos.File, []byte(text))
		if n.Kind() != strict.Sequence {
			// Not chat: JSON that is only right once its variables are filled in, or a text.
			if isTemplate(text) && err != nil {
				im.addPrompt(prompt{problem: "its prompt is " + ext[1:] + " only once its variables are filled in", pos: pos}, label, name)
				im.note(imports.Lost, pos, "write {{name}} inside the texts of the messages", "a chat prompt that is no %s before its variables are filled in", ext[1:])
				return
			}
			im.addPrompt(textPrompt(text, pos), label, name)
			return
		}
		im.addPrompt(im.chat(n), label, name)
	case ".txt":
		pieces := splitPrompts(text)
		for i, piece := range pieces {
			p := im.promptOf(piece.text, failure.Position{File: pos.File, Line: piece.line, Column: 1}, strict.Node{})
			suffix := name
			if len(pieces) > 1 {
				suffix = fmt.Sprintf("%s-%d", strings.TrimSuffix(name, ext), i+1)
			}
			im.addPrompt(p, label, suffix)
		}
	default:
		im.addPrompt(im.promptOf(strings.TrimSpace(text), pos, strict.Node{}), label, name)
	}
}

type textPiece struct {
	text string
	line int
}

// splitPrompts parts a text file at lines of three hyphens.
func splitPrompts(text string) []textPiece {
	var pieces []textPiece
	current, start, line := "", 1, 0
	flush := func() {
		if t := strings.TrimSpace(current); t != "" {
			pieces = append(pieces, textPiece{t, start})
		}
		current = ""
	}
	for l := range strings.Lines(text) {
		line++
		if strings.TrimSpace(l) == "---" {
			flush()
			start = line + 1
			continue
		}
		current += l
	}
	flush()
	return pieces
}

// promptOf reads a prompt's text: a chat in JSON, or what the user says.
func (im *importer) promptOf(text string, at failure.Position, n strict.Node) prompt {
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		if list, err := strict.ParseJSON(at.File, max(at.Line, 1), []byte(text)); err == nil && list.Kind() == strict.Sequence && list.Len() > 0 && !list.Index(0).Get("role").IsZero() {
			return im.chat(list)
		}
	}
	p := textPrompt(text, at)
	if !n.IsZero() && p.input[0].text.problem != "" {
		p.pos = n.Locate(text[p.input[0].text.at:min(len(text), p.input[0].text.at+12)], 0)
	}
	im.templateProblem(&p)
	return p
}

func textPrompt(text string, at failure.Position) prompt {
	return prompt{input: []part{{"text", parseTemplate(text)}}, pos: at}
}

// templateProblem notes what a prompt's template holds that a dataset's cannot.
func (im *importer) templateProblem(p *prompt) {
	if p.problem != "" {
		return
	}
	templates := []template{p.system}
	for _, m := range p.before {
		templates = append(templates, m.text)
	}
	for _, part := range p.input {
		templates = append(templates, part.text)
	}
	for _, t := range templates {
		if t.problem != "" {
			im.note(imports.Lost, p.pos, "a dataset's template is {{name}} and nothing else: compute the value into a variable", "a prompt with %s", t.problem)
			p.problem = fmt.Sprintf("its prompt has %s, which a template of a dataset cannot do", t.problem)
			return
		}
	}
}

// chat reads a list of messages with roles: the system's text, the conversation so far, and what the user says last.
func (im *importer) chat(n strict.Node) prompt {
	p := prompt{pos: n.Pos()}
	var system []string
	lose := func(at failure.Position, problem, text string) {
		if p.problem == "" {
			p.problem = problem
		}
		im.note(imports.Lost, at, "", "%s", text)
	}
	last := n.Len() - 1
	for i, m := range n.Items() {
		role, content := m.Get("role").Text(), m.Get("content")
		switch {
		case (role == "system" || role == "developer") && len(p.before) == 0 && i < last && content.Kind() == strict.String:
			system = append(system, content.Text())
		case role == "user" && i == last:
			p.input = im.parts(content, &p)
		case (role == "user" || role == "assistant") && i < last && content.Kind() == strict.String && content.Text() != "":
			p.before = append(p.before, message{role, parseTemplate(content.Text())})
		case i == last:
			lose(m.Pos(), "its prompt does not end with a message of the user", "a prompt that does not end with a message of the user")
		default:
			lose(m.Pos(), fmt.Sprintf("its prompt has a message of role %q that is no text", role), fmt.Sprintf("a message of role %q in a prompt", role))
		}
	}
	p.system = parseTemplate(strings.Join(system, "\n\n"))
	if len(p.input) == 0 && p.problem == "" {
		p.problem = "its prompt has no message of the user"
	}
	im.templateProblem(&p)
	return p
}

func (im *importer) parts(n strict.Node, p *prompt) []part {
	if n.Kind() != strict.Sequence {
		return []part{{"text", parseTemplate(shown(n))}}
	}
	var parts []part
	for _, entry := range n.Items() {
		switch kind := entry.Get("type").Text(); kind {
		case "text", "input_text":
			parts = append(parts, part{"text", parseTemplate(entry.Get("text").Text())})
			continue
		case "image_url":
			url := entry.Get("image_url")
			if url.Kind() == strict.Mapping {
				url = url.Get("url")
			}
			t := parseTemplate(url.Text())
			if !strings.HasPrefix(url.Text(), "data:") && url.Kind() == strict.String {
				parts = append(parts, part{"image", t})
				continue
			}
			p.problem = "its prompt has an image in base64"
			im.note(imports.Lost, entry.Pos(), "save the image as a file and write {image: path}", "an image in base64")
		default:
			p.problem = fmt.Sprintf("its prompt has a part of type %q", kind)
			im.note(imports.Lost, entry.Pos(), "", "a part of type %q in a prompt", kind)
		}
	}
	return parts
}

// addPrompt adds a prompt under the name that its label or its file gives it.
func (im *importer) addPrompt(p prompt, label, file string) {
	p.name = asciiSlug(label)
	if p.name == "" && file != "" {
		base := path.Base(strings.TrimPrefix(file, "file://"))
		p.name = asciiSlug(strings.TrimSuffix(base, path.Ext(base)))
	}
	for _, l := range []string{label, file, p.name} {
		if l != "" {
			p.labels = append(p.labels, l)
		}
	}
	im.prompts = append(im.prompts, p)
}

// asciiSlug makes a name of letters, digits and hyphens that may be part of a provider's id.
func asciiSlug(text string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r < 128 {
			return r
		}
		return -1
	}, imports.Slug(text, 40)), "-")
}
