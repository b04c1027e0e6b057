package sys

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// ProcessorsOnline is how many processors the machine has online. Not how many this process may use (runtime.NumCPU): two processes that
// are bound to one each do not stand in each other's way.
func ProcessorsOnline() int {
	list, _ := os.ReadFile("/sys/devices/system/cpu/online")
	if n := countListed(string(list)); n > 0 {
		return n
	}
	return runtime.NumCPU()
}

// countListed is how many numbers a list such as "0-3,7" has; 0 for what is no list.
func countListed(list string) int {
	n := 0
	for _, part := range strings.Split(strings.TrimSpace(list), ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(low)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(high)
		}
		if err != nil || last < first {
			return 0
		}
		n += last - first + 1
	}
	return n
}
