using System;
using System.Collections.Generic;
using System.Threading;

namespace Ramway
{
    // The client's own thread, which receives once there was an asynchronous call, unless a blocking caller does.
    //
    // A task that waits alone is completed on this thread, and so is what follows it: to wake a thread of the pool for it takes longer
    // than the call. That is code of the user's, which may take its time, make blocking calls, or wait for other calls of this client.
    // So the thread gives its role up first: any blocking caller may receive meanwhile, as at any other time. If there is a call and
    // nobody receives for it, another thread takes this one's place: at once if the call was begun elsewhere, and else, because who
    // begins a call there nearly always returns next, when the timer has found it still away. Then what follows a task runs in the thread
    // pool for a while, each time for longer: for a program whose tasks take their time a thread that is replaced costs more than that.
    public sealed partial class RpcClient
    {
        private const int TickMilliseconds = 10;
        private const long FirstStay = 1000, LongestStay = 1_000_000;

        // Under the lock.
        /// <summary>The client's thread; null before the first asynchronous call.</summary>
        private Thread? owner;
        /// <summary>It runs what follows a task.</summary>
        private bool away;
        /// <summary>How often it was away, and what the timer has seen of that.</summary>
        private long trips, tripsSeen;
        private bool ticking;
        /// <summary>Tasks that still go to the pool before one runs here again, and how many will after the next replacement.</summary>
        private long stays, staysNext = FirstStay;
        private Timer? timer;

        /// <summary>Sees to it that the call that is about to be made is received for.</summary>
        private void EnsureThread()
        {
            if (owner == null)
            {
                StartThread();
            }
            else if (away && !pumping && owner != Thread.CurrentThread)
            {
                Replace();
            }
            else if (away && !ticking)
            {
                ticking = true;
                tripsSeen = trips;
                timer ??= new Timer(client => ((RpcClient)client!).Tick(), this, Timeout.Infinite, Timeout.Infinite);
                timer.Change(TickMilliseconds, TickMilliseconds);
            }
        }

        private void Tick()
        {
            lock (gate)
            {
                bool still = away && trips == tripsSeen && ledger.IsBusy && ended == 0;
                if (still && !pumping)
                {
                    Replace();
                }
                // While a blocking caller receives, it is asked again: nobody may when that one leaves.
                else if (still || trips != tripsSeen)
                {
                    tripsSeen = trips;
                    return;
                }
                ticking = false;
                timer!.Change(Timeout.Infinite, Timeout.Infinite);
            }
        }

        /// <summary>Another thread takes the place of the one that is away.</summary>
        private void Replace()
        {
            away = false;
            stays = staysNext;
            staysNext = Math.Min(2 * staysNext, LongestStay);
            StartThread();
        }

        private void StartThread()
        {
            owner = new Thread(RunThread) { IsBackground = true, Name = "ramway rpc client" };
            owner.Start();
        }

        private void RunThread()
        {
            while (true)
            {
                lock (gate)
                {
                    if (owner != Thread.CurrentThread)
                    {
                        return;
                    }
                    away = false;
                    while (pumping)
                    {
                        Monitor.Wait(gate);
                    }
                    pumping = true;
                }
                List<IWaker>? alone = Serve();
                if (alone == null)
                {
                    return;
                }
                Run(alone, true);
            }
        }

        /// <summary>Receives until a task is to be completed on this thread, or the connection is over: null.</summary>
        private List<IWaker>? Serve()
        {
            for (bool told = false; ;)
            {
                List<IWaker>? wakes;
                long sleepUntil;
                bool more, over;
                pump.Clear();
                lock (gate)
                {
                    more = Round();
                    wakes = ledger.TakeWakes();
                    over = ended != 0;
                    if (over)
                    {
                        Leave();
                    }
                    else if (wakes?.Count == 1 && wakes[0] is TaskWaker && !ledger.IsBusy && --stays < 0)
                    {
                        stays = 0;
                        away = true;
                        trips++;
                        Leave();
                        return wakes;
                    }
                    sleepUntil = Prepare(long.MaxValue);
                }
                Run(wakes);
                if (over)
                {
                    return null;
                }
                told |= wakes != null;
                if (!more)
                {
                    // What follows a task runs in the pool, and is likely to make the next call.
                    pump.Idle(ends, sleepUntil, told);
                    told = false;
                }
            }
        }
    }
}
