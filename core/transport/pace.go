package transport

import "time"

const (
	// window is the time over which answers are counted, and briefest the least that is taken for it: what came at once came of what the vendor had saved up.
	window, briefest = 10 * time.Second, time.Second
	// lowered is the part of the measured rate that is left after a refusal.
	lowered = 0.8
	// recovered is the part of the rate that was last refused from which on another refusal speaks of the pace again, and used the part of the pace that must have been used.
	recovered, used = 0.9, 0.6
	// steps is how many answers make good for a whole of the rate that was left.
	steps = 100
	// forgotten is how long after a refusal the pace grows by more than steps.
	forgotten = 20 * time.Second
	// longestGap bounds how slow a pace may be: from few answers nobody knows what the vendor takes.
	longestGap = 10 * time.Second
)

// pace is how fast a vendor takes requests, as far as it has shown by refusals. The zero value is a vendor that has refused none.
type pace struct {
	rate, left float64 // requests a second now, and after it was last lowered; 0 is no limit
	refusedAt  float64 // what was measured then
	refused    time.Time
	answers    [64]time.Time // the latest; a ring
	n          int           // answers so far
}

// gap is the least time between the beginnings of two requests.
func (p *pace) gap() time.Duration {
	if p.rate == 0 {
		return 0
	}
	return min(time.Duration(float64(time.Second)/p.rate), longestGap)
}

// measured is how many answers came in a second lately, since the given time at most.
func (p *pace) measured(now, from time.Time) float64 {
	count, since := 0, time.Duration(0)
	for i := p.n - 1; i >= 0 && i >= p.n-len(p.answers); i-- {
		at := p.answers[i%len(p.answers)]
		if now.Sub(at) > window || at.Before(from) {
			break
		}
		count, since = count+1, now.Sub(at)
	}
	return float64(count) / max(since, briefest).Seconds()
}

// lower takes a refusal in. A single one says nothing of the pace. Where nothing was answered since the last one, the rate is not what is wrong: an outage teaches nothing.
//
// A vendor that is asked more slowly than it was when it last refused, as fast as the pace lets it, and refuses all the same does not go by the pace: then that is taken back. Since held nobody was kept back by the vendor's word.
func (p *pace) lower(now, held time.Time) {
	if p.rate == 0 && (p.refused.IsZero() || now.Sub(p.refused) > window) {
		p.refused = now
		return
	}
	from := p.refused
	if held.After(from) {
		from = held
	}
	rate := p.measured(now, from)
	if p.rate > 0 {
		rate = min(rate, p.rate)
	}
	p.refused = now
	if p.rate > 0 && p.rate < recovered*p.refusedAt && rate > used*p.rate {
		p.rate = p.refusedAt
		return
	}
	if rate > 0 {
		p.refusedAt = rate
		p.rate = lowered * rate
		p.left = p.rate
	}
}

// answered takes an answer in.
func (p *pace) answered(now time.Time) {
	p.answers[p.n%len(p.answers)] = now
	p.n++
	if p.rate == 0 {
		return
	}
	p.rate += p.left / steps
	if now.Sub(p.refused) > forgotten {
		p.rate *= 1.1
	}
	if p.rate > 10*p.measured(now, p.refused) && now.Sub(p.refused) > forgotten {
		p.rate = 0 // it holds nobody back
	}
}
