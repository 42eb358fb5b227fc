package promptfoo

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/imports"
)

// column is one provider of the configuration.
type column struct {
	source string   // as the configuration names it
	label  string   // its label
	only   []string // labels of the prompts that it is for; nil is all
	id     string
	bare   bool // vendor:model says it all
	vendor string
	model  string
	fields []imports.Field
	// problem says why it cannot run; "" where it can.
	problem string
	pos     failure.Position
}

func (im *importer) readProviders(n strict.Node) {
	switch n.Kind() {
	case strict.Missing:
		return
	case strict.Sequence:
		for _, entry := range n.Items() {
			im.provider(entry)
		}
	default:
		im.provider(n)
	}
}

// nameColumns gives each column an id of its own.
func (im *importer) nameColumns() {
	var ids imports.Names
	for i := range im.columns {
		c := &im.columns[i]
		if c.problem != "" {
			continue
		}
		if id := ids.Unique(c.id); id != c.id {
			if c.label == "" {
				im.note(imports.Changed, c.pos, "", "a provider that stands here twice gets an id of its own, %s", id)
			}
			c.id, c.bare = id, false
		}
	}
}

func (im *importer) provider(n strict.Node) {
	switch n.Kind() {
	case strict.String:
		im.providerText(n.Text(), n.Pos(), strict.Node{})
	case strict.Mapping:
		id := n.Get("id")
		if id.IsZero() && n.Len() == 1 {
			for key, options := range n.Fields() { // {openai:gpt-4o: {config: ...}}
				im.providerText(key.Name, key.Pos(), options)
			}
			return
		}
		im.unknown(n, providerKeys, "a provider")
		if id.Kind() != strict.String {
			im.note(imports.Wrong, n.Pos(), "", "a provider without an id")
			return
		}
		im.providerText(id.Text(), n.Pos(), n)
	default:
		im.note(imports.Wrong, n.Pos(), "", "a provider that is %s", n.Kind())
	}
}

func (im *importer) providerText(id string, at failure.Position, options strict.Node) {
	if name, ok := im.ref(id); ok && !code(name) && hasSuffix(name, []string{".yaml", ".yml", ".json"}) {
		if n, ok := im.parse(name, at); ok {
			im.inside(name, func() {
				if n.Kind() == strict.Sequence {
					for _, entry := range n.Items() {
						im.provider(entry)
					}
				} else {
					im.provider(n)
				}
			})
		}
		return
	}
	c := column{source: id, label: options.Get("label").Text(), pos: at}
	for _, name := range options.Get("prompts").Items() {
		c.only = append(c.only, name.Text())
	}
	im.target(&c)
	if c.problem == "" {
		im.settings(&c, options.Get("config"))
		for _, key := range []string{"transform", "delay", "env", "inputs"} {
			if v := options.Get(key); !v.IsZero() {
				im.note(imports.Lost, options.KeyPos(key), "", "%s of a provider", key)
			}
		}
	}
	if c.label != "" {
		if slug := idOf(c.label); slug != "" && slug != c.id {
			c.id, c.bare = slug, false
		}
	}
	if len(c.fields) > 0 {
		c.bare = false
	}
	im.columns = append(im.columns, c)
}

// target finds out who answers: a vendor of ours, one whose API copies OpenAI's, or nobody.
func (im *importer) target(c *column) {
	vendor, model, colon := strings.Cut(c.source, ":")
	lost := func(text, hint string) {
		c.problem = text
		im.note(imports.Lost, c.pos, hint, "%s", text)
	}
	switch {
	case strings.HasPrefix(c.source, "file://") || strings.HasPrefix(c.source, "exec:") || vendor == "python" || vendor == "javascript" || code(c.source):
		lost("a provider that is code", "an agent of your own is evaluated as a target")
		return
	case vendor == "http" || vendor == "https" || vendor == "websocket" || vendor == "ws" || vendor == "wss":
		lost("a provider behind an address of your own", "an agent of your own is evaluated as a target")
		return
	case !colon || model == "":
		lost(fmt.Sprintf("provider %q, which this version does not have", vendor), "")
		return
	}
	if mode, rest, ok := strings.Cut(model, ":"); ok {
		if slices.Contains(otherInterfaces, mode) {
			lost(fmt.Sprintf("provider %s:%s, which is no chat", vendor, mode), "")
			return
		}
		if slices.Contains(modes[vendor], mode) {
			model = rest
			if mode != "chat" && mode != "messages" {
				im.note(imports.Changed, c.pos, "", "%s:%s is asked by the vendor's chat interface", vendor, mode)
			}
		}
	}
	c.vendor, c.model = vendor, model
	other, ok := compatible[vendor]
	switch {
	case slices.Contains(im.Vendors, vendor):
		c.id = idOf(vendor + ":" + model)
		c.bare = c.id == vendor+":"+model
	case ok && slices.Contains(im.Vendors, "compat"):
		c.id = idOf(vendor + ":" + model)
		c.vendor = "compat"
		c.fields = append(c.fields, imports.Field{Key: "base_url", Value: imports.Text(other.base)})
		if other.keyEnv != "" {
			c.fields = append(c.fields, imports.Field{Key: "api_key_env", Value: imports.Text(other.keyEnv)})
		}
		im.note(imports.Changed, c.pos, "", "provider %q is asked at its address that copies OpenAI's API", vendor)
	default:
		lost(fmt.Sprintf("provider %q, which this version does not have", vendor), "a server that copies OpenAI's API: {provider: compat, model: ..., base_url: ...}")
	}
}

