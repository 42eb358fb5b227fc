package eval_test

import (
	"testing"

	"github.com/echoeval/echoeval/core/eval"
)

func TestBound(t *testing.T) {
	below, equal, above := 0.7999, 0.1+0.7, 0.8001 // 0.1+0.7 is not 0.8 in binary
	for op, want := range map[string][3]bool{">=": {false, true, true}, "<=": {true, true, false}, "==": {false, true, false}, ">": {false, false, true}, "<": {true, false, false}} {
		b := eval.Bound{Op: op, Value: 0.8}
		if got := [3]bool{b.Holds(below), b.Holds(equal), b.Holds(above)}; got != want {
			t.Errorf("%s 0.8: %v below, at and above, want %v", op, got, want)
		}
	}
	if len(eval.BoundOperators) != 5 {
		t.Errorf("%d operators, want the 5 that are tried here", len(eval.BoundOperators))
	}
}
