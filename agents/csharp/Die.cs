using System;

namespace Ramway.Conformance
{
    /// <summary>die.</summary>
    internal static class Die
    {
        internal static void Play(Args args)
        {
            args.Counted();
            Args.OneOf("role", args.Role, "producer", "consumer");
            if (args.Role == "consumer")
            {
                new Consume(args).ReceiveAndDie();
            }
            Place place = Place.Sending(args);
            var all = new Messages(args.Sizes, place.Tx.MaxMessageLength);
            long last = args.First + args.Count;
            for (long seq = args.First; seq < last; seq++)
            {
                Produce.Put(args, place, all.Make(seq), true);
            }
            Made m = all.Make(last);
            int half = m.Payload.Length / 2;
            Slot slot = place.Reserve(m.Payload.Length);
            m.Payload.Slice(0, half).CopyTo(slot.Data);
            slot.CommitUnflushed(m.TypeId, m.Tag, half);
            Program.Say($"dying next={last}");
            Native.Crash();
        }
    }
}
