namespace Ramway.Conformance
{
    /// <summary>tensors.</summary>
    internal static class Tensors
    {
        internal static void Play(Args args) => throw new UsageException("not yet");
    }
}
