package strict

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Decoder is implemented, on the pointer, by types that decode themselves. They add to p what is wrong. They see null too.
type Decoder interface {
	DecodeStrict(n Node, p *Problems)
}

// UnknownKey is implemented by struct types, on the pointer, that have more to say about a key they do not have than its nearest neighbour. An empty message means that they have not.
type UnknownKey interface {
	UnknownKey(name string) (message, hint string)
}

// Optional is a value that knows whether the file held it, and whether as null.
type Optional[T any] struct {
	Set   bool // the key is there
	Null  bool // its value is null; Value then is zero
	Value T
}

// DecodeStrict implements [Decoder].
func (o *Optional[T]) DecodeStrict(n Node, p *Problems) {
	o.Set = true
	if n.IsNull() {
		o.Null = true
		return
	}
	Decode(n, &o.Value, p)
}

// Decode fills the value that into points to. What does not fit is added to p and left as it was.
//
// Keys of structs are named by a tag, `yaml:"name"` or `yaml:"name,required"`; fields without one are left alone, embedded structs without one are read as part of the outer struct. A tag `values:"a,b"` lists what a string may be, the tags `doc:"..."` and `schema:"..."` describe the key in a schema, see [Schemas].
// Fields may be bool, string, integers, floats, [time.Duration] (written "60s"), any ([Node.Any]), [Node], structs, slices, maps with string keys, pointers to these (null leaves them nil), [Optional] and every [Decoder].
// null is a wrong value for every other type. into must be a non-nil pointer to such a type: another one is a mistake of the programmer and panics.
func Decode(n Node, into any, p *Problems) {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic(fmt.Sprintf("strict: Decode into %T, want a pointer", into))
	}
	decode(n, v.Elem(), p)
}

var (
	nodeType     = reflect.TypeFor[Node]()
	durationType = reflect.TypeFor[time.Duration]()
	decoderType  = reflect.TypeFor[Decoder]()
)

func decode(n Node, v reflect.Value, p *Problems) {
	t := v.Type()
	switch {
	case t == nodeType:
		v.Set(reflect.ValueOf(n))
		return
	case reflect.PointerTo(t).Implements(decoderType):
		v.Addr().Interface().(Decoder).DecodeStrict(n, p)
		return
	case t == durationType:
		decodeDuration(n, v, p)
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		if n.IsNull() {
			return
		}
		to, found := reflect.New(t.Elem()), p.Len()
		if decode(n, to.Elem(), p); p.Len() == found {
			v.Set(to)
		}
	case reflect.Interface:
		if value := n.Any(); value != nil {
			v.Set(reflect.ValueOf(value))
		}
	case reflect.Struct:
		decodeStruct(n, v, p)
	case reflect.Slice:
		if n.kind != Sequence {
			p.mismatch(n, t)
			return
		}
		list := reflect.MakeSlice(t, n.Len(), n.Len())
		for i, item := range n.Items() {
			decode(item, list.Index(i), p.At(i))
		}
		v.Set(list)
	case reflect.Map:
		if n.kind != Mapping {
			p.mismatch(n, t)
			return
		}
		m := reflect.MakeMapWithSize(t, n.Len())
		for key, item := range n.Fields() {
			value := reflect.New(t.Elem()).Elem()
			decode(item, value, p.Key(key.Name))
			m.SetMapIndex(reflect.ValueOf(key.Name).Convert(t.Key()), value)
		}
		v.Set(m)
	case reflect.Bool:
		if n.kind != Bool {
			p.mismatch(n, t)
			return
		}
		v.SetBool(n.text == "true")
	case reflect.String:
		if n.kind != String {
			p.mismatch(n, t)
			return
		}
		v.SetString(n.text)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(n.text, 10, t.Bits())
		switch {
		case n.kind != Int:
			p.mismatch(n, t)
		case err != nil:
			p.Add(n.Pos(), "", "%s is out of range", n.text)
		default:
			v.SetInt(i)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		i, err := strconv.ParseUint(n.text, 10, t.Bits())
		switch {
		case n.kind != Int:
			p.mismatch(n, t)
		case err != nil:
			p.Add(n.Pos(), "", "%s is out of range", n.text)
		default:
			v.SetUint(i)
		}
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(n.text, t.Bits())
		switch {
		case n.kind != Int && n.kind != Float:
			p.mismatch(n, t)
		case err != nil:
			p.Add(n.Pos(), "", "%s is out of range", n.text)
		default:
			v.SetFloat(f)
		}
	default:
		panic(fmt.Sprintf("strict: Decode into %s", t))
	}
}

func decodeDuration(n Node, v reflect.Value, p *Problems) {
	if n.kind == Int || n.kind == Float {
		p.Add(n.Pos(), "write the unit: "+n.text+"s", "want a duration, got %s", n.kind)
		return
	}
	if n.kind != String {
		p.mismatch(n, durationType)
		return
	}
	d, err := time.ParseDuration(n.text)
	if err != nil {
		p.Add(n.Pos(), "write a number and a unit: 60s, 1m30s, 500ms", "%q is no duration", n.text)
		return
	}
	v.SetInt(int64(d))
}

// field is a key of a struct type.
type field struct {
	name     string
	index    []int
	required bool
	values   []string // what a string may be; nil for anything
	doc      string
	schema   string // a name in [Schemas.Named], or ""
}

var structs sync.Map // reflect.Type to []field

func fieldsOf(t reflect.Type) []field {
	if cached, ok := structs.Load(t); ok {
		return cached.([]field)
	}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("yaml")
		if !ok {
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				for _, inner := range fieldsOf(f.Type) {
					inner.index = append([]int{i}, inner.index...)
					fields = append(fields, inner)
				}
			}
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		own := field{name: name, index: f.Index, required: option == "required", doc: f.Tag.Get("doc"), schema: f.Tag.Get("schema")}
		if list, ok := f.Tag.Lookup("values"); ok {
			own.values = strings.Split(list, ",")
		}
		fields = append(fields, own)
	}
	structs.Store(t, fields)
	return fields
}

