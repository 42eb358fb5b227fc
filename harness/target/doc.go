// Package target runs programs under test, in any language, and stands between them and the models that they ask.
//
// A [Pool] starts processes. Each has a recorder of its own, a listener on the loopback address, and one item at a time, so that whatever reaches the listener belongs to that item and no program needs to pass on an id. Variables such as OPENAI_BASE_URL point the program at it; see [Vendors].
//
//	worker, err := pool.Take(ctx, spec)
//	worker.Begin(target.Item{Transport: session.RoundTripper, ...})
//	answer, err := worker.Ask(ctx, question)
//	told := target.Tell(worker.Turn(), ...) // the events of the trace
//	pool.Give(worker)
//
// What the program sends goes through the round tripper of the item, the same that providers have: it records, or serves from the cassette and dials nothing. The address in the cassette is the vendor's. That is no sandbox: a program may read the user's files and open other connections.
//
// A program gets one JSON object a turn on standard input and answers one on standard output; see [Question] and [DecodeAnswer].
package target
