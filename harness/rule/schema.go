package rule

import (
	"reflect"

	"github.com/echoeval/echoeval/core/strict"
)

// Register adds the schema of a rule to those that s knows by name, as "rule", with what it is made of.
func Register(s *strict.Schemas) {
	text := strict.Schema{"type": "string", "minLength": 1}
	texts := strict.Schema{"type": "array", "items": text, "minItems": 1}
	of := func(name string, keys any) func() strict.Schema {
		return func() strict.Schema {
			return s.Define(name, func() strict.Schema { return s.Object(reflect.TypeOf(keys)) })
		}
	}
	call := of("rule_call", patternKeys{})
	s.Named["rule_tools"] = func() strict.Schema { return strict.AnyOf(text, texts) }
	s.Named["rule_pattern"] = func() strict.Schema {
		return strict.AnyOf(text, call(), strict.Schema{"type": "array", "items": strict.AnyOf(text, call()), "minItems": 1})
	}
	s.Named["rule_never"] = of("rule_never", neverKeys{})
	s.Named["rule_unless"] = func() strict.Schema {
		return strict.AnyOf(strict.Enum("approval"), s.Define("rule_unless", func() strict.Schema {
			unless := s.Object(reflect.TypeOf(unlessKeys{}))
			unless["oneOf"] = []any{strict.Schema{"required": []any{"tool"}}, strict.Schema{"required": []any{"user"}}}
			return unless
		}))
	}
	s.Named["rule_text"] = func() strict.Schema { return strict.OrNull(text) }
	s.Named["rule_name"] = func() strict.Schema {
		return strict.OrNull(strict.Schema{"type": "string", "pattern": "^[A-Za-z0-9._-]+$"})
	}
	s.Named["rule_max"] = func() strict.Schema { return strict.Schema{"type": "integer", "minimum": 0} }
	s.Named["rule_min"] = func() strict.Schema { return strict.Schema{"type": "integer", "minimum": 1} }
	s.Named["rule_length"] = func() strict.Schema {
		return strict.OrNull(strict.Schema{"type": "integer", "minimum": leastShared, "maximum": mostShared})
	}
	s.Named["rule_sequence"] = func() strict.Schema { return strict.AnyOf(text, of("rule_sequence", sequenceKeys{})()) }
	s.Named["rule_count"] = of("rule_count", countKeys{})
	s.Named["rule_window"] = func() strict.Schema {
		return strict.OrNull(strict.Schema{"type": "string", "pattern": `^([0-9]+ +(calls?|steps?)|([0-9.]+(ms|s|m|h))+)$`})
	}
	s.Named["rule"] = func() strict.Schema {
		return s.Define("rule", func() strict.Schema {
			rule := s.Object(reflect.TypeOf(keys{}))
			var forms []any
			for _, form := range Forms {
				forms = append(forms, strict.Schema{"required": []any{form}})
			}
			rule["oneOf"] = forms
			return rule
		})
	}
}
