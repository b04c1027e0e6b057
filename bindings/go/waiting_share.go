package ramway

import (
	"time"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// Two sides that the scheduler has put on one processor: as long as this one polls, the peer cannot run, and each wait lasts as long as its
// polls do. Nothing says so but that a wait has polled to the end in vain and was over right after it had gone to sleep. Then the next
// waits give the processor away between polls: the peer answers at once, and gives it back in the same way.
//
// To give it away is wrong where somebody else wants to run: that one has it for a whole time slice. So it ends with the first answer that
// is found by polling, because then the peer runs elsewhere, and with the first time that the processor is gone for long. After that it
// is not tried again for some waits, which sleep at once.

const (
	// pollsBeforeYield are polls before the processor is given away for the first time: an answer of a peer that runs elsewhere is there by then.
	pollsBeforeYield = 120
	// pollsPerYield are those once that has helped.
	pollsPerYield = 4
	// yieldLong: so long not the peer has run, which has nothing to do but to answer, but somebody else.
	yieldLong = shortWait
	// yieldHoldMax is how many waits at most go by without giving the processor away, after that has not helped.
	yieldHoldMax = 1023
)

// sharing is what a waiter assumes about where its peer runs.
type sharing struct {
	// yields: it gives the processor away between polls. helps: an answer has come by that.
	yields, helps bool
	// hold is how many short waits are to go by before it may do so again; lastHold how many there were the last time, less the times that
	// it has helped since: one time slice that is lost costs as much as some hundreds of answers gain.
	hold, lastHold uint32
}

// polls is how many polls follow before the processor may be given away.
func (s *sharing) polls() uint32 {
	switch {
	case s.helps:
		return pollsPerYield
	case s.yields:
		return pollsBeforeYield
	}
	return pollsPerCancelCheck
}

// inVain is for a wait that has polled as long as any may in vain, and was short all the same.
func (s *sharing) inVain() {
	if s.yields {
		s.failed()
	} else {
		s.yields = true
	}
}

// failed ends giving the processor away, for longer each time.
func (s *sharing) failed() {
	s.yields, s.helps = false, false
	s.lastHold = min(2*s.lastHold+1, yieldHoldMax)
	s.hold = s.lastHold
}

// polled is for an answer that polling has found: the peer runs meanwhile.
func (s *sharing) polled() { s.yields, s.helps = false, false }

// yielded is for an answer that was there when the processor came back.
func (s *sharing) yielded() {
	s.helps = s.yields
	if s.lastHold > 0 {
		s.lastHold--
	}
}

// yield gives the processor away once.
func (s *sharing) yield() {
	began := time.Now()
	sys.Yield()
	if time.Since(began) >= yieldLong {
		s.failed()
	}
}

// held says whether this short wait is one of those that follow a failure.
func (s *sharing) held() bool {
	if s.hold == 0 {
		return false
	}
	s.hold--
	return true
}
