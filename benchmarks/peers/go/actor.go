package main

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A goroutine with its own channel represents an actor with its mailbox.

func init() {
	workloads["actor-pingpong"] = func(s sizes, d time.Duration) tally {
		result := pingPong(s.capacity, d)
		result.operations *= 2 // there and back
		return result
	}
	workloads["actor-ring"] = func(s sizes, d time.Duration) tally {
		return ring(s.producers, s.capacity, d)
	}
	workloads["actor-fanin"] = func(s sizes, d time.Duration) tally {
		return fanIn(s.producers, s.capacity, d)
	}
	measurements["actor-create"] = func(s sizes) float64 {
		start := time.Now()
		p := populate(s.producers)
		took := time.Since(start)
		p.count()
		return float64(s.producers) / took.Seconds()
	}
	measurements["actor-bytes"] = func(s sizes) float64 {
		before := residentBytes()
		p := populate(s.producers)
		p.count()
		return float64(residentBytes()-before) / float64(s.producers)
	}
	measurements["actor-idle"] = func(s sizes) float64 {
		p := populate(s.producers)
		p.count()
		before := cpuMilliseconds()
		time.Sleep(time.Second)
		used := cpuMilliseconds() - before
		p.count()
		return used
	}
}

// ring sends one token around until the time has passed; the token counts its hops.
func ring(size, capacity int, duration time.Duration) tally {
	mailboxes := make([]chan uint64, size)
	for i := range mailboxes {
		mailboxes[i] = make(chan uint64, capacity)
	}
	var bodies []func(*clock) uint64
	for i := 1; i < size; i++ {
		own, next := mailboxes[i], mailboxes[(i+1)%size]
		bodies = append(bodies, func(*clock) uint64 {
			for token := range own {
				next <- token + 1
			}
			if next != mailboxes[0] {
				close(next)
			}
			return 0
		})
	}
	bodies = append(bodies, func(c *clock) uint64 {
		var laps, token uint64
		for !c.hasEnded() {
			mailboxes[1] <- token + 1
			token = <-mailboxes[0]
			laps++
		}
		close(mailboxes[1])
		expectSum(token, laps*uint64(size))
		return token
	})
	return run(duration, bodies)
}

const messagesPerSender = 1000000

// fanIn runs rounds until the time has passed: in each, every sender sends a million messages into
// one channel.
func fanIn(senders, capacity int, duration time.Duration) tally {
	var total tally
	for total.took < duration {
		mailbox := make(chan uint64, capacity)
		var sending sync.WaitGroup
		sending.Add(senders)
		start := time.Now()
		for s := 0; s < senders; s++ {
			go func() {
				for i := uint64(1); i <= messagesPerSender; i++ {
					mailbox <- i
				}
				sending.Done()
			}()
		}
		all := senders * messagesPerSender
		var sum uint64
		for received := 0; received < all; received++ {
			sum += <-mailbox
		}
		total.took += time.Since(start)
		total.operations += uint64(all)
		sending.Wait()
		expectSum(sum, uint64(senders)*messagesPerSender*(messagesPerSender+1)/2)
	}
	return total
}

// population is a set of goroutines that wait for messages.
type population struct {
	mailboxes []chan *uint64
	answered  sync.WaitGroup
}

func populate(size int) *population {
	p := &population{mailboxes: make([]chan *uint64, size)}
	for i := range p.mailboxes {
		mailbox := make(chan *uint64)
		p.mailboxes[i] = mailbox
		go func() {
			for counter := range mailbox {
				atomic.AddUint64(counter, 1)
				p.answered.Done()
			}
		}()
	}
	return p
}

// count sends each goroutine one message and checks that all have handled it.
func (p *population) count() {
	var counted uint64
	p.answered.Add(len(p.mailboxes))
	for _, mailbox := range p.mailboxes {
		mailbox <- &counted
	}
	p.answered.Wait()
	if counted != uint64(len(p.mailboxes)) {
		fail("goroutines that answered: got %d, expected %d", counted, len(p.mailboxes))
	}
}

func residentBytes() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		fail("%v", err)
	}
	var size, resident uint64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		fail("%v", err)
	}
	return resident * uint64(os.Getpagesize())
}

func cpuMilliseconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		fail("%v", err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}
