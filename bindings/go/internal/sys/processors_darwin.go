package sys

import "runtime"

// ProcessorsOnline is how many processors the machine has: a process cannot be bound to some of them here.
func ProcessorsOnline() int { return runtime.NumCPU() }
