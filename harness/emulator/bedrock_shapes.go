package emulator

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// bedrockShape is what the service's description says of a value of a request. The tests compare the table with the description.
type bedrockShape struct {
	kind    jsontext.Kind // '"', '0', 't', '[', '{'; 0 is any JSON
	blob    bool          // a text that is base64
	whole   bool          // a number without decimals
	bounded bool          // low and high hold: of the length of a text or of bytes, of a list, of a number
	low     float64
	high    float64 // below low: none
	enum    []string
	pattern *regexp.Regexp

	item     *bedrockShape // of a list, and the values of a map
	members  map[string]*bedrockShape
	required []string
	union    bool // exactly one member
}

func bedrockText() *bedrockShape { return &bedrockShape{kind: '"'} }

func bedrockEnum(words ...string) *bedrockShape { return &bedrockShape{kind: '"', enum: words} }

func bedrockList(item *bedrockShape) *bedrockShape { return &bedrockShape{kind: '[', item: item} }

func bedrockUnion(members map[string]*bedrockShape) *bedrockShape {
	return &bedrockShape{kind: '{', members: members, union: true}
}

func bedrockObject(members map[string]*bedrockShape, required ...string) *bedrockShape {
	return &bedrockShape{kind: '{', members: members, required: required}
}

// within bounds a shape; a high below low is none.
func (s bedrockShape) within(low, high float64) *bedrockShape {
	s.bounded, s.low, s.high = true, low, high
	return &s
}

func (s bedrockShape) like(pattern string) *bedrockShape {
	s.pattern = regexp.MustCompile("^(?:" + pattern + ")$")
	return &s
}

// bedrockOpen is a part of a request that the emulator does not look into.
var bedrockOpen = &bedrockShape{}

