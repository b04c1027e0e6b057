"""Python's agent: ../README.md has the protocol."""

import os
import sys

import look
import ramway
import stream
from line import Line, RefusedError, say
from message import BadMessage
from rpc_async import AsyncCalling
from rpc_client import Calling, number_of
from rpc_server import Serving

import topic


class Ends:
    """What is open: both halves of a bus, what a role needs of rings, one side of a topic, or one of RPC."""

    tx: ramway.Sender | None = None
    rx: ramway.Receiver | None = None
    rpc: AsyncCalling | Calling | Serving | None = None

    def sending(self) -> ramway.Sender:
        if self.tx is None:
            raise RefusedError("there is nothing to send to")
        return self.tx

    def receiving(self) -> ramway.Receiver:
        if self.rx is None:
            raise RefusedError("there is nothing to receive from")
        return self.rx

    def open(self, line: Line) -> None:
        role = line.text("role")
        if name := line.text("rpc"):
            match role, line.text("kind"):
                case "server", "":
                    self.rpc = Serving(name, line)
                case "client", "":
                    self.rpc = Calling(name, line)
                case "client", "async":
                    self.rpc = AsyncCalling(name, line)
                case _, kind:
                    raise RefusedError(f"role={role} kind={kind}")
            return
        wait = line.wait()
        if name := line.text("topic"):
            self.tx, self.rx = topic.open_side(name, role, wait, line)
            self.say_attached(role)
            return
        ring, back, listen, connect = map(line.text, ("ring", "back", "listen", "connect"))
        create, prefault = line.yes("create"), line.yes("prefault")
        capacity, align = line.number("capacity", 65536), line.number("align", 16)
        line.end()
        limit = look.OPEN_TIMEOUT

        def of(name: str) -> ramway.Ring:
            if create:
                return ramway.Ring.create(
                    name, capacity=capacity, align=align, wait=wait, prefault=prefault, timeout=limit
                )
            return ramway.Ring.open(name, wait=wait, prefault=prefault, timeout=limit)

        if listen or connect:
            if listen:
                bus = ramway.Bus.listen(listen, capacity, align=align, wait=wait, timeout=limit)
            else:
                bus = ramway.Bus.connect(connect, timeout=limit, wait=wait)
            # It may have one direction only.
            self.tx = None if role == "consumer" else bus.sender
            self.rx = None if role == "producer" else bus.receiver
        else:
            to, source = ("", ring) if role == "consumer" else (ring, back)
            self.tx = of(to).sender() if to else None
            self.rx = of(source).receiver() if source else None
        self.say_attached(role)

    def say_attached(self, role: str) -> None:
        end = self.receiving() if role == "consumer" else self.sending()
        say(
            f"attached pid={os.getpid()} epoch={end.epoch} peer_epoch={end.peer_epoch} capacity={end.capacity} "
            f"max={topic.longest(end)}"
        )

    def close(self) -> None:
        for end in self.tx, self.rx, self.rpc:
            try:
                if end is not None:
                    end.close()
            except ramway.Error:
                # What closing says on a bus whose peer is dead does not matter.
                pass
        self.tx = self.rx = self.rpc = None
        say("closed")


def obey(ends: Ends, line: Line) -> None:
    match line.word:
        case "open":
            ends.open(line)
        case "close":
            ends.close()
        case _ if ends.rpc is not None:
            ends.rpc.obey(line)
        case "produce":
            stream.produce(ends.sending(), line)
        case "consume":
            stream.consume(ends.receiving(), line)
        case "echo":
            stream.echo(ends.sending(), ends.receiving(), line)
        case "ping":
            stream.ping(ends.sending(), ends.receiving(), line)
        case "last":
            look.last(ends.sending(), line)
        case "take":
            look.take(ends.receiving(), line)
        case "write":
            look.write(ends.sending(), line)
        case "hold":
            look.hold(ends.receiving(), line)
        case "region":
            look.region(line)
        # Below, for what they import.
        case "tensor":
            import tensor

            tensor.send(ends.sending(), line)
        case "measure":
            import measure

            measure.measure(ends.tx, ends.rx, line)
        case "lock":
            import measure

            measure.lock(line)
        case "about":
            say(f"about text=Python {'.'.join(map(str, sys.version_info[:2]))}")
        case _:
            raise RefusedError(f"{line.word} is no command")


def main() -> int:
    ends = Ends()
    for text in sys.stdin:
        try:
            obey(ends, Line(text))
        except ramway.Error as error:
            # A call's status has no kind.
            name = error.kind or getattr(error, "status", "")
            say(f"error name={name} number={number_of(error)} text={error}")
        except BadMessage as bad:
            say(f"bad seq={bad.seq} text={bad}")
            return 1
        except RefusedError as refused:
            say(f"refused text={refused}")
            return 2
    return 0


sys.exit(main())
