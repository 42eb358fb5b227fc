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

func TestBoundSettled(t *testing.T) {
	for _, c := range []struct {
		op        string
		low, high float64
		want      bool
	}{
		{">=", 0.6, 1, true}, {">=", 0, 0.59, true}, {">=", 0.2, 0.6, false}, {"<", 0.1, 0.59, true}, {"<", 0.1, 0.7, false},
		{"==", 0, 0.5, true}, {"==", 0.7, 1, true}, {"==", 0.6, 0.6, true}, {"==", 0.5, 0.7, false}, {"==", 0.6, 1, false},
	} {
		if got := (eval.Bound{Op: c.op, Value: 0.6}).Settled(c.low, c.high); got != c.want {
			t.Errorf("%s 0.6 from %v to %v: settled %v", c.op, c.low, c.high, got)
		}
	}
}
