package main

import "time"

// chain10 sends a number through ten goroutines, each of which adds one and sends it to the next
// over a channel of capacity 1: Go's equivalent of a chain of continuations.
func chain10(duration time.Duration) tally {
	const length = 10
	return run(duration, []func(*clock) uint64{func(c *clock) uint64 {
		var rounds, sum, expected uint64
		for !c.hasEnded() {
			first := make(chan uint64, 1)
			before := first
			for i := 0; i < length; i++ {
				after := make(chan uint64, 1)
				go func(from, to chan uint64) { to <- <-from + 1 }(before, after)
				before = after
			}
			first <- rounds
			sum += <-before
			expected += rounds + length
			rounds++
		}
		expectSum(sum, expected)
		return rounds * length
	}})
}

// whenAll1000 uses a channel of capacity 1 for each of a thousand values and a goroutine that
// gathers them.
func whenAll1000(duration time.Duration) tally {
	const count = 1000
	return run(duration, []func(*clock) uint64{func(c *clock) uint64 {
		var rounds, sum, expected uint64
		for !c.hasEnded() {
			promises := make([]chan uint64, count)
			for i := range promises {
				promises[i] = make(chan uint64, 1)
			}
			all := make(chan []uint64, 1)
			go func() {
				values := make([]uint64, 0, count)
				for _, p := range promises {
					values = append(values, <-p)
				}
				all <- values
			}()
			for _, p := range promises {
				p <- rounds
			}
			for _, value := range <-all {
				sum += value
			}
			expected += rounds * count
			rounds++
		}
		expectSum(sum, expected)
		return rounds * count
	}})
}

func init() {
	workloads["chain10"] = func(_ sizes, d time.Duration) tally { return chain10(d) }
	workloads["when_all_1000"] = func(_ sizes, d time.Duration) tally { return whenAll1000(d) }
}
