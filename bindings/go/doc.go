// Package ramway moves data between the processes of one machine through shared memory, at the speed of its memory. It
// speaks the format of Ramway with code of its own, in pure Go: the other process may be in any language that Ramway
// has.
//
// A ring goes one way between two processes: [CreateSender], [OpenReceiver] and the like. A topic goes from one publisher to
// many subscribers: [CreatePublisher], [OpenSubscriber]. A [Bus] is a connection, with a ring each way: [Bind], [Listen], [Connect].
// A [Server] answers calls, a [Client] makes them: [BindServer], [ConnectClient]. A [Region] is shared bytes with notifications. [Pair] is a ring for two goroutines. An [Inbox] receives from many producers, an
// [Outbox] gives work to many workers, [Select] and [Merge] wait for many sources at once.
//
//	tx, err := ramway.CreateSender("ticks", ramway.Options{})
//	...
//	err = tx.Send(ctx, 7, payload)               // copied in
//	slot, err := tx.Reserve(ctx, 4096)           // or written in place
//	n := draw(slot.Bytes())
//	err = slot.Commit(7, 0, n)
//
//	rx, err := ramway.OpenReceiver("ticks", ramway.Options{Timeout: time.Second})
//	...
//	for message := range rx.All(ctx) {
//		message.View(func(b []byte) { show(b) }) // in place, or message.Clone()
//	}
//	err = rx.Err()                               // nil: the sender closed
//
// # Messages after Release
//
// A message is a view of memory that the sender writes again once the message is released, and Go cannot revoke a slice.
// So every method of a [Message], [Batch] or [Slot] panics after it was released or committed, also those of its copies:
// each compares a number. (Only Release does nothing then.) [Message.View] passes the bytes to a function, and the copying
// calls (Clone, Append, Copy, ReadAt) return bytes of their own. What is left is a slice that was kept beyond View, or
// UnsafeBytes. With [Options.Guard], and always in builds with -race, each message is seen through addresses of its own,
// which become unreadable with Release: there such a slice is a fault ("unexpected fault address") at the line that reads
// it. The addresses are used again only after 64 MiB or eight capacities of them.
//
// A peer that is not trusted can change what a view shows while it is read. [Receiver.RecvAppend] copies each byte once.
//
// A topic's messages give out slices that are copies, because many read the same log, which is mapped read-only. They are used
// again after Release, so what is said above holds for them too.
//
// # Goroutines
//
// A [Client], a [Server], a [Listener] and a [Region] are for any number of goroutines.
//
// A Sender or Receiver is for one goroutine at a time; a second one at the same time is a panic, not a race. Close is
// safe from any, and ends a wait of another one within 10 ms with ErrDetached; so does the end of a call's context, with
// ErrInterrupted or ErrTimedOut. Calls that wait for the same context again and again allocate nothing.
//
// A context is checked only where a call has to wait: first comes a message that is there, then the end of the stream,
// then the context, even if that was over before the call. So a loop of calls with short time-outs, or with none, learns
// of a peer's close at once and of its death within 200 ms, as one long wait does.
//
// A goroutine that waits spins for up to 75 µs, less where waits have been long, and then sleeps in Go's network poller,
// like one that reads from a socket: it holds no thread and no P. Where both sides share a processor, which shows in waits that
// poll in vain, it gives that away between its polls. Where the kernel has no io_uring that waits on futexes
// (before Linux 6.7, or forbidden; RAMWAY_READINESS=thread says so too) it sleeps in a system call, which holds a
// thread. [Options.Wait] chooses otherwise.
//
// A handle that is forgotten is closed when it is collected: the peer is told that this was all. To have it told that
// the sender failed, use [Sender.Abandon].
//
// # Errors
//
// Every error has a [Kind]: errors.Is(err, ramway.ErrPeerDead). Those that a hot loop meets (ErrFull, ErrEmpty) allocate
// nothing.
//
// All descriptors are close-on-exec. Go cannot fork without exec, so there is nothing to be done about forks.
package ramway
