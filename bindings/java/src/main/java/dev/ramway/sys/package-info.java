/**
 * What Ramway needs of the operating system: raw calls without policy, one topic a file. Not exported.
 *
 * <p>Every descriptor that is opened here is close-on-exec, and every call that a signal can interrupt is made again.
 */
package dev.ramway.sys;
