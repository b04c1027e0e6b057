package sys

import "testing"

func TestCountListed(t *testing.T) {
	for list, expected := range map[string]int{"0\n": 1, "0-1\n": 2, "0-3,7": 5, "2,4-5": 3, "": 0, "\n": 0, "3-1": 0, "x": 0, "0-": 0, "0,": 0} {
		if n := countListed(list); n != expected {
			t.Errorf("%q: %d, expected %d", list, n, expected)
		}
	}
	if n := ProcessorsOnline(); n < 1 {
		t.Fatal(n)
	}
}
