package bedrock

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
)

// thought is one block of reasoning as it stands in the list that the extras keep, or a block of a kind that is not known.
type thought struct {
	// Text is nil where the text is that of the part: the only block with a text need not repeat it.
	Text      *string        `json:"text,omitzero"`
	Signature string         `json:"signature,omitzero"`
	Redacted  *string        `json:"redacted,omitzero"`
	Block     jsontext.Value `json:"block,omitzero"`
}

// writeThoughts writes the list for the extras.
func writeThoughts(list []thought) (conversation.JSON, error) {
	texts := 0
	for _, t := range list {
		if t.Text != nil && *t.Text != "" {
			texts++
		}
	}
	out := make([]thought, len(list))
	for i, t := range list {
		if t.Text != nil && texts == 1 && *t.Text != "" {
			t.Text = nil
		}
		out[i] = t
	}
	data, err := json.Marshal(out, lenient)
	return conversation.JSON(data), err
}

// readThoughts reads the list of the extras; none for "".
func readThoughts(data conversation.JSON) ([]thought, error) {
	if data == "" {
		return nil, nil
	}
	var list []thought
	err := json.Unmarshal([]byte(data), &list, lenient)
	return list, err
}

// firstName is the name of the first member of an object: what a union is.
func firstName(v jsontext.Value) string {
	var members map[string]jsontext.Value
	if json.Unmarshal(v, &members, lenient) != nil {
		return ""
	}
	name := ""
	for n := range members {
		if name == "" || n < name {
			name = n
		}
	}
	return name
}

// keepNumbers reads numbers as they are written.
var keepNumbers = json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	number, err := d.ReadValue()
	*v = number.Clone()
	return err
})

// join puts the pieces of a block together, in one form whether there were several or not.
func join(pieces []jsontext.Value) (jsontext.Value, error) {
	var whole any
	for i, piece := range pieces {
		var v any
		if err := json.Unmarshal(piece, &v, lenient, json.WithUnmarshalers(keepNumbers)); err != nil {
			return nil, err
		}
		if i == 0 {
			whole = v
		} else {
			whole = joined(whole, v)
		}
	}
	return json.Marshal(whole, json.Deterministic(true), lenient)
}

// joined puts a piece behind what came before: texts are put together, lists go on, objects get more members. A list that follows an object is its content.
func joined(a, b any) any {
	switch b := b.(type) {
	case string:
		if a, ok := a.(string); ok {
			return a + b
		}
	case []any:
		switch a := a.(type) {
		case []any:
			return append(a, b...)
		case map[string]any:
			a["content"] = joined(a["content"], b)
			return a
		}
	case map[string]any:
		if a, ok := a.(map[string]any); ok {
			for name, v := range b {
				a[name] = joined(a[name], v)
			}
			return a
		}
	}
	return b
}
