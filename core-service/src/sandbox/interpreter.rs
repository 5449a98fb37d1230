//! One runtime of the JavaScript engine, for one call.
//!
//! The code finds the language's own objects and `console`. There is nothing else to find: no modules, no timers, no
//! host. A promise that nothing can settle any more is a failure at once.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use engine::event::{LogLevel, LogLine};
use rquickjs::context::EvalOptions;
use rquickjs::function::Args;
use rquickjs::{
    CatchResultExt as _, CaughtError, Context, Ctx, Exception, Function, Persistent, Runtime, Value,
};
use serde_json::value::RawValue;

use super::message::{Answer, Call, End, Failure, FailureKind, Form, MAX_RESULT};

/// The heap of a call, in bytes.
const HEAP: usize = 64 << 20;
/// Its stack, in bytes.
const STACK: usize = 512 << 10;
/// Console output that is kept, in bytes.
const MAX_LOG: usize = 64 << 10;
/// What a line of console output counts besides its text, so that empty lines are bounded too.
const LINE: usize = 32;
/// The longest message of a failure, in characters.
const MAX_MESSAGE: usize = 2_000;

/// A runtime that has run nothing yet. What belongs to a runtime stands before it, to be dropped before it.
pub(super) struct Interpreter {
    /// Refuses what JSON does not have, for each part of a result.
    check: Persistent<Function<'static>>,
    context: Context,
    runtime: Runtime,
    clock: Rc<Clock>,
    console: Rc<RefCell<Console>>,
}

/// What is left of an interpreter after its call.
pub(super) struct Used {
    _context: Context,
    _runtime: Runtime,
}

/// Until when the code may run, and whether it was stopped.
#[derive(Default)]
struct Clock {
    deadline: Cell<Option<Instant>>,
    stopped: Cell<bool>,
}

/// What the code wrote.
#[derive(Default)]
struct Console {
    lines: Vec<LogLine>,
    size: usize,
}

/// Why there is no result.
enum Trouble<'js> {
    Thrown(CaughtError<'js>),
    /// It waits for what never comes.
    Stuck,
    /// It is longer than a result may be.
    TooLarge(usize),
}

/// Makes `console`, and the function that checks each part of a result. Both keep what they use for themselves, so
/// that code which changes the language's own objects changes nothing here.
const PRELUDE: &str = r#"
((emit, limit) => {
    const { JSON, String, Error, TypeError } = globalThis;
    const wellFormed = Function.prototype.call.bind(String.prototype.toWellFormed);
    const cut = Function.prototype.call.bind(String.prototype.slice);
    const stringify = JSON.stringify;
    const show = (value) => {
        if (typeof value === "string") return value;
        try {
            if (value instanceof Error) return `${value.name}: ${value.message}`;
            const text = typeof value === "object" ? stringify(value) : undefined;
            return text === undefined ? String(value) : text;
        } catch {
            return "[a value that cannot be shown]";
        }
    };
    const console = {};
    for (const level of ["debug", "info", "warn", "error"]) {
        console[level] = (...values) => {
            let text = "";
            for (let i = 0; i < values.length && text.length < limit; i++) {
                text += (i > 0 ? " " : "") + show(values[i]);
            }
            emit(level, wellFormed(cut(text, 0, limit)));
        };
    }
    console.log = console.info;
    globalThis.console = console;
    return (key, value) => {
        const type = typeof value;
        if (type === "function" || type === "symbol" || type === "bigint") {
            const where = key === "" ? "the result is" : `the result has at "${key}"`;
            throw new TypeError(`${where} a ${type}, which JSON does not have`);
        }
        return value;
    };
})
"#;

