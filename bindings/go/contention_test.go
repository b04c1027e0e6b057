package ramway

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// Names under contention: creators, openers and leavers at once, in goroutines and in processes of their own.

func init() {
	// Tries to create at every word of the parent, and says whether it did; lets go at the next one.
	helpers["creator"] = func(args []string) {
		for told() != "" {
			a, err := attachNamed(args[0], howCreate, Options{Capacity: 4096}, producer)
			switch KindOf(err) {
			case 0:
				say("created")
				told()
				must(a.release())
			case AlreadyExists:
				say("lost")
				told()
			default:
				must(err)
			}
			say("left")
		}
	}
	helpers["come-and-go"] = func(args []string) {
		for range contentionRounds {
			a, err := attachNamed(args[0], howCreate, Options{Capacity: 4096}, consumer)
			if err == nil {
				must(a.release())
			} else if KindOf(err) != AlreadyExists {
				must(err)
			}
		}
		say("done")
	}
	helpers["for-ever"] = func(args []string) {
		say("ready")
		for {
			tx, err := attachNamed(args[0], howCreate, Options{Discard: true, Capacity: 1 << 16}, producer)
			must(err)
			put(tx, 100)
			rx, err := attachNamed(args[0], howOpen, Options{}, consumer)
			must(err)
			drain(rx)
			must(rx.release())
			must(tx.release())
		}
	}
}

const contentionRounds = 500

// race has eight goroutines attach at once, four in each role, and gives those that could. lost is what the others are told.
func race(t *testing.T, name string, h how, lost Kind) []*attachment {
	t.Helper()
	var all sync.WaitGroup
	results := make(chan *attachment, 8)
	for i := range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			a, err := attachNamed(name, h, Options{Capacity: 4096}, role(i%2))
			if err != nil && KindOf(err) != lost {
				t.Error(err)
			}
			results <- a
		}()
	}
	all.Wait()
	close(results)
	var winners []*attachment
	for a := range results {
		if a != nil {
			winners = append(winners, a)
		}
	}
	return winners
}

func TestOfRacingCreatorsOneWins(t *testing.T) {
	t.Run("goroutines", func(t *testing.T) {
		dir := newFolder(t)
		for range 200 {
			winners := race(t, dir.at("ring"), howCreate, AlreadyExists)
			for _, a := range winners {
				_ = a.release()
			}
			if len(winners) != 1 {
				t.Fatalf("%d created it", len(winners))
			}
			dir.expectNames()
		}
	})
	t.Run("processes", func(t *testing.T) {
		dir := newFolder(t)
		peers := []*peer{startPeer(t, "creator", dir.at("ring")), startPeer(t, "creator", dir.at("ring")), startPeer(t, "creator", dir.at("ring"))}
		for round := range 200 {
			won := 0
			for _, p := range peers {
				p.tell("create")
			}
			for _, p := range peers {
				if p.hear() == "created" {
					won++
				}
			}
			if won != 1 {
				t.Fatalf("round %d: %d created it", round, won)
			}
			for _, p := range peers {
				p.tell("leave")
			}
			for _, p := range peers {
				p.expect("left")
			}
			dir.expectNames()
		}
		for _, p := range peers {
			p.finish()
		}
	})
}

// Of many that open or create at once, one is the producer and one the consumer, of one and the same ring.
func TestOneProducerAndOneConsumer(t *testing.T) {
	dir := newFolder(t)
	for range 100 {
		holders := race(t, dir.at("ring"), howOpenOrCreate, Busy)
		if len(holders) != 2 {
			t.Fatalf("%d hold a role", len(holders))
		}
		put(holders[0], 9)
		if holders[1].ring().tail != frameSize(9, 16) {
			t.Fatal("they have two rings")
		}
		drain(holders[0])
		for _, a := range holders {
			_ = a.release()
		}
		dir.expectNames()
	}
}

// Openers in a world where the name comes and goes see a whole segment or none.
func TestNobodyEverSeesHalfASegment(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	peers := []*peer{startPeer(t, "come-and-go", name), startPeer(t, "come-and-go", name)}
	opened := 0
	for range contentionRounds {
		a, err := attachNamed(name, howOpen, Options{}, producer)
		if err != nil {
			expectKind(t, err, NotFound)
			continue
		}
		opened++
		if a.capacity != 4096 || a.link.vanished() || !leadsTo(a.link.(*lockLink).dir, "ring", a.link.(*lockLink).id) {
			t.Fatal("the name does not lead to what is open")
		}
		_ = a.release()
	}
	t.Logf("opened in %d of %d rounds", opened, contentionRounds)
	for _, p := range peers {
		p.expect("done")
		p.finish()
	}
	dir.expectNames()
}

// Killed while it creates, opens, closes or removes: the next one can start, and nothing else is left.
func TestACreatorKilledAtAnyInstruction(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	left := 0
	for round := range 60 {
		p := startPeer(t, "for-ever", name)
		p.expect("ready")
		time.Sleep(time.Duration(round) * 61 * time.Microsecond)
		p.kill()
		names := dir.names()
		left += len(names)
		if strings.Join(names, "") != "ring" && len(names) != 0 {
			t.Fatal(names)
		}
		h, o := howCreate, Options{Discard: true, Timeout: long}
		if round%2 == 0 {
			h, o = howOpenOrCreate, Options{Timeout: long}
		}
		a := hold(t, name, h, o, consumer)
		drain(a)
		_ = a.release()
		dir.expectNames()
	}
	t.Logf("%d of 60 were killed with the name in place", left)
}
