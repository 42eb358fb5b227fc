package agent

import (
	"reflect"

	"github.com/echoeval/echoeval/core/strict"
)

// Schema returns the JSON Schema of an agent file, made of the types that [Decode] fills.
func Schema(s *strict.Schemas) strict.Schema {
	entry := *s
	entry.Types = map[reflect.Type]func() strict.Schema{
		reflect.TypeFor[toolKeys](): func() strict.Schema {
			return strict.AnyOf(strict.Schema{"type": "string", "minLength": 1}, entry.Of(reflect.TypeFor[commandToolKeys]()))
		},
	}
	entry.Named = map[string]func() strict.Schema{
		"version": func() strict.Schema {
			return strict.OrNull(strict.Schema{"type": "integer", "minimum": 1, "maximum": 1})
		},
		"count":  func() strict.Schema { return strict.Schema{"type": "integer", "minimum": 0} },
		"filled": func() strict.Schema { return strict.Schema{"type": "string", "minLength": 1} },
		"values": func() strict.Schema { return strict.Schema{"type": "object"} },
		"command": func() strict.Schema {
			return strict.Schema{"type": "array", "minItems": 1, "items": strict.Schema{"type": "string"}}
		},
	}
	return entry.Of(reflect.TypeFor[configKeys]())
}
