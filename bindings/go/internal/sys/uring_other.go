//go:build !linux

package sys

import (
	"errors"
	"time"
)

// Parking is what Linux has for sleeping on a word without a thread.
type Parking struct{}

// NewParking says that there is none.
func NewParking(*uint32) (*Parking, error) { return nil, errors.ErrUnsupported }

// Arm is never called.
func (*Parking) Arm(uint32, time.Time) error { return errors.ErrUnsupported }

// Sleep is never called.
func (*Parking) Sleep() (woken bool) { return false }

// Interrupt is never called.
func (*Parking) Interrupt() {}

// Close is never called.
func (*Parking) Close() {}
