package ramway

import (
	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// Pair is both ends of a new ring without a name, for two goroutines of this process. Of the options it uses
// Capacity, Align, Prefault, LockMemory, NUMANode and those of how the handles behave.
//
//	tx, rx, err := ramway.Pair(ramway.Options{Capacity: 1 << 16})
//	if err != nil { ... }
//	go func() { defer tx.Close(); _ = tx.Send(ctx, 0, []byte("from a goroutine")) }()
//	for message := range rx.All(ctx) { ... }
func Pair(o Options) (*Sender, *Receiver, error) {
	tx, rx, err := pair(o)
	if err != nil {
		return nil, nil, about(err, "making a ring for two goroutines", "")
	}
	return tx, rx, nil
}

func pair(o Options) (*Sender, *Receiver, error) {
	if err := o.check(howUnnamed); err != nil {
		return nil, nil, err
	}
	if o.HugePages {
		return nil, nil, failf(Unsupported, "HugePages is for named rings")
	}
	s, err := o.ringSpec()
	if err != nil {
		return nil, nil, err
	}
	fd, err := newMemory("ramway-pair", s, o.NUMANode)
	if err != nil {
		return nil, nil, err
	}
	defer sys.Close(fd)
	attach := func() (*attachment, error) { return attachMemory(fd, block0, s.blocks[0], noLink{}, &o) }
	out, err := attach()
	if err != nil {
		return nil, nil, err
	}
	tx, err := newSender(out, o)
	if err != nil {
		return nil, nil, err
	}
	in, err := attach()
	if err == nil {
		var rx *Receiver
		if rx, err = newReceiver(in, o); err == nil {
			return tx, rx, nil
		}
	}
	_ = tx.Close()
	return nil, nil, err
}
