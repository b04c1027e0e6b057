//! `docs/SYSCALLS.md` lists every system call for authors of seccomp filters: here is one, made from its lists.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod support;

use ramway::{Bus, ErrorKind, Listener, Policy, Region, Ring, Topic, WaitPolicy};
use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::time::Duration;
use support::{Dir, only};

const PAGE: &str = include_str!("../../docs/SYSCALLS.md");
const CHILD: &str = "RAMWAY_TEST_FILTERED";

/// The numbers of the names that the page may use.
fn number(name: &str) -> i64 {
    macro_rules! numbers {
        ($($name:ident = $constant:ident),* $(,)?) => {
            match name { $(stringify!($name) => libc::$constant,)* _ => panic!("this test does not know {name}") }
        };
    }
    numbers!(
        openat = SYS_openat,
        close = SYS_close,
        read = SYS_read,
        pread64 = SYS_pread64,
        pwrite64 = SYS_pwrite64,
        write = SYS_write,
        fstat = SYS_fstat,
        newfstatat = SYS_newfstatat,
        statx = SYS_statx,
        fstatfs = SYS_fstatfs,
        ftruncate = SYS_ftruncate,
        fallocate = SYS_fallocate,
        fchmod = SYS_fchmod,
        fchmodat = SYS_fchmodat,
        chmod = SYS_chmod,
        linkat = SYS_linkat,
        renameat2 = SYS_renameat2,
        unlinkat = SYS_unlinkat,
        mkdirat = SYS_mkdirat,
        mkdir = SYS_mkdir,
        fcntl = SYS_fcntl,
        geteuid = SYS_geteuid,
        prlimit64 = SYS_prlimit64,
        getrandom = SYS_getrandom,
        memfd_create = SYS_memfd_create,
        mmap = SYS_mmap,
        munmap = SYS_munmap,
        mremap = SYS_mremap,
        madvise = SYS_madvise,
        mlock = SYS_mlock,
        mbind = SYS_mbind,
        get_mempolicy = SYS_get_mempolicy,
        futex = SYS_futex,
        membarrier = SYS_membarrier,
        sched_yield = SYS_sched_yield,
        clock_nanosleep = SYS_clock_nanosleep,
        nanosleep = SYS_nanosleep,
        clock_gettime = SYS_clock_gettime,
        ppoll = SYS_ppoll,
        poll = SYS_poll,
        socket = SYS_socket,
        bind = SYS_bind,
        listen = SYS_listen,
        accept4 = SYS_accept4,
        connect = SYS_connect,
        getsockopt = SYS_getsockopt,
        sendmsg = SYS_sendmsg,
        recvmsg = SYS_recvmsg,
        epoll_create1 = SYS_epoll_create1,
        epoll_ctl = SYS_epoll_ctl,
        epoll_pwait = SYS_epoll_pwait,
        epoll_wait = SYS_epoll_wait,
        eventfd2 = SYS_eventfd2,
        restart_syscall = SYS_restart_syscall,
        inotify_init1 = SYS_inotify_init1,
        inotify_add_watch = SYS_inotify_add_watch,
        inotify_rm_watch = SYS_inotify_rm_watch,
        io_uring_setup = SYS_io_uring_setup,
        io_uring_enter = SYS_io_uring_enter,
        io_uring_register = SYS_io_uring_register,
        brk = SYS_brk,
        mprotect = SYS_mprotect,
        clone = SYS_clone,
        clone3 = SYS_clone3,
        set_robust_list = SYS_set_robust_list,
        rseq = SYS_rseq,
        exit = SYS_exit,
        exit_group = SYS_exit_group,
        rt_sigaction = SYS_rt_sigaction,
        rt_sigprocmask = SYS_rt_sigprocmask,
        rt_sigreturn = SYS_rt_sigreturn,
        sigaltstack = SYS_sigaltstack,
        gettid = SYS_gettid,
        getpid = SYS_getpid,
        sched_getaffinity = SYS_sched_getaffinity,
        lseek = SYS_lseek,
        dup = SYS_dup,
        unlink = SYS_unlink,
        rmdir = SYS_rmdir,
        getdents64 = SYS_getdents64,
        readlink = SYS_readlink,
        prctl = SYS_prctl,
        tgkill = SYS_tgkill,
        set_tid_address = SYS_set_tid_address,
    )
}

