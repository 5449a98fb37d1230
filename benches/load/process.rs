//! What the kernel says of a process and of the machine.

use std::process::Command;

/// What a process has used.
#[derive(Default)]
pub(crate) struct Usage {
    /// CPU time, user and system, with that of its children: those it has and those it had.
    pub(crate) cpu_seconds: f64,
    /// Resident memory, its own alone.
    pub(crate) memory_mib: f64,
    /// The most of it at any time.
    pub(crate) peak_mib: f64,
}

impl Usage {
    pub(crate) fn of(pid: u32) -> Self {
        let children = Stat::all().filter(|stat| stat.parent == pid);
        let ticks = Stat::of(pid).unwrap().ticks + children.map(|child| child.ticks).sum::<f64>();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let mib = |name: &str| -> f64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib: f64 = line.unwrap().trim().trim_end_matches(" kB").parse().unwrap();
            kib / 1024.0
        };
        Self {
            cpu_seconds: ticks / ticks_per_second(),
            memory_mib: mib("VmRSS:"),
            peak_mib: mib("VmHWM:"),
        }
    }
}

impl Usage {
    /// This process's, without the servers that it started.
    pub(crate) fn of_itself() -> Self {
        let id = std::process::id();
        let ticks = Stat::of(id).unwrap().own_ticks;
        Self {
            cpu_seconds: ticks / ticks_per_second(),
            ..Self::of(id)
        }
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), |all, one| Self {
            cpu_seconds: all.cpu_seconds + one.cpu_seconds,
            memory_mib: all.memory_mib + one.memory_mib,
            peak_mib: all.peak_mib + one.peak_mib,
        })
    }
}

/// What `/proc/<pid>/stat` says of a process.
struct Stat {
    parent: u32,
    /// CPU time, with that of the children it has waited for.
    ticks: f64,
    own_ticks: f64,
}

impl Stat {
    /// Nothing when the process has ended.
    fn of(pid: u32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold spaces. After it the parent is the second field; from the twelfth on come
        // user and system time, its own and its children's.
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |fields: &[&str]| {
            fields
                .iter()
                .map(|field| field.parse::<f64>())
                .sum::<Result<_, _>>()
        };
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            ticks: ticks(fields.get(11..15)?).ok()?,
            own_ticks: ticks(fields.get(11..13)?).ok()?,
        })
    }

    fn all() -> impl Iterator<Item = Self> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes.filter_map(|entry| Self::of(entry.file_name().to_str()?.parse().ok()?))
    }
}

fn ticks_per_second() -> f64 {
    let output = Command::new("getconf").arg("CLK_TCK").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

/// Cores and processor of this machine.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    format!("{cores} cores ({})", model.map_or("unknown", |(_, model)| model))
}
