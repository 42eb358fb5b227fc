package emulator

import (
	"reflect"

	"github.com/echoeval/echoeval/core/strict"
)

// Schema returns the JSON Schema of a script's file. It is made of the types that read it.
func Schema() strict.Schema {
	count := func() strict.Schema { return strict.Schema{"type": "integer", "minimum": 0} }
	s := &strict.Schemas{
		Types: map[reflect.Type]func() strict.Schema{
			reflect.TypeFor[Amount](): func() strict.Schema {
				return strict.Schema{"type": "string", "pattern": `^\+?[0-9]+ \s*(frame|byte)s?\s*$`, "description": "3 frames, or 120 bytes"}
			},
			reflect.TypeFor[Object](): func() strict.Schema { return strict.Schema{"type": "object"} },
		},
		Named: map[string]func() strict.Schema{
			"version": func() strict.Schema { return strict.Schema{"const": 1} },
			"filled":  func() strict.Schema { return strict.Schema{"type": "string", "minLength": 1} },
			"finish":  func() strict.Schema { return strict.Enum(append([]string{""}, finishes...)...) },
			"count":   count,
			"count_or_null": func() strict.Schema {
				return strict.OrNull(count())
			},
			"status": func() strict.Schema {
				list := make([]any, len(errorStatuses))
				for i, status := range errorStatuses {
					list[i] = status
				}
				return strict.Schema{"enum": list}
			},
		},
	}
	filled := func(of reflect.Type) func() strict.Schema {
		return func() strict.Schema { return strict.Schema{"type": "array", "items": s.Of(of), "minItems": 1} }
	}
	s.Named["steps"], s.Named["calls"] = filled(reflect.TypeFor[Step]()), filled(reflect.TypeFor[Call]())
	s.Types[reflect.TypeFor[Step]()] = func() strict.Schema {
		return s.Define("step", func() strict.Schema { return s.Object(reflect.TypeFor[Step]()) })
	}
	return s.Root(Script{}, "echoeval emulator script")
}
