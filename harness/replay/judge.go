package replay

import (
	"net/http"

	"github.com/echoeval/echoeval/core/clock"
	"github.com/echoeval/echoeval/harness/cassette"
)

// Way is how one question reaches a judge. It is valid until the function that it was given to returns.
type Way struct {
	// RoundTripper stands below the retries of the judge's model.
	http.RoundTripper
	// Waiting is the clock for pauses between attempts.
	Waiting clock.Clock
	// Live reports that the last request, or where there was none yet the next one, goes to the network.
	Live func() bool
}

// Ask puts one question to the judge of that id, a model that scores what the agent said; question does so and returns the error that left it without an answer. It may be called when the agent has come to its end, one question at a time. live is as in [Session.RoundTripper].
//
// What judges are asked is kept in the same cassette, behind the agent's, and is used up and recorded apart from it. In Extend each question stands for itself: one that is recorded is served whatever became of those before it, so that another rubric asks again only what it concerns. Of a question without an answer nothing is
// kept.
func (s *Session) Ask(judge string, live http.RoundTripper, question func(Way) error) error {
	j := s.judging()
	j.mu.Lock()
	began, answered := len(j.slots), j.answered
	j.live = j.tape == nil
	j.mu.Unlock()
	err := question(Way{&roundTripper{session: j, live: live, judge: judge}, j.Waiting(), j.Live})
	if err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.slots, j.answered = j.slots[:began], answered
		j.unanswered = true
	}
	return err
}

// judging returns the part of the session that belongs to judges.
func (s *Session) judging() *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.judges == nil {
		s.judges = &Session{config: s.config, judge: true, rules: s.rules, equal: s.equal, began: s.began, clock: s.clock, wall: s.wall, applied: map[string]bool{}, live: s.tape == nil}
		if s.tape != nil {
			s.judges.tape = newTape(s.asked, s.rules, s.equal)
			s.judges.tape.offset = len(s.tape.file.Interactions)
		}
	}
	return s.judges
}

// split tells what an agent said to the world from what judges were asked about it.
func split(file *cassette.File) (agent, judges *cassette.File) {
	agent, judges = file, &cassette.File{Header: file.Header}
	for n := range file.Interactions {
		if i := file.Interactions[n]; i.Extra.Judge != "" {
			judges.Interactions = append(judges.Interactions, i)
		}
	}
	if len(judges.Interactions) == 0 {
		return agent, judges
	}
	agent = &cassette.File{Header: file.Header}
	for n := range file.Interactions {
		if i := file.Interactions[n]; i.Extra.Judge == "" {
			agent.Interactions = append(agent.Interactions, i)
		}
	}
	return agent, judges
}

// keep takes what was served into the recording, in which each question of a judge has its place. The caller holds mu.
func (s *Session) keep(at int) {
	if s.judge && s.config.Mode == Extend {
		s.slots = append(s.slots, &slot{interaction: s.tape.file.Interactions[at], filled: true})
		s.kept++
	}
}

// unasked are the recorded answers of judges that were not used. There are none where a question was left without an answer: what it would have used, and those after it, nobody knows. The caller holds mu of the agent's part.
func (s *Session) unasked() []Entry {
	switch {
	case s.judges != nil && s.judges.unanswered:
		return nil
	case s.judges != nil && s.judges.tape != nil:
		return s.judges.tape.left()
	case s.asked != nil && len(s.asked.Interactions) > 0:
		t := newTape(s.asked, s.rules, s.equal)
		t.offset = len(s.tape.file.Interactions)
		return t.left()
	}
	return nil
}

// judged returns the slots of judges for a recording. Answers that were not used go with it where they may be left over, or may still be needed. The caller holds mu of the agent's part.
func (s *Session) judged() []*slot {
	var out []*slot
	if s.judges != nil {
		out = s.judges.slots
	}
	if s.asked == nil || !s.config.AllowLeftover && (s.judges == nil || !s.judges.unanswered) {
		return out
	}
	for n := range s.asked.Interactions {
		if s.judges == nil || !s.judges.tape.used[n] {
			out = append(out, &slot{interaction: s.asked.Interactions[n], filled: true})
		}
	}
	return out
}

// Settled says what the recording makes of the agent's part once the agent has come to its end, before judges are asked: the error with which [Session.Close] would fail it as stale, nil where it fits. complete is as there.
func (s *Session) Settled(complete bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.miss != nil:
		return s.miss
	case s.config.Mode == Replay && complete:
		return s.leftOver(s.tape.left())
	}
	return nil
}
