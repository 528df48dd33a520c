//! Callbacks that wait for the end of an object and keep it alive meanwhile: `weakref.finalize(self, self.close)`,
//! `atexit.register(self.close)`.
//!
//! Source: the reference of Python, "weakref", "Finalizer Objects": the callback and its arguments must not refer to the
//! object, else it is never collected.

use caulk_core::Proof;
use caulk_python::program::{CallFact, Guards, Kinds, ObjectId, Root, Shape, Value};

use crate::advice::advice;
use crate::context::Context;
use crate::exposure::Exposure;
use crate::proven::repeats_through;
use crate::weight::Weight;

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
        } else if let Some(exposure) = piled_arguments(cx, &call) {
            found.push(call.at);
            report_arguments(cx, &call, exposure);
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
    let exposure = exposures.reduce(Exposure::worse)?;
    (waits || !is_unregistered(cx, kept)).then_some((kept, exposure))
}

/// Whether a callback of an object is taken back: `atexit.unregister(run.finish)`.
fn is_unregistered(cx: &Context<'_>, kept: ObjectId) -> bool {
    cx.analysis.releasing_calls(&["atexit.unregister"]).iter().any(|call| {
        call.given.iter().flat_map(|(_, value)| referred_to(cx, value)).any(|object| object == kept)
    })
}

/// How often a finalizer of an object that stays is given another tensor, array or model: `weakref.finalize(net, done, x)`.
fn piled_arguments(cx: &Context<'_>, call: &CallFact) -> Option<Exposure> {
    if cx.analysis.name(call.name) != "weakref.finalize" || call.guards.has(Guards::ONCE) {
        return None;
    }
    let mut positional = call.given.iter().filter(|(name, _)| name.is_none()).map(|(_, value)| value);
    let (owner, _callback) = (positional.next()?, positional.next()?);
    let named = call.given.iter().filter(|(name, _)| name.is_some()).map(|(_, value)| value);
    if !positional.chain(named).any(|value| cx.analysis.contents(value).heavy.is_some()) {
        return None;
    }
    let duration = cx.analysis.piling(call, std::iter::empty());
    let exposure = Exposure::outside(cx.analysis, &duration)?;
    let mut owners = owner.objects.iter().peekable();
    // Of an owner that nobody knows it is not known that it stays.
    let stays = owners.peek().is_some() && owners.all(|one| !cx.analysis.made_in(one, exposure.through));
    let model = owner.objects.is_empty() && owner.only(Kinds::MODULE);
    (stays || model && !cx.analysis.makes_models(exposure.through)).then_some(exposure)
}

fn report_arguments(cx: &mut Context<'_>, call: &CallFact, exposure: Exposure) {
    let message = format!(
        "the finalizer of an object that stays is given more {}: its arguments live as long as the object",
        exposure.pace.words()
    );
    let function = cx.function(call.function).to_owned();
    let chain: Vec<_> = cx.through(exposure).into_iter().collect();
    let repeats = repeats_through(cx.analysis, &[exposure.through, exposure.inner]);
    let diagnostic = cx.report(call.at, &function, message);
    diagnostic.proof = Proof { repeats, ..Proof::FULL };
    diagnostic.chain = chain;
    diagnostic.fix = advice(
        "Register it on the object whose end is meant, with arguments that are small, or call `detach()` on it.",
    );
}

/// Objects that a callback, or an argument for it, refers to directly.
fn referred_to(cx: &Context<'_>, value: &Value) -> Vec<ObjectId> {
    let objects = value.objects.iter().map(|object| match cx.analysis.object(object).shape {
        Shape::Method(_, receiver) | Shape::BuiltIn(receiver, _) => receiver,
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
    let proof =
        Proof { repeats: repeats_through(cx.analysis, &[exposure.through, exposure.inner]), ..Proof::FULL };
    let diagnostic = cx.report(call.at, &function, message);
    diagnostic.proof = proof;
    diagnostic.weight = if heavy && waits { Weight::Tensors } else { Weight::Host };
    diagnostic.chain = chain;
    diagnostic.fix = advice(if waits {
        "Pass a function that does not know the object, with what it needs: `weakref.finalize(self, os.unlink, self.path)`."
    } else {
        "Use a context manager, or `weakref.finalize(self, function, ..)` with a function that does not know the object."
    });
}