// idOf makes an id of letters, digits and . _ : / @ - that begins with a letter or a digit.
func idOf(text string) string {
	id := strings.Map(func(r rune) rune {
		switch {
		case r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:/@-", r)):
			return r
		case r == ' ' || r == '_':
			return '-'
		}
		return -1
	}, text)
	id = strings.Trim(id, "._:/@-")
	if len(id) > 100 {
		id = id[:100]
	}
	switch stem, _, _ := strings.Cut(strings.ToLower(strings.NewReplacer(":", "_", "/", "_").Replace(id)), "."); {
	case stem == "con" || stem == "prn" || stem == "aux" || stem == "nul" || len(stem) == 4 && (strings.HasPrefix(stem, "com") || strings.HasPrefix(stem, "lpt")):
		return "provider-" + id
	}
	return id
}

// settings takes over what a provider's config says of the model.
func (im *importer) settings(c *column, config strict.Node) {
	add := func(key string, v imports.Value) {
		if !slices.ContainsFunc(c.fields, func(f imports.Field) bool { return f.Key == key }) {
			c.fields = append(c.fields, imports.Field{Key: key, Value: v})
		}
	}
	for key, v := range config.Fields() {
		number := v.Kind() == strict.Int || v.Kind() == strict.Float
		switch key.Name {
		case "temperature", "top_p", "topP":
			most := 1.0
			name := "top_p"
			if key.Name == "temperature" {
				most, name = 100, "temperature"
			}
			if f, ok := v.Any().(float64); number && (!ok || f >= 0 && f <= most) && !strings.HasPrefix(v.Text(), "-") {
				if i, ok := v.Any().(int64); !ok || float64(i) <= most {
					add(name, imports.Of(v))
					continue
				}
			}
		case "max_tokens", "maxTokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "max_new_tokens", "num_predict", "max_gen_len":
			if i, ok := v.Any().(int64); v.Kind() == strict.Int && ok && i > 0 && i < 1<<31 {
				add("max_tokens", imports.Of(v))
				continue
			}
		case "seed":
			if _, ok := v.Any().(int64); v.Kind() == strict.Int && ok {
				add("seed", imports.Of(v))
				continue
			}
		case "stop":
			if v.Kind() == strict.String {
				add("stop", imports.Texts([]string{v.Text()}))
				continue
			}
			if texts, ok := texts(v); ok {
				add("stop", imports.Texts(texts))
				continue
			}
		case "tool_choice":
			if v.Kind() == strict.String {
				continue // without tools it says nothing, and tools are lost
			}
		case "parallel_tool_calls":
			if v.Kind() == strict.Bool {
				add("parallel_tool_calls", imports.Of(v))
				continue
			}
		case "region":
			if v.Kind() == strict.String && c.vendor == "bedrock" {
				add("region", imports.Of(v))
				continue
			}
		case "reasoning_effort":
			if v.Kind() == strict.String {
				add("reasoning_effort", imports.Of(v))
				continue
			}
		case "apiBaseUrl", "apiKeyEnvar":
			if im.address(key.Name, v, add) {
				continue
			}
		case "generationConfig", "inferenceConfiguration", "inferenceConfig":
			if v.Kind() == strict.Mapping {
				im.settings(c, v)
				continue
			}
		case "apiKey":
			im.note(imports.Lost, key.Pos(), "name the environment variable that holds it: api_key_env: NAME", "a key in the file, which is not copied")
			continue
		case "tools", "functions":
			im.note(imports.Lost, key.Pos(), "declare them in the agent's file", "the tools of a provider")
			continue
		case "response_format":
			im.note(imports.Lost, key.Pos(), "a check json_schema asks the answer for it", "the response_format of a provider")
			continue
		}
		im.note(imports.Lost, key.Pos(), "", "setting %s of a provider", key.Name)
	}
}

func (im *importer) address(key string, v strict.Node, add func(string, imports.Value)) bool {
	text := v.Text()
	if v.Kind() != strict.String {
		return false
	}
	if key == "apiKeyEnvar" {
		valid := text != "" && (text[0] < '0' || text[0] > '9') && !strings.ContainsFunc(text, func(r rune) bool {
			return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
		})
		if valid {
			add("api_key_env", imports.Text(text))
		}
		return valid
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	add("base_url", imports.Text(text))
	return true
}

func texts(n strict.Node) ([]string, bool) {
	if n.Kind() != strict.Sequence {
		return nil, false
	}
	var list []string
	for _, item := range n.Items() {
		switch item.Kind() {
		case strict.String, strict.Int, strict.Float, strict.Bool:
			list = append(list, shown(item))
		default:
			return nil, false
		}
	}
	return list, true
}

// matches reports whether a name of the configuration means the column.
func (c column) matches(name string) bool {
	for _, own := range []string{c.source, c.label} {
		if own != "" && (own == name || strings.HasPrefix(own, strings.TrimSuffix(name, "*")+":") || strings.HasSuffix(name, "*") && strings.HasPrefix(own, strings.TrimSuffix(name, "*"))) {
			return true
		}
	}
	return false
}

// takes reports whether the column is for a prompt.
func (c column) takes(p prompt) bool {
	if c.only == nil {
		return true
	}
	for _, label := range p.labels {
		for _, name := range c.only {
			if label == name || strings.HasPrefix(label, strings.TrimSuffix(name, ":*")+":") {
				return true
			}
		}
	}
	return false
}
