//! What a worker takes away from itself, for good, before it runs anything.
//!
//! Limits of the kernel (no open files beyond those it has, no processes, no files written, so much memory and processor
//! time), a lower priority than the server's, no way back to privileges, death with its parent, and a filter that
//! refuses every system call but the few that computing needs. What the kernel does not give is told, not passed over.

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, nice, set_dumpable_behavior, set_parent_process_death_signal,
    setrlimit,
};
use rustix::thread::set_no_new_privs;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

/// Most bytes of address space: the program itself, the heap of the code, its input and its result.
const ADDRESS_SPACE: u64 = 512 << 20;
/// Most seconds of processor time in a worker's life. The pool retires workers long before.
pub(super) const PROCESSOR_SECONDS: u64 = 900;
/// How much the server's own threads come first.
const NICENESS: i32 = 5;

/// Confines this process. Gives what this kernel does not have.
pub(super) fn confine() -> Vec<String> {
    let mut missing = Vec::new();
    let mut note = |what: &str, outcome: Result<(), String>| {
        if let Err(error) = outcome {
            missing.push(format!("{what}: {error}"));
        }
    };
    let text = |error: rustix::io::Errno| error.to_string();
    note("niceness", nice(NICENESS).map(drop).map_err(text));
    note(
        "death with the parent",
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(text),
    );
    note(
        "no memory dumps",
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(text),
    );
    for (what, resource, current, maximum) in [
        (
            "limit of address space",
            Resource::As,
            ADDRESS_SPACE,
            ADDRESS_SPACE,
        ),
        // At the first the process is told why it ends, at the second it is killed without a word.
        (
            "limit of processor time",
            Resource::Cpu,
            PROCESSOR_SECONDS,
            PROCESSOR_SECONDS + 1,
        ),
        ("limit of core dumps", Resource::Core, 0, 0),
        ("limit of file sizes", Resource::Fsize, 0, 0),
        ("limit of processes", Resource::Nproc, 0, 0),
        ("limit of open files", Resource::Nofile, 0, 0),
    ] {
        let limit = Rlimit {
            current: Some(current),
            maximum: Some(maximum),
        };
        note(what, setrlimit(resource, limit).map_err(text));
    }
    note("no new privileges", set_no_new_privs(true).map_err(text));
    note("filter of system calls", filter_system_calls());
    missing
}

/// Lets through what memory, pipes, the clock and an orderly end need; everything else is refused with EPERM.
fn filter_system_calls() -> Result<(), String> {
    let allowed = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_readv,
        libc::SYS_writev,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_clock_gettime,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_sched_yield,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_tgkill,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];
    let rules = allowed.into_iter().map(|call| (call, Vec::new())).collect();
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let architecture = if cfg!(target_arch = "x86_64") {
        TargetArch::x86_64
    } else if cfg!(target_arch = "aarch64") {
        TargetArch::aarch64
    } else {
        return Err("not written for this processor".to_owned());
    };
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, architecture);
    let program: BpfProgram = filter
        .and_then(TryInto::try_into)
        .map_err(|error| error.to_string())?;
    apply_filter(&program).map_err(|error| error.to_string())
}
