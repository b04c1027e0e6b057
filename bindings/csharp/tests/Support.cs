using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Threading;

namespace Ramway.Tests
{
    /// <summary>
    /// Another process: this program again, running a method that is marked with <see cref="HelperAttribute"/>. Killed if the test
    /// ends before it does.
    /// </summary>
    internal sealed class Peer : IDisposable
    {
        private static readonly List<Peer> Running = new List<Peer>();
        private readonly Process _process;

        private Peer(Process process) => _process = process;

        internal int Pid => _process.Id;

        internal static Peer Start(string helper, params string[] arguments) =>
            StartWith(new Dictionary<string, string>(), helper, arguments);

        /// <summary>With more in its environment.</summary>
        internal static Peer StartWith(IDictionary<string, string> environment, string helper, params string[] arguments)
        {
            var start = new ProcessStartInfo
            {
                FileName = Process.GetCurrentProcess().MainModule!.FileName!,
                RedirectStandardInput = true,
                RedirectStandardOutput = true,
                UseShellExecute = false,
            };
            // Where the program is a library that `dotnet` runs, it is that command's first argument.
            string program = typeof(Peer).Assembly.Location;
            if (Path.GetFileNameWithoutExtension(start.FileName) == "dotnet")
            {
                start.ArgumentList.Add("exec");
                start.ArgumentList.Add(program);
            }
            start.ArgumentList.Add(Runner.HelperArgument);
            start.ArgumentList.Add(helper);
            foreach (string argument in arguments)
            {
                start.ArgumentList.Add(argument);
            }
            foreach (KeyValuePair<string, string> variable in environment)
            {
                start.Environment[variable.Key] = variable.Value;
            }
            var peer = new Peer(Process.Start(start)!);
            lock (Running)
            {
                Running.Add(peer);
            }
            return peer;
        }

        /// <summary>In a helper: tells the test something.</summary>
        internal static void Say(string line)
        {
            Console.Out.WriteLine(line);
            Console.Out.Flush();
        }

        /// <summary>
        /// In a helper: the test's next word, and what was written to the input before it; empty when it has nothing more to say.
        /// </summary>
        internal static string Told() => Console.In.ReadLine() ?? "";

        /// <summary>The next thing that it says. The test fails if it ends first.</summary>
        internal string Hear() =>
            _process.StandardOutput.ReadLine() ?? throw new CheckException("the other process ended without a word");

        internal void Expect(string said) => Check.Equal(said, Hear(), "the other process said");

        internal void Tell(string line)
        {
            _process.StandardInput.WriteLine(line);
            _process.StandardInput.Flush();
        }

        /// <summary>Ends it by SIGKILL, and returns when it is gone.</summary>
        internal void Kill()
        {
            lock (Running)
            {
                if (!Running.Remove(this))
                {
                    return;
                }
            }
            _process.Kill();
            _process.WaitForExit();
        }

        /// <summary>Lets it run to its own end: its input ends, and it must exit with 0.</summary>
        internal void Finish()
        {
            _process.StandardInput.Close();
            string rest = _process.StandardOutput.ReadToEnd();
            _process.WaitForExit();
            lock (Running)
            {
                Running.Remove(this);
            }
            Check.That(_process.ExitCode == 0, "the other process ended with " + _process.ExitCode + ": " + rest);
        }

        public void Dispose() => Kill();

        internal static void KillAll()
        {
            Peer[] left;
            lock (Running)
            {
                left = Running.ToArray();
            }
            foreach (Peer peer in left)
            {
                peer.Kill();
            }
        }
    }

    /// <summary>A directory in memory that goes when the test does.</summary>
    internal sealed class Folder : IDisposable
    {
        private static int _count;

        internal Folder()
        {
            Path = "/dev/shm/ramway-csharp-" + Process.GetCurrentProcess().Id + "-" + Interlocked.Increment(ref _count);
            Directory.CreateDirectory(Path);
        }

        internal string Path { get; }

        /// <summary>
        /// A path in it: with a /, so it means the same in every process whatever RAMWAY_DIR is.
        /// </summary>
        internal string At(string name) => Path + "/" + name;

        /// <summary>What is in it, sorted.</summary>
        internal string[] Names() => Directory.GetFileSystemEntries(Path)
            .Select(e => System.IO.Path.GetFileName(e)!).OrderBy(n => n, StringComparer.Ordinal).ToArray();

        internal void Holds(params string[] names) =>
            Check.Equal(string.Join(" ", names), string.Join(" ", Names()), "what is in the directory");

        public void Dispose() => Directory.Delete(Path, true);
    }

    internal static class Wait
    {
        /// <summary>Far more than anything here takes, so that a slow machine is no failure and a hang is one.</summary>
        internal static readonly TimeSpan Long = TimeSpan.FromSeconds(30);

        /// <summary>Waits until it is so.</summary>
        internal static void Until(string what, Func<bool> so)
        {
            var watch = Stopwatch.StartNew();
            while (!so())
            {
                Check.That(watch.Elapsed < Long, "not within " + Long + ": " + what);
                Thread.Sleep(1);
            }
        }
    }
}
