package emulator

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// geminiField is a field of a message of the vendor's: what JSON it takes. A kind that begins with a capital is the name of a message.
type geminiField struct {
	kind     string
	repeated bool
	// words are the values of an enum, in capitals.
	words []string
}

// The kinds of fields that are no messages.
const (
	kindString  = "string"
	kindBytes   = "bytes"
	kindBool    = "bool"
	kindNumber  = "number"
	kindInteger = "integer"
	kindEnum    = "enum"
	kindStruct  = "struct" // any JSON object
	kindAny     = "any"    // any JSON
	kindSchemas = "map of Schema"
)

func one(kind string) geminiField  { return geminiField{kind: kind} }
func many(kind string) geminiField { return geminiField{kind: kind, repeated: true} }
func word(words ...string) geminiField {
	return geminiField{kind: kindEnum, words: words}
}

// geminiMessages are the messages of a request and their fields, as the vendor's reference describes them. What the emulator does not answer (search, code, caches) is named by [geminiUnsupported].
var geminiMessages = map[string]map[string]geminiField{
	"GenerateContentRequest": {
		"model": one(kindString), "contents": many("Content"), "systemInstruction": one("Content"), "tools": many("Tool"), "toolConfig": one("ToolConfig"),
		"safetySettings": many("SafetySetting"), "generationConfig": one("GenerationConfig"), "cachedContent": one(kindString), "serviceTier": one(kindString), "store": one(kindBool), "labels": one(kindStruct),
	},
	"Content": {"role": one(kindString), "parts": many("Part")},
	"Part": {
		"text": one(kindString), "thought": one(kindBool), "thoughtSignature": one(kindBytes), "inlineData": one("Blob"), "fileData": one("FileData"),
		"functionCall": one("FunctionCall"), "functionResponse": one("FunctionResponse"), "executableCode": one(kindStruct), "codeExecutionResult": one(kindStruct),
		"videoMetadata": one(kindStruct), "mediaResolution": one(kindStruct), "partMetadata": one(kindStruct), "toolCall": one(kindStruct), "toolResponse": one(kindStruct),
	},
	"Blob":         {"mimeType": one(kindString), "data": one(kindBytes)},
	"FileData":     {"mimeType": one(kindString), "fileUri": one(kindString)},
	"FunctionCall": {"id": one(kindString), "name": one(kindString), "args": one(kindStruct)},
	"FunctionResponse": {
		"id": one(kindString), "name": one(kindString), "response": one(kindStruct), "parts": many(kindStruct), "willContinue": one(kindBool), "scheduling": word("SCHEDULING_UNSPECIFIED", "SILENT", "WHEN_IDLE", "INTERRUPT"),
	},
	"Tool": {
		"functionDeclarations": many("FunctionDeclaration"), "googleSearch": one(kindStruct), "googleSearchRetrieval": one(kindStruct), "codeExecution": one(kindStruct), "urlContext": one(kindStruct),
		"computerUse": one(kindStruct), "fileSearch": one(kindStruct), "googleMaps": one(kindStruct), "mcpServers": many(kindStruct),
	},
	"FunctionDeclaration": {
		"name": one(kindString), "description": one(kindString), "parameters": one("Schema"), "parametersJsonSchema": one(kindAny), "response": one("Schema"), "responseJsonSchema": one(kindAny), "behavior": word("UNSPECIFIED", "BLOCKING", "NON_BLOCKING"),
	},
	"Schema": {
		"type": word("TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"), "format": one(kindString), "title": one(kindString), "description": one(kindString), "nullable": one(kindBool), "enum": many(kindString),
		"properties": one(kindSchemas), "required": many(kindString), "items": one("Schema"), "minItems": one(kindInteger), "maxItems": one(kindInteger), "minProperties": one(kindInteger), "maxProperties": one(kindInteger),
		"minLength": one(kindInteger), "maxLength": one(kindInteger), "pattern": one(kindString), "minimum": one(kindNumber), "maximum": one(kindNumber), "example": one(kindAny), "default": one(kindAny), "anyOf": many("Schema"), "propertyOrdering": many(kindString),
	},
	"ToolConfig":            {"functionCallingConfig": one("FunctionCallingConfig"), "retrievalConfig": one(kindStruct), "includeServerSideToolInvocations": one(kindBool)},
	"FunctionCallingConfig": {"mode": word("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"), "allowedFunctionNames": many(kindString)},
	"SafetySetting":         {"category": one(kindString), "threshold": one(kindString), "method": one(kindString)},
	"GenerationConfig": {
		"stopSequences": many(kindString), "responseMimeType": one(kindString), "responseSchema": one("Schema"), "responseJsonSchema": one(kindAny), "responseModalities": many(kindString), "candidateCount": one(kindInteger),
		"maxOutputTokens": one(kindInteger), "temperature": one(kindNumber), "topP": one(kindNumber), "topK": one(kindNumber), "seed": one(kindInteger), "presencePenalty": one(kindNumber), "frequencyPenalty": one(kindNumber),
		"responseLogprobs": one(kindBool), "logprobs": one(kindInteger), "enableEnhancedCivicAnswers": one(kindBool), "speechConfig": one(kindStruct), "thinkingConfig": one("ThinkingConfig"), "imageConfig": one(kindStruct), "mediaResolution": one(kindString),
	},
	"ThinkingConfig": {"includeThoughts": one(kindBool), "thinkingBudget": one(kindInteger), "thinkingLevel": word("THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH")},
}

