package baseline

import (
	"reflect"

	"github.com/echoeval/echoeval/core/strict"
)

// Schema returns the JSON Schema of a baseline's file. It is made of the types that read it.
func Schema() strict.Schema {
	text := strict.Schema{"type": "string"}
	list := func(of strict.Schema) strict.Schema {
		return strict.Schema{"type": "array", "items": of, "minItems": 1}
	}
	orNull := func(of strict.Schema) func() strict.Schema { return func() strict.Schema { return strict.OrNull(of) } }
	s := &strict.Schemas{}
	s.Types = map[reflect.Type]func() strict.Schema{
		reflect.TypeFor[strict.Optional[[]string]](): orNull(strict.Schema{"type": "array", "items": text}),
	}
	s.Named = map[string]func() strict.Schema{
		"version": func() strict.Schema { return strict.Schema{"const": Version} },
		"filled":  func() strict.Schema { return strict.Schema{"type": "string", "minLength": 1} },
		"repeat":  func() strict.Schema { return strict.Schema{"type": "integer", "minimum": 1} },
		"passed":  func() strict.Schema { return list(strict.Schema{"type": []any{"boolean", "null"}}) },
		"scores": func() strict.Schema {
			return strict.Schema{"type": "array", "items": strict.OrNull(strict.Schema{"type": "number", "minimum": 0, "maximum": 1})}
		},
		"verdicts": func() strict.Schema {
			return strict.Schema{"type": "object", "minProperties": 1, "additionalProperties": s.Of(reflect.TypeFor[wireVerdicts]())}
		},
		"amount":   orNull(strict.Schema{"type": "number", "minimum": 0}),
		"duration": orNull(strict.Schema{"type": "integer", "minimum": 0}),
		"providers": func() strict.Schema {
			return strict.Schema{"type": "object", "additionalProperties": s.Of(reflect.TypeFor[wireProvider]())}
		},
		"items": func() strict.Schema {
			return strict.Schema{"type": "array", "items": s.Of(reflect.TypeFor[wireItem]())}
		},
	}
	return s.Root(wireHead{}, "echoeval baseline")
}