/// The calls of all ```syscalls blocks of the page.
fn listed() -> BTreeSet<i64> {
    let mut found = BTreeSet::new();
    for block in PAGE.split("```syscalls\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for line in block.lines().filter(|line| !line.starts_with('#')) {
            found.extend(line.split_whitespace().map(|name| number(name.trim_matches(['[', ']']))));
        }
    }
    found
}

/// Says which call was refused, and ends the process with 3. Only calls that a signal handler may make.
extern "C" fn refused(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo; for SIGSYS the number of the call is at offset 24 (si_syscall).
    let mut call = unsafe { info.cast::<u8>().add(24).cast::<i32>().read() };
    let mut text = *b"system call      is not listed in docs/SYSCALLS.md\n";
    for digit in text[12..16].iter_mut().rev() {
        *digit = b'0' + (call % 10) as u8;
        call /= 10;
    }
    // SAFETY: both are async-signal-safe, and the text is valid for its length.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(3);
    }
}

/// Allows the listed calls and traps any other, in all threads that this one starts from now on.
fn install(calls: &BTreeSet<i64>) {
    let statement = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    let mut program = vec![statement(load, 0, 0, 0)];
    for &call in calls {
        program.push(statement(equal, 0, 1, call as u32));
        program.push(statement(answer, 0, 0, libc::SECCOMP_RET_ALLOW));
    }
    program.push(statement(answer, 0, 0, libc::SECCOMP_RET_TRAP));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the action, the handler's signature and the program are valid and outlive the calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = refused as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGSYS, &action, std::ptr::null_mut()), 0);
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter), 0);
    }
}

