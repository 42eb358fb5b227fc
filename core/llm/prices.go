package llm

import (
	_ "embed"
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/echoeval/echoeval/core/conversation"
	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
)

// Price is what a million tokens cost, by kind. A vendor that has no price of its own for a kind of input has there the price of input.
type Price struct{ Input, CachedInput, CacheWrite, LongCacheWrite, Output money.USD }

// For returns the price under which a column's settings put it: what is written to a cache for an hour has a price of its own.
func (p Price) For(s Settings) Price {
	if s.CacheTTL == "1h" {
		p.CacheWrite = p.LongCacheWrite
	}
	return p
}

// Cost returns what the tokens of a usage cost at this price. It is computed in integers: the cost of a sum and the sum of costs differ by the rounding of each term alone, less than a thousand-millionth of a dollar.
func (p Price) Cost(u conversation.Usage) money.USD {
	fresh := max(u.InputTokens-u.CacheReadTokens-u.CacheWriteTokens, 0)
	return money.PerMillion(p.Input, fresh) + money.PerMillion(p.CachedInput, u.CacheReadTokens) + money.PerMillion(p.CacheWrite, u.CacheWriteTokens) + money.PerMillion(p.Output, u.OutputTokens)
}

// Prices is a table of prices, and of what else is known of models ([Prices.Model]). It is a value: [Prices.Merge] gives a new one.
type Prices struct {
	// Date is the day on which the prices were looked up, as 2026-11-30, and Source is where.
	Date, Source string
	vendors      map[string]map[string]*Price // nil: unknown
	models       map[string]map[string]ModelInfo
}

//go:embed prices.yaml
var pricesYAML []byte

// DefaultPrices returns the table that comes with the program. It is decoded when it is first asked for.
var DefaultPrices = sync.OnceValues(func() (Prices, error) { return LoadPrices("prices.yaml", pricesYAML) })

type priceFile struct {
	Version int                              `yaml:"version,required" schema:"version"`
	Date    string                           `yaml:"date,required"`
	Source  string                           `yaml:"source,required"`
	Prices  map[string]map[string]priceEntry `yaml:"prices,required"`
	Models  map[string]map[string]modelEntry `yaml:"models"`
}

type priceEntry struct {
	Price
	unknown bool
}

type priceKeys struct {
	Input       *float64 `yaml:"input,required" schema:"price"`
	CachedInput *float64 `yaml:"cached_input" schema:"price"`
	CacheWrite  *float64 `yaml:"cache_write" schema:"price"`
	LongWrite   *float64 `yaml:"cache_write_1h" schema:"price"`
	Output      *float64 `yaml:"output,required" schema:"price"`
}

// DecodeStrict implements [strict.Decoder].
func (e *priceEntry) DecodeStrict(n strict.Node, p *strict.Problems) {
	if n.Kind() == strict.String && n.Text() == unknown {
		e.unknown = true
		return
	}
	var keys priceKeys
	strict.Decode(n, &keys, p)
	read := func(key string, dollars *float64, otherwise money.USD) money.USD {
		if dollars == nil {
			return otherwise
		}
		usd, err := money.FromFloat(*dollars)
		if err != nil || usd < 0 {
			p.Key(key).Add(n.Get(key).Pos(), "it is USD per million tokens, such as 2.5", "want a price, from 0")
			return otherwise
		}
		return usd
	}
	e.Input = read("input", keys.Input, 0)
	e.CachedInput = read("cached_input", keys.CachedInput, e.Input)
	e.CacheWrite = read("cache_write", keys.CacheWrite, e.Input)
	e.LongCacheWrite = read("cache_write_1h", keys.LongWrite, e.CacheWrite)
	e.Output = read("output", keys.Output, 0)
}

