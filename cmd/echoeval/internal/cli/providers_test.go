package cli

import (
	"testing"

	"github.com/echoeval/echoeval/core/transport"
)

func TestStricterLimits(t *testing.T) {
	for _, c := range []struct{ a, b, want transport.Limits }{
		{transport.Limits{}, transport.Limits{Concurrency: 8}, transport.Limits{Concurrency: 8}},
		{transport.Limits{Concurrency: 8}, transport.Limits{Concurrency: 8, PerMinute: 20}, transport.Limits{Concurrency: 8, PerMinute: 20}},
		{transport.Limits{Concurrency: 8, PerMinute: 20}, transport.Limits{Concurrency: 2}, transport.Limits{Concurrency: 2, PerMinute: 20}},
		{transport.Limits{Concurrency: 2, PerMinute: 60}, transport.Limits{Concurrency: 8, PerMinute: 20}, transport.Limits{Concurrency: 2, PerMinute: 20}},
	} {
		if got := stricter(c.a, c.b); got != c.want {
			t.Errorf("stricter(%+v, %+v) = %+v, want %+v", c.a, c.b, got, c.want)
		}
	}
}