/// What the page's tables tell of.
fn everything() -> ramway::Result<()> {
    let long = Duration::from_secs(30);
    let short = Duration::from_millis(220);
    // Named ring: create, open, resume, wait and wake on both sides, close, last one out.
    let mut tx = Ring::create("ring").capacity(1 << 16).prefault(true).sender()?;
    let mut rx = Ring::open("ring").receiver()?;
    for i in 0..100u32 {
        tx.send(1, &i.to_le_bytes())?;
        rx.recv()?.release();
    }
    assert_eq!(rx.recv_timeout(short).unwrap_err().kind(), ErrorKind::TimedOut);
    while tx.try_send(1, &[0; 1000]).is_ok() {}
    assert_eq!(tx.send_timeout(1, &[0; 1000], short).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(tx.is_peer_alive());
    let sleeper = std::thread::spawn(move || {
        while rx.recv().is_ok() {}
        rx
    });
    std::thread::sleep(Duration::from_millis(50));
    tx.set_wait_policy(WaitPolicy::Spin);
    tx.send(1, b"wake")?;
    tx.close()?;
    drop(sleeper.join().unwrap());
    assert_eq!(
        Ring::open("ring").timeout(Duration::from_millis(10)).receiver().unwrap_err().kind(),
        ErrorKind::NotFound
    );
    // A readiness descriptor: armed, woken, and of a peer that goes.
    let mut tx = Ring::create("ready").sender()?;
    let mut rx = Ring::open("ready").receiver()?;
    let fd = rx.readiness()?.as_raw_fd();
    assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Empty);
    assert!(!readable(fd, 220));
    tx.send(1, b"x")?;
    assert!(readable(fd, 30_000));
    rx.recv()?.release();
    assert_eq!(rx.recv_timeout(short).unwrap_err().kind(), ErrorKind::TimedOut);
    drop(tx);
    assert!(readable(fd, 30_000));
    assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Closed);
    drop(rx);
    // Topic: join, leave, wait and wake on both sides, a label, a read-only subscriber, an ejection, descriptors.
    let mut publisher = Topic::create("topic").capacity(4096).eject_after(short).publisher()?;
    let mut subscriber = Topic::open("topic").label("label").durable(true).subscriber()?;
    let mut reader = Topic::open("topic").lossy().read_only(true).subscriber()?;
    publisher.wait_for_subscribers(1)?;
    assert_eq!(subscriber.recv_timeout(short).unwrap_err().kind(), ErrorKind::TimedOut);
    publisher.send(1, b"x")?;
    subscriber.recv()?.release();
    reader.recv()?.release();
    assert_eq!(reader.recv_timeout(short).unwrap_err().kind(), ErrorKind::TimedOut);
    for _ in 0..9 {
        publisher.send(1, &[0; 1000])?;
    }
    assert_eq!(subscriber.recv().unwrap_err().kind(), ErrorKind::Lagged);
    assert!(publisher.subscribers()[0].alive);
    let fds = [publisher.readiness()?.as_raw_fd(), subscriber.readiness()?.as_raw_fd()];
    while subscriber.try_recv().is_ok() {}
    while publisher.try_send(1, &[0; 1000]).is_ok() {}
    assert!(fds.into_iter().all(|fd| readable(fd, 30_000)));
    subscriber.unsubscribe()?;
    drop((publisher, reader));
    // Options that a machine may refuse; what matters here is which calls they make.
    let _ = Ring::create("locked").lock_memory(true).receiver();
    let _ = Ring::create("huge").huge_pages(true).receiver();
    let _ = Ring::create("node").numa_node(0).receiver();
    drop(Ring::pair(4096)?);
    // Region, also read-only.
    let region = Region::create("region", 100)?;
    let reader = Region::builder().read_only(true).open("region")?;
    assert!(!region.wait(Some(short))?);
    assert!(!reader.wait(Some(short))?);
    region.notify()?;
    assert!(region.wait(None)? && reader.wait(None)?);
    drop((region, reader));
    // Bus: the connector first, a peer that is waited for, an orderly end and a listener that has gone.
    let connector = std::thread::spawn(move || -> ramway::Result<()> {
        let mut bus = Bus::connect("bus")?;
        bus.send(1, b"hello")?;
        std::thread::sleep(short);
        assert!(bus.is_peer_alive());
        assert_eq!(&*bus.recv_timeout(long)?, b"hello");
        Ok(())
    });
    std::thread::sleep(Duration::from_millis(50));
    let listener = Listener::bind("bus")?;
    let mut bus = listener.accept()?;
    let fd = bus.receiver()?.readiness()?.as_raw_fd();
    assert!(readable(fd, 30_000));
    assert_eq!(&*bus.recv()?, b"hello");
    assert_eq!(bus.recv_timeout(short).unwrap_err().kind(), ErrorKind::TimedOut);
    bus.send(1, b"hello")?;
    assert_eq!(bus.recv().unwrap_err().kind(), ErrorKind::Closed);
    connector.join().unwrap()?;
    drop((bus, listener));
    let gone = Bus::connector("bus").timeout(Duration::from_millis(50)).connect();
    assert!(gone.is_err());
    Ok(())
}

/// Whether the descriptor is or becomes readable.
fn readable(fd: i32, milliseconds: i32) -> bool {
    let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    loop {
        // SAFETY: one pollfd, which outlives the call.
        match unsafe { libc::poll(&mut polled, 1, milliseconds) } {
            // A wake-up through an io_uring may interrupt a system call once.
            -1 => assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINTR)),
            ready => return ready == 1,
        }
    }
}

#[test]
#[cfg_attr(not(target_env = "gnu"), ignore = "the list has the calls of glibc: musl makes others for the same")]
fn nothing_but_the_listed_calls_is_made() {
    if std::env::var_os(CHILD).is_some() {
        install(&listed());
        everything().unwrap();
        return;
    }
    // With an io_uring if the kernel has one, and with a thread.
    for readiness in [None, Some("thread")] {
        let dir = Dir::new();
        let mut command = only("nothing_but_the_listed_calls_is_made");
        command.env(CHILD, "1").env("RAMWAY_DIR", dir.path()).env_remove("RAMWAY_READINESS");
        command.envs(readiness.map(|value| ("RAMWAY_READINESS", value)));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{readiness:?}: {}: {said}", output.status);
        assert_eq!(dir.names(), [""; 0], "segments that nobody removed");
    }
}

