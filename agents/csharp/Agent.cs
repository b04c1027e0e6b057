using System;
using System.Diagnostics;
using System.IO;
using System.Runtime.InteropServices;
using System.Text;

namespace Ramway.Agents
{
    /// <summary>C#'s agent: ../README.md has the protocol. What is open: both halves of a bus, or what a role needs of
    /// rings.</summary>
    internal sealed class Agent
    {
        /// <summary>How long to wait for a name, a role or the other side.</summary>
        internal static readonly TimeSpan OpenTimeout = TimeSpan.FromSeconds(10);

        // Not Console.Out, which has locks and buffers of its own: an event is one write.
        private static readonly Stream Output = Console.OpenStandardOutput();

        private static readonly int Pid = Process.GetCurrentProcess().Id;

        private Bus? bus;
        private RpcServing? serving;
        private RpcCalling? calling;

        internal Sender? Tx { get; private set; }

        internal Receiver? Rx { get; private set; }

        /// <summary>
        /// Whether to use the calls that wait without a thread: where sleeping is asked for, unless RAMWAY_CONFORMANCE_CALLS says
        /// sync or async for all.
        /// </summary>
        internal bool Asynchronous { get; private set; }

        /// <summary>Prints a line at once.</summary>
        internal static void Say(string line) => Output.Write(Encoding.UTF8.GetBytes(line + "\n"));

        /// <summary>ABI.md's name and number.</summary>
        internal static string Named(ErrorKind kind) => $"name={kind} number={(int)kind}";

        private static int Main()
        {
            var agent = new Agent();
            try
            {
                for (Line? line = Line.Next(); line != null; line = Line.Next())
                {
                    try
                    {
                        agent.Obey(line);
                    }
                    catch (RamwayException e)
                    {
                        Say($"error {Named(e.Kind)} text={e.Message}");
                    }
                    catch (RpcException e)
                    {
                        string name = e.Status?.ToString() ?? e.Kind!.Value.ToString();
                        Say($"error name={name} number={(int?)e.Status ?? (int)e.Kind!.Value} text={e.Message}");
                    }
                }
                return 0;
            }
            catch (RefusedException e)
            {
                Say($"refused text={e.Message}");
                return 2;
            }
            catch (BadException e)
            {
                Say($"bad seq={e.Seq} text={e.Message}");
            }
            catch (Exception e)
            {
                Console.Error.WriteLine(e);
            }
            return 1;
        }

        private void Obey(Line line)
        {
            if (serving != null || calling != null)
            {
                ObeyRpc(line);
                return;
            }
            switch (line.Word)
            {
                case "open":
                    Open(line);
                    break;
                case "close":
                    Close(line);
                    break;
                case "produce":
                    new Produce(this, Sending, line).Run();
                    break;
                case "consume":
                    new Consume(this, Receiving, line).Run();
                    break;
                case "echo":
                    Talk.Echo(Sending, Receiving, line);
                    break;
                case "ping":
                    Talk.Ping(Sending, Receiving, line);
                    break;
                case "last":
                    Talk.Last(Sending, line);
                    break;
                case "take":
                    Talk.Take(Receiving, line);
                    break;
                case "tensor":
                    Tensors.Send(Sending, line);
                    break;
                case "write":
                    Look.Write(Sending, line);
                    break;
                case "hold":
                    Look.Hold(Receiving, line);
                    break;
                case "region":
                    Look.Region(line);
                    break;
                case "measure":
                    new Measure(this, line).Run();
                    break;
                case "about":
                    line.End();
                    Say("about text=" + RuntimeInformation.FrameworkDescription);
                    break;
                default:
                    throw new RefusedException("no such command: " + line.Word);
            }
        }

        private void ObeyRpc(Line line)
        {
            if (!(serving?.Obey(line) ?? calling!.Obey(line)))
            {
                throw new RefusedException("no such command while a server or a client is open: " + line.Word);
            }
            if (line.Word == "close")
            {
                serving = null;
                calling = null;
                Say("closed");
            }
        }

        private Sender Sending => Tx ?? throw new RefusedException("there is nothing to send to");

        private Receiver Receiving => Rx ?? throw new RefusedException("there is nothing to receive from");

        private void Open(Line line)
        {
            string role = line.Text("role");
            bool consumes = role == "consumer";
            string? calls = Environment.GetEnvironmentVariable("RAMWAY_CONFORMANCE_CALLS");
            Asynchronous = calls == "async" || (calls != "sync" && line.Is("wait", "block"));
            if (line.Maybe("rpc") is string rpc)
            {
                if (role == "server")
                {
                    serving = new RpcServing(line, rpc, Pid);
                }
                else
                {
                    // The calls that do not block.
                    bool awaits = line.Text("kind") == "async";
                    calling = new RpcCalling(line, rpc, Pid, Asynchronous || awaits);
                }
                return;
            }
            if (line.Maybe("topic") is string topic)
            {
                (Tx, Rx) = Topics.Open(line, topic, consumes);
                SayAttached(consumes);
                return;
            }
            string? ring = line.Maybe("ring"), back = line.Maybe("back");
            string? listen = line.Maybe("listen"), connect = line.Maybe("connect");
            bool create = line.Yes("create"), prefault = line.Yes("prefault");
            long capacity = line.Number("capacity", 65536);
            int align = (int)line.Number("align", 16);
            WaitMode wait = line.Wait();
            line.End();
            if (listen != null)
            {
                using Listener listener = Listener.Bind(listen, new ListenOptions { Capacity = capacity, Align = align, Wait = wait });
                bus = listener.Accept(OpenTimeout);
            }
            else if (connect != null)
            {
                bus = Bus.Connect(connect, new ConnectOptions { Timeout = OpenTimeout, Wait = wait });
            }
            else
            {
                var options = new RingOptions { Timeout = OpenTimeout, Wait = wait, Prefault = prefault };
                if (create)
                {
                    options.Capacity = capacity;
                    options.Align = align;
                }
                string? to = consumes ? back : ring, from = consumes ? ring : back;
                Tx = to == null ? null : create ? Sender.Create(to, options) : Sender.Open(to, options);
                Rx = from == null ? null : create ? Receiver.Create(from, options) : Receiver.Open(from, options);
            }
            if (bus != null)
            {
                // It may have one direction only.
                Tx = consumes ? null : bus.Sender;
                Rx = role == "producer" ? null : bus.Receiver;
            }
            SayAttached(consumes);
        }

        private void SayAttached(bool consumes)
        {
            Say($"attached pid={Pid} " + (consumes
                ? Attached(Receiving.Epoch, Receiving.PeerEpoch, Receiving.Capacity, Receiving.MaxMessageLength)
                : Attached(Sending.Epoch, Sending.PeerEpoch, Sending.Capacity, Sending.MaxMessageLength)));
        }

        private static string Attached(uint epoch, uint peerEpoch, long capacity, long longest) =>
            $"epoch={epoch} peer_epoch={peerEpoch} capacity={capacity} max={longest}";

        private void Close(Line line)
        {
            line.End();
            foreach (IDisposable? end in bus != null ? new IDisposable?[] { bus } : new IDisposable?[] { Tx, Rx })
            {
                try
                {
                    end?.Dispose();
                }
                catch (RamwayException)
                {
                    // What closing says on a bus whose peer is dead does not matter.
                }
            }
            bus = null;
            Tx = null;
            Rx = null;
            Say("closed");
        }
    }
}
