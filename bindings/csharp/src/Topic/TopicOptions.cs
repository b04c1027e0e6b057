using System;
using System.Text;

namespace Ramway
{
    /// <summary>How a subscriber of a topic reads.</summary>
    public enum Policy
    {
        /// <summary>The publisher waits for the subscriber, which receives every message.</summary>
        Reliable = 0,
        /// <summary>
        /// The publisher never waits for it. It receives every message that it is fast enough for, and how many it lost.
        /// </summary>
        Lossy = 1,
        /// <summary>The publisher never waits for it. It reads the newest message.</summary>
        Latest = 2,
    }

    /// <summary>
    /// Where a subscriber begins. The default value is that of its policy: a reliable one at the oldest message, a lossy one now.
    /// </summary>
    public readonly struct Start
    {
        internal enum Place
        {
            Default,
            Oldest,
            Now,
            History,
            AfterSeq,
            /// <summary>
            /// At the message with this number, or the first intact one after it: where one goes on that was ejected. The oldest
            /// message may be one that it has received.
            /// </summary>
            Again,
        }

        internal readonly Place At;
        internal readonly ulong Number;

        internal Start(Place at, ulong number = 0)
        {
            At = at;
            Number = number;
        }

        /// <summary>At the oldest message that is intact.</summary>
        public static Start Oldest => new Start(Place.Oldest);

        /// <summary>After the newest message.</summary>
        public static Start Now => new Start(Place.Now);

        /// <summary>With up to this many messages that were published before, as many as are intact.</summary>
        public static Start History(ulong messages) => new Start(Place.History, messages);

        /// <summary>
        /// After the message with this number, or at the oldest intact one; the first message then says how many were lost. A
        /// number that the topic has not reached is after the newest message.
        /// </summary>
        public static Start AfterSeq(ulong seq) => new Start(Place.AfterSeq, seq);

        internal Start Or(Place otherwise) => At == Place.Default ? new Start(otherwise) : this;
    }

    /// <summary>
    /// How a topic is to be made or opened, and how its handle waits. A new object holds the defaults. An option of the other side is
    /// InvalidArgument. Discard also throws away what durable subscribers have not received.
    /// </summary>
    public sealed class TopicOptions : SegmentOptions
    {
        internal static readonly TopicOptions Default = new TopicOptions();

        /// <summary>
        /// The topic's size in bytes, frame headers (32 bytes a message) included, rounded up to a power of two of at least a page;
        /// 0 is 1 MiB. A message takes at most half of it. An existing topic must have just this capacity if it is said here
        /// (InvalidArgument).
        /// </summary>
        public long Capacity { get; set; }

        /// <summary>
        /// What each payload's address is a multiple of in the log, in bytes: a power of two from 32 to 4096; 0 is 32. An existing
        /// topic must have just this alignment if it is said here (InvalidArgument).
        /// </summary>
        public int Align { get; set; }

        /// <summary>
        /// How many reliable subscribers there can be at a time, 1 to 1024; 0 is 32. Others take a free slot of the upper half, so
        /// that they are seen, and do without where there is none. An existing topic must have just this number if it is said here
        /// (InvalidArgument).
        /// </summary>
        public int Slots { get; set; }

        /// <summary>A new topic takes no reliable subscriber, so that its publisher never waits. An existing one must be such.</summary>
        public bool LossyOnly { get; set; }

        /// <summary>
        /// The publisher of a new topic may eject a reliable subscriber that holds it up; a subscriber copies then. An existing one
        /// must be such.
        /// </summary>
        public bool MayEject { get; set; }

        /// <summary>
        /// Of a publisher: a reliable subscriber that has kept it waiting for this long without releasing anything is ejected; its next
        /// call throws Lagged, and it goes on at the oldest message that is left. It asks for MayEject; an existing topic without that
        /// is Unsupported. Zero, the default: the publisher waits for it as long as its process lives.
        /// </summary>
        public TimeSpan EjectAfter { get; set; }

        /// <summary>Of a publisher: each message says when it was sent, by the wall clock.</summary>
        public bool Timestamps { get; set; }

        /// <summary>Of a subscriber: how it reads.</summary>
        public Policy Policy { get; set; }

        /// <summary>Of a subscriber: where it begins. With Latest, which reads the newest message, InvalidArgument.</summary>
        public Start Start { get; set; }

        /// <summary>
        /// Of a subscriber: a name for those who watch, and what Durable finds its cursor by, at most 64 bytes of UTF-8; null: none. A
        /// reliable subscriber's is its alone while it is attached (Busy).
        /// </summary>
        public string? Label { get; set; }

        /// <summary>
        /// Of a reliable subscriber with a label: its cursor stays when it closes or dies, and the next one with the label goes on
        /// there. The publisher waits for it all the while, also when nobody is there: see <see cref="Subscriber.Unsubscribe"/>.
        /// </summary>
        public bool Durable { get; set; }

        /// <summary>
        /// Of a subscriber that nobody waits for: it opens the file only for reading, as another user may (mode 0644). It is seen by
        /// nobody, and cannot be woken: it checks every millisecond while it waits. With Open only.
        /// </summary>
        public bool ReadOnly { get; set; }

