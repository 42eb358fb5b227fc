package dataset

import (
	"maps"
	"reflect"
	"slices"

	"github.com/echoeval/echoeval/core/agent"
	"github.com/echoeval/echoeval/core/strict"
	"github.com/echoeval/echoeval/harness/rule"
)

// SchemaKinds are the kinds of files that [Schema] describes.
var SchemaKinds = []string{"dataset", "agent", "library", "project"}

// Schema returns the JSON Schema of a kind of file, and false for one that is not in [SchemaKinds]. It is made of the types and tables that read the file; the names that the options know are its choices.
func Schema(kind string, options Options) (strict.Schema, bool) {
	b := schemaOf{options, &strict.Schemas{}}
	b.register()
	switch kind {
	case "dataset":
		return b.s.Root(fileKeys{}, "echoeval dataset"), true
	case "library":
		return b.s.Root(libraryKeys{}, "echoeval library"), true
	case "project":
		return b.s.Root(projectKeys{}, "echoeval project file"), true
	case "agent":
		schema := agent.Schema(b.s)
		schema["$schema"], schema["title"] = strict.Dialect, "echoeval agent"
		return schema, true
	}
	return nil, false
}

type schemaOf struct {
	options Options
	s       *strict.Schemas
}

type schema = strict.Schema

func list(of schema) schema       { return schema{"type": "array", "items": of} }
func filled(of schema) schema     { return schema{"type": "array", "items": of, "minItems": 1} }
func object(values schema) schema { return schema{"type": "object", "additionalProperties": values} }

var (
	anyText    = schema{"type": "string"}
	filledText = schema{"type": "string", "minLength": 1}
	anyObject  = schema{"type": "object"}
)

// of returns the schema of a Go type.
func (b schemaOf) of(value any) schema { return b.s.Of(reflect.TypeOf(value)) }