// geminiReader reads a request. Violations of the format are told all at once, as the vendor does; what the format does not say is checked afterwards, up to the first refusal.
type geminiReader struct {
	violations []string
	refused    *geminiError
}

func (r *geminiReader) violate(format string, args ...any) {
	r.violations = append(r.violations, fmt.Sprintf(format, args...))
}

// camel gives the field's name in the form of JSON: the vendor takes snake_case too.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

// snake is the way back, for the vendor's messages.
func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// message checks an object against the table, and names its fields as JSON does.
func (r *geminiReader) message(path, name string, v *value) {
	if v.kind != '{' {
		r.invalid(path, name, v)
		return
	}
	fields := geminiMessages[name]
	for i := range v.keys {
		key := camel(v.keys[i])
		field, known := fields[key]
		if !known {
			at := ""
			if path != "" {
				at = " at '" + path + "'"
			}
			r.violate("Invalid JSON payload received. Unknown name %q%s: Cannot find field.", shorten(v.keys[i], 200), at)
			continue
		}
		v.keys[i] = key
		at := join(path, snake(key))
		item := &v.items[i]
		switch {
		case item.kind == 'n':
		case !field.repeated && item.kind == '[' && field.kind != kindAny:
			r.violate("Invalid JSON payload received. Unknown name %q at '%s': Proto field is not repeating, cannot start list.", key, path)
		case !field.repeated:
			r.field(at, field, item)
		case item.kind != '[':
			r.field(at, field, item) // the vendor takes one value for a list of one
			*item = value{kind: '[', items: []value{*item}}
		default:
			for j := range item.items {
				r.field(at+"["+strconv.Itoa(j)+"]", field, &item.items[j])
			}
		}
	}
}

func (r *geminiReader) field(path string, f geminiField, v *value) {
	ok := true
	switch f.kind {
	case kindString:
		ok = v.kind == '"'
	case kindBytes:
		ok = v.kind == '"'
		if ok && !isBase64(v.text) {
			r.violate("Invalid value at '%s' (TYPE_BYTES), Base64 decoding failed for %q", path, shorten(v.text, 100))
		}
	case kindBool:
		ok = v.kind == 't' || v.kind == 'f'
	case kindNumber:
		_, err := strconv.ParseFloat(v.text, 64)
		ok = (v.kind == '0' || v.kind == '"') && err == nil
	case kindInteger:
		_, err := strconv.ParseInt(v.text, 10, 64)
		ok = (v.kind == '0' || v.kind == '"') && err == nil
	case kindEnum:
		ok = v.kind == '"' && slices.Contains(f.words, strings.ToUpper(v.text))
	case kindStruct:
		ok = v.kind == '{'
	case kindAny:
	case kindSchemas:
		if ok = v.kind == '{'; ok {
			for i := range v.items {
				r.message(path+"["+strconv.Itoa(i)+"].value", "Schema", &v.items[i])
			}
		}
	default:
		r.message(path, f.kind, v)
	}
	if !ok {
		r.invalid(path, "TYPE_"+strings.ToUpper(f.kind), v)
	}
}

func (r *geminiReader) invalid(path, want string, v *value) {
	got := v.text
	switch v.kind {
	case '"':
		got = strconv.Quote(shorten(got, 100))
	case '0':
	default:
		got = v.describe()
	}
	r.violate("Invalid value at '%s' (%s), %s", path, want, got)
}

// isBase64 takes what the vendor does: both alphabets, with and without padding.
func isBase64(s string) bool {
	s = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(s), "=")
	_, err := base64.RawStdEncoding.DecodeString(s)
	return err == nil
}
