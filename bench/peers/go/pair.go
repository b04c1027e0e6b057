package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// follower is the following process, as the leading one has it: a line there, a line back.
type follower struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// answered is a line of the following process.
type answered struct {
	Failed string `json:"failed"`
	Used   used   `json:"used"`
}

func startFollower(text json.RawMessage) (*follower, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f := &follower{command: exec.Command(self)}
	f.command.Env = append(os.Environ(), fmt.Sprintf(`%s={"follow": %s}`, variable, text))
	f.command.Stderr = os.Stderr
	if f.in, err = f.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := f.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	f.out = bufio.NewScanner(out)
	return f, f.command.Start()
}

func (f *follower) tell(what any) error {
	line, err := json.Marshal(what)
	if err == nil {
		_, err = f.in.Write(append(line, '\n'))
	}
	return err
}

func (f *follower) hear() (answered, error) {
	var a answered
	if !f.out.Scan() {
		return a, errors.New("the second process died")
	}
	if err := json.Unmarshal(f.out.Bytes(), &a); err != nil {
		return a, err
	}
	if a.Failed != "" {
		return a, errors.New(a.Failed)
	}
	return a, nil
}

// lead is the whole of the leading process.
func lead(text json.RawMessage) error {
	var told order
	if err := json.Unmarshal(text, &told); err != nil {
		return err
	}
	if told.Protocol != version {
		return fmt.Errorf("speaks version %d of the protocol, not %d", version, told.Protocol)
	}
	if told.Mechanism != grpcName {
		return fmt.Errorf("no mechanism here is called %s", told.Mechanism)
	}
	if !grpcCan(told.Burst) {
		say(map[string]any{"cannot": nil})
		return nil
	}
	if err := settle(told.Setup, 0); err != nil {
		return err
	}
	f, err := startFollower(text)
	if err != nil {
		return err
	}
	if _, err := f.hear(); err != nil {
		return err
	}
	client, err := connect(told.Setup)
	if err != nil {
		return err
	}
	say(map[string]any{"ready": map[string]any{"pids": []int{os.Getpid(), f.command.Process.Pid}}})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var asked map[string]json.RawMessage
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		text, is := asked["burst"]
		if !is {
			break
		}
		var b burst
		if err := json.Unmarshal(text, &b); err != nil {
			return err
		}
		o, err := measure(f, client, b)
		if err != nil {
			return err
		}
		say(map[string]any{"outcome": o})
	}
	client.close()
	f.in.Close()
	return f.command.Wait()
}

// measure is one burst.
func measure(f *follower, client *client, b burst) (*outcome, error) {
	forgetPeak()
	if err := f.tell(b); err != nil {
		return nil, err
	}
	if _, err := f.hear(); err != nil {
		return nil, err
	}
	counters, began := begin(), time.Now()
	timed, err := client.calls(b)
	if err != nil {
		return nil, err
	}
	elapsed, ours := time.Since(began), counters.end()
	if err := f.tell("ended"); err != nil {
		return nil, err
	}
	half, err := f.hear()
	if err != nil {
		return nil, err
	}
	theirs := half.Used
	o := &outcome{ElapsedPs: 1000 * elapsed.Nanoseconds(), Operations: b.Count, SamplesPs: []int64{}, Parts: []any{}, CPUNs: [2]int64{ours.CPU, theirs.CPU}, PeakRSS: [2]int64{ours.Peak, theirs.Peak},
		Shared: [2]int64{ours.Shared, theirs.Shared}, ContextSwitches: [2]int64{ours.Switches, theirs.Switches}}
	for i := range timed[1:] {
		o.SamplesPs = append(o.SamplesPs, 1000*timed[i+1].Sub(timed[i]).Nanoseconds())
	}
	return o, nil
}

// follow is the whole of the following process: it serves all the time, and says what it used. It ends with its input, so also
// when the leading process dies.
func follow(text json.RawMessage) error {
	var told order
	err := json.Unmarshal(text, &told)
	if err == nil {
		err = settle(told.Setup, 1)
	}
	if err == nil {
		err = serve(told.Setup)
	}
	if err != nil {
		say(map[string]string{"failed": err.Error()})
		return err
	}
	say(struct{}{})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		forgetPeak()
		counters := begin()
		say(struct{}{})
		if !lines.Scan() {
			break
		}
		say(answered{Used: counters.end()})
	}
	return nil
}
