// SPDX-License-Identifier: LGPL-2.1-or-later

// As calltruth.c, for Go: goroutines that wait for each other at different depths, stacks that grow,
// panics that are recovered, more goroutines than stacks are kept, and callbacks. Each note asks the kernel
// for the thread, without which a goroutine would not know it.
//
// With a number instead of a file, nothing is noted, and so many goroutines also compute for long without a
// call, so that they are preempted. That is for a run of which each instruction is logged, which is slow: the
// stacks do not grow as large.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"syscall"
)

type note struct {
	tid  uintptr
	what byte
	name string
}

var notes []note

var quiet = false
var deepest = 3000

//go:noinline
func say(what byte, name string) {
	if quiet {
		return
	}
	tid, _, _ := syscall.RawSyscall(syscall.SYS_GETTID, 0, 0, 0)
	notes = append(notes, note{tid, what, name})
}

var sum int

//go:noinline
func leaf(n int) int {
	say('+', "main.leaf")
	sum += n
	say('-', "main.leaf")
	return sum
}

//go:noinline
func recurse(n int) int {
	var room [64]int
	say('+', "main.recurse")
	room[n%64] = n
	if n > 0 {
		room[0] += recurse(n - 1)
	} else {
		leaf(n)
	}
	say('-', "main.recurse")
	return room[0] + room[n%64]
}

//go:noinline
func wait(n int, in chan int, out chan int) {
	say('+', "main.wait")
	if n > 0 {
		wait(n-1, in, out)
	} else {
		for i := 0; i < 4; i++ {
			leaf(<-in)
			out <- i
		}
	}
	say('-', "main.wait")
}

//go:noinline
func worker(n int, in chan int, out chan int) {
	say('+', "main.worker")
	wait(n*3, in, out)
	out <- -1
	say('-', "main.worker")
}

//go:noinline
func fail(n int) {
	say('+', "main.fail")
	if n > 0 {
		fail(n - 1)
	}
	for i := 0; i < 6; i++ {
		say('-', "main.fail")
	}
	panic("here")
}

//go:noinline
func recovers() {
	say('+', "main.recovers")
	func() {
		defer func() { recover() }()
		fail(5)
	}()
	leaf(1)
	say('-', "main.recovers")
}

//go:noinline
func ends(out chan int) {
	say('+', "main.ends")
	leaf(1)
	out <- 1
	say('-', "main.ends")
}

//go:noinline
func crowd(n int) {
	out := make(chan int)

	say('+', "main.crowd")
	for i := 0; i < n; i++ {
		go ends(out)
		if i%100 == 99 {
			for k := 0; k < 100; k++ {
				<-out
			}
		}
	}
	say('-', "main.crowd")
}

//go:noinline
func spin(n int) int {
	s := n
	for i := 0; i < n; i++ {
		s = s*3 + i
	}
	return s
}

//go:noinline
func spins(n int, out chan int) {
	if n > 0 {
		spins(n-1, out)
		return
	}
	for i := 0; i < 3; i++ {
		recurse(4)
		out <- spin(1000)
	}
}

//go:noinline
func compete(n int) {
	out := make(chan int)

	for i := 0; i < n; i++ {
		go spins(i, out)
	}
	for i := 0; i < 3*n; i++ {
		leaf(<-out)
	}
}

//go:noinline
func run() {
	const workers = 5
	var in [workers]chan int
	out := make(chan int)

	say('+', "main.run")
	recurse(40)
	for i := range in {
		in[i] = make(chan int)
		go worker(i, in[i], out)
	}
	for round := 0; round < 4; round++ {
		for i := range in {
			in[(i*3+round)%workers] <- i
			<-out
		}
	}
	for i := 0; i < workers; i++ {
		<-out
	}
	// What ends later could say so between the entry of a function and its note.
	for i := 0; i < 2*workers; i++ {
		runtime.Gosched()
	}
	recovers()
	numbers := []int{5, 3, 9, 1, 7}
	sort.Slice(numbers, func(i, j int) bool { leaf(i); return numbers[i] < numbers[j] })
	recurse(deepest)
	say('-', "main.run")
}

func main() {
	if n, err := strconv.Atoi(os.Args[1]); err == nil {
		quiet = true
		deepest = 200
		compete(n)
		crowd(100)
		run()
		return
	}
	notes = make([]note, 0, 1<<18)
	crowd(5000)
	run()
	f, err := os.Create(os.Args[1])
	if err != nil {
		os.Exit(1)
	}
	w := bufio.NewWriter(f)
	for _, n := range notes {
		fmt.Fprintf(w, "%d %c%s\n", n.tid, n.what, n.name)
	}
	w.Flush()
	f.Close()
}
