//! Callbacks that wait for the end of an object and keep it alive meanwhile: `weakref.finalize(self, self.close)`,
//! `atexit.register(self.close)`.
//!
//! Source: the reference of Python, "weakref", "Finalizer Objects": the callback and its arguments must not refer to the
//! object, else it is never collected.

use caulk_core::Severity;
use caulk_python::program::{CallFact, Kinds, ObjectId, Root, Shape, Value};

use crate::advice::advice;
use crate::context::Context;
use crate::exposure::Exposure;

pub(super) fn check(cx: &mut Context<'_>) {
    let mut found = Vec::new();
    for call in cx.analysis.calls(&["weakref.finalize", "atexit.register"]) {
        // A function that remembers its result is run once.
        let once = cx.analysis.function(call.function).memo.is_some();
        if once || call.root == Root::Test || found.contains(&call.at) {
            continue;
        }
        if let Some((kept, exposure)) = kept_object(cx, &call) {
            found.push(call.at);
            report(cx, &call, kept, exposure);
        }
    }
}

/// The object that a callback keeps, if such objects are made again and again.
fn kept_object(cx: &Context<'_>, call: &CallFact) -> Option<(ObjectId, Exposure)> {
    let waits = cx.analysis.name(call.name) == "weakref.finalize";
    let positional: Vec<Value> =
        call.given.iter().filter(|(name, _)| name.is_none()).map(|(_, value)| *value).collect();
    let (waited_for, refers): (Option<&Value>, &[Value]) = match &*positional {
        [object, rest @ ..] if waits => (Some(object), rest),
        all if !waits => (None, all),
        _ => return None,
    };
    let mut objects = refers.iter().flat_map(|value| referred_to(cx, value));
    let kept = objects.find(|object| {
        matches!(cx.analysis.object(*object).shape, Shape::Instance(_))
            && waited_for.is_none_or(|waited_for| waited_for.objects.contains(*object))
    })?;
    let known = cx.analysis.object(kept).shape;
    let same = cx.analysis.objects().filter(|(_, object)| object.shape == known);
    let births = same.flat_map(|(object, _)| cx.analysis.births(object)).collect::<Vec<_>>();
    let exposures = births.iter().filter_map(|chain| Exposure::around(cx.analysis, chain));
    Some((kept, exposures.reduce(Exposure::worse)?))
}

/// Objects that a callback, or an argument for it, refers to directly.
fn referred_to(cx: &Context<'_>, value: &Value) -> Vec<ObjectId> {
    let objects = value.objects.iter().map(|object| match cx.analysis.object(object).shape {
        Shape::Method(_, receiver) => receiver,
        _ => object,
    });
    objects.collect()
}

fn report(cx: &mut Context<'_>, call: &CallFact, kept: ObjectId, exposure: Exposure) {
    let waits = cx.analysis.name(call.name) == "weakref.finalize";
    let held = cx.analysis.contents(&Value::object(kept));
    let heavy = held.kinds.has(Kinds::TENSOR.with(Kinds::ARRAY).with(Kinds::MODULE));
    let until = if waits { "it is never collected" } else { "it lives until the program ends" };
    let message = format!(
        "this callback keeps the object whose method it is: {until}, and one is made {}",
        exposure.words()
    );
    let function = cx.function(call.function).to_owned();
    let chain: Vec<_> =
        cx.link_loop(exposure, "another object in each turn of this loop").into_iter().collect();
    let diagnostic = cx.report(call.at, &function, message);
    diagnostic.severity = if heavy && waits { Severity::Error } else { Severity::Warning };
    diagnostic.chain = chain;
    diagnostic.fix = advice(if waits {
        "Pass a function that does not know the object, with what it needs: `weakref.finalize(self, os.unlink, self.path)`."
    } else {
        "Use a context manager, or `weakref.finalize(self, function, ..)` with a function that does not know the object."
    });
}
