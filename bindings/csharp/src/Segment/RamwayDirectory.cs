namespace Ramway
{
    /// <summary>Where named segments and listeners live.</summary>
    public static class RamwayDirectory
    {
        /// <summary>RAMWAY_DIR of the environment, else /dev/shm/ramway-UID of the effective user. It need not exist.</summary>
        public static string Path => Names.Directory();
    }
}