var (
	bedrockNonEmpty = bedrockText().within(1, 0)
	bedrockBytes    = (&bedrockShape{kind: '"', blob: true}).within(1, 0)
	bedrockName     = bedrockText().within(1, 64).like(`[a-zA-Z0-9_-]+`)
	bedrockUseID    = bedrockText().within(1, 64).like(`[a-zA-Z0-9_.:-]+`)
	bedrockS3       = bedrockObject(map[string]*bedrockShape{
		"uri":         bedrockText().within(1, 1024).like(`s3://[a-z0-9][\.\-a-z0-9]{1,61}[a-z0-9](/.*)?`),
		"bucketOwner": bedrockText().like(`[0-9]{12}`),
	}, "uri")
	bedrockCachePoint = bedrockObject(map[string]*bedrockShape{"type": bedrockEnum("default"), "ttl": bedrockEnum("5m", "1h")}, "type")
	bedrockCitations  = bedrockObject(map[string]*bedrockShape{"enabled": {kind: 't'}}, "enabled")
	bedrockImage      = bedrockObject(map[string]*bedrockShape{
		"format": bedrockEnum("png", "jpeg", "gif", "webp"),
		"source": bedrockUnion(map[string]*bedrockShape{"bytes": bedrockBytes, "s3Location": bedrockS3}),
		"error":  bedrockObject(map[string]*bedrockShape{"message": bedrockText()}),
	}, "format", "source")
	bedrockDocument = bedrockObject(map[string]*bedrockShape{
		"format": bedrockEnum("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"),
		"name":   bedrockText().within(1, 200),
		"source": bedrockUnion(map[string]*bedrockShape{
			"bytes": bedrockBytes, "s3Location": bedrockS3, "text": bedrockText(),
			"content": bedrockList(bedrockUnion(map[string]*bedrockShape{"text": bedrockText()})),
		}),
		"context":   bedrockText(),
		"citations": bedrockCitations,
	}, "name", "source")
	bedrockResult = bedrockObject(map[string]*bedrockShape{
		"toolUseId": bedrockUseID,
		"content": bedrockList(bedrockUnion(map[string]*bedrockShape{
			"json": bedrockOpen, "text": bedrockText(), "image": bedrockImage, "document": bedrockDocument, "video": bedrockOpen, "searchResult": bedrockOpen,
		})),
		"status": bedrockEnum("success", "error"),
		"type":   bedrockText(),
	}, "toolUseId", "content")
	bedrockBlock = bedrockUnion(map[string]*bedrockShape{
		"text":     bedrockText(),
		"image":    bedrockImage,
		"document": bedrockDocument,
		"toolUse": bedrockObject(map[string]*bedrockShape{
			"toolUseId": bedrockUseID, "name": bedrockName, "input": bedrockOpen, "type": bedrockEnum("server_tool_use"),
		}, "toolUseId", "name", "input"),
		"toolResult": bedrockResult,
		"cachePoint": bedrockCachePoint,
		"reasoningContent": bedrockUnion(map[string]*bedrockShape{
			"reasoningText":   bedrockObject(map[string]*bedrockShape{"text": bedrockText(), "signature": bedrockText()}, "text"),
			"redactedContent": {kind: '"', blob: true},
		}),
		"video": bedrockOpen, "audio": bedrockOpen, "guardContent": bedrockOpen, "citationsContent": bedrockOpen, "searchResult": bedrockOpen, "toolAddition": bedrockOpen, "toolRemoval": bedrockOpen,
	})
	bedrockTool = bedrockUnion(map[string]*bedrockShape{
		"toolSpec": bedrockObject(map[string]*bedrockShape{
			"name": bedrockName, "description": bedrockNonEmpty, "inputSchema": bedrockUnion(map[string]*bedrockShape{"json": bedrockOpen}), "strict": {kind: 't'},
		}, "name", "inputSchema"),
		"systemTool": bedrockObject(map[string]*bedrockShape{"name": bedrockName}, "name"),
		"cachePoint": bedrockCachePoint,
	})
	bedrockRequestShape = bedrockObject(map[string]*bedrockShape{
		"messages": bedrockList(bedrockObject(map[string]*bedrockShape{
			"role": bedrockEnum("user", "assistant", "system"), "content": bedrockList(bedrockBlock),
		}, "role", "content")),
		"system": bedrockList(bedrockUnion(map[string]*bedrockShape{"text": bedrockNonEmpty, "guardContent": bedrockOpen, "cachePoint": bedrockCachePoint})),
		"inferenceConfig": bedrockObject(map[string]*bedrockShape{
			"maxTokens":     (&bedrockShape{kind: '0', whole: true}).within(1, 0),
			"temperature":   (&bedrockShape{kind: '0'}).within(0, 1),
			"topP":          (&bedrockShape{kind: '0'}).within(0, 1),
			"stopSequences": bedrockList(bedrockNonEmpty).within(0, 2500),
		}),
		"toolConfig": bedrockObject(map[string]*bedrockShape{
			"tools": bedrockList(bedrockTool).within(1, 0),
			"toolChoice": bedrockUnion(map[string]*bedrockShape{
				"auto": bedrockObject(nil), "any": bedrockObject(nil), "tool": bedrockObject(map[string]*bedrockShape{"name": bedrockName}, "name"),
			}),
		}, "tools"),
		"outputConfig": bedrockObject(map[string]*bedrockShape{
			"textFormat": bedrockObject(map[string]*bedrockShape{
				"type": bedrockEnum("json_schema"),
				"structure": bedrockUnion(map[string]*bedrockShape{
					"jsonSchema": bedrockObject(map[string]*bedrockShape{"schema": bedrockText(), "name": bedrockText(), "description": bedrockText()}, "schema"),
				}),
			}, "type", "structure"),
			"effort": bedrockText().within(0, 16),
		}),
		"additionalModelRequestFields": bedrockOpen,
		"guardrailConfig":              bedrockOpen, "promptVariables": bedrockOpen, "additionalModelResponseFieldPaths": bedrockOpen, "requestMetadata": bedrockOpen, "performanceConfig": bedrockOpen, "serviceTier": bedrockOpen,
	})
)

