package ramway

import (
	"errors"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// Pair is both ends of a new ring without a name, for two goroutines of this process. Of the options it looks at
// Capacity, Align, Prefault, LockMemory, NUMANode and at how the handles behave.
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
	if o.Capacity == 0 {
		o.Capacity = defaultCapacity
	}
	if o.Align == 0 {
		o.Align = alignMin
	}
	if err := errors.Join(o.check(howUnnamed), o.Wait.check(), checkTimeout("Timeout", o.Timeout)); err != nil {
		return nil, nil, err
	}
	if o.HugePages {
		return nil, nil, failf(Unsupported, "HugePages is for named rings")
	}
	s, err := ringSpec(o.Capacity, o.Align, sys.PageSize())
	if err != nil {
		return nil, nil, err
	}
	fd, err := sys.MemoryNew("ramway-pair")
	if err != nil {
		return nil, nil, osError(err, "making memory")
	}
	defer sys.Close(fd)
	if err := allocateSegment(fd, s, &o); err != nil {
		return nil, nil, err
	}
	page := formatHeader(s)
	if err := sys.WriteAt(fd, page, 0); err != nil {
		return nil, nil, osError(err, "writing the header page")
	}
	out, err := attachMemory(fd, block0, s.blocks[0], noLink{}, &o)
	if err != nil {
		return nil, nil, err
	}
	in, err := attachMemory(fd, block0, s.blocks[0], noLink{}, &o)
	if err != nil {
		_ = out.release()
		return nil, nil, err
	}
	tx, err := newSender(out, o)
	if err != nil {
		_ = out.release()
		_ = in.release()
		return nil, nil, err
	}
	rx, err := newReceiver(in, o)
	if err != nil {
		_ = tx.Close()
		_ = in.release()
		return nil, nil, err
	}
	return tx, rx, nil
}
