namespace Ramway.Tests
{
    internal static class Program
    {
        private static int Main(string[] arguments) => Runner.Run(arguments);
    }
}
