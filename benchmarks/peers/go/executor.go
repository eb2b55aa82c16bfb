package main

import (
	"sync"
	"sync/atomic"
	"time"
)

const functionsPerRound = 1000000

func init() {
	workloads["submit"] = func(s sizes, d time.Duration) tally {
		return submit(s.consumers, s.capacity, d)
	}
}

// pool is a number of goroutines over one channel of functions.
type pool struct {
	functions chan func()
	done      sync.WaitGroup
}

func newPool(goroutines, capacity int) *pool {
	p := &pool{functions: make(chan func(), capacity)}
	p.done.Add(goroutines)
	for g := 0; g < goroutines; g++ {
		go func() {
			for f := range p.functions {
				f()
			}
			p.done.Done()
		}()
	}
	return p
}

// finish returns when all submitted functions have run.
func (p *pool) finish() {
	close(p.functions)
	p.done.Wait()
}

// submit submits rounds of a million empty functions from one goroutine, each round to a new pool,
// until the time has passed. An unmeasured round before checks that the pool runs its functions.
func submit(goroutines, capacity int, duration time.Duration) tally {
	var ran uint64
	counting := newPool(goroutines, capacity)
	for i := 0; i < 10000; i++ {
		counting.functions <- func() { atomic.AddUint64(&ran, 1) }
	}
	counting.finish()
	if ran != 10000 {
		fail("functions that were run: got %d, expected 10000", ran)
	}
	var total tally
	for total.took < duration {
		p := newPool(goroutines, capacity)
		start := time.Now()
		for i := 0; i < functionsPerRound; i++ {
			p.functions <- func() {}
		}
		p.finish()
		total.took += time.Since(start)
		total.operations += functionsPerRound
	}
	return total
}
