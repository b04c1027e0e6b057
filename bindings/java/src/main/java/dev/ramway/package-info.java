/**
 * Shared memory between the processes of one machine: rings, topics, buses, regions and RPC.
 *
 * <ul>
 *   <li>A <em>ring</em> goes one way, from one {@link dev.ramway.Sender} to one {@link dev.ramway.Receiver}. It has a name, and
 *       survives the processes that use it; {@link dev.ramway.Ring#pair} makes one for two threads.
 *   <li>A {@link dev.ramway.Topic} is one log with one {@link dev.ramway.Publisher} and any number of
 *       {@link dev.ramway.Subscriber}s, each of which reads at its own position.
 *   <li>A {@link dev.ramway.Bus} is a connection of two processes: a ring in each direction, in sealed memory that both sides
 *       distrust. {@link dev.ramway.Bus#connect} makes one, at the other end a {@link dev.ramway.Listener} accepts it.
 *   <li>An {@link dev.ramway.RpcServer} has methods, which {@link dev.ramway.RpcClient}s call: each call has one reply, an error, or a
 *       stream of elements.
 *   <li>A {@link dev.ramway.Region} is shared bytes with a name, and a way to wait for their change.
 * </ul>
 *
 * <p>A received {@link dev.ramway.Message} and a reserved {@link dev.ramway.Slot} are views of the shared memory until they are
 * closed; a use after that throws {@link java.lang.IllegalStateException}. Everything that fails otherwise throws a
 * {@link dev.ramway.RamwayException}, whose {@link dev.ramway.ErrorKind} says what it was; a call of RPC that has no reply throws an
 * {@link dev.ramway.RpcException}. Null where nothing else is said throws
 * {@link java.lang.NullPointerException}.
 *
 * <p>A call that waits can be interrupted at once, and a virtual thread that waits holds no carrier. The virtual machine has to
 * be started with {@code --enable-native-access=dev.ramway} ({@code ALL-UNNAMED} where Ramway is on the class path).
 */
package dev.ramway;
