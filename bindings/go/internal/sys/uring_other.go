//go:build !linux

package sys

import (
	"errors"
	"time"
)

// Parking is what Linux has for sleeping on words without a thread. There is none here, so nothing of it is ever called.
type Parking struct{}

// NewParking says that there is none.
func NewParking(int) (*Parking, error) { return nil, errors.ErrUnsupported }

// Begin is never called.
func (*Parking) Begin() {}

// Arm is never called.
func (*Parking) Arm(int, *uint32, uint32) error { return errors.ErrUnsupported }

// ArmDescriptor is never called.
func (*Parking) ArmDescriptor(int, int) error { return errors.ErrUnsupported }

// Submit is never called.
func (*Parking) Submit(time.Time) error { return errors.ErrUnsupported }

// Forget is never called.
func (*Parking) Forget(int) bool { return false }

// Sleep is never called.
func (*Parking) Sleep() (woken bool) { return false }

// Interrupt is never called.
func (*Parking) Interrupt() {}

// Close is never called.
func (*Parking) Close() {}
