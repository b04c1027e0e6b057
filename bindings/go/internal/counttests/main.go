// Command counttests reads what `go test -json` prints, shows what failed and what was skipped, and ends with one line:
// "N passed, N failed" and, where there are any, ", N skipped". Only tests without subtests are counted, so that a table
// of ten rows is ten. Its exit status is 1 if anything failed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

// result is what is known of a test, or of a package.
type result struct {
	// name is the package's, and the test's if it is one; test is empty for a package.
	name   string
	test   string
	action string
	output strings.Builder
	// parent: it has subtests; explained: one of them failed.
	parent, explained bool
}

func main() {
	results := map[[2]string]*result{}
	var order []*result
	get := func(pkg, test string) *result {
		key := [2]string{pkg, test}
		r := results[key]
		if r == nil {
			r = &result{name: strings.TrimSpace(pkg + " " + test), test: test}
			results[key] = r
			order = append(order, r)
		}
		return r
	}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			take(line, get)
		}
		if err != nil {
			break
		}
	}
	for key, r := range results {
		for test := key[1]; test != ""; {
			cut := strings.LastIndexByte(test, '/')
			if cut < 0 {
				test = ""
			} else {
				test = test[:cut]
			}
			if above := results[[2]string{key[0], test}]; above != nil {
				above.parent = true
				above.explained = above.explained || r.action == "fail"
			}
		}
	}
	passed, failed, skipped := 0, 0, 0
	for _, r := range order {
		switch r.action {
		case "pass":
			if !r.parent && r.test != "" {
				passed++
			}
		case "skip":
			if !r.parent && r.test != "" {
				skipped++
				fmt.Printf("--- skipped: %s\n%s", r.name, r.output.String())
			}
		case "fail", "build-fail":
			if !r.explained {
				failed++
				fmt.Printf("--- failed: %s\n%s", r.name, r.output.String())
			}
		case "":
			// It began and never ended: its package has failed, and what it said last may be why. Most of them only wait
			// for their turn.
			if !r.parent && !strings.HasSuffix(strings.TrimSpace(r.output.String()), "=== PAUSE "+r.test) {
				fmt.Printf("--- did not end: %s\n%s", r.name, r.output.String())
			}
		}
	}
	fmt.Printf("%d passed, %d failed", passed, failed)
	if skipped > 0 {
		fmt.Printf(", %d skipped", skipped)
	}
	fmt.Println()
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}

// take notes one line of input. What is not JSON is shown as it is.
func take(line string, get func(pkg, test string) *result) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		fmt.Print(line)
		return
	}
	pkg := e.Package
	if pkg == "" {
		pkg = e.ImportPath
	}
	r := get(pkg, e.Test)
	switch e.Action {
	case "output", "build-output":
		r.output.WriteString(e.Output)
	case "pass", "fail", "skip", "build-fail":
		r.action = e.Action
	}
}
