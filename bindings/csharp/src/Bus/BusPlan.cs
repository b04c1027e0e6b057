namespace Ramway
{
    /// <summary>What a listener gives every bus.</summary>
    internal sealed class BusPlan
    {
        internal BusPlan(string name, Spec spec, RingOptions options)
        {
            Name = name;
            Spec = spec;
            Options = options;
        }

        /// <summary>Goes into the memfd's name, so that <c>ramway ls</c> finds the bus.</summary>
        internal string Name { get; }

        internal Spec Spec { get; }

        /// <summary>How this side's halves wait.</summary>
        internal RingOptions Options { get; }
    }
}
