using System.Collections.Generic;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>A thread that receives from several clients of a server, a round's frames from each, one after the other.</summary>
    internal sealed class ServerPump
    {
        private readonly RpcServer server;
        private readonly PumpWait wait;
        private readonly Thread thread;
        // The thread's own.
        private readonly List<ServerConnection> connections = new List<ServerConnection>();
        private readonly List<RingEnd> ends = new List<RingEnd>();
        // Under its own lock.
        private readonly List<ServerConnection> arrived = new List<ServerConnection>();
        private int load;
        private bool stopped;

        internal ServerPump(RpcServer server, WaitMode mode)
        {
            this.server = server;
            wait = new PumpWait(mode);
            thread = new Thread(Run) { IsBackground = true, Name = "ramway rpc server" };
            thread.Start();
        }

        /// <summary>Takes a client over. False: it has as many as it can serve.</summary>
        internal bool TryAdd(ServerConnection connection)
        {
            lock (arrived)
            {
                // Of each client both ends may have to be waited for.
                if (load >= PumpWait.MostEnds / 2 || stopped)
                {
                    return false;
                }
                load++;
                connection.Pump = this;
                arrived.Add(connection);
            }
            wait.Nudge();
            return true;
        }

        internal void Nudge() => wait.Nudge();

        /// <summary>Ends its connections and the thread.</summary>
        internal void Stop()
        {
            lock (arrived)
            {
                stopped = true;
            }
            wait.Nudge();
            thread.Join();
        }

        private void Run()
        {
            while (true)
            {
                wait.Clear();
                bool stop;
                lock (arrived)
                {
                    connections.AddRange(arrived);
                    arrived.Clear();
                    stop = stopped;
                }
                if (stop)
                {
                    connections.ForEach(End);
                    return;
                }
                bool more = false;
                bool working = false;
                long next = long.MaxValue;
                ends.Clear();
                connections.RemoveAll(connection =>
                {
                    if (connection.Round(ends, ref more, ref working, ref next))
                    {
                        return false;
                    }
                    Gone(connection);
                    return true;
                });
                if (!more)
                {
                    wait.Idle(ends, next, working);
                }
            }
        }

        private void End(ServerConnection connection)
        {
            connection.End();
            Gone(connection);
        }

        private void Gone(ServerConnection connection)
        {
            lock (arrived)
            {
                load--;
            }
            server.Gone(connection);
        }
    }
}
