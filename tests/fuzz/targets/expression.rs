//! One expression: parsed or refused with its place, evaluated within its bounds.

#![no_main]

use engine::expression::Template;
use fuzz::{Functions, evaluate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|expression: &str| {
    let text = format!("{{{{{expression}}}}}");
    match Template::parse(&text, &Functions) {
        Ok(template) => {
            let _ = evaluate(&template);
            reads_the_same_as_a_reference(expression, &template);
        }
        Err(error) => {
            assert!(!error.message.is_empty());
            assert!(error.position <= text.chars().count(), "{error}");
        }
    }
});

/// The bare form that resolve-expression takes is the same language, but for a number alone, which names a node.
fn reads_the_same_as_a_reference(expression: &str, template: &Template) {
    if expression.contains("{{") || expression.contains("}}") {
        return;
    }
    let Ok(bare) = Template::parse_reference(expression, &Functions) else {
        return;
    };
    if bare.node_references().eq(template.node_references()) {
        assert_eq!(evaluate(&bare), evaluate(template));
    }
}
