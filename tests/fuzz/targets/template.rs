//! One string of parameters: text mixed with expressions, alone and as a part of larger values.

#![no_main]

use engine::expression::{CompiledValue, Template};
use fuzz::{Functions, evaluate};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|text: &str| {
    any_text_can_be_written(text);
    let parameters = json!({"list": [true, {"text": text}]});
    let compiled = CompiledValue::compile(&parameters, &Functions);
    match Template::parse(text, &Functions) {
        Ok(template) => {
            let compiled = compiled.expect("a part compiles as it does alone");
            assert_eq!(compiled.as_literal().is_some(), template.is_literal());
            if !text.contains("{{") {
                assert_eq!(template.as_literal(), Some(text));
            }
            same_value_within(&template, &compiled);
            is_text_beside_text(text, &template);
        }
        Err(error) => {
            assert!(!error.message.is_empty());
            assert!(error.position <= text.chars().count(), "{error}");
            let problems = compiled.expect_err("a part is refused as it is alone");
            assert_eq!(problems, [("list[1].text".to_owned(), error)]);
        }
    }
});

/// `\{{` stands for braces.
fn any_text_can_be_written(text: &str) {
    let escaped = Template::parse(&text.replace("{{", "\\{{"), &Functions).expect("holds no expression");
    assert_eq!(escaped.as_literal(), Some(text));
}

fn same_value_within(template: &Template, compiled: &CompiledValue) {
    match (evaluate(template), evaluate(compiled)) {
        (Ok(value), Ok(parameters)) => assert_eq!(parameters, json!({"list": [true, {"text": value}]})),
        (Err(alone), Err(within)) if alone.is_unanswered() => assert!(within.is_unanswered()),
        (Err(alone), Err(within)) => {
            assert_eq!(within.code, alone.code);
            assert_eq!(within.message, format!("list[1].text: {}", alone.message));
        }
        (alone, within) => panic!("{alone:?} alone, {within:?} as a part"),
    }
}

/// With text around it, a template gives the same text.
fn is_text_beside_text(text: &str, template: &Template) {
    let Ok(mixed) = Template::parse(&format!("a {text} z"), &Functions) else {
        return;
    };
    if let (Ok(Value::String(alone)), Ok(mixed)) = (evaluate(template), evaluate(&mixed)) {
        assert_eq!(mixed, format!("a {alone} z"));
    }
}
