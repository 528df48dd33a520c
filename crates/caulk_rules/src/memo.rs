//! Which rule speaks of a function that remembers its results: by what its keys hold.

use caulk_core::{LeakClass, Proof};
use caulk_python::program::{Kinds, MemoCall, MemoFact, Object, ObjectId, Root, Shape, Traits, Value};

use crate::classify::is_fresh;
use crate::context::Context;
use crate::exposure::Exposure;
use crate::proven::repeats_through;

/// A cache whose keys do not come back.
pub(crate) struct Remembered {
    pub(crate) class: LeakClass,
    pub(crate) exposure: Exposure,
    /// What is new in the keys.
    pub(crate) tensors: bool,
}

impl Remembered {
    /// Keys that do not come back are the reason to report it.
    pub(crate) fn proof(&self, cx: &Context<'_>) -> Proof {
        let loops = [self.exposure.through, self.exposure.inner];
        Proof { repeats: repeats_through(cx.analysis, &loops), ..Proof::FULL }
    }
}

/// What is wrong with a cache, if anything is.
pub(crate) fn remembered(cx: &Context<'_>, memo: &MemoFact) -> Option<Remembered> {
    let mut worst: Option<Remembered> = None;
    for call in memo.calls.iter().filter(|call| call.root != Root::Test) {
        let Some(found) = by_keys(cx, memo, call) else { continue };
        let rank = |found: &Remembered| (found.class == LeakClass::CacheKeyedByTensor, found.exposure.pace);
        if worst.as_ref().is_none_or(|known| rank(&found) > rank(known)) {
            worst = Some(found);
        }
    }
    worst
}

/// Whether the first key is the object whose method is called, which therefore stays in the cache.
pub(crate) fn is_by_instance(cx: &Context<'_>, memo: &MemoFact) -> bool {
    let of_instance = |receiver| matches!(cx.analysis.object(receiver).shape, Shape::Instance(_));
    memo.calls.iter().any(|call| call.receiver.is_some_and(of_instance))
}

fn by_keys(cx: &Context<'_>, memo: &MemoFact, call: &MemoCall) -> Option<Remembered> {
    if let Some(found) = call.receiver.and_then(|receiver| by_instance(cx, memo, receiver)) {
        return Some(found);
    }
    if !memo.unbounded {
        return None;
    }
    let exposure = Exposure::around(cx.analysis, &call.around)?;
    let tensor = |value: &Value| {
        let contents = cx.analysis.contents_made_in(value, exposure.inner);
        contents.heavy.is_some_and(|heavy| heavy.kinds.has(Kinds::TENSOR)) && !value.traits.has(Traits::LEAF)
    };
    if call.arguments.iter().any(tensor) {
        return Some(Remembered { class: LeakClass::CacheKeyedByTensor, exposure, tensors: true });
    }
    let fresh = |value: &Value| is_fresh(cx.analysis, value, &call.around);
    call.arguments.iter().any(fresh).then_some(Remembered {
        class: LeakClass::UnboundedCache,
        exposure,
        tensors: false,
    })
}

/// Instances that are made again and again stay in the keys.
fn by_instance(cx: &Context<'_>, memo: &MemoFact, receiver: ObjectId) -> Option<Remembered> {
    if !matches!(cx.analysis.object(receiver).shape, Shape::Instance(_)) {
        return None;
    }
    let made = instances_like(cx, receiver).into_iter();
    let chains = made.flat_map(|object| cx.analysis.births(object));
    let exposure =
        chains.filter_map(|chain| Exposure::around(cx.analysis, &chain)).reduce(Exposure::worse)?;
    let held = cx.analysis.contents(&Value::object(receiver));
    let tensors = held.kinds.has(Kinds::TENSOR.with(Kinds::MODULE));
    // A bounded cache holds as many instances as it has entries: nothing, unless they are large.
    (memo.unbounded || tensors).then_some(Remembered { class: LeakClass::CachedMethod, exposure, tensors })
}

/// The object, or all of its class where it stands for any.
fn instances_like(cx: &Context<'_>, receiver: ObjectId) -> Vec<ObjectId> {
    let known = cx.analysis.object(receiver);
    if known.at.is_some() {
        return vec![receiver];
    }
    let same = |(id, object): (ObjectId, &Object)| (object.shape == known.shape).then_some(id);
    cx.analysis.objects().filter_map(same).collect()
}
