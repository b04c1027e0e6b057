using System;
using System.IO;
using System.Text;

namespace Ramway.Conformance
{
    /// <summary>C#'s agent: ../README.md says what each command and flag means.</summary>
    internal static class Program
    {
        // Not Console.Out, which has locks and buffers of its own: an event is one write.
        private static readonly Stream Output = Console.OpenStandardOutput();

        /// <summary>Prints a line at once.</summary>
        internal static void Say(string line) => Output.Write(Encoding.UTF8.GetBytes(line + "\n"));

        private static int Main(string[] words)
        {
            int status = words.Length == 1 && words[0] == "serve" ? Serve() : Play(words);
            // A thread may still read standard input.
            Environment.Exit(status);
            return status;
        }

        private static int Serve()
        {
            for (string? line = Input.Line(); line != null; line = Input.Line())
            {
                Play(line.Split(' '));
                Say("over");
            }
            return 0;
        }

        /// <summary>Plays one command; gives the exit status.</summary>
        private static int Play(string[] words)
        {
            try
            {
                var args = new Args(words);
                if (args.Cpu >= 0)
                {
                    Native.Pin(args.Cpu);
                }
                Run(args);
                return 0;
            }
            catch (UsageException e)
            {
                Console.Error.WriteLine(e.Message);
                return 2;
            }
            catch (BadException e)
            {
                Say($"bad seq={e.Seq} text={e.Message}");
                return 1;
            }
            catch (RamwayException e)
            {
                Say($"error {Named(e.Kind)} text={e.Message}");
                // A vector may well be what cannot be opened.
                return words[0] == "read" ? 0 : 1;
            }
            catch (Exception e)
            {
                Console.Error.WriteLine(e);
                Say($"error {Named(ErrorKind.Os)} text={e.GetType().Name}: {e.Message}");
                return 1;
            }
        }

        private static void Run(Args args)
        {
            switch (args.Command)
            {
                case "produce":
                    Produce.Play(args);
                    break;
                case "consume":
                    Consume.Play(args);
                    break;
                case "die":
                    Die.Play(args);
                    break;
                case "read":
                    Look.Read(args);
                    break;
                case "show":
                    Look.Show(args);
                    break;
                case "echo":
                    Talk.Echo(args);
                    break;
                case "ping":
                    Talk.Ping(args);
                    break;
                case "tensors":
                    Tensors.Play(args);
                    break;
                case "flood":
                    Speed.Flood(args);
                    break;
                case "drain":
                    Speed.Drain(args);
                    break;
                default:
                    throw new UsageException("no such command: " + args.Command);
            }
        }

        /// <summary>ABI.md's name and number.</summary>
        internal static string Named(ErrorKind kind) => $"name={kind} number={(int)kind}";

        /// <summary>Whether the stream may go on after this.</summary>
        internal static bool IsEnding(ErrorKind kind) => kind == ErrorKind.Closed || kind == ErrorKind.PeerDead;
    }

    /// <summary>A call that never waits gave nothing.</summary>
    internal sealed class EndingException : Exception
    {
        internal EndingException(ErrorKind kind)
            : base(kind.ToString()) => Kind = kind;

        internal ErrorKind Kind { get; }

        /// <summary>What a call ended with, if it is that or an error of the library's.</summary>
        internal static ErrorKind? KindOf(Exception e) =>
            e is EndingException ending ? ending.Kind : e is RamwayException error ? error.Kind : (ErrorKind?)null;
    }
}
