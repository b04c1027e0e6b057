// Command go is a worker of `ramway bench` (the head of bench/src/worker.rs is its protocol): what Go's programs call each other by.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// variable is the environment variable that says what this process is to do, as JSON.
const variable = "RAMWAY_BENCH_WORKER"

// version is that of the protocol.
const version = 1

// burst is how much to do at a stretch: what of it matters here.
type burst struct {
	Test  string `json:"test"`
	Mode  string `json:"mode"`
	Size  int    `json:"size"`
	Count int    `json:"count"`
	Group int    `json:"group"`
	Batch int    `json:"batch"`
}

// setup is what both processes know before they open a mechanism.
type setup struct {
	Directory string `json:"directory"`
	// CPUs is where the leading and the following process are pinned to; nil: not pinned.
	CPUs     [2]*int `json:"cpus"`
	Realtime bool    `json:"realtime"`
}

// order is what one side is to do.
type order struct {
	Protocol  int    `json:"protocol"`
	Mechanism string `json:"mechanism"`
	Setup     setup  `json:"setup"`
	Burst     burst  `json:"burst"`
}

// about is a line of the list.
type about struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Copied  bool   `json:"copied"`
	What    string `json:"what"`
	Version string `json:"version"`
}

// outcome is what one burst measured. A pair of numbers is of the leading process and the following one.
type outcome struct {
	ElapsedPs       int64     `json:"elapsed_ps"`
	Operations      int       `json:"operations"`
	SamplesPs       []int64   `json:"samples_ps"`
	CPUNs           [2]int64  `json:"cpu_ns"`
	PeakRSS         [2]int64  `json:"peak_rss"`
	Shared          [2]int64  `json:"shared"`
	ContextSwitches [2]int64  `json:"context_switches"`
	Allocations     *struct{} `json:"allocations"`
	Parts           []any     `json:"parts"`
}

// say writes a line of the protocol: both are what this program itself made, so they become JSON.
func say(what any) {
	line, _ := json.Marshal(what)
	fmt.Printf("%s\n", line)
}

func main() {
	var told map[string]json.RawMessage
	if json.Unmarshal([]byte(os.Getenv(variable)), &told) != nil {
		fmt.Fprintln(os.Stderr, "a worker of `ramway bench`, which starts it")
		os.Exit(2)
	}
	if _, is := told["list"]; is {
		say([]about{grpcAbout()})
		return
	}
	var err error
	if text, is := told["follow"]; is {
		err = follow(text)
	} else if err = lead(told["lead"]); err != nil {
		say(map[string]string{"failed": err.Error()})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
