//! What is called around `fork`.

/// Has `prepare` called before every fork of the C library, and afterwards `parent` in the parent and `child` in the
/// child, all on the thread that forks. Each call adds three more, for the rest of the process: call it once.
///
/// `vfork` and `posix_spawn` call nothing, and need nothing: an exec follows. Neither does a child that was made by the
/// raw system call, which may use no pool.
pub(crate) fn install(prepare: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) {
    #[cfg(all(unix, not(miri)))]
    {
        // SAFETY: the three are sound whenever the process forks, which is what a safe function promises. The call
        // fails only for lack of memory; the child of a fork then finds locks that vanished threads hold, as it would
        // with any library that could not install its handlers.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    }
    #[cfg(not(all(unix, not(miri))))]
    let _ = (prepare, parent, child);
}