// Keys returns the keys of a struct type, or of the type that a pointer points to, in the order of its fields.
func Keys(of any) []string {
	t := reflect.TypeOf(of)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var names []string
	for _, f := range fieldsOf(t) {
		names = append(names, f.name)
	}
	return names
}

func decodeStruct(n Node, v reflect.Value, p *Problems) {
	if n.kind != Mapping {
		p.mismatch(n, v.Type())
		return
	}
	fields := fieldsOf(v.Type())
	for key, value := range n.Fields() {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == key.Name })
		if i < 0 {
			p.unknownKey(key, fields, v)
			continue
		}
		decode(value, v.FieldByIndex(fields[i].index), p.Key(key.Name))
		if choices := fields[i].values; choices != nil && value.kind == String && !slices.Contains(choices, value.text) {
			p.Key(key.Name).Add(value.Pos(), Suggest(value.text, choices), "unknown value %q", value.text)
		}
	}
	for _, f := range fields {
		if f.required && n.Get(f.name).IsZero() && !n.Misspells(names(fields), f.name) {
			p.Add(n.Pos(), "add it: "+f.name+": ...", "key %q is missing", f.name)
		}
	}
}

func (p *Problems) unknownKey(key Key, fields []field, v reflect.Value) {
	if u, ok := v.Addr().Interface().(UnknownKey); ok {
		if message, hint := u.UnknownKey(key.Name); message != "" {
			p.Add(key.Pos(), hint, "%s", message)
			return
		}
	}
	p.Unknown(key, names(fields))
}

func names(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// Misspells reports whether a mapping has an unknown key that was most likely meant to be one of wanted: that this one is missing need not be said then.
func (n Node) Misspells(known []string, wanted ...string) bool {
	for key := range n.Fields() {
		if slices.Contains(known, key.Name) {
			continue
		}
		if near, ok := Nearest(key.Name, known); ok && slices.Contains(wanted, near) {
			return true
		}
	}
	return false
}

// Unknown adds that a mapping has a key it should not have, with the nearest of the choices, or all of them, as hint.
func (p *Problems) Unknown(key Key, choices []string) {
	p.Add(key.Pos(), Suggest(key.Name, choices), "unknown key %q", key.Name)
}

// WrongType adds that n is of another type than want says ("a list of strings"), with the hint that most often helps.
func (p *Problems) WrongType(n Node, want string) {
	hint := ""
	switch {
	case n.kind == Null:
		hint = "write a value or leave the key out"
	case n.sub == nil && n.kind != String && strings.HasPrefix(want, "a string"):
		hint = "quote it: \"" + n.text + "\""
	case n.kind == String && (want == "true or false" || want == "a number" || want == "a whole number"):
		hint = "write it without quotes"
		if kind, text, why := resolve(n.text); why != "" || kind == String || kind == Null || text == "" {
			hint = ""
		}
		if want == "true or false" {
			hint = "write true or false, without quotes"
		}
	case n.kind == Mapping && strings.HasPrefix(want, "a list"):
		hint = "begin each entry of the list with a dash"
	case n.sub == nil && strings.HasPrefix(want, "a list"):
		hint = "write it as a list: [" + n.JSON() + "]"
	}
	if len(hint) > 120 {
		hint = ""
	}
	p.Add(n.Pos(), hint, "want %s, got %s", want, n.kind)
}

func (p *Problems) mismatch(n Node, t reflect.Type) {
	p.WrongType(n, describe(t, false))
}

// describe names a type as a person who writes YAML would.
func describe(t reflect.Type, many bool) string {
	one, more := "a mapping", "mappings"
	switch {
	case t == durationType:
		one, more = "a duration such as 60s", "durations"
	case t == nodeType || reflect.PointerTo(t).Implements(decoderType):
		one, more = "a value", "values"
	default:
		switch t.Kind() {
		case reflect.Pointer:
			return describe(t.Elem(), many)
		case reflect.Slice:
			inner := describe(t.Elem(), true)
			one, more = "a list of "+inner, "lists of "+inner
		case reflect.Map:
			inner := describe(t.Elem(), true)
			one, more = "a mapping to "+inner, "mappings to "+inner
		case reflect.Bool:
			one, more = "true or false", "booleans"
		case reflect.String:
			one, more = "a string", "strings"
		case reflect.Interface:
			one, more = "a value", "values"
		case reflect.Struct:
		case reflect.Float32, reflect.Float64:
			one, more = "a number", "numbers"
		default:
			one, more = "a whole number", "whole numbers"
		}
	}
	if many {
		return more
	}
	return one
}
