// Package ahead reads in advance, on another processor, while what was read is looked at.
package ahead

import "iter"

// Seq yields what seq yields, in the same order. seq runs in a goroutine of its own, at most three batches of n values in advance, and has ended when the loop over Seq ends; what it yields must stay valid until then.
func Seq[T any](seq iter.Seq[T], n int) iter.Seq[T] {
	return func(yield func(T) bool) {
		batches, stop, stopped := make(chan []T, 1), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			defer close(batches)
			send := func(batch []T) bool {
				select {
				case batches <- batch:
					return true
				case <-stop:
					return false
				}
			}
			batch := make([]T, 0, n)
			for v := range seq {
				if batch = append(batch, v); len(batch) < n {
					continue
				}
				if !send(batch) {
					return
				}
				batch = make([]T, 0, n)
			}
			send(batch)
		}()
		defer func() {
			close(stop)
			<-stopped
		}()
		for batch := range batches {
			for _, v := range batch {
				if !yield(v) {
					return
				}
			}
		}
	}
}
