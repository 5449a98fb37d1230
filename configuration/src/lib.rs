//! Options of a program: flags, environment variables and the keys of a TOML file, in this order of precedence.
//!
//! A command's flags are the one list. The environment's names stand beside them, and a key of the file is the name of
//! its flag. The file is the one that the flag `config` names, or `switchyard.toml` of the working directory when that
//! exists.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};

/// The file that is read when none is named.
const DEFAULT_FILE: &str = "switchyard.toml";
/// The id of the flag that names another one.
const CONFIG: &str = "config";

/// Options that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A flag, variable or key is wrong, or help was asked for; the text is for the terminal.
    #[error(transparent)]
    CommandLine(#[from] clap::Error),
    /// The file cannot be used.
    #[error("the configuration file {path}: {problem}")]
    File {
        /// Which file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Reads the options of a command that has a flag `config`. Subcommands named in `alike` have the same options; any
/// other subcommand has nothing to do with the file.
///
/// # Errors
/// [`Error`]
pub fn read(command: Command, alike: &[&str], arguments: &[OsString]) -> Result<ArgMatches, Error> {
    // What the file brings may be required: the first look is for the file alone.
    let first = command
        .clone()
        .ignore_errors(true)
        .try_get_matches_from(arguments)?;
    let options = match first.subcommand() {
        None => Some(&first),
        Some((name, options)) => alike.contains(&name).then_some(options),
    };
    let command = match options {
        Some(options) => with_file(command, alike, options.get_one::<PathBuf>(CONFIG))?,
        None => command,
    };
    Ok(command.try_get_matches_from(arguments)?)
}

/// Makes the file's values the defaults of their flags.
fn with_file(mut command: Command, alike: &[&str], named: Option<&PathBuf>) -> Result<Command, Error> {
    let path = named.map_or(Path::new(DEFAULT_FILE), PathBuf::as_path);
    let refuse = |problem: String| Error::File {
        path: path.display().to_string(),
        problem,
    };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => return Ok(command),
        Err(error) => return Err(refuse(error.to_string())),
    };
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| refuse(error.to_string()))?;
    for (key, value) in table {
        let name = key.replace('_', "-");
        let flag = command
            .get_arguments()
            .find(|flag| flag.get_long() == Some(name.as_str()) && name != CONFIG);
        let Some(id) = flag.map(|flag| flag.get_id().clone()) else {
            return Err(refuse(format!("the key {key} is not an option; see --help")));
        };
        let text = plain_text(&value).ok_or_else(|| {
            refuse(format!(
                "the value of {key} must be text, a number, true or false, or a list of texts"
            ))
        })?;
        let default = move |flag: Arg| flag.default_value(text.clone()).required(false);
        command = command.mut_arg(id.as_str(), &default);
        for name in alike {
            command = command.mut_subcommand(name, |subcommand| subcommand.mut_arg(id.as_str(), &default));
        }
    }
    Ok(command)
}

fn plain_text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Array(items) => items
            .iter()
            .map(plain_text)
            .collect::<Option<Vec<_>>>()
            .map(|items| items.join(",")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use clap::{ArgAction, value_parser};

    use super::*;

    fn command() -> Command {
        let options = || {
            [
                Arg::new(CONFIG).long(CONFIG).value_parser(value_parser!(PathBuf)),
                Arg::new("core").long("core").value_delimiter(',').required(true),
                Arg::new("wait_ms")
                    .long("wait-ms")
                    .value_parser(value_parser!(u64)),
                Arg::new("quiet").long("quiet").action(ArgAction::SetTrue),
            ]
        };
        Command::new("program")
            .subcommand_negates_reqs(true)
            .args(options())
            .subcommand(Command::new("serve").args(options()))
            .subcommand(Command::new("other"))
    }

    /// The options with a file of this text.
    fn given(text: &str, arguments: &[&str]) -> Result<ArgMatches, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.toml");
        std::fs::write(&path, text).unwrap();
        let mut all: Vec<OsString> = ["program"].iter().chain(arguments).map(OsString::from).collect();
        all.extend(["--config".into(), path.into()]);
        read(command(), &["serve"], &all)
    }

    fn cores(matches: &ArgMatches) -> Vec<&str> {
        matches
            .get_many::<String>("core")
            .unwrap()
            .map(String::as_str)
            .collect()
    }

    #[test]
    fn a_file_gives_what_flags_do_not() {
        let text = "core = [\"a\", \"b\"]\nwait-ms = 7\nquiet = true\n";
        let matches = given(text, &[]).unwrap();
        assert_eq!(cores(&matches), ["a", "b"], "what is required, too");
        assert_eq!(matches.get_one::<u64>("wait_ms"), Some(&7));
        assert!(matches.get_flag("quiet"));
        assert_eq!(cores(&given(text, &["--core", "c"]).unwrap()), ["c"]);
        let matches = given(text, &["serve"]).unwrap();
        assert_eq!(cores(matches.subcommand_matches("serve").unwrap()), ["a", "b"]);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_named() {
        for (text, named) in [
            ("quite = true\n", "quite"),
            ("config = \"x\"\n", "config"),
            ("quiet = {}\n", "quiet"),
            ("core = \"a\"\nwait-ms = \"soon\"\n", "wait-ms"),
            ("quiet\n", "some.toml"),
        ] {
            let error = given(text, &[]).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
        let nowhere = ["program", "--config", "/nowhere.toml"].map(OsString::from);
        assert!(read(command(), &["serve"], &nowhere).is_err());
        let missing = read(command(), &["serve"], &["program".into()]).unwrap_err();
        assert!(missing.to_string().contains("--core"), "{missing}");
    }

    #[test]
    fn other_commands_read_no_file() {
        let matches = read(command(), &["serve"], &["program".into(), "other".into()]).unwrap();
        assert_eq!(matches.subcommand_name(), Some("other"));
    }
}
