using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Reflection;
using System.Threading;

namespace Ramway.Tests
{
    /// <summary>A static method without parameters that fails by throwing.</summary>
    [AttributeUsage(AttributeTargets.Method)]
    internal sealed class TestAttribute : Attribute
    {
        /// <summary>It is stuck after so many seconds, and the whole run ends.</summary>
        public int Seconds { get; set; } = 60;
    }

    /// <summary>A static method that a test runs in a process of its own: see <see cref="Peer"/>.</summary>
    [AttributeUsage(AttributeTargets.Method)]
    internal sealed class HelperAttribute : Attribute
    {
        public HelperAttribute(string name) => Name = name;

        public string Name { get; }
    }

    /// <summary>What a test throws where it cannot be run on this machine, which the last line counts.</summary>
    internal sealed class SkipException : Exception
    {
        public SkipException(string why)
            : base(why)
        {
        }
    }

    /// <summary>
    /// Runs the tests one after another: `Ramway.Tests [--list] [PART_OF_A_NAME...]`. The last line counts them.
    /// </summary>
    internal static class Runner
    {
        internal const string HelperArgument = "--helper";

        internal static int Run(string[] arguments)
        {
            if (arguments.Length > 1 && arguments[0] == HelperArgument)
            {
                return RunHelper(arguments[1], arguments.Skip(2).ToArray());
            }
            bool list = arguments.Contains("--list");
            string[] wanted = arguments.Where(a => a != "--list").ToArray();
            List<MethodInfo> tests = Methods<TestAttribute>()
                .Where(m => wanted.Length == 0 || wanted.Any(w => NameOf(m).Contains(w, StringComparison.OrdinalIgnoreCase)))
                .OrderBy(NameOf, StringComparer.Ordinal)
                .ToList();
            if (list)
            {
                tests.ForEach(t => Console.WriteLine(NameOf(t)));
                return 0;
            }
            if (tests.Count == 0)
            {
                Console.WriteLine("no test has '" + string.Join("' or '", wanted) + "' in its name");
                Console.WriteLine("0 passed, 1 failed");
                return 1;
            }
            return RunAll(tests);
        }

        private static int RunAll(List<MethodInfo> tests)
        {
            int passed = 0, failed = 0, skipped = 0;
            // Of its own, which the other processes get in their environment.
            using var directory = new Folder();
            Environment.SetEnvironmentVariable("RAMWAY_DIR", directory.Path);
            foreach (MethodInfo test in tests)
            {
                var watch = Stopwatch.StartNew();
                Exception? failure = RunOne(test, out bool stuck);
                string name = NameOf(test) + " (" + watch.ElapsedMilliseconds + " ms)";
                if (failure == null)
                {
                    passed++;
                    Console.WriteLine("ok   " + name);
                }
                else if (failure is SkipException)
                {
                    skipped++;
                    Console.WriteLine("skip " + name + ": " + failure.Message);
                }
                else
                {
                    failed++;
                    Console.WriteLine("FAIL " + name + ": " + failure);
                }
                if (stuck)
                {
                    // Its thread holds what it holds: nothing that follows could be believed.
                    Console.WriteLine("not run: " + (tests.Count - passed - failed - skipped) + " tests after one that is stuck");
                    failed = tests.Count - passed - skipped;
                    break;
                }
            }
            Peer.KillAll();
            Console.WriteLine(passed + " passed, " + failed + " failed" + (skipped == 0 ? "" : ", " + skipped + " skipped"));
            Console.Out.Flush();
            return failed == 0 ? 0 : 1;
        }

        /// <summary>What a test ended with; null is success.</summary>
        private static Exception? RunOne(MethodInfo test, out bool stuck)
        {
            Exception? failure = null;
            // A thread of its own, so that one that is stuck can be told from one that is slow.
            var thread = new Thread(() =>
            {
                try
                {
                    object? result = test.Invoke(null, null);
                    if (result is System.Threading.Tasks.Task task)
                    {
                        task.GetAwaiter().GetResult();
                    }
                }
                catch (TargetInvocationException e)
                {
                    failure = e.InnerException;
                }
                catch (Exception e)
                {
                    failure = e;
                }
            });
            thread.IsBackground = true;
            thread.Start();
            int seconds = test.GetCustomAttribute<TestAttribute>()!.Seconds;
            stuck = !thread.Join(TimeSpan.FromSeconds(seconds));
            return stuck ? new TimeoutException("not done after " + seconds + " s") : failure;
        }

        private static int RunHelper(string name, string[] arguments)
        {
            MethodInfo helper = Methods<HelperAttribute>().Single(m => m.GetCustomAttribute<HelperAttribute>()!.Name == name);
            try
            {
                helper.Invoke(null, new object[] { arguments });
                return 0;
            }
            catch (TargetInvocationException e)
            {
                // The test reads it where it expected something else.
                Console.WriteLine("failed: " + e.InnerException);
                Console.Out.Flush();
                return 1;
            }
        }

        private static IEnumerable<MethodInfo> Methods<TAttribute>()
            where TAttribute : Attribute =>
            typeof(Runner).Assembly.GetTypes()
                .SelectMany(t => t.GetMethods(
                    BindingFlags.Static | BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.DeclaredOnly))
                .Where(m => m.GetCustomAttribute<TAttribute>() != null);

        private static string NameOf(MethodInfo test) => test.DeclaringType!.Name + "." + test.Name;
    }
}
