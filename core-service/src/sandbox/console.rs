//! `console` as code finds it, and what is passed on of what it writes.
//!
//! All of it is native: code that changes the language's own objects changes nothing here, and an interpreter is ready
//! without having to compile anything first.

use std::cell::RefCell;
use std::rc::Rc;

use engine::event::{LogLevel, LogLine};
use rquickjs::function::Rest;
use rquickjs::{Coerced, Ctx, Function, Object, Value};

use super::text::well_formed;

/// Console output that is passed on, in bytes.
const MAX_LOG: usize = 64 << 10;
/// What a line of console output counts besides its text, so that empty lines are bounded too.
const LINE: usize = 32;

/// Passes on what the code of one call writes, within bounds. Clones are the same.
#[derive(Clone)]
pub(super) struct Console(Rc<RefCell<Listener>>);

struct Listener {
    hear: Box<dyn FnMut(LogLine)>,
    /// What was passed on, in bytes.
    size: usize,
}

impl Console {
    /// One that tells each line as it is written.
    pub(super) fn telling(hear: impl FnMut(LogLine) + 'static) -> Self {
        Self(Rc::new(RefCell::new(Listener {
            hear: Box::new(hear),
            size: 0,
        })))
    }

    /// Lets code find it.
    pub(super) fn install(&self, context: &Ctx<'_>) -> rquickjs::Result<()> {
        let console = Object::new(context.clone())?;
        for level in [LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error] {
            let told = self.clone();
            let write = move |values: Rest<Value<'_>>| told.write(level, &values);
            console.set(level.as_str(), Function::new(context.clone(), write)?)?;
        }
        console.set("log", console.get::<_, Value>(LogLevel::Info.as_str())?)?;
        context.globals().set("console", console)
    }

    fn write(&self, level: LogLevel, values: &[Value<'_>]) {
        let mut text = String::new();
        for (place, value) in values.iter().enumerate() {
            if text.len() >= MAX_LOG {
                break;
            }
            if place > 0 {
                text.push(' ');
            }
            // This may run code, which may write as well.
            text.push_str(&shown(value));
        }
        text.truncate(text.floor_char_boundary(MAX_LOG));
        self.0.borrow_mut().pass_on(level, text);
    }
}

impl Listener {
    fn pass_on(&mut self, level: LogLevel, message: String) {
        if self.size > MAX_LOG {
            return;
        }
        self.size += message.len() + LINE;
        (self.hear)(if self.size > MAX_LOG {
            LogLine {
                level: LogLevel::Warn,
                message: format!("console output beyond {MAX_LOG} bytes is left out"),
            }
        } else {
            LogLine { level, message }
        });
    }
}

/// A value for people.
fn shown(value: &Value<'_>) -> String {
    text_of(value).unwrap_or_else(|_| {
        // What was thrown on the way is of no interest.
        value.ctx().catch();
        "[a value that cannot be shown]".to_owned()
    })
}

fn text_of(value: &Value<'_>) -> rquickjs::Result<String> {
    if let Some(symbol) = value.as_symbol() {
        let description = symbol.description()?;
        let description = description.as_string().map(well_formed).transpose()?;
        return Ok(format!("Symbol({})", description.unwrap_or_default()));
    }
    if let Some(object) = value.as_object().filter(|_| !value.is_function()) {
        if value.is_error() {
            let part = |name: &str| {
                let part: Coerced<rquickjs::String> = object.get(name)?;
                well_formed(&part)
            };
            return Ok(format!("{}: {}", part("name")?, part("message")?));
        }
        if let Some(json) = value.ctx().json_stringify(value.clone())? {
            return well_formed(&json);
        }
    }
    let text: Coerced<rquickjs::String> = value.get()?;
    well_formed(&text)
}
