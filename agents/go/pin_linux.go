package main

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// pin keeps all threads on one processor: those that there are, and those that they will start.
func pin(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	// Twice: a thread may have been started by one that was not pinned yet.
	for range 2 {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, task := range tasks {
			id, err := strconv.Atoi(task.Name())
			if err != nil {
				continue
			}
			if err := unix.SchedSetaffinity(id, &set); err != nil && err != unix.ESRCH {
				return err
			}
		}
	}
	return nil
}
