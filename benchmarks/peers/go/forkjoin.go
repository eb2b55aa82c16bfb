package main

import (
	"runtime"
	"time"
)

func init() {
	workloads["fib"] = func(s sizes, d time.Duration) tally {
		runtime.GOMAXPROCS(s.consumers)
		return fibRepeatedly(s.capacity, d)
	}
}

// forkedFib forks the first and calls the second.
func forkedFib(n int) int64 {
	if n < 2 {
		return int64(n)
	}
	first := make(chan int64, 1)
	go func() { first <- forkedFib(n - 1) }()
	second := forkedFib(n - 2)
	return <-first + second
}

// fibRepeatedly computes fib(n) until the time has passed, and counts forks.
func fibRepeatedly(n int, duration time.Duration) tally {
	var result, next int64 = 0, 1
	for i := 0; i < n; i++ {
		result, next = next, result+next
	}
	forks := uint64(next - 1)
	var total tally
	start := time.Now()
	for total.took < duration {
		if got := forkedFib(n); got != result {
			fail("fib(%d): got %d, expected %d", n, got, result)
		}
		total.operations += forks
		total.took = time.Since(start)
	}
	return total
}