impl Interpreter {
    pub(super) fn new() -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(HEAP);
        runtime.set_max_stack_size(STACK);
        let clock = Rc::new(Clock::default());
        let watched = Rc::clone(&clock);
        runtime.set_interrupt_handler(Some(Box::new(move || watched.is_over())));
        let context = Context::full(&runtime)?;
        let console = Rc::new(RefCell::new(Console::default()));
        let check = context.with(|context| install(&context, Rc::clone(&console)))?;
        Ok(Self {
            check,
            context,
            runtime,
            clock,
            console,
        })
    }

    /// Runs the call.
    pub(super) fn run(self, call: &Call<Box<RawValue>>) -> (Answer<Box<RawValue>>, Used) {
        let Self {
            check,
            context,
            runtime,
            clock,
            console,
        } = self;
        let limit = Duration::from_millis(call.limit_ms);
        clock.deadline.set(Instant::now().checked_add(limit));
        let ended = context.with(|context| {
            // Describing what was thrown may run code once more, in the same time.
            let ended =
                attempt(&context, call, &clock, check).map_err(|trouble| describe(trouble, &call.code));
            match ended {
                Err(_) if clock.stopped.get() => Err(Failure::timeout(call.limit_ms)),
                ended => ended,
            }
        });
        let result = ended.and_then(|text| {
            RawValue::from_string(text).map_err(|_| Failure::error("the result cannot be written as JSON"))
        });
        let end = result.map_or_else(End::Failed, End::Returned);
        let is_last = matches!(&end, End::Failed(failure) if failure.kind == FailureKind::Memory);
        let log = console.take().lines;
        let used = Used {
            _context: context,
            _runtime: runtime,
        };
        (Answer { end, log, is_last }, used)
    }
}

/// Makes the code's surroundings. Gives the check of results.
fn install(
    context: &Ctx<'_>,
    console: Rc<RefCell<Console>>,
) -> rquickjs::Result<Persistent<Function<'static>>> {
    let emit = Function::new(context.clone(), move |level: String, text: String| {
        console.borrow_mut().add(&level, text);
    })?;
    let prelude: Function = context.eval(PRELUDE)?;
    let most = i32::try_from(MAX_LOG).unwrap_or(i32::MAX);
    let check: Function = prelude.call((emit, most))?;
    Ok(Persistent::save(context, check))
}

/// Calls the code and gives the JSON of what it returns.
fn attempt<'js>(
    context: &Ctx<'js>,
    call: &Call<Box<RawValue>>,
    clock: &Clock,
    check: Persistent<Function<'static>>,
) -> Result<String, Trouble<'js>> {
    let check = caught(context, check.restore(context))?;
    let mut value = caught(context, invoke(context, call))?;
    if let Some(promise) = value.clone().into_promise() {
        value = loop {
            if let Some(settled) = promise.result::<Value>() {
                break caught(context, settled)?;
            }
            // The jobs of a chain of promises may each be too short to be interrupted.
            if clock.is_over() || !context.execute_pending_job() {
                return Err(Trouble::Stuck);
            }
        };
    }
    if value.is_undefined() {
        return Ok("null".to_owned());
    }
    let text = caught(context, context.json_stringify_replacer(value, check))?;
    // An object may say that it is nothing.
    let Some(text) = text else {
        return Ok("null".to_owned());
    };
    let text = caught(context, text.to_string())?;
    match text.len() {
        size if size > MAX_RESULT => Err(Trouble::TooLarge(size)),
        _ => Ok(text),
    }
}

fn caught<'js, T>(context: &Ctx<'js>, outcome: rquickjs::Result<T>) -> Result<T, Trouble<'js>> {
    outcome.catch(context).map_err(Trouble::Thrown)
}

fn invoke<'js>(context: &Ctx<'js>, call: &Call<Box<RawValue>>) -> rquickjs::Result<Value<'js>> {
    let function = function(context, call)?;
    let mut arguments = Args::new(context.clone(), call.arguments.len());
    for argument in &call.arguments {
        arguments.push_arg(context.json_parse(argument.get())?)?;
    }
    function.call_arg(arguments)
}