/// The child of the test below. One thread calls both sides, so nobody ever waits.
fn a_hundred_thousand_messages_without_a_call() {
    let name = std::env::var(CHILD).unwrap();
    let mut publisher = Topic::create(&name).capacity(1 << 14).timestamps(true).publisher().unwrap();
    let mut subscribers = [Policy::Reliable, Policy::Lossy, Policy::Latest]
        .map(|policy| Topic::open(&name).policy(policy).subscriber().unwrap());
    let (mut payload, mut buffer) = ([0u8; 300], Vec::with_capacity(512));
    // What is there, in messages of each length.
    let mut round = |n: u64| {
        payload[0] = n as u8;
        publisher.try_send_tagged(1, n, &payload[..(n * 7 % 300) as usize]).unwrap();
        for subscriber in &mut subscribers {
            assert_eq!(subscriber.recv().unwrap().tag(), n);
            assert_eq!(subscriber.latest().unwrap().tag(), n);
        }
        if n.is_multiple_of(10) {
            publisher.send_batch(2, [b"a", b"b"]).unwrap();
            assert_eq!(subscribers[0].try_recv_batch(9).unwrap().iter().count(), 2);
            assert_eq!(subscribers[1].recv_into(&mut buffer).unwrap().len, 1);
            assert_eq!(subscribers[1].recv().unwrap().len(), 1);
        }
    };
    // What is set up at the first message, or after a subscriber has come.
    (1..2000).for_each(&mut round);
    install(&["write", "rt_sigreturn", "exit_group"].map(number).into());
    (2000..100_000).for_each(&mut round);
    // SAFETY: ends the process, which may make no other call any more.
    unsafe { libc::_exit(0) }
}

#[test]
fn a_message_of_a_topic_makes_no_call_where_nobody_waits() {
    if std::env::var_os(CHILD).is_some() {
        return a_hundred_thousand_messages_without_a_call();
    }
    let dir = Dir::new();
    let mut command = only("a_message_of_a_topic_makes_no_call_where_nobody_waits");
    let output = command.env(CHILD, dir.at("topic")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}

/// Client and server in one thread: calls with and without a time limit, several under way, a stream, a call that is cancelled.
fn many_rpc_calls_without_a_system_call() -> ! {
    use ramway::rpc::{CallOptions, Client};
    use std::task::Poll;
    use support::rpc::Server;

    let path = std::env::var(CHILD).unwrap();
    let listener = Server::listener(&path, 1 << 16, 64);
    let client = std::thread::spawn(move || Client::connect(&path).unwrap());
    let mut server = Server::accept(&listener);
    let mut client = client.join().unwrap();
    let late = CallOptions::new().timeout(support::LONG);
    let mut round = |i: u32| {
        let (mut one, mut two) =
            (client.start_with(1, &i.to_le_bytes(), &late).unwrap(), client.start(1, &i.to_le_bytes()).unwrap());
        let mut stream = client.stream(2, b"").unwrap();
        for _ in 0..2 {
            let call = server.try_frame().unwrap();
            server.ok(call.id, call.body());
        }
        let id = server.try_frame().unwrap().id;
        server.element(id, b"x");
        for call in [&mut two, &mut one] {
            assert!(matches!(call.poll(&mut client), Poll::Ready(Ok(reply)) if reply.body() == i.to_le_bytes()));
        }
        assert!(matches!(stream.try_next(&mut client), Poll::Ready(Some(Ok(_)))));
        assert!(stream.try_next(&mut client).is_pending());
        stream.cancel(&mut client);
        assert_eq!(server.try_frame().unwrap().id, id);
        server.status(id, 4);
        client.progress();
        assert_eq!(client.in_flight(), 0);
    };
    (1..2000).for_each(&mut round);
    // `ppoll`: whoever finds nothing asks every 100 ms whether the peer lives.
    install(&["write", "rt_sigreturn", "exit_group", "ppoll"].map(number).into());
    (2000..20_000).for_each(&mut round);
    // SAFETY: ends the process, which may make no other call any more.
    unsafe { libc::_exit(0) }
}

#[test]
fn an_rpc_call_makes_no_system_call_where_nobody_waits() {
    if std::env::var_os(CHILD).is_some() {
        many_rpc_calls_without_a_system_call();
    }
    let dir = Dir::new();
    let mut command = only("an_rpc_call_makes_no_system_call_where_nobody_waits");
    let output = command.env(CHILD, dir.at("rpc.sock")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}
