import dev.ramway.RamwayException
import dev.ramway.kotlin.Bus
import dev.ramway.kotlin.Listener
import dev.ramway.kotlin.OptionsBuilder
import dev.ramway.kotlin.Receiver
import dev.ramway.kotlin.Sender
import kotlinx.coroutines.withTimeout
import kotlin.time.Duration.Companion.seconds

/** How long to wait for a name, a role or the other side. */
val PATIENCE = 10.seconds

/** Both halves of a bus, or what a command needs of rings. */
class Place private constructor(private val args: Args, private val bus: Bus?) {
    private var ownTx: Sender? = null
    private var ownRx: Receiver? = null
    val tx: Sender by lazy { bus?.sender ?: ownTx ?: missing() }
    val rx: Receiver by lazy { bus?.receiver ?: ownRx ?: missing() }

    private fun missing(): Nothing = throw Usage("--ring (with --back for both ways), --listen or --connect is missing")

    private fun options(): OptionsBuilder.() -> Unit = {
        timeout = PATIENCE
        if (args.create) {
            capacity = args.capacity
            align = args.align
        }
    }

    /** Closes in an orderly way. What that says on a bus whose peer is dead does not matter. */
    fun close() {
        for (end in if (bus != null) listOf(bus) else listOfNotNull(ownTx, ownRx)) {
            try {
                end.close()
            } catch (_: RamwayException) {
                // As above.
            }
        }
        say("closed")
    }

    companion object {
        private suspend fun open(args: Args, to: String?, from: String?): Place {
            args.listen?.let { name ->
                val listener = Listener.bind(name) {
                    toPeer = args.capacity
                    fromPeer = args.capacity
                    align = args.align
                }
                return listener.use { withTimeout(PATIENCE) { Place(args, it.accept()) } }
            }
            args.connect?.let { name -> return Place(args, Bus.connect(name) { timeout = PATIENCE }) }
            return Place(args, null).apply {
                to?.let { ownTx = if (args.create) Sender.create(it, options()) else Sender.open(it, options()) }
                from?.let { ownRx = if (args.create) Receiver.create(it, options()) else Receiver.open(it, options()) }
            }
        }

        private fun attached(epoch: Int, peerEpoch: Int, capacity: Long, max: Int) = say(
            "attached pid=${ProcessHandle.current().pid()} epoch=${epoch.toUInt()} peer_epoch=${peerEpoch.toUInt()} " +
                "capacity=$capacity max=$max",
        )

        /** Both halves: to one ring and from the other, or a bus; and the line that says so. */
        suspend fun conversation(args: Args, to: String?, from: String?) = open(args, to, from).apply {
            attached(tx.epoch, tx.peerEpoch, tx.capacity, tx.maxMessageLength)
        }

        suspend fun sending(args: Args) = conversation(args, args.ring, null)

        suspend fun receiving(args: Args) = open(args, null, args.ring).apply {
            attached(rx.epoch, rx.peerEpoch, rx.capacity, rx.maxMessageLength)
        }
    }
}
