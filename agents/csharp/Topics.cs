using System;

namespace Ramway.Agents
{
    /// <summary>open topic=: one side of a topic.</summary>
    internal static class Topics
    {
        /// <summary>Opens one side: the publisher is a sender too, and a subscriber a receiver.</summary>
        internal static (Sender?, Receiver?) Open(Line line, string name, bool consumes)
        {
            bool create = line.Yes("create");
            long waitFor = line.Number("wait_for", -1);
            var options = new TopicOptions
            {
                Policy = PolicyOf(line.Maybe("policy") ?? "reliable"),
                Start = Begins(line.Text("from")),
                Label = line.Maybe("label"),
                Durable = line.Yes("durable"),
                EjectAfter = TimeSpan.FromMilliseconds(line.Number("eject_after", 0)),
                Wait = line.Wait(),
                Timeout = TimeSpan.FromMilliseconds(line.Number("timeout", (long)Agent.OpenTimeout.TotalMilliseconds)),
            };
            long capacity = line.Number("capacity", 65536), align = line.Number("align", 32);
            line.End();
            if (create)
            {
                options.Capacity = capacity;
                options.Align = (int)align;
            }
            if (consumes)
            {
                if (waitFor >= 0)
                {
                    throw new RefusedException("wait_for is a producer's");
                }
                return (null, create ? Subscriber.Create(name, options) : Subscriber.Open(name, options));
            }
            Publisher publisher = create ? Publisher.Create(name, options) : Publisher.Open(name, options);
            if (waitFor >= 0)
            {
                try
                {
                    publisher.WaitForSubscribers((int)waitFor, Agent.OpenTimeout);
                }
                catch
                {
                    publisher.Dispose();
                    throw;
                }
            }
            return (publisher, null);
        }

        private static Policy PolicyOf(string text) => Enum.TryParse(text, true, out Policy policy)
            ? policy
            : throw new RefusedException("policy=" + text);

        private static Start Begins(string text)
        {
            string[] parts = text.Split(':', 2);
            ulong number = 0;
            bool numbered = parts.Length == 2 && ulong.TryParse(parts[1], out number);
            return parts[0] switch
            {
                "" => default,
                "oldest" => Start.Oldest,
                "now" => Start.Now,
                "history" when numbered => Start.History(number),
                "after" when numbered => Start.AfterSeq(number),
                _ => throw new RefusedException("from=" + text),
            };
        }
    }
}
