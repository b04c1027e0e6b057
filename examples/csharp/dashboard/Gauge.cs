using System;
using Ramway;

namespace Dashboard
{
    /// <summary>
    /// One row: the newest value of one topic. It costs the sensor nothing, however many dashboards read it, and it allocates nothing
    /// while the sensor is there.
    /// </summary>
    internal sealed class Gauge : IDisposable
    {
        private readonly string name;
        private readonly byte[] value = new byte[Reading.Size];
        private Subscriber? subscriber;
        private ulong seq;

        internal Gauge(string name) => this.name = name;

        /// <summary>What there is to say of the sensor.</summary>
        internal string State { get; private set; } = "not there yet";

        /// <summary>The newest reading; its Number is 0 before the first.</summary>
        internal Reading Newest { get; private set; }

        /// <summary>How old the newest value is.</summary>
        internal TimeSpan Age { get; private set; }

        /// <summary>How many values came since the last update; one of them is shown.</summary>
        internal ulong New { get; private set; }

        internal string Name => name;

        /// <summary>Its topic was found.</summary>
        internal bool IsOpen => subscriber != null;

        /// <summary>Reads the newest value. Never waits.</summary>
        internal void Read()
        {
            New = 0;
            if (subscriber == null && !Open())
            {
                return;
            }
            if (!subscriber!.TryReadLatest(value, out MessageInfo info))
            {
                State = "no value yet";
                return;
            }
            Newest = new Reading(value);
            New = info.Seq - seq;
            seq = info.Seq;
            Age = info.Time is DateTime time ? DateTime.UtcNow - time : TimeSpan.Zero;
            // The value stays when the sensor goes, and its successor goes on in the same topic.
            State = subscriber.PeerAlive ? "" : "the sensor is gone";
        }

        private bool Open()
        {
            try
            {
                subscriber = Subscriber.Open(name, new TopicOptions { Policy = Policy.Latest, Label = "dashboard" });
                return true;
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.NotFound)
            {
                return false;
            }
        }

        public void Dispose() => subscriber?.Dispose();
    }
}
