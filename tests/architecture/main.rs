//! Holds what ARCHITECTURE.md says of directions against the dependency trees and the sources.
//!
//! Sources are read as text, comments left out: an import that a rule forbids is found wherever it hides.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment"
)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod source;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use regex::Regex;
use source::{Source, rust_sources};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// The longest file that is still one thing.
const MOST_LINES: usize = 600;

/// A word that only some files of a folder may hold.
struct Rule {
    /// Why there is such a rule, for whoever breaks it.
    says: &'static str,
    word: &'static str,
    folder: &'static str,
    /// Files and folders, relative to `folder`, that may.
    allowed: &'static [&'static str],
}

const RULES: &[Rule] = &[
    Rule {
        says: "only the store speaks SQL",
        word: r"\bsqlx\b",
        folder: "core-service/src",
        allowed: &["store/"],
    },
    Rule {
        says: "gRPC is known at the edge only",
        word: r"\btonic(_\w+)?\b",
        folder: "core-service/src",
        allowed: &[
            "services/",
            "auth/",
            "error.rs",
            "lib.rs",
            "listener.rs",
            "main.rs",
            "admin.rs",
            "operations.rs",
        ],
    },
    Rule {
        says: "only main.rs joins core and facade",
        word: r"\brest_facade\b",
        folder: "core-service/src",
        allowed: &["main.rs"],
    },
    Rule {
        says: "nothing but lib.rs imports the services",
        word: r"\bcrate::services\b",
        folder: "core-service/src",
        allowed: &["services/", "lib.rs"],
    },
    Rule {
        says: "what starts runs by itself is nobody's to ask",
        word: r"\bcrate::triggers\b",
        folder: "core-service/src",
        allowed: &["triggers/", "lib.rs", "metrics.rs"],
    },
    Rule {
        says: "permissions are no matter of the runtime, the store or the nodes",
        word: r"\bcrate::(\{[^}]*)?auth\b",
        folder: "core-service/src",
        allowed: &[
            "services/",
            "auth/",
            "lib.rs",
            "listener.rs",
            "bootstrap.rs",
            "config.rs",
        ],
    },
    Rule {
        says: "the store knows neither who drives runs nor what nodes do",
        word: r"\bcrate::(\{[^}]*)?(runtime|nodes)\b",
        folder: "core-service/src/store",
        allowed: &[],
    },
    Rule {
        says: "manifests know neither who keeps credentials nor who executes nodes",
        word: r"\bcrate::(\{[^}]*)?(credentials|nodes|runtime|store)\b",
        folder: "core-service/src/connectors",
        allowed: &[],
    },
    Rule {
        says: "drivers know neither manifests nor credentials",
        word: r"\bcrate::(\{[^}]*)?(connectors|credentials|nodes|runtime|services|store)\b",
        folder: "core-service/src/native",
        allowed: &[],
    },
    Rule {
        says: "which apps there are is no matter of who uses them",
        word: r"\bcrate::(\{[^}]*)?(credentials|nodes|runtime|services)\b",
        folder: "core-service/src/catalog",
        allowed: &[],
    },
    Rule {
        says: "only the outbound client, which checks addresses, connects to elsewhere",
        word: r"\bTcpStream::connect\b|\blookup_host\b|\bhyper_util::client\b",
        folder: "core-service/src",
        allowed: &["outbound/"],
    },
    Rule {
        says: "only clock.rs reads the wall clock",
        word: r"\bSystemTime::now\b|\bTimestamp::now\b|\bZoned::now\b",
        folder: "core-service/src",
        allowed: &["clock.rs"],
    },
    Rule {
        says: "only config.rs and main.rs read the environment and the command line",
        word: r"\bstd::env\b|\benv::(var|args)",
        folder: "core-service/src",
        allowed: &["config.rs", "main.rs"],
    },
    Rule {
        says: "the engine is pure: no clock, files, network, threads or tasks",
        word: r"\bstd::(time|fs|net|thread|process)\b|\b(async|await|tokio|SystemTime|Instant)\b",
        folder: "core-service/engine/src",
        allowed: &["expression/reference.rs"],
    },
    Rule {
        says: "connections are the server's",
        word: r"\bTcpListener\b.*\baccept\b|\.accept\(\)|\bserve_connection\b|\baxum::serve\b|\btransport::Server\b",
        folder: "core-service/src",
        allowed: &["outbound/"],
    },
    Rule {
        says: "the facade knows the contract, not the core",
        word: r"\b(core_service|engine::|sqlx)\b",
        folder: "rest-facade/src",
        allowed: &[],
    },
];

