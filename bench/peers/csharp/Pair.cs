using System;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Text;
using System.Text.Json;

namespace Ramway.Bench
{
    /// <summary>The leading process's rings, and the following process.</summary>
    internal sealed class Pair
    {
        private readonly Rings rings;
        private readonly Process follower;
        private readonly BinaryReader heard;
        private readonly BinaryWriter say;
        private volatile bool ending;

        public Pair(Setup setup, string order)
        {
            // Before anything is opened: threads that are started later stay where their process is.
            Usage.Settle(setup.Cpu(true), setup.Realtime);
            rings = new Rings(setup, true);
            // The same program in the same way.
            string[] command = File.ReadAllText("/proc/self/cmdline").TrimEnd('\0').Split('\0');
            var start = new ProcessStartInfo(command[0]) { RedirectStandardInput = true, RedirectStandardOutput = true };
            foreach (string argument in command.Skip(1))
            {
                start.ArgumentList.Add(argument);
            }
            start.Environment[Program.Variable] = order;
            follower = Process.Start(start)!;
            follower.EnableRaisingEvents = true;
            follower.Exited += (_, __) =>
            {
                // It says itself why, on standard error. The leading side may poll for what nobody will ever send.
                if (!ending)
                {
                    Program.Answer(to => to.WriteString("failed", "the second process died"));
                    Program.Halt(1);
                }
            };
            heard = new BinaryReader(follower.StandardOutput.BaseStream, Encoding.UTF8);
            say = new BinaryWriter(follower.StandardInput.BaseStream, Encoding.UTF8);
            Hear();
        }

        public int[] Pids => new[] { Process.GetCurrentProcess().Id, follower.Id };

        private void Hear()
        {
            string failure = heard.ReadString();
            if (failure.Length > 0)
            {
                ending = true;
                throw new InvalidOperationException(failure);
            }
        }

        /// <summary>Does it; gives what writes the outcome.</summary>
        public Action<Utf8JsonWriter> Do(Burst burst)
        {
            var half = new Half(rings, true, burst);
            Usage.ForgetPeak();
            burst.Write(say);
            say.Flush();
            Hear();
            half.Run();
            Hear();
            long ended = Math.Max(half.Ended, heard.ReadInt64());
            var samples = new long[heard.ReadInt32()];
            for (int i = 0; i < samples.Length; i++)
            {
                samples[i] = heard.ReadInt64();
            }
            Used theirs = Used.Read(heard);
            long[] all = half.Samples().Concat(samples).ToArray();
            return to => Outcome.Write(to, ended - half.Began, burst.Count, all, half.Used, theirs);
        }

        /// <summary>Ends both in an orderly way.</summary>
        public void Stop()
        {
            ending = true;
            say.Close();
            follower.WaitForExit();
            rings.Dispose();
            if (follower.ExitCode != 0)
            {
                throw new InvalidOperationException("the second process ended with " + follower.ExitCode);
            }
        }
    }
}
