// Go's side of the benchmarks: the same workloads over Go channels.
//
//	peer WORKLOAD PRODUCERS CONSUMERS CAPACITY MILLISECONDS
//
// WORKLOAD is an entry of `workloads`, which other files extend: runs it briefly to warm up, then
// for the given time, checks that every item arrived, and prints operations per second. Or it is an
// entry of `measurements`, which need a fresh process: runs it once and prints a number in its own
// unit.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// fail ends the process; the harness then fails the whole bench.
func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "go peer: "+format+"\n", args...)
	os.Exit(1)
}

// clock signals the goroutines of a run that its time has passed.
type clock struct{ ended int32 }

func (c *clock) hasEnded() bool { return atomic.LoadInt32(&c.ended) != 0 }

// tally is the result of a run.
type tally struct {
	operations uint64
	took       time.Duration
}

// run starts every body in a goroutine. All gather at a gate first; the time is measured from its
// opening until the last body has returned. Bodies return the number of operations that count.
func run(duration time.Duration, bodies []func(*clock) uint64) tally {
	var gathered, done sync.WaitGroup
	var operations uint64
	c := new(clock)
	gate := make(chan struct{})
	gathered.Add(len(bodies))
	done.Add(len(bodies))
	for _, body := range bodies {
		go func(body func(*clock) uint64) {
			gathered.Done()
			<-gate
			atomic.AddUint64(&operations, body(c))
			done.Done()
		}(body)
	}
	gathered.Wait()
	opened := time.Now()
	close(gate)
	time.Sleep(duration)
	atomic.StoreInt32(&c.ended, 1)
	done.Wait()
	return tally{operations, time.Since(opened)}
}

func expectSum(arrived, expected uint64) {
	if arrived != expected {
		fail("sum of the items that arrived: got %d, expected %d", arrived, expected)
	}
}

// sendUntilEnd sends 1, 2, 3, ... and returns their count and sum.
func sendUntilEnd(to chan<- uint64, c *clock) (count, sum uint64) {
	for !c.hasEnded() {
		count++
		to <- count
		sum += count
	}
	return count, sum
}

// handOver uses one channel for all producers and consumers, which the last producer closes.
func handOver(producers, consumers, capacity int, duration time.Duration) tally {
	queue := make(chan uint64, capacity)
	stillProducing := int32(producers)
	var arrived, expected uint64
	var bodies []func(*clock) uint64
	for p := 0; p < producers; p++ {
		bodies = append(bodies, func(c *clock) uint64 {
			count, sum := sendUntilEnd(queue, c)
			atomic.AddUint64(&expected, sum)
			if atomic.AddInt32(&stillProducing, -1) == 0 {
				close(queue)
			}
			return count
		})
	}
	for c := 0; c < consumers; c++ {
		bodies = append(bodies, func(*clock) uint64 {
			var sum uint64
			for item := range queue {
				sum += item
			}
			atomic.AddUint64(&arrived, sum)
			return 0
		})
	}
	result := run(duration, bodies)
	expectSum(arrived, expected)
	return result
}

// pingPong counts round trips over two channels.
func pingPong(capacity int, duration time.Duration) tally {
	there := make(chan uint64, capacity)
	back := make(chan uint64, capacity)
	ping := func(c *clock) uint64 {
		var ball, arrived, expected uint64
		for !c.hasEnded() {
			ball++
			there <- ball
			arrived += <-back
			expected += ball + 1
		}
		close(there)
		expectSum(arrived, expected)
		return ball
	}
	pong := func(*clock) uint64 {
		for ball := range there {
			back <- ball + 1
		}
		return 0
	}
	return run(duration, []func(*clock) uint64{ping, pong})
}

// selectOverFour uses four producers with a channel each and one consumer that selects. A producer
// ends with a 0.
func selectOverFour(capacity int, duration time.Duration) tally {
	var channels [4]chan uint64
	var arrived, expected uint64
	var bodies []func(*clock) uint64
	for p := range channels {
		channel := make(chan uint64, capacity)
		channels[p] = channel
		bodies = append(bodies, func(c *clock) uint64 {
			count, sum := sendUntilEnd(channel, c)
			channel <- 0
			atomic.AddUint64(&expected, sum)
			return count
		})
	}
	a, b, c, d := channels[0], channels[1], channels[2], channels[3]
	bodies = append(bodies, func(*clock) uint64 {
		for stillSending := len(channels); stillSending != 0; {
			var item uint64
			select {
			case item = <-a:
			case item = <-b:
			case item = <-c:
			case item = <-d:
			}
			arrived += item
			if item == 0 {
				stillSending--
			}
		}
		return 0
	})
	result := run(duration, bodies)
	expectSum(arrived, expected)
	return result
}

// sizes are the numbers on the command line; a workload may ignore some.
type sizes struct{ producers, consumers, capacity int }

// workloads by name. A file of this folder adds its own in init().
var workloads = map[string]func(sizes, time.Duration) tally{
	"hand-over": func(s sizes, d time.Duration) tally {
		return handOver(s.producers, s.consumers, s.capacity, d)
	},
	"pingpong": func(s sizes, d time.Duration) tally { return pingPong(s.capacity, d) },
	"select":   func(s sizes, d time.Duration) tally { return selectOverFour(s.capacity, d) },
}

// measurements by name, like workloads.
var measurements = map[string]func(sizes) float64{}

func main() {
	if len(os.Args) != 6 {
		fail("usage: peer WORKLOAD PRODUCERS CONSUMERS CAPACITY MILLISECONDS")
	}
	var numbers [4]int
	for i, text := range os.Args[2:] {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			fail("'%s' is not a positive number", text)
		}
		numbers[i] = n
	}
	size := sizes{numbers[0], numbers[1], numbers[2]}
	if measurement, known := measurements[os.Args[1]]; known {
		fmt.Printf("%.6f\n", measurement(size))
		return
	}
	workload, known := workloads[os.Args[1]]
	if !known {
		fail("no workload is called '%s'", os.Args[1])
	}
	duration := time.Duration(numbers[3]) * time.Millisecond
	workload(size, duration/8)
	result := workload(size, duration)
	fmt.Printf("%.3f\n", float64(result.operations)/result.took.Seconds())
}