#[test]
fn sources_keep_to_their_rooms() {
    let mut broken = Vec::new();
    for rule in RULES {
        let word = Regex::new(rule.word).unwrap();
        let mut seen_where_allowed = false;
        for source in rust_sources(&Path::new(ROOT).join(rule.folder)) {
            let allowed = rule.allowed.iter().any(|place| source.name.starts_with(place));
            for (number, line) in source.lines_holding(&word) {
                seen_where_allowed |= allowed;
                if !allowed {
                    broken.push(format!(
                        "{}: {}/{}:{number}: {line}",
                        rule.says, rule.folder, source.name
                    ));
                }
            }
        }
        // A rule that finds nothing anywhere has lost its word.
        assert!(
            rule.allowed.is_empty() || seen_where_allowed,
            "nothing holds {}",
            rule.word
        );
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn the_engine_depends_on_nothing_that_waits_or_talks() {
    let tree = dependencies("engine");
    assert!(
        tree.contains("serde_json"),
        "the tree is not the engine's: {tree:?}"
    );
    for absent in [
        "tokio",
        "tonic",
        "axum",
        "hyper",
        "tower",
        "sqlx",
        "mio",
        "getrandom",
        "contract",
        "core-service",
    ] {
        assert!(!tree.contains(absent), "the engine depends on {absent}");
    }
}

#[test]
fn what_callers_hand_in_is_read_without_a_server() {
    let tree = dependencies("wire");
    assert!(tree.contains("engine"), "the tree is not that of wire: {tree:?}");
    for absent in ["axum", "hyper", "sqlx", "rustls", "core-service"] {
        assert!(!tree.contains(absent), "wire depends on {absent}");
    }
}

#[test]
fn the_facade_does_not_know_the_core() {
    let tree = dependencies("rest-facade");
    assert!(
        tree.contains("contract"),
        "the tree is not the facade's: {tree:?}"
    );
    for absent in ["core-service", "engine", "sqlx"] {
        assert!(!tree.contains(absent), "the facade depends on {absent}");
    }
}

#[test]
fn the_server_knows_nothing_above_http() {
    let tree = dependencies("server");
    assert!(tree.contains("hyper"), "the tree is not the server's: {tree:?}");
    for absent in [
        "axum",
        "tonic",
        "contract",
        "core-service",
        "rest-facade",
        "engine",
        "sqlx",
    ] {
        assert!(!tree.contains(absent), "the server depends on {absent}");
    }
}

#[test]
fn the_contract_depends_on_none_of_its_users() {
    let tree = dependencies("contract");
    assert!(tree.contains("prost"), "the tree is not the contract's: {tree:?}");
    for absent in ["core-service", "rest-facade", "server", "engine", "sqlx", "axum"] {
        assert!(!tree.contains(absent), "the contract depends on {absent}");
    }
}

#[test]
fn migrations_are_paired() {
    let names = |database: &str| -> BTreeSet<String> {
        let folder = Path::new(ROOT).join("core-service/migrations").join(database);
        let entries = std::fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    assert!(!names("sqlite").is_empty());
    assert_eq!(names("sqlite"), names("postgres"));
    let list = Path::new(ROOT).join("core-service/src/store/migration.rs");
    let list = std::fs::read_to_string(list).unwrap();
    for name in names("sqlite") {
        let listed = format!("\"{}\"", name.trim_end_matches(".sql"));
        assert!(list.contains(&listed), "nobody applies {name}");
    }
}

#[test]
fn each_file_says_what_it_is_for_and_is_one_thing() {
    let folders = [
        "proto",
        "configuration/src",
        "core-service/src",
        "core-service/engine/src",
        "core-service/wire/src",
        "rest-facade/src",
        "server/src",
        "tests",
        "benches",
    ];
    let mut broken = Vec::new();
    for folder in folders {
        for Source { name, text } in rust_sources(&Path::new(ROOT).join(folder)) {
            let lines = text.lines().count();
            if !text.starts_with("//!") {
                broken.push(format!("{folder}/{name} does not begin with a module comment"));
            }
            if lines > MOST_LINES {
                broken.push(format!(
                    "{folder}/{name} has {lines} lines; it is more than one thing"
                ));
            }
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn the_map_names_files_that_exist() {
    let root = Path::new(ROOT);
    let named = Regex::new(r"`([\w/]+\.(?:rs|proto))`").unwrap();
    let mut files: Vec<String> = ["core-service", "rest-facade", "server", "tests"]
        .iter()
        .flat_map(|folder| {
            let sources = rust_sources(&root.join(folder));
            sources
                .into_iter()
                .map(move |source| format!("/{folder}/{}", source.name))
        })
        .collect();
    for proto in std::fs::read_dir(root.join("proto/switchyard/v1")).unwrap() {
        files.push(format!(
            "/proto/switchyard/v1/{}",
            proto.unwrap().file_name().display()
        ));
    }
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let names: Vec<&str> = named
        .captures_iter(&map)
        .map(|found| found.extract::<1>().1[0])
        .collect();
    assert!(names.len() > 20, "the map is read wrongly: {names:?}");
    for name in names {
        let exists = files.iter().any(|file| file.ends_with(&format!("/{name}")));
        assert!(exists, "ARCHITECTURE.md names {name}, which does not exist");
    }
}

/// The names of all that a package is built with on this machine, its own included; tests' needs left out.
fn dependencies(package: &str) -> BTreeSet<String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "tree",
            "--package",
            package,
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--offline",
        ])
        .current_dir(ROOT)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect()
}
