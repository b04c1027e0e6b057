package dev.ramway.sys;

/**
 * What makes a file the same file.
 *
 * @param device the file system's number
 * @param inode the file's in it
 */
public record FileId(long device, long inode) {}
