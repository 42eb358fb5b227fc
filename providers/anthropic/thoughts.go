package anthropic

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
)

// thought is one block of reasoning as it stands in the list that the extras keep, or a block of a kind that is not known.
type thought struct {
	Type string `json:"type"`
	// Thinking is nil where the text is that of the part: the only block with a text need not repeat it.
	Thinking  *string `json:"thinking,omitzero"`
	Signature string  `json:"signature,omitzero"`
	Data      string  `json:"data,omitzero"`

	raw jsontext.Value // of a kind that is not known
}

// known reports whether the fields say all.
func (t *thought) known() bool { return t.Type == "thinking" || t.Type == "redacted_thinking" }

// writeThoughts writes the list for the extras.
func writeThoughts(list []thought) (conversation.JSON, error) {
	texts := 0
	for _, t := range list {
		if t.Thinking != nil && *t.Thinking != "" {
			texts++
		}
	}
	out := []byte{'['}
	for i, t := range list {
		if i > 0 {
			out = append(out, ',')
		}
		if !t.known() {
			out = append(out, t.raw...)
			continue
		}
		if t.Thinking != nil && texts == 1 && *t.Thinking != "" {
			t.Thinking = nil
		}
		one, err := json.Marshal(t)
		if err != nil {
			return "", err
		}
		out = append(out, one...)
	}
	return conversation.JSON(append(out, ']')), nil
}

// readThoughts reads the list of the extras; none for "".
func readThoughts(data conversation.JSON) ([]thought, error) {
	if data == "" {
		return nil, nil
	}
	var raw []jsontext.Value
	if err := json.Unmarshal([]byte(data), &raw, lenient); err != nil {
		return nil, err
	}
	list := make([]thought, len(raw))
	for i, v := range raw {
		if err := json.Unmarshal(v, &list[i], lenient); err != nil {
			return nil, err
		}
		list[i].raw = v
	}
	return list, nil
}