// LoadPrices reads a price file: version 1, the date and source of the prices, and prices by vendor and model in USD per million tokens. Beside them may stand the models' sizes and abilities. "unknown" in the place of either takes away what a table below says.
//
//	version: 1
//	date: 2026-11-30
//	source: our contract
//	prices: {openai: {gpt-4o-mini: {input: 0.15, cached_input: 0.075, output: 0.6}}}
//	models: {openai: {gpt-4o-mini: {context: 128000, output: 16384, can: [tools, images]}}}
//
// file is its name for messages. All problems are reported at once, with their places.
func LoadPrices(file string, data []byte) (Prices, error) {
	n, err := strict.Parse(file, data)
	if err != nil {
		return Prices{}, err
	}
	var p strict.Problems
	var f priceFile
	strict.Decode(n, &f, &p)
	if v := n.Get("version"); f.Version != 1 && v.Kind() == strict.Int {
		p.Key("version").Add(v.Pos(), "this program reads version: 1", "unknown version %d", f.Version)
	}
	prices := Prices{Date: f.Date, Source: f.Source, vendors: map[string]map[string]*Price{}}
	for vendor, models := range f.Prices {
		table := make(map[string]*Price, len(models))
		for model, entry := range models {
			table[model] = &entry.Price
			if entry.unknown {
				table[model] = nil
			}
		}
		prices.vendors[vendor] = table
	}
	prices.models = map[string]map[string]ModelInfo{}
	for vendor, models := range f.Models {
		table := make(map[string]ModelInfo, len(models))
		for model, entry := range models {
			table[model] = entry.ModelInfo
		}
		prices.models[vendor] = table
	}
	return prices, p.Err()
}

// PricesSchema returns the JSON Schema of a price file. It is made of the types that read it.
func PricesSchema() strict.Schema {
	s := &strict.Schemas{Named: map[string]func() strict.Schema{
		"version": func() strict.Schema { return strict.Schema{"const": 1} },
		"price":   func() strict.Schema { return strict.OrNull(strict.Schema{"type": "number", "minimum": 0}) },
		"count":   func() strict.Schema { return strict.OrNull(strict.Schema{"type": "integer", "minimum": 1}) },
		"abilities": func() strict.Schema {
			return strict.Schema{"type": "array", "items": strict.Schema{"enum": ModelAbilities}}
		},
	}}
	s.Types = map[reflect.Type]func() strict.Schema{
		reflect.TypeFor[priceEntry](): func() strict.Schema { return orUnknown(s.Of(reflect.TypeFor[priceKeys]())) },
		reflect.TypeFor[modelEntry](): func() strict.Schema { return orUnknown(s.Of(reflect.TypeFor[modelKeys]())) },
	}
	return s.Root(priceFile{}, "echoeval prices")
}

func orUnknown(s strict.Schema) strict.Schema {
	return strict.Schema{"anyOf": []any{s, strict.Schema{"const": unknown}}}
}

// Merge returns a table in which the prices of override take the place of those of the same vendor and model. Date and source become those of override, where it has them.
func (p Prices) Merge(override Prices) Prices {
	merged := Prices{Date: p.Date, Source: p.Source, vendors: over(p.vendors, override.vendors), models: over(p.models, override.models)}
	if override.Date != "" {
		merged.Date = override.Date
	}
	if override.Source != "" {
		merged.Source = override.Source
	}
	return merged
}

// over lays the models of override over those of base; both stay as they are.
func over[V any](base, override map[string]map[string]V) map[string]map[string]V {
	merged := maps.Clone(base)
	if merged == nil {
		merged = map[string]map[string]V{}
	}
	for vendor, models := range override {
		table := maps.Clone(merged[vendor])
		if table == nil {
			table = map[string]V{}
		}
		maps.Copy(table, models)
		merged[vendor] = table
	}
	return merged
}

// Price returns the price of a vendor's model: the one under its exact name, else the one under its name without the date of a snapshot, -2024-07-18 or -20240718. There is no guess beyond that: a model that is not listed is unknown.
func (p Prices) Price(vendor, model string) (_ Price, known bool) {
	models := p.vendors[vendor]
	price, ok := models[model]
	if !ok {
		if undated, dated := cutDate(model); dated {
			price, ok = models[undated]
		}
	}
	if price == nil {
		return Price{}, false
	}
	return *price, ok
}

// Cost returns what a reply of a vendor's model cost, and false where the price is not known.
func (p Prices) Cost(vendor, model string, u conversation.Usage) (money.USD, bool) {
	price, ok := p.Price(vendor, model)
	if !ok {
		return 0, false
	}
	return price.Cost(u), true
}

// cutDate takes the date off a model's name.
func cutDate(model string) (string, bool) {
	for _, form := range [...]string{"-dddd-dd-dd", "-dddddddd"} {
		at := len(model) - len(form)
		if at > 0 && strings.Map(digitsToD, model[at:]) == form {
			return model[:at], true
		}
	}
	return model, false
}

func digitsToD(r rune) rune {
	switch {
	case r >= '0' && r <= '9':
		return 'd'
	case r == 'd':
		return -1 // a letter is no digit
	}
	return r
}
