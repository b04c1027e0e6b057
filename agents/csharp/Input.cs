using System;
using System.Collections.Concurrent;
using System.IO;
using System.Text;
using System.Threading;

namespace Ramway.Conformance
{
    /// <summary>
    /// Standard input, line by line, by a thread of its own: --linger waits for a line or a time, whichever is first.
    /// </summary>
    internal static class Input
    {
        // Completed at the end of the input.
        private static BlockingCollection<string>? lines;

        private static BlockingCollection<string> Lines()
        {
            if (lines == null)
            {
                var to = new BlockingCollection<string>();
                var reader = new Thread(() => ReadAll(to)) { IsBackground = true, Name = "standard input" };
                reader.Start();
                lines = to;
            }
            return lines;
        }

        private static void ReadAll(BlockingCollection<string> to)
        {
            // Not Console.In, which sets the terminal up and listens to signals.
            using var reader = new StreamReader(Console.OpenStandardInput(), new UTF8Encoding(false));
            try
            {
                for (string? line = reader.ReadLine(); line != null; line = reader.ReadLine())
                {
                    to.Add(line);
                }
            }
            catch (IOException)
            {
                // Like its end: nobody has anything to say any more.
            }
            to.CompleteAdding();
        }

        /// <summary>The next line, or null once there is none any more.</summary>
        internal static string? Line() => Lines().TryTake(out string? line, Timeout.Infinite) ? line : null;

        /// <summary>--linger: that long, or until a line arrives or standard input ends.</summary>
        internal static void Linger(Args args)
        {
            if (args.Linger >= 0)
            {
                Lines().TryTake(out _, (int)Math.Min(args.Linger, int.MaxValue));
            }
        }

        /// <summary>--pause: until a line arrives.</summary>
        internal static void Pause(Args args)
        {
            if (args.Pause)
            {
                Line();
            }
        }
    }
}
