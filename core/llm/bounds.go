package llm

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds are what a vendor takes of the settings at most, whatever the model. A zero member is not known and bounds nothing, but for Cache.
type Bounds struct {
	// Temperature is the highest one.
	Temperature float64
	// SeedBits is how many bits a seed may have, its sign included.
	SeedBits int
	// Stops is how many stop sequences there may be.
	Stops int
	// Efforts are the words of reasoning_effort.
	Efforts []string
	// Cache are those of the settings cache_ttl, cache_messages and prompt_cache_key that the vendor has.
	Cache []string
}

// OutOfBounds is a setting that no model of a vendor takes.
type OutOfBounds struct {
	// Setting is its key in a dataset.
	Setting string
	// Problem says what is wrong with it, Hint what to do; "" where there is nothing to say.
	Problem, Hint string
}

// Check lists the settings that no model of the vendor takes, in the order of a dataset's keys. vendor names it in the texts.
func (b Bounds) Check(vendor string, s Settings) (list []OutOfBounds) {
	out := func(setting, hint, format string, args ...any) {
		list = append(list, OutOfBounds{setting, fmt.Sprintf(format, args...), hint})
	}
	if t := s.Temperature; t != nil && b.Temperature > 0 && *t > b.Temperature {
		out("temperature", "", "%s takes a temperature from 0 to %v, got %v", vendor, b.Temperature, *t)
	}
	if n := s.Seed; n != nil && b.SeedBits > 0 && b.SeedBits < 64 {
		if most := int64(1) << (b.SeedBits - 1); *n >= most || *n < -most {
			out("seed", "", "%s takes a seed of %d bits, from %d to %d, got %d", vendor, b.SeedBits, -most, most-1, *n)
		}
	}
	if n := len(s.Stop); b.Stops > 0 && n > b.Stops {
		out("stop", "", "%s takes at most %d stop sequences, got %d", vendor, b.Stops, n)
	}
	if e := s.ReasoningEffort; e != "" && b.Efforts != nil && !slices.Contains(b.Efforts, e) {
		out("reasoning_effort", "choose one of "+strings.Join(b.Efforts, ", "), "%s knows no effort %q", vendor, e)
	}
	for _, c := range []struct {
		key string
		set bool
	}{{"cache_ttl", s.CacheTTL != ""}, {"cache_messages", s.CacheMessages}, {"prompt_cache_key", s.PromptCacheKey != ""}} {
		if c.set && !slices.Contains(b.Cache, c.key) {
			out(c.key, b.cacheHint(), "%s has no setting %s", vendor, c.key)
		}
	}
	return list
}

func (b Bounds) cacheHint() string {
	if b.Cache == nil {
		return "leave it out"
	}
	return "it has " + strings.Join(b.Cache, " and ")
}

// CacheTTLs are the times of [Settings.CacheTTL].
var CacheTTLs = []string{"5m", "1h"}
