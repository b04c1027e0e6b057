using System;

namespace Ramway.Tests
{
    /// <summary>What a test found and did not expect.</summary>
    internal sealed class CheckException : Exception
    {
        public CheckException(string message)
            : base(message)
        {
        }
    }

    /// <summary>What tests claim.</summary>
    internal static class Check
    {
        internal static void That(bool holds, string what)
        {
            if (!holds)
            {
                throw new CheckException(what);
            }
        }

        internal static void Equal<T>(T expected, T found, string what)
        {
            if (!Equals(expected, found))
            {
                throw new CheckException(what + ": expected " + expected + ", found " + found);
            }
        }

        internal static void Same(ReadOnlySpan<byte> expected, ReadOnlySpan<byte> found, string what)
        {
            if (!expected.SequenceEqual(found))
            {
                throw new CheckException(what + ": expected " + Hex(expected) + ", found " + Hex(found));
            }
        }

        /// <summary>That a call fails in this way, and the error, whose text has each of the parts.</summary>
        internal static RamwayException Fails(ErrorKind kind, Action call, params string[] parts)
        {
            try
            {
                call();
            }
            catch (RamwayException e)
            {
                if (e.Kind != kind)
                {
                    throw new CheckException("expected " + kind + ", found " + e.Kind + ": " + e);
                }
                foreach (string part in parts)
                {
                    That(e.Message.Contains(part, StringComparison.Ordinal), "expected '" + part + "' in: " + e.Message);
                }
                return e;
            }
            throw new CheckException("expected " + kind + ", but nothing failed");
        }

        /// <summary>That a call throws an exception that is not Ramway's own.</summary>
        internal static TException Throws<TException>(Action call)
            where TException : Exception
        {
            try
            {
                call();
            }
            catch (TException e)
            {
                return e;
            }
            throw new CheckException("expected " + typeof(TException).Name + ", but nothing was thrown");
        }

        private static string Hex(ReadOnlySpan<byte> bytes) =>
            bytes.Length + " bytes " + BitConverter.ToString(bytes.Slice(0, Math.Min(bytes.Length, 64)).ToArray());
    }
}