        /// <summary>As of <see cref="RingOptions.Membarrier"/>; true by default.</summary>
        public bool Membarrier { get; set; } = true;

        /// <summary>The label's bytes; empty: none.</summary>
        internal byte[] LabelBytes => Encoding.UTF8.GetBytes(Label ?? "");

        /// <summary>
        /// Refuses what cannot be, what is the other side's, and what this way of opening would ignore. Gives what a new topic gets:
        /// also where an existing one may need none of it, so that a mistake shows on the first run.
        /// </summary>
        internal Spec Check(How how, bool publishes)
        {
            string? wrong = publishes ? PublisherRefusal() : SubscriberRefusal(how);
            if (wrong == null && LossyOnly && (MayEject || EjectAfter != TimeSpan.Zero))
            {
                wrong = "a topic that takes no reliable subscribers has nobody to eject: say LossyOnly or MayEject";
            }
            if (wrong != null)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, wrong);
            }
            uint flags = LossyOnly ? Facts.TopicLossyOnly : MayEject || EjectAfter != TimeSpan.Zero ? Facts.TopicMayEject : 0;
            return Spec.Topic(Capacity, Align, Slots, flags, Check(how));
        }

        private string? PublisherRefusal() =>
            Policy != Policy.Reliable ? "Policy is not for a publisher"
            : Start.At != Start.Place.Default ? "Start is not for a publisher"
            : Label != null ? "Label is not for a publisher"
            : Durable ? "Durable is not for a publisher"
            : ReadOnly ? "ReadOnly is not for a publisher"
            : EjectAfter < TimeSpan.Zero
            ? "EjectAfter is " + EjectAfter + ": expected more than zero, or zero to wait as long as it takes"
            : null;

        private string? SubscriberRefusal(How how)
        {
            int bytes = LabelBytes.Length;
            return EjectAfter != TimeSpan.Zero ? "EjectAfter is not for a subscriber"
                : Timestamps ? "Timestamps is not for a subscriber"
                : Policy < Policy.Reliable || Policy > Policy.Latest
                ? (int)Policy + " is not a policy: expected Reliable, Lossy or Latest"
                : bytes > Facts.LabelMax || Label == "" || Label != null && Label.IndexOf('\0') >= 0
                ? $"the label '{Label}' of {bytes} bytes: expected 1 to {Facts.LabelMax} bytes of UTF-8 without a zero byte"
                : Durable && Policy != Policy.Reliable
                ? "Durable is for a reliable subscriber: the publisher keeps messages for no other"
                : Durable && Label == null ? "a durable subscriber needs a label, by which the next one finds its cursor"
                : Policy == Policy.Latest && Start.At != Start.Place.Default
                ? "a subscriber with the policy Latest reads the newest message: it begins nowhere else"
                : ReadOnly && Policy == Policy.Reliable
                ? "a reliable subscriber tells the publisher what it has read, so it cannot be ReadOnly"
                : ReadOnly && Label != null ? "a ReadOnly subscriber cannot show a label: it writes nothing"
                : ReadOnly && how != How.Open ? "a ReadOnly subscriber creates nothing: open the topic"
                : null;
        }

        /// <summary>Refuses an existing topic that is not what was asked for.</summary>
        internal void Compare(Spec spec, Header header, bool publishes)
        {
            Geometry wanted = spec.Blocks[0], there = header.Blocks[0];
            const string leave = " asked for; leave it out to take what is there";
            string? differs = Capacity != 0 && there.Capacity != wanted.Capacity
                ? "its capacity is " + there.Capacity + " bytes, not the " + wanted.Capacity + leave
                : Align != 0 && there.Align != wanted.Align
                ? "its alignment is " + there.Align + " bytes, not the " + wanted.Align + leave
                : Slots != 0 && there.Slots != wanted.Slots
                ? "its number of slots is " + there.Slots + ", not the " + wanted.Slots + leave
                : LossyOnly && (there.Flags & Facts.TopicLossyOnly) == 0
                ? "takes reliable subscribers: LossyOnly is decided when a topic is made"
                : MayEject && (there.Flags & Facts.TopicMayEject) == 0
                ? "subscribers cannot be ejected: MayEject is decided when a topic is made"
                : null;
            if (differs != null)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "it exists, and " + differs);
            }
            if (EjectAfter != TimeSpan.Zero && (there.Flags & Facts.TopicMayEject) == 0)
            {
                throw Errors.Fail(ErrorKind.Unsupported, "it exists, and its creator did not allow ejecting subscribers (MayEject): " +
                    "leave EjectAfter out, or create the topic anew");
            }
            if (!publishes && Policy == Policy.Reliable && (there.Flags & Facts.TopicLossyOnly) != 0)
            {
                throw Errors.Fail(ErrorKind.Unsupported, "the topic takes no reliable subscribers (its creator said LossyOnly): " +
                    "subscribe with the policy Lossy or Latest");
            }
        }
    }
}
