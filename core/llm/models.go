package llm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/echoeval/echoeval/core/strict"
)

// ModelInfo is what is known of a model beside its price. A zero number and a nil list are unknown.
type ModelInfo struct {
	Vendor, Model string
	// Context is how many tokens of input and output together the model takes, Output how many it gives in one reply.
	Context, Output int
	// Abilities are some of [ModelAbilities].
	Abilities []string
}

// ModelAbilities are the words for what a model can do.
var ModelAbilities = []string{"tools", "images", "documents", "thinking", "embeddings"}

type modelEntry struct{ ModelInfo }

type modelKeys struct {
	Context *int     `yaml:"context" schema:"count" doc:"tokens of input and output together"`
	Output  *int     `yaml:"output" schema:"count" doc:"tokens of one reply"`
	Can     []string `yaml:"can" schema:"abilities" doc:"what the model can do, beside text"`
}

// DecodeStrict implements [strict.Decoder].
func (e *modelEntry) DecodeStrict(n strict.Node, p *strict.Problems) {
	if n.Kind() == strict.String && n.Text() == unknown {
		return
	}
	var keys modelKeys
	strict.Decode(n, &keys, p)
	read := func(key string, count *int) int {
		if count == nil {
			return 0
		}
		if *count < 1 {
			p.Key(key).Add(n.Get(key).Pos(), "leave it out where it is not known", "want a number of tokens, from 1")
		}
		return *count
	}
	e.Context, e.Output, e.Abilities = read("context", keys.Context), read("output", keys.Output), keys.Can
	for i, word := range keys.Can {
		if !slices.Contains(ModelAbilities, word) {
			p.Key("can").At(i).Add(n.Get("can").Index(i).Pos(), strict.Suggest(word, ModelAbilities), "unknown ability %q", word)
		}
	}
}

// unknown stands in a price file for what is not known, also where the built-in table says something.
const unknown = "unknown"

// Model returns what is known of a vendor's model, found as [Prices.Price] finds it.
func (p Prices) Model(vendor, model string) (ModelInfo, bool) {
	info, ok := p.models[vendor][model]
	if !ok {
		if undated, dated := cutDate(model); dated {
			info, ok = p.models[vendor][undated]
		}
	}
	return info, ok
}

// Models lists the models of the table, those with a price alone too, by vendor and name.
func (p Prices) Models() []ModelInfo {
	var list []ModelInfo
	for vendor, models := range p.models {
		for model, info := range models {
			info.Vendor, info.Model = vendor, model
			list = append(list, info)
		}
	}
	for vendor, models := range p.vendors {
		for model := range models {
			if _, ok := p.models[vendor][model]; !ok {
				list = append(list, ModelInfo{Vendor: vendor, Model: model})
			}
		}
	}
	slices.SortFunc(list, func(a, b ModelInfo) int {
		return cmp.Or(strings.Compare(a.Vendor, b.Vendor), strings.Compare(a.Model, b.Model))
	})
	return list
}
