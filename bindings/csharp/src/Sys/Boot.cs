using System;

namespace Ramway.Sys
{
    /// <summary>Which boot this is.</summary>
    internal static class Boot
    {
        private static readonly Lazy<byte[]> Known = new Lazy<byte[]>(
            () => ParseId(Files.ReadText("/proc/sys/kernel/random/boot_id")));

        /// <summary>16 bytes; all zero where the kernel does not tell.</summary>
        internal static byte[] Id => Known.Value;

        /// <summary>Reads a UUID as text; all zero if it is none.</summary>
        internal static byte[] ParseId(string text)
        {
            byte[] id = new byte[16];
            int digits = 0;
            foreach (char c in text)
            {
                int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
                if (digit < 0)
                {
                    continue;
                }
                if (digits < 32)
                {
                    id[digits / 2] = (byte)(id[digits / 2] << 4 | digit);
                }
                digits++;
            }
            return digits < 32 ? new byte[16] : id;
        }
    }
}
