package score

import (
	"reflect"

	"github.com/echoeval/echoeval/core/strict"
)

// Schemas are the JSON Schemas of the arguments of checks, by kind; of the others any arguments fit. They refer by name to schemas of the dataset's ("text", "count", "checks_within"), which the caller has.
func Schemas() map[string]func(*strict.Schemas) strict.Schema {
	return map[string]func(*strict.Schemas) strict.Schema{
		"similarity":  func(s *strict.Schemas) strict.Schema { return strict.AnyOf(filled, likenessSchema(s, likenessArgs{})) },
		"rouge_l":     func(s *strict.Schemas) strict.Schema { return strict.AnyOf(filled, likenessSchema(s, rougeArgs{})) },
		"bleu":        func(s *strict.Schemas) strict.Schema { return strict.AnyOf(filled, likenessSchema(s, likenessArgs{})) },
		"length":      func(s *strict.Schemas) strict.Schema { return countSchema(s, lengthArgs{}) },
		"steps":       func(s *strict.Schemas) strict.Schema { return countSchema(s, stepsArgs{}) },
		"refusal":     refusalSchema,
		"json_equal":  func(s *strict.Schemas) strict.Schema { return of(s, jsonEqualArgs{}) },
		"tool_calls":  toolCallsSchema,
		"tool_result": toolResultSchema,
		"final_state": finalStateSchema,
		"cel":         func(*strict.Schemas) strict.Schema { return filled },
		kindAll:       checksSchema,
		kindAny:       checksSchema,
	}
}

// filled is a text that is not empty.
var filled = strict.Schema{"type": "string", "minLength": 1}

func listOf(least int, of strict.Schema) strict.Schema {
	return strict.Schema{"type": "array", "items": of, "minItems": least}
}

func of(s *strict.Schemas, value any) strict.Schema { return s.Of(reflect.TypeOf(value)) }

// with gives keys of a mapping another schema, with the description that they have.
func with(schema strict.Schema, keys map[string]strict.Schema) strict.Schema {
	properties := schema["properties"].(strict.Schema)
	for key, of := range keys {
		if old, ok := properties[key].(strict.Schema); ok && old["description"] != nil {
			described := strict.Schema{"description": old["description"]}
			for word, value := range of {
				described[word] = value
			}
			of = described
		}
		properties[key] = of
	}
	return schema
}

// eachRequired are schemas of which each asks for one key.
func eachRequired(keys ...string) []any {
	list := make([]any, len(keys))
	for i, key := range keys {
		list[i] = strict.Schema{"required": []any{key}}
	}
	return list
}

func likenessSchema(s *strict.Schemas, args any) strict.Schema {
	schema := with(of(s, args), map[string]strict.Schema{"value": filled, "values": listOf(1, filled), "unicode": strict.Enum("nfc")})
	schema["oneOf"] = eachRequired("value", "values")
	return schema
}

func countSchema(s *strict.Schemas, args any) strict.Schema {
	natural := strict.OrNull(strict.Schema{"type": "integer", "minimum": 0})
	schema := with(of(s, args), map[string]strict.Schema{"min": natural, "max": natural})
	schema["anyOf"] = eachRequired("min", "max")
	return schema
}

func refusalSchema(s *strict.Schemas) strict.Schema {
	phrases := with(of(s, refusalArgs{}), map[string]strict.Schema{"phrases": listOf(1, filled)})
	phrases["required"] = []any{"phrases"}
	return strict.AnyOf(strict.Schema{"type": "null"}, strict.Schema{"const": true}, phrases)
}

func toolCallsSchema(s *strict.Schemas) strict.Schema {
	bound := func(least int) strict.Schema {
		return strict.OrNull(strict.Schema{"type": "integer", "minimum": least, "maximum": maxTimes})
	}
	times := with(of(s, timesArgs{}), map[string]strict.Schema{"min": bound(0), "max": bound(1)})
	times["minProperties"] = 1
	often := strict.AnyOf(strict.Schema{"type": "integer", "minimum": 1, "maximum": maxTimes}, times)
	one := func() strict.Schema {
		return with(of(s, callArgs{}), map[string]strict.Schema{"name": filled, "args": {"type": "object"}, "times": often})
	}
	alternative := one()
	delete(alternative["properties"].(strict.Schema), "times")
	choice := with(of(s, choiceArgs{}), map[string]strict.Schema{"any_of": listOf(2, alternative), "times": often})
	place := strict.AnyOf(one(), choice)
	group := with(of(s, groupArgs{}), map[string]strict.Schema{"ordered": listOf(1, place), "unordered": listOf(1, place)})
	group["oneOf"] = eachRequired("ordered", "unordered")
	return with(of(s, toolCallsArgs{}), map[string]strict.Schema{"calls": listOf(1, strict.AnyOf(one(), choice, group))})
}

func toolResultSchema(s *strict.Schemas) strict.Schema {
	return with(of(s, toolResultArgs{}), map[string]strict.Schema{"path": strict.OrNull(strict.Schema{"type": "string", "pattern": `^\$`})})
}

func finalStateSchema(s *strict.Schemas) strict.Schema {
	tests := of(s, fileArgs{})
	tests["minProperties"] = 1
	files := strict.Schema{"type": "object", "additionalProperties": strict.AnyOf(strict.Schema{"type": "string"}, tests), "minProperties": 1}
	schema := with(of(s, finalStateArgs{}), map[string]strict.Schema{"files": files})
	schema["anyOf"] = eachRequired("files", "others")
	return schema
}

func checksSchema(s *strict.Schemas) strict.Schema { return s.Named["checks_within"]() }
