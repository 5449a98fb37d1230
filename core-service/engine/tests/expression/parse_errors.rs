//! What is refused when a template is compiled, where, and in which words.

use crate::support::parse;

#[track_caller]
fn refused(text: &str, position: usize, words: &str) {
    match parse(text) {
        Ok(_) => panic!("{text} is accepted"),
        Err(problem) => {
            assert!(problem.message.contains(words), "{text}: {problem}");
            assert_eq!(problem.position, position, "{text}: {problem}");
        }
    }
}

#[test]
fn malformed_expressions() {
    refused("{{}}", 2, "an expression is wanted");
    refused("{{ 1 +", 6, "a value is wanted");
    refused("{{ 1.body", 9, "`}}` is wanted");
    refused("{{ 1.body }", 10, "`}}` is wanted");
    refused("{{ 1.body } }", 10, "`}}` is wanted");
    refused("{{ 1 2 }}", 5, "`}}` is wanted here, not `2`");
    refused("{{ (1 }}", 6, "`)` is wanted");
    refused("{{ 1. }}", 6, "a name");
    refused("{{ 1.items.0 }}", 11, "[0]");
    refused("{{ 1.5.x }}", 6, "node");
    refused("{{ 12abc }}", 3, "digit");
    refused("{{ \"abc }}", 3, "no closing");
    refused("{{ # }}", 3, "no meaning");
    refused("{{ 99999999999999999999 }}", 3, "too large");
    refused("{{ 1e999 }}", 3, "too large");
    refused("{{ true ? 1 }}", 12, "`:` is wanted");
    refused("{{ {a 1} }}", 6, "`:` is wanted");
    refused("{{ {[1]: 1} }}", 4, "field's name");
    refused("{{ \"a\".b }}", 3, "no fields");
    refused("ok {{1.a}} then {{ * }}", 19, "a value");
}

#[test]
fn positions_count_characters() {
    refused("äöü {{ ¿ }}", 7, "no meaning");
}

#[test]
fn unknown_names() {
    refused("{{ name }}", 3, "`1.name`");
    refused("{{ now }}", 3, "`$now`");
    refused("{{ $foo.bar }}", 3, "$vars");
    refused("{{ $ }}", 3, "not known");
    refused("{{ $vars }}", 9, "`$vars.NAME`");
    refused("{{ $vars[1.name] }}", 17, "plain text");
    refused("{{ $node(1.name) }}", 10, "`)`");
    refused("{{ $node(\"1\") }}", 9, "number");
    refused("{{ map([1]; x => y) }}", 17, "`y` is not known");
    refused("{{ map([1]; x => x) + x }}", 22, "`x` is not known");
}

#[test]
fn unknown_functions_and_wrong_counts() {
    refused("{{ Upper(1.a) }}", 3, "did you mean `upper`?");
    refused("{{ formatDat(1.a) }}", 3, "did you mean `formatDate`?");
    refused("{{ xyz() }}", 3, "there is no function `xyz`");
    refused("{{ upper() }}", 3, "takes 1 argument, not 0");
    refused("{{ upper(1; 2) }}", 3, "takes 1 argument, not 2");
    refused("{{ substring(\"a\") }}", 3, "takes 2 to 3 arguments, not 1");
    refused("{{ add([1]) }}", 3, "at least 2 arguments");
    refused("{{ addVat() }}", 3, "takes 1 to 2 arguments, not 0");
    refused("{{ slow(1) }}", 3, "takes 0 arguments, not 1");
}

#[test]
fn lambdas_only_where_they_are_taken() {
    refused("{{ x => x }}", 3, "not known");
    refused("{{ upper(x => x) }}", 9, "not taken here");
    refused("{{ addVat(x => x) }}", 10, "not taken here");
    refused("{{ filter([1]; 5) }}", 15, "a lambda such as");
    refused("{{ filter([1]; (a, b, c) => a) }}", 15, "1 to 2 parameters");
    refused("{{ reduce([1]; x => x) }}", 15, "2 to 3 parameters");
}

#[test]
fn values_where_only_conditions_make_sense() {
    refused("{{ 1.name || \"nobody\" }}", 13, "write `??`");
    refused("{{ 1.name or 0 }}", 13, "write `??`");
    refused("{{ \"a\" && 1.name }}", 3, "write `??`");
    refused("{{ 1.list || [] }}", 13, "write `??`");
    assert!(parse("{{ 1.name || true && null }}").is_ok());
}

#[test]
fn malformed_regular_expressions() {
    refused("{{ test(1.a; \"(\") }}", 3, "malformed");
    refused("{{ test(1.a; \"a\"; \"q\") }}", 3, "flag `q`");
    refused(r#"{{ replaceRegex(1.a; "(a)\1"; "") }}"#, 3, "malformed");
}
