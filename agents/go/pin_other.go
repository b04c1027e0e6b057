//go:build !linux

package main

// pin does nothing where a program cannot say on which processor it runs.
func pin(int) error { return nil }
