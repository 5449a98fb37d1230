//! The child process: reads calls, runs them, answers. It does nothing else and ends with its parent.
//!
//! Started before there is an async runtime or any other thread, so that what it gives up is given up by all of it.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::net::UdpSocket;
use std::process::{Command, ExitCode};

use serde_json::value::RawValue;

use super::confinement::confine;
use super::frame;
use super::interpreter::Interpreter;
use super::message::{Call, Hello, Request, Said};

/// The hidden subcommand that makes this binary a worker.
pub const COMMAND: &str = "sandbox-worker";
/// Its flag for saying what a worker cannot do here, instead of being one.
const PROBE: &str = "--probe";

/// The whole life of a worker, when this process was started as one.
pub fn main(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> Option<ExitCode> {
    arguments.next().filter(|command| command == COMMAND)?;
    let ended = match arguments.next() {
        Some(flag) if flag == PROBE => probe(&mut io::stdout()),
        _ => serve(&mut BufReader::new(io::stdin())),
    };
    Some(match ended {
        Ok(()) => ExitCode::SUCCESS,
        // The parent is gone or does not keep to the protocol: nobody is left to tell.
        Err(_) => ExitCode::FAILURE,
    })
}

fn serve(input: &mut impl Read) -> io::Result<()> {
    let missing = confine();
    frame::write(&mut io::stdout(), &Hello { missing })?;
    loop {
        // Made while nobody waits for it.
        let mut ready = Some(interpreter()?);
        let bytes = match frame::read(input) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        let request: Request<Call<Box<RawValue>>> = serde_json::from_slice(&bytes)?;
        drop(bytes);
        for call in &request.calls {
            let interpreter = match ready.take() {
                Some(interpreter) => interpreter,
                None => self::interpreter()?,
            };
            let (answer, used) = interpreter.run(call);
            let is_last = answer.is_last;
            say(&Said::Ended(answer))?;
            if is_last {
                // Nothing of it is touched again, not even to free it.
                std::mem::forget(used);
                return Ok(());
            }
        }
    }
}

fn interpreter() -> io::Result<Interpreter> {
    let told = |line| {
        // If nobody listens any more, the end of the call cannot be told either.
        let _unheard = say(&Said::Wrote(line));
    };
    Interpreter::new(told).map_err(io::Error::other)
}

fn say(said: &Said<Box<RawValue>>) -> io::Result<()> {
    frame::write(&mut io::stdout(), said)
}

/// Confines itself, tries what a worker must not be able to do, and says as JSON what came of it.
fn probe(output: &mut impl Write) -> io::Result<()> {
    let missing = confine();
    let told =
        |outcome: io::Result<()>| outcome.map_or_else(|error| error.to_string(), |()| "done".to_owned());
    let tried = serde_json::json!({
        "missing": missing,
        "readFile": told(File::open("/etc/passwd").map(drop)),
        "writeFile": told(File::create("/tmp/switchyard-probe").map(drop)),
        "openSocket": told(UdpSocket::bind("127.0.0.1:0").map(drop)),
        "startProcess": told(Command::new("/bin/true").spawn().map(drop)),
    });
    writeln!(output, "{tried}")
}