/// The code as a function. It stands on lines of its own, from the second one on.
fn function<'js>(context: &Ctx<'js>, call: &Call<Box<RawValue>>) -> rquickjs::Result<Function<'js>> {
    let (parameters, code) = (call.parameters.join(", "), &call.code);
    let compile = |source: String| {
        let mut options = EvalOptions::default();
        options.filename = Some("code".to_owned());
        context.eval_with_options::<Value, _>(source, options)
    };
    let body = match call.form {
        Form::AsyncBody => format!("(async function ({parameters}) {{\n{code}\n}})"),
        Form::Function => {
            let whole = compile(format!("(\n{code}\n)"));
            if let Some(function) = whole.ok().and_then(Value::into_function) {
                return Ok(function);
            }
            // It is a body, then; what it said as an expression is of no interest.
            context.catch();
            format!("(function ({parameters}) {{\n{code}\n}})")
        }
    };
    let compiled = compile(body)?;
    compiled
        .into_function()
        .ok_or_else(|| Exception::throw_syntax(context, "the code is not a function"))
}

/// What people are told of it.
fn describe(trouble: Trouble<'_>, code: &str) -> Failure {
    match trouble {
        Trouble::Stuck => Failure::error(
            "the code waits for a promise that nothing settles; there are no timers and no network here",
        ),
        Trouble::TooLarge(size) => Failure::error(format!(
            "the result has {size} bytes; it may have at most {MAX_RESULT}"
        )),
        Trouble::Thrown(CaughtError::Exception(exception)) => exception_failure(&exception, code),
        // With no memory left for an error, the interpreter throws null.
        Trouble::Thrown(CaughtError::Value(value)) if value.is_null() && !throws_null(code) => {
            Failure::memory()
        }
        Trouble::Thrown(CaughtError::Value(value)) => {
            let text = match value.as_string() {
                Some(text) => text.to_string().ok(),
                None => value
                    .ctx()
                    .json_stringify(value.clone())
                    .ok()
                    .flatten()
                    .and_then(|text| text.to_string().ok()),
            };
            let text = text.unwrap_or_else(|| value.type_name().to_owned());
            Failure::error(shortened(format!("the code threw {text}")))
        }
        Trouble::Thrown(CaughtError::Error(rquickjs::Error::Allocation)) => Failure::memory(),
        Trouble::Thrown(CaughtError::Error(error)) => Failure::error(shortened(error.to_string())),
    }
}

fn exception_failure(exception: &Exception<'_>, code: &str) -> Failure {
    let name: Option<String> = exception.as_object().get("name").ok();
    let message = exception.message().unwrap_or_default();
    if name.as_deref() == Some("InternalError") && message.starts_with("out of memory") {
        return Failure::memory();
    }
    let mut text = name.unwrap_or_else(|| "Error".to_owned());
    if !message.is_empty() {
        text.push_str(": ");
        text.push_str(&message);
    }
    let mut text = shortened(text);
    if let Some((line, column)) = exception.stack().and_then(|stack| place(&stack, code)) {
        text.push_str(&format!(" (line {line}, column {column})"));
    }
    Failure::error(text)
}

fn throws_null(code: &str) -> bool {
    ["throw null", "reject(null"]
        .iter()
        .any(|text| code.contains(text))
}

fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_MESSAGE) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The innermost place in the user's code that a stack such as `at f (code:3:1)` names: line and column from one.
fn place(stack: &str, code: &str) -> Option<(usize, usize)> {
    let (_, place) = stack.split_once("code:")?;
    let mut numbers = place.split(|other: char| !other.is_ascii_digit());
    let line: usize = numbers.next()?.parse().ok()?;
    let column = numbers.next().and_then(|column| column.parse().ok()).unwrap_or(1);
    // The first line is ours.
    Some((
        line.saturating_sub(1).clamp(1, code.lines().count().max(1)),
        column,
    ))
}

impl Clock {
    fn is_over(&self) -> bool {
        let over = self
            .deadline
            .get()
            .is_some_and(|deadline| Instant::now() >= deadline);
        self.stopped.set(self.stopped.get() || over);
        over
    }
}

impl Console {
    fn add(&mut self, level: &str, message: String) {
        if self.size > MAX_LOG {
            return;
        }
        self.size += message.len() + LINE;
        self.lines.push(if self.size > MAX_LOG {
            LogLine {
                level: LogLevel::Warn,
                message: format!("console output beyond {MAX_LOG} bytes is left out"),
            }
        } else {
            LogLine {
                level: LogLevel::from_word(level).unwrap_or_default(),
                message,
            }
        });
    }
}
