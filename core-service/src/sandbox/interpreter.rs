//! One runtime of the JavaScript engine, for one call.
//!
//! The code finds the language's own objects and `console`. There is nothing else to find: no modules, no timers, no
//! host. A promise that nothing can settle any more is a failure at once.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use engine::event::LogLine;
use rquickjs::context::EvalOptions;
use rquickjs::function::Args;
use rquickjs::{
    CatchResultExt as _, CaughtError, Coerced, Context, Ctx, Exception, Function, Runtime, Type, Value,
};
use serde_json::value::RawValue;

use super::console::Console;
use super::message::{Answer, Call, End, Failure, FailureKind, Form, MAX_RESULT};
use super::text::well_formed;

/// The heap of a call, in bytes.
const HEAP: usize = 64 << 20;
/// Its stack, in bytes.
const STACK: usize = 512 << 10;
/// A heap below this is not searched for cycles, in bytes: the language's own objects alone would be a reason to.
const SMALL_HEAP: usize = 4 << 20;
/// The longest message of a failure, in characters.
const MAX_MESSAGE: usize = 2_000;

/// A runtime that has run nothing yet. What belongs to a runtime stands before it, to be dropped before it.
pub(super) struct Interpreter {
    context: Context,
    runtime: Runtime,
    clock: Rc<Clock>,
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

/// Why there is no result.
enum Trouble<'js> {
    Thrown(CaughtError<'js>),
    /// It waits for what never comes.
    Stuck,
    /// It is longer than a result may be.
    TooLarge(usize),
}

impl Interpreter {
    /// One whose call's console output goes to `hear`, line by line.
    pub(super) fn new(hear: impl FnMut(LogLine) + 'static) -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(HEAP);
        runtime.set_max_stack_size(STACK);
        runtime.set_gc_threshold(SMALL_HEAP);
        let clock = Rc::new(Clock::default());
        let watched = Rc::clone(&clock);
        runtime.set_interrupt_handler(Some(Box::new(move || watched.is_over())));
        let context = Context::full(&runtime)?;
        let console = Console::telling(hear);
        context.with(|context| console.install(&context))?;
        Ok(Self {
            context,
            runtime,
            clock,
        })
    }

    /// Runs the call.
    pub(super) fn run(self, call: &Call<Box<RawValue>>) -> (Answer<Box<RawValue>>, Used) {
        let Self {
            context,
            runtime,
            clock,
        } = self;
        let limit = Duration::from_millis(call.limit_ms);
        clock.deadline.set(Instant::now().checked_add(limit));
        let ended = context.with(|context| {
            // Describing what was thrown may run code once more, in the same time.
            let ended = attempt(&context, call, &clock).map_err(|trouble| describe(trouble, &call.code));
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
        let used = Used {
            _context: context,
            _runtime: runtime,
        };
        (Answer { end, is_last }, used)
    }
}

/// Calls the code and gives the JSON of what it returns.
fn attempt<'js>(
    context: &Ctx<'js>,
    call: &Call<Box<RawValue>>,
    clock: &Clock,
) -> Result<String, Trouble<'js>> {
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
    let check = caught(context, Function::new(context.clone(), json_has))?;
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

/// Refuses what JSON does not have. Called for each part of a result, with its name.
fn json_has<'js>(
    context: Ctx<'js>,
    name: Coerced<rquickjs::String<'js>>,
    value: Value<'js>,
) -> rquickjs::Result<Value<'js>> {
    let kind = match value.type_of() {
        _ if value.is_function() => "function",
        Type::Symbol => "symbol",
        Type::BigInt => "bigint",
        _ => return Ok(value),
    };
    let place = match well_formed(&name)? {
        name if name.is_empty() => "the result is".to_owned(),
        name => format!("the result has at \"{name}\""),
    };
    Err(Exception::throw_type(
        &context,
        &format!("{place} a {kind}, which JSON does not have"),
    ))
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
