// Package mutate asks whether the checks of a dataset are any good: it puts one fault at a time into what an agent did, as it was recorded, and looks whether checks and invariants notice.
//
// An [Operator] is one way in which agents go wrong. [Choice.Mutants] applies them to an outcome; each [Mutant] is an outcome of its own, a trace as the agent would have left it: messages, calls, results, numbers, digests and usage agree. [Run] does so for all items of an experiment that pass as recorded and adds up what was noticed.
//
// The method is mutation analysis (DeMillo, Lipton and Sayward 1978): the share of mutants that are noticed is the kill rate, and those that survive show which check is missing. Mutants that come to the same as the original are equivalent and do not count.
package mutate
