//! The nouns that workflows lean on.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::values::{
    Steps, call, cursor, description, description_or_null, flag, id, limit, mostly, name, nothing, object,
    one_of, reference_or_null, text,
};

pub(super) fn variables() -> Steps {
    let name = || text(&["RATE", "TOKEN", "rate", "_x", "1x"]);
    let set = object([
        (
            "value*",
            mostly(&["1.5 is it", "geheim 🔑", "\"quoted\"\n"], &["", " ", "1"]),
        ),
        ("isSecret", flag()),
        ("teamId", reference_or_null("team")),
    ]);
    prop_oneof![
        5 => call("SetVariable", [("id", name())], set),
        2 => call("DeleteVariable", [("id", prop_oneof![id("var"), name()].boxed())], nothing()),
        1 => call("GetVariable", [("id", prop_oneof![id("var"), name()].boxed())], nothing()),
    ]
    .boxed()
}

pub(super) fn folders() -> Steps {
    let fields = || object([("name*", name()), ("parentId", reference_or_null("folder"))]);
    prop_oneof![
        3 => call("CreateFolder", [], fields()),
        2 => call("UpdateFolder", [("id", id("folder"))], fields()),
        1 => call("DeleteFolder", [("id", id("folder"))], nothing()),
    ]
    .boxed()
}

pub(super) fn tags() -> Steps {
    let fields = || {
        object([
            ("name*", name()),
            ("color*", mostly(&["red", "#00ff00"], &["#0F0", "crimson", ""])),
        ])
    };
    prop_oneof![
        3 => call("CreateTag", [], fields()),
        2 => call("UpdateTag", [("id", id("tag"))], fields()),
        1 => call("DeleteTag", [("id", id("tag"))], nothing()),
    ]
    .boxed()
}

pub(super) fn structures() -> Steps {
    let field = object([
        ("name*", mostly(&["sku", "Sku", "email", "Übung", "x"], &[""])),
        ("type*", one_of(&["text", "email", "array", "any"])),
        ("required", flag()),
    ]);
    let fields = || vec(field.clone(), 0..3).prop_map(Value::from).boxed();
    let made = object([
        ("name*", name()),
        ("description", description()),
        ("fields", fields()),
        ("folderId", reference_or_null("folder")),
        ("teamId", reference_or_null("team")),
    ]);
    let changed = object([
        ("name*", name()),
        ("description", description_or_null()),
        ("fields", fields()),
        ("folderId", reference_or_null("folder")),
    ]);
    prop_oneof![
        3 => call("CreateStructure", [], made),
        2 => call("UpdateStructure", [("id", id("struct"))], changed),
        1 => call("ListStructures", [("limit", limit())], nothing()),
    ]
    .boxed()
}

pub(super) fn functions() -> Steps {
    let parameter = object([
        ("name*", mostly(&["a", "b", "c"], &["1a"])),
        ("type*", one_of(&["number", "any"])),
        ("description", description()),
        ("required", flag()),
    ]);
    let parameters = || vec(parameter.clone(), 0..3).prop_map(Value::from).boxed();
    let called = || mostly(&["double", "half", "twice", "thrice"], &["upper", "Double", ""]);
    let code = || mostly(&["return a * 2", "(a) => a / 2"], &["return (", ""]);
    let made = object([
        ("name*", called()),
        ("code*", code()),
        ("description", description()),
        ("parameters", parameters()),
        ("folderId", reference_or_null("folder")),
        ("teamId", reference_or_null("team")),
    ]);
    let changed = object([
        ("name*", called()),
        ("code*", code()),
        ("description", description_or_null()),
        ("parameters", parameters()),
        ("folderId", reference_or_null("folder")),
    ]);
    let list = [
        ("q", text(&["", "dou", "%"])),
        ("limit", limit()),
        ("cursor", cursor()),
    ];
    prop_oneof![
        3 => call("CreateFunction", [], made),
        2 => call("UpdateFunction", [("id", id("fn"))], changed),
        1 => call("ListFunctions", list, nothing()),
    ]
    .boxed()
}

pub(super) fn invitations() -> Steps {
    let people = ["ada", "ADA", "bob", "eve", "joe", "kim"].map(|name| format!("{name}@example.com"));
    let made = object([
        ("email*", mostly(&people, &["owner@localhost", "nobody", ""])),
        ("role*", one_of(&["owner", "admin", "member", "viewer"])),
        ("teamId", reference_or_null("team")),
    ]);
    let list = [
        ("status", text(&["", "pending", "cancelled", "expired"])),
        ("limit", limit()),
    ];
    prop_oneof![
        3 => call("CreateInvitation", [], made),
        2 => call("DeleteInvitation", [("id", id("inv"))], nothing()),
        1 => call("ListInvitations", list, nothing()),
    ]
    .boxed()
}
