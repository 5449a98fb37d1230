//! What the kernel says of a process and of the machine.

use std::process::Command;

/// What a process has used.
pub(crate) struct Usage {
    /// CPU time, user and system.
    pub(crate) cpu_seconds: f64,
    /// Resident memory.
    pub(crate) memory_mib: f64,
}

impl Usage {
    pub(crate) fn of(pid: u32) -> Self {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // The name, in parentheses, may hold spaces; user and system time are the 12th and 13th field after it.
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let ticks: f64 = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(|field| field.parse::<f64>().unwrap())
            .sum();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        let kib: f64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
        Self {
            cpu_seconds: ticks / ticks_per_second(),
            memory_mib: kib / 1024.0,
        }
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
