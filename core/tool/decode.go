package tool

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/echoeval/echoeval/core/conversation"
)

// integers lets an int take every number that JSON Schema calls an integer: 3, 3.0 and 3e0.
var integers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, dst *int) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	text := string(raw)
	if n, err := strconv.Atoi(text); err == nil {
		*dst = n
		return nil
	}
	const exact = 1 << 53
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !strings.ContainsAny(text, ".eE") || f != float64(int64(f)) || f < -exact || f > exact {
		return fmt.Errorf("%s is no integer that fits", short(text))
	}
	*dst = int(f)
	return nil
}))

// Decode reads arguments that satisfy a tool's schema into the struct dst points to, by its json tags. Properties that dst does not have are ignored. Its int fields take 3.0 as 3; an integer beyond 64 bits is an error.
func Decode(arguments conversation.JSON, dst any) error {
	if err := json.Unmarshal([]byte(arguments), dst, integers); err != nil {
		return fmt.Errorf("reading the arguments: %w", err)
	}
	return nil
}
