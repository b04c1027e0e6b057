package ramway

import "testing"

// A receiver pauses where a poll has found many messages, tries it now and then where it has found few, and never where it is behind.
func TestBackOff(t *testing.T) {
	const frame = 48
	b := newBackOff(1 << 16)
	// polls polls count times. Each poll finds the same number of messages. The result is the number of pauses before the last poll.
	polls := func(count, found int) (pauses uint32) {
		for range count {
			pauses = 0
			if b.isDue() {
				pauses = b.pause()
			}
			b.found, b.frame = uint64(found)*frame, frame
		}
		return pauses
	}
	if got := polls(1, backOffFew); got != 0 {
		t.Fatalf("before anything came: %d pauses", got)
	}
	if got := polls(1, backOffMany); got != backOffPauses {
		t.Fatalf("after %d messages: %d pauses", backOffFew, got)
	}
	if got := polls(1, (1<<14)/frame+1); got != 2*backOffPauses {
		t.Fatalf("after %d messages: %d pauses", backOffMany, got)
	}
	if got := polls(1, 1); got != 0 {
		t.Fatalf("more than a quarter of the capacity: %d pauses", got)
	}
	// Trials are further and further apart: the polls from each one to the next are counted.
	every, since, most := 0, 0, 0
	for range 8 * backOffTrialMax {
		since++
		if polls(1, 1) == 0 {
			continue
		}
		if since < every {
			t.Fatalf("a trial after %d polls, the one before after %d", since, every)
		}
		every, since, most = since, 0, max(most, since)
	}
	if most != backOffTrialMax {
		t.Fatalf("trials at most %d polls apart, expected %d", most, backOffTrialMax)
	}
}
