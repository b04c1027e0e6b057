package ramway

import "github.com/ramway/ramway/bindings/go/internal/cpu"

// backOff says when a receiver whose ring is empty, by what was seen last, leaves its sender alone for a while: each poll takes
// tail's line away from it, and the frames' lines. A sender that has to fetch them back for each message or two takes 100 ns for
// each, and the receiver, which is as fast then, finds no more of them with each poll: both stay in that state until one of them is
// delayed (decision 39).
type backOff struct {
	// behind: more bytes than these, and the receiver is behind.
	behind uint64
	// found is what the last poll found that found something, in bytes, and frame how long the first of its frames is; found is 0
	// once used.
	found, frame uint64
	// left is the polls until the next trial, every those between that one and the one after it.
	left, every int
}

func newBackOff(capacity uint64) backOff {
	return backOff{behind: capacity / 4, frame: 1, left: backOffTrialMin, every: backOffTrialMin}
}

// isDue says, before a poll, whether to pause first. Where messages come densely, some time. Where they do not, nothing, since a
// message may be waited for by itself; but now and then it is tried whether they would.
func (b *backOff) isDue() bool {
	b.left--
	return b.left <= 0 || b.found >= backOffFew*b.frame
}

// pause pauses, and says for how many polls' time.
func (b *backOff) pause() (polls uint32) {
	found := b.found
	b.found = 0
	if found > b.behind {
		b.left = b.every
		return 0
	}
	polls = backOffPauses
	if found >= backOffFew*b.frame {
		b.every = backOffTrialMin
		if found >= backOffMany*b.frame {
			polls *= 2
		}
	} else {
		b.every = min(2*b.every, backOffTrialMax)
	}
	b.left = b.every
	for range polls {
		cpu.Pause()
	}
	return polls
}
