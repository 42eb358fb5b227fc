package emulator

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// BedrockShape is a row of the table of shapes, for its comparison with the service's description.
type BedrockShape struct {
	Kind                 jsontext.Kind
	Blob, Bounded, Union bool
	Low, High            float64
	Enum, Required       []string
	Pattern              string
	Item                 *BedrockShape
	Members              map[string]*BedrockShape
}

// BedrockRequestShape is the table.
func BedrockRequestShape() *BedrockShape { return exported(bedrockRequestShape) }

func exported(s *bedrockShape) *BedrockShape {
	if s == nil {
		return nil
	}
	out := &BedrockShape{Kind: s.kind, Blob: s.blob, Bounded: s.bounded, Union: s.union, Low: s.low, High: s.high, Enum: slices.Clone(s.enum), Required: slices.Clone(s.required), Item: exported(s.item)}
	if s.pattern != nil {
		out.Pattern = strings.TrimSuffix(strings.TrimPrefix(s.pattern.String(), "^(?:"), ")$")
	}
	if s.members != nil {
		out.Members = map[string]*BedrockShape{}
		for name, m := range s.members {
			out.Members[name] = exported(m)
		}
	}
	return out
}
