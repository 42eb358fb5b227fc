package score

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/echoeval/echoeval/core/money"
	"github.com/echoeval/echoeval/core/strict"
)

func compileLatency(args strict.Node, a at) judge {
	var limit struct {
		Max *time.Duration `yaml:"max,required"`
	}
	a.decode(args, &limit, "latency: {max: 2s}")
	if limit.Max == nil {
		return missing(args, "max", a)
	}
	if *limit.Max < 0 {
		a.key("max").bad(args.Get("max"), "", "a negative time")
	}
	return func(_ context.Context, c *Case) (Verdict, error) {
		if c.LatencyMS == nil {
			return Verdict{}, errors.New("the latency is not known")
		}
		got := time.Duration(*c.LatencyMS) * time.Millisecond
		return within(got <= *limit.Max, limit.Max.String(), got.String()), nil
	}
}

func compileCost(args strict.Node, a at) judge {
	var limit struct {
		MaxUSD *float64 `yaml:"max_usd,required"`
	}
	a.decode(args, &limit, "cost: {max_usd: 0.01}")
	if limit.MaxUSD == nil {
		return missing(args, "max_usd", a)
	}
	most, err := money.FromFloat(*limit.MaxUSD)
	if err != nil || most < 0 {
		a.key("max_usd").bad(args.Get("max_usd"), "", "%v is no price", *limit.MaxUSD)
	}
	return func(_ context.Context, c *Case) (Verdict, error) {
		if c.Cost == nil {
			return Verdict{}, errors.New("the cost is not known: a model has no price")
		}
		return within(*c.Cost <= most, most.String()+" USD", c.Cost.String()+" USD"), nil
	}
}

func compileTokens(args strict.Node, a at) judge {
	var limit struct {
		Max *int `yaml:"max,required"`
	}
	a.decode(args, &limit, "tokens: {max: 1000}")
	if limit.Max == nil {
		return missing(args, "max", a)
	}
	if *limit.Max < 0 {
		a.key("max").bad(args.Get("max"), "", "a negative number of tokens")
	}
	return func(_ context.Context, c *Case) (Verdict, error) {
		if c.Tokens == nil {
			return Verdict{}, errors.New("the number of tokens is not known: a reply did not say")
		}
		return within(*c.Tokens <= *limit.Max, fmt.Sprint(*limit.Max), fmt.Sprint(*c.Tokens)), nil
	}
}

// missing says that a bound is written as null; every other way in which it can be missing has been said.
func missing(args strict.Node, key string, a at) judge {
	if n := args.Get(key); n.IsNull() {
		a.key(key).bad(n, "write a bound", "want a value, got null")
	}
	return nil
}

func within(ok bool, most, got string) Verdict {
	v := Verdict{Score: hold(ok), Expected: "at most " + most, Actual: got, Reason: got + " is within " + most}
	if !ok {
		v.Reason = got + " is more than " + most
	}
	return v
}