func (b schemaOf) register() {
	item := func() schema { return b.s.Define("item", func() schema { return b.item(true, "") }) }
	check := func() schema { return b.s.Define("check", b.check) }
	policy := func() schema { return b.s.Define("policy", func() schema { return b.of(policyKeys{}) }) }
	provider := func() schema { return b.s.Define("provider", func() schema { return b.of(providerKeys{}) }) }
	b.s.Types = map[reflect.Type]func() strict.Schema{
		reflect.TypeFor[inputForm]():     func() schema { return b.s.Define("input", input) },
		reflect.TypeFor[messagesForm]():  func() schema { return filled(b.s.Define("message", func() schema { return b.of(messageKeys{}) })) },
		reflect.TypeFor[turnsForm]():     func() schema { return filled(b.of(turnKeys{})) },
		reflect.TypeFor[filledForm]():    func() schema { return filledText },
		reflect.TypeFor[namesForm]():     func() schema { return filled(filledText) },
		reflect.TypeFor[mockForm]():      func() schema { return strict.AnyOf(filled(b.of(caseKeys{})), schema{"not": schema{"type": "array"}}) },
		reflect.TypeFor[stepForm]():      b.step,
		reflect.TypeFor[checkForm]():     check,
		reflect.TypeFor[invariantForm](): b.invariant,
		reflect.TypeFor[fractionForm]():  func() schema { return strict.OrNull(schema{"type": "number", "minimum": 0, "maximum": 1}) },
		reflect.TypeFor[shareForm]():     func() schema { return schema{"type": "string", "pattern": `^\s*(>=|<=|==|>|<)\s*[0-9]*\.?[0-9]+\s*$`} },
		reflect.TypeFor[policyForm]():    func() schema { return strict.AnyOf(filledText, policy()) },
		reflect.TypeFor[repeatForm]():    func() schema { return schema{"type": "integer", "minimum": 1, "maximum": maxRepeat} },
	}
	b.s.Named = map[string]func() strict.Schema{
		"filled":         func() schema { return filledText },
		"filled_or_null": func() schema { return strict.OrNull(filledText) },
		"names":          func() schema { return strict.OrNull(filled(filledText)) },
		"names_or_none":  func() schema { return strict.OrNull(list(filledText)) },
		"count":          func() schema { return strict.OrNull(schema{"type": "integer", "minimum": 0}) },
		"positive":       func() schema { return strict.OrNull(schema{"type": "integer", "minimum": 1}) },
		"amount":         func() schema { return strict.OrNull(schema{"type": "number", "minimum": 0}) },
		"share_or_null":  func() schema { return strict.OrNull(schema{"type": "number", "minimum": 0, "maximum": 1}) },
		"drop":           func() schema { return strict.OrNull(schema{"type": "number", "minimum": 0, "exclusiveMaximum": 1}) },
		"level": func() schema {
			return strict.OrNull(schema{"type": "number", "exclusiveMinimum": 0.5, "exclusiveMaximum": 1})
		},
		"turns_or_null":  func() schema { return strict.OrNull(schema{"type": "integer", "minimum": 1, "maximum": maxTurns}) },
		"day":            func() schema { return schema{"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"} },
		"address":        func() schema { return strict.OrNull(schema{"type": "string", "pattern": "^https?://"}) },
		"variable":       func() schema { return strict.OrNull(schema{"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}) },
		"provider_id":    func() schema { return strict.OrNull(schema{"type": "string", "pattern": "^[A-Za-z0-9._:/@-]+$"}) },
		"word":           func() schema { return schema{"type": "string", "pattern": "^[A-Za-z0-9._-]+$"} },
		"role":           func() schema { return strict.Enum(messageRoles...) },
		"part":           func() schema { return strict.Enum(contentTypes...) },
		"content":        func() schema { return strict.AnyOf(anyText, list(b.of(storedPartKeys{}))) },
		"version":        func() schema { return schema{"const": 1} },
		"name":           func() schema { return schema{"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,79}$"} },
		"text":           func() schema { return filledText },
		"values":         func() schema { return anyObject },
		"values_or_null": func() schema { return strict.OrNull(anyObject) },
		"use":            func() schema { return list(filledText) },
		"input":          func() schema { return b.of(inputForm{}) },
		"checks":         func() schema { return list(check()) },
		"checks_within":  func() schema { return filled(b.s.Define("check_within", b.within)) },
		"number":         func() schema { return schema{"type": "number"} },
		"agent": func() schema {
			return strict.AnyOf(filledText, b.s.Define("agent", func() schema { return agent.Schema(b.s) }))
		},
		"words": func() schema { return filled(anyText) },
		"target": func() schema {
			return b.s.Define("target", func() schema {
				all := maps.Clone(b.of(targetKeys{}))
				all["required"] = []any{"command"}
				return all
			})
		},
		"providers": func() schema { return filled(strict.AnyOf(filledText, provider())) },
		"defaults":  func() schema { return b.s.Define("defaults", func() schema { return b.item(false, "") }) },
		"items": func() schema {
			source := b.of(sourceKeys{})
			return strict.AnyOf(filledText, filled(item()), source)
		},
		"overrides": func() schema { return list(b.s.Define("override", func() schema { return b.item(false, "match") })) },
		"gates":     b.gates,
		"normalize": func() schema { return b.of([]normalizeKeys{}) },
		"drift":     b.drift,
		"columns":   func() schema { return object(anyText) },
		"ids":       func() schema { return strict.AnyOf(filledText, filled(filledText)) },
		"library_checks": func() schema {
			return object(b.s.Define("check", b.check))
		},
		"library_invariants": func() schema { return object(strict.AnyOf(usedInvariant(), b.s.Named["rule"]())) },
		"policies":           func() schema { return object(policy()) },
		"library_providers":  func() schema { return list(schema{"allOf": []any{provider(), schema{"required": []any{"id"}}}}) },
	}
	rule.Register(b.s)
}

// item is the schema of an item, or of a layer without id; more is the one key that the layer has beside.
func (b schemaOf) item(own bool, more string) schema {
	properties := schema{}
	for k, key := range itemKeys {
		if k == keyID {
			if own {
				properties[key.name] = schema{"type": "string", "minLength": 1, "description": key.doc}
			}
			continue
		}
		of := maps.Clone(strict.OrNull(b.of(key.of)))
		of["description"] = key.doc
		properties[key.name] = of
	}
	all := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if own {
		all["required"] = []any{"id"}
	}
	if more != "" {
		properties[more] = schema{"type": "string", "minLength": 1, "description": "CEL over id, tags, metadata, vars"}
		all["required"] = []any{more}
	}
	return all
}

func input() schema {
	part := schema{"type": "object", "properties": schema{}, "additionalProperties": false, "minProperties": 1, "maxProperties": 1}
	for _, key := range partKeys {
		part["properties"].(schema)[key] = schema{"type": "string", "minLength": 1}
	}
	return strict.AnyOf(schema{"type": "string", "minLength": 1}, filled(part))
}

func (b schemaOf) step() schema {
	call := b.of(callKeys{})
	return schema{"type": "object", "properties": schema{"text": schema{"type": []any{"string", "null"}}, "call": call, "calls": list(call)}, "additionalProperties": false, "minProperties": 1, "maxProperties": 1}
}

// check is a word, a kind with its arguments, or the use of a library's.
func (b schemaOf) check() schema {
	kinds := b.kinds()
	inner := schema{"type": "object", "properties": kinds, "additionalProperties": len(kinds) == 0, "minProperties": 1, "maxProperties": 1}
	all := b.of(modifierKeys{})
	properties := all["properties"].(schema)
	maps.Copy(properties, kinds)
	properties["not"] = strict.AnyOf(filledText, inner)
	properties["use"] = schema{"type": "string", "minLength": 1, "description": "the name of a check of a library"}
	all["minProperties"] = 1
	if len(kinds) == 0 {
		all["additionalProperties"] = schema{}
	}
	return strict.AnyOf(filledText, all)
}

// kinds are the schemas of the arguments of checks.
func (b schemaOf) kinds() schema {
	kinds := schema{}
	for _, kind := range b.options.Checks {
		switch of := b.options.Arguments[kind].(type) {
		case nil:
			kinds[kind] = schema{}
		case func(*strict.Schemas) strict.Schema:
			kinds[kind] = b.s.Define(kind, func() schema { return of(b.s) })
		default:
			kinds[kind] = b.s.Define(kind, func() schema { return strict.AnyOf(filledText, b.of(of)) })
		}
	}
	return kinds
}

// within is a check that lies in another: it has a threshold and no other modifier, and asks no model.
func (b schemaOf) within() schema {
	kinds := b.kinds()
	maps.DeleteFunc(kinds, func(kind string, _ any) bool { return asked[kind] != "" })
	inner := schema{"type": "object", "properties": maps.Clone(kinds), "additionalProperties": len(kinds) == 0, "minProperties": 1, "maxProperties": 1}
	kinds["not"] = strict.AnyOf(filledText, inner)
	kinds["threshold"] = b.s.Named["share_or_null"]()
	return strict.AnyOf(filledText, schema{"type": "object", "properties": kinds, "additionalProperties": len(b.options.Checks) == 0, "minProperties": 1})
}

func (b schemaOf) invariant() schema {
	return strict.AnyOf(filledText, usedInvariant(), b.s.Named["rule"]())
}

func usedInvariant() schema {
	return schema{
		"type":       "object",
		"properties": schema{"use": schema{"type": "string", "minLength": 1, "description": "the name of an invariant"}, "severity": strict.Enum("error", "warn")},
		"required":   []any{"use"},
	}
}

func (b schemaOf) gates() schema {
	bound := schema{"type": []any{"string", "null"}, "pattern": `^\s*(>=|<=|==|>|<)`}
	metrics := schema{}
	for _, metric := range b.options.Metrics {
		metrics[metric] = bound
	}
	regression := b.of(regressionKeys{})
	if len(b.options.Compared) > 0 {
		regression["properties"].(schema)["metric"] = strict.Enum(b.options.Compared...)
	}
	metrics[RegressionGate] = strict.OrNull(regression)
	repeated := schema{repeatMetricPattern: bound}
	var rest any = false
	if len(b.options.Metrics) == 0 {
		rest = bound
	}
	limited := maps.Clone(metrics)
	for _, where := range []string{"provider", "tag", "check"} {
		limited[where] = anyText
	}
	return strict.AnyOf(
		schema{"type": "object", "properties": metrics, "patternProperties": repeated, "additionalProperties": rest},
		list(schema{"type": "object", "properties": limited, "patternProperties": repeated, "additionalProperties": rest, "minProperties": 1}),
	)
}

func (b schemaOf) drift() schema {
	action := strict.OrNull(strict.Enum(driftActions...))
	if len(b.options.Drift) == 0 {
		return object(action)
	}
	classes := schema{}
	for _, class := range slices.Sorted(slices.Values(b.options.Drift)) {
		classes[class] = action
	}
	return schema{"type": "object", "properties": classes, "additionalProperties": false}
}
