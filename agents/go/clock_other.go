//go:build !linux

package main

import "time"

// monotonic is the time of day, where nothing better is the same in all processes.
func monotonic() int64 { return time.Now().UnixNano() }