// bedrockReader checks a request. The words follow the vendor's where these are known; the first refusal ends it.
type bedrockReader struct{ refused *bedrockError }

func (r *bedrockReader) ok() bool { return r.refused == nil }

func (r *bedrockReader) refuse(format string, args ...any) {
	if r.refused == nil {
		r.refused = &bedrockError{400, validationException, fmt.Sprintf(format, args...)}
	}
}

// constraint refuses a value as the service's front does.
func (r *bedrockReader) constraint(at, value, what string) {
	r.refuse("1 validation error detected: Value %s at '%s' failed to satisfy constraint: Member must %s", value, at, what)
}

func (r *bedrockReader) malformed(at string, v *value) {
	if r.ok() {
		r.refused = &bedrockError{400, "SerializationException", fmt.Sprintf("%s can not be read there: %s", v.describe(), at)}
	}
}

// check holds a value against its shape.
func (r *bedrockReader) check(at string, v *value, s *bedrockShape) {
	if s.kind == 0 || !r.ok() {
		return
	}
	kind := v.kind
	if kind == 'f' {
		kind = 't'
	}
	if kind != s.kind {
		r.malformed(at, v)
		return
	}
	switch s.kind {
	case '"':
		r.text(at, v.text, s)
	case '0':
		n, err := strconv.ParseFloat(v.text, 64)
		if err != nil || s.whole && strings.ContainsAny(v.text, ".eE") {
			r.malformed(at, v)
			return
		}
		r.bounds(at, v.text, n, s, "have value")
	case '[':
		r.bounds(at, "'[...]'", float64(len(v.items)), s, "have length")
		for i := range v.items {
			r.check(at+"."+strconv.Itoa(i+1)+".member", &v.items[i], s.item)
		}
	case '{':
		r.object(at, v, s)
	}
}

func (r *bedrockReader) text(at, text string, s *bedrockShape) {
	length := utf8.RuneCountInString(text)
	if s.blob {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			r.malformed(at, &value{kind: '"'})
			return
		}
		length = len(data)
		text = "java.nio.HeapByteBuffer"
	}
	shown := "'" + shorten(text, 200) + "'"
	r.bounds(at, shown, float64(length), s, "have length")
	switch {
	case s.enum != nil && !slices.Contains(s.enum, text):
		r.constraint(at, shown, "satisfy enum value set: ["+strings.Join(s.enum, ", ")+"]")
	case s.pattern != nil && !s.pattern.MatchString(text):
		r.constraint(at, shown, "satisfy regular expression pattern: "+strings.TrimSuffix(strings.TrimPrefix(s.pattern.String(), "^(?:"), ")$"))
	}
}

func (r *bedrockReader) bounds(at, shown string, n float64, s *bedrockShape, verb string) {
	switch {
	case !s.bounded:
	case n < s.low:
		r.constraint(at, shown, fmt.Sprintf("%s greater than or equal to %g", verb, s.low))
	case s.high >= s.low && n > s.high:
		r.constraint(at, shown, fmt.Sprintf("%s less than or equal to %g", verb, s.high))
	}
}

func (r *bedrockReader) object(at string, v *value, s *bedrockShape) {
	if at != "" {
		at += "."
	}
	set := 0
	for i, name := range v.keys {
		member := s.members[name]
		switch {
		case member == nil:
			r.refuse("emulator_unsupported: %s is no member that the service knows", shorten(at+name, 200))
		case v.items[i].given():
			set++
			r.check(at+name, &v.items[i], member)
		}
	}
	for _, name := range s.required {
		if !v.get(name).given() {
			r.constraint(at+name, "null", "not be null")
		}
	}
	if s.union && set != 1 && r.ok() {
		r.refused = &bedrockError{400, "SerializationException", fmt.Sprintf("%s must have exactly one member", strings.TrimSuffix(at, "."))}
	}
}
