package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

// begins is where a subscriber begins: from.
func begins(from string) (start ramway.Start) {
	place, text, _ := strings.Cut(from, ":")
	number, err := strconv.ParseUint(text, 10, 64)
	switch {
	case from == "":
		return start
	case place == "oldest":
		return ramway.FromOldest()
	case place == "now":
		return ramway.FromNow()
	case place == "history" && err == nil:
		return ramway.History(number)
	case place == "after" && err == nil:
		return ramway.AfterSeq(number)
	}
	panic(refusedError("from=" + from))
}

func (l *line) policy() ramway.Policy {
	text := l.text("policy", "reliable")
	for _, policy := range []ramway.Policy{ramway.Reliable, ramway.Lossy, ramway.Latest} {
		if policy.String() == text {
			return policy
		}
	}
	panic(refusedError("policy=" + text))
}

// openTopic opens one side, and does not say so yet.
func openTopic(e *ends, l *line, name string, consumer bool) error {
	waitFor, create := l.number("wait_for", -1), l.yes("create")
	o := ramway.TopicOptions{
		Policy: l.policy(), Start: begins(l.text("from", "")), Label: l.text("label", ""), Durable: l.yes("durable"),
		EjectAfter: time.Duration(l.number("eject_after", 0)) * time.Millisecond, Wait: l.wait(),
		Timeout: time.Duration(l.number("timeout", openTimeout.Milliseconds())) * time.Millisecond,
	}
	if create {
		o.Capacity, o.Align = l.number("capacity", 65536), int(l.number("align", 32))
	}
	l.end()
	if consumer {
		if waitFor >= 0 {
			panic(refusedError("wait_for is a producer's"))
		}
		subscribe := ramway.OpenSubscriber
		if create {
			subscribe = ramway.CreateSubscriber
		}
		sub, err := subscribe(name, o)
		if err == nil {
			e.sub, e.rx = sub, &sub.Receiver
		}
		return err
	}
	publish := ramway.OpenPublisher
	if create {
		publish = ramway.CreatePublisher
	}
	pub, err := publish(name, o)
	if err != nil {
		return err
	}
	e.tx = &pub.Sender
	if waitFor < 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	return pub.WaitForSubscribers(ctx, int(waitFor))
}
