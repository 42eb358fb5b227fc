package replay

import (
	"slices"

	"github.com/echoeval/echoeval/harness/cassette"
)

// OpenSetup begins the session of what a run fetches once for all its items, such as prompts from a server or listings of tools. Its cassette is [cassette.SetupFile] in the dataset's folder, and its header names neither item nor provider.
//
// It differs from [Open] in that its interactions stand each for itself: a run of a few items may leave some of them over, and Extend keeps them. Its round tripper may serve all items at once.
func OpenSetup(config Config) (*Session, error) {
	config.Expect = cassette.Header{Dataset: config.Expect.Dataset, Seed: config.Expect.Seed, Hashes: config.Expect.Hashes}
	config.AllowLeftover = true
	s, err := Open(config)
	if err != nil {
		return nil, err
	}
	s.setup = true
	return s, nil
}

// superseded drops from what was kept for nobody the interactions whose requests were recorded anew. The caller holds mu.
func (s *Session) superseded(all []*cassette.Interaction) []*cassette.Interaction {
	if !s.setup || s.kept == 0 {
		return all
	}
	fresh := map[cassette.Key]bool{}
	for _, i := range all[s.kept:] {
		fresh[cassette.KeyOf(i.Request)] = true
	}
	kept := slices.DeleteFunc(slices.Clone(all[:s.kept]), func(i *cassette.Interaction) bool { return fresh[cassette.KeyOf(i.Request)] })
	return append(kept, all[s.kept:]...)
}
