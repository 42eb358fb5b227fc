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
			return strict.AnyOf(strict.Schema{"type": "string"}, s.Of(reflect.TypeFor[commandToolKeys]()))
		},
	}
	return entry.Of(reflect.TypeFor[configKeys]())
}
