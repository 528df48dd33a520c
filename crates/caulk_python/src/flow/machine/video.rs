//! Videos: which values are all frames of one. What is taken from such a value is told as an event, so that rules can
//! see where a few frames are used of many that were decoded.

use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::Ranged;

use crate::flow::event::LoopKind;
use crate::flow::heap::Shape;
use crate::flow::machine::Machine;
use crate::flow::machine::called::Called;
use crate::flow::machine::calls::Given;
use crate::flow::machine::frame::Frame;
use crate::flow::scopes::located;
use crate::flow::value::{Kinds, Literal, Traits, Value};

/// Functions and methods that give all frames again, in another form or place.
const KEEPING: &[&str] = &[
    "stack",
    "array",
    "asarray",
    "ascontiguousarray",
    "concatenate",
    "cat",
    "vstack",
    "from_numpy",
    "as_tensor",
    "tensor",
    "asnumpy",
    "numpy",
    "astype",
    "copy",
    "permute",
    "transpose",
    "reshape",
    "view",
    "flip",
    "list",
    "tuple",
    "div",
];
/// Functions that choose among numbers.
const CHOOSING: &[&str] = &[
    "linspace",
    "sample",
    "choice",
    "choices",
    "permutation",
    "randperm",
    "randint",
    "integers",
    "randrange",
];
/// Functions after which a number is still as many as there are frames.
const COUNTING: &[&str] = &["int", "min", "max", "round", "abs", "floor", "ceil"];

impl<'p> Machine<'p> {
    /// What a call gives, with what it says of a video's frames.
    pub(super) fn of_video(&mut self, f: &Frame, mut made: Value, called: Called<'_, 'p>) -> Value {
        let Called { receiver, given, name, call } = called;
        let function = name.rsplit('.').next().unwrap_or(name);
        let source = if receiver.is_nothing() { given.first() } else { *receiver };
        if !COUNTING.contains(&function) {
            made = made.without(Traits::FRAMES);
        }
        if CHOOSING.contains(&function) {
            made = made.without(Traits::FRAME);
        }
        match function {
            "len" if source.kinds.has(Kinds::VIDEO) || self.is_whole(&source) => {
                return made.with(Traits::FRAMES);
            }
            "get" if self.asks_for_count(given) => return made.with(Traits::FRAMES),
            "arange" => return made.with(counted_whole(given)),
            "get_batch" if !given.first().traits.has(Traits::WHOLE) => return made.without(Traits::WHOLE),
            "read_video" if self.is_clipped(given) => return Value::UNKNOWN,
            _ => {}
        }
        let from_video = matches!(function, "list" | "tuple") && source.kinds.has(Kinds::VIDEO);
        if from_video || KEEPING.contains(&function) && self.is_whole(&source) {
            made = made.with(Traits::WHOLE);
            made.origin = source.origin.or_else(|| Some(self.origin(located(f.file, &*call.func))));
        }
        made
    }

    /// All frames of a video: as a tensor or array, or in a list that every frame was put into.
    pub(super) fn is_whole(&self, value: &Value) -> bool {
        const PLAIN: Kinds = Kinds::NUMBER.with(Kinds::TEXT).with(Kinds::NONE);
        // What may be a frame's number is no picture, for all that is known.
        let pictures = |value: &Value| {
            let known = value.kinds.without(PLAIN);
            let numbers = value.kinds.has(Kinds::NUMBER) && known.without(Kinds::UNKNOWN).is_empty();
            !known.is_empty() && !numbers
        };
        let in_list = || {
            value.objects.iter().any(|object| {
                let elements = &self.heap.get(object).elements;
                self.heap.shape(object) == Shape::List
                    && elements.traits.has(Traits::FRAME)
                    && pictures(elements)
            })
        };
        value.traits.has(Traits::WHOLE) && pictures(value) && !self.counts(value) || in_list()
    }

    /// A `range` or list of numbers.
    fn counts(&self, value: &Value) -> bool {
        value.only(Kinds::OBJECT)
            && value.objects.iter().all(|object| self.heap.get(object).elements.only(Kinds::NUMBER))
    }

    /// What a comprehension over all frames gives is all of them again.
    pub(super) fn of_all_frames(
        &mut self,
        f: &Frame,
        made: Value,
        element: &Value,
        source: &Expr,
        generators: &[ast::Comprehension],
    ) -> Value {
        const PLAIN: Kinds = Kinds::NUMBER.with(Kinds::TEXT).with(Kinds::NONE);
        let [only] = generators else { return made };
        if !only.ifs.is_empty() || !element.traits.has(Traits::FRAME) || element.only(PLAIN) {
            return made;
        }
        let decoded = match source {
            Expr::Call(call) => located(f.file, &*call.func),
            other => located(f.file, other),
        };
        let origin = Some(self.origin(decoded));
        Value { origin, ..made }.with(Traits::WHOLE)
    }

    /// Something is taken out of a value: told where that is all frames of a video.
    pub(super) fn take_frames(&mut self, f: &mut Frame, owner: &Value, key: Value, node: &impl Ranged) {
        if self.is_whole(owner) {
            self.library_event(f, "taken from frames", *owner, key, Value::NOTHING, node);
        }
    }

    /// The current loop goes through a video from its start.
    fn goes_through(&self, f: &Frame) -> bool {
        f.loops.last().is_some_and(|id| {
            matches!(self.loops[id.0 as usize].kind, LoopKind::While | LoopKind::Forever)
                || self.frame_loops.contains(id)
        })
    }

    /// `(ok, frame)`.
    pub(super) fn read_frame(&mut self, f: &mut Frame, call: &ast::ExprCall) -> Value {
        let frame = Value::of(Kinds::ARRAY).with(Traits::DATA);
        let frame = if self.goes_through(f) { frame.with(Traits::FRAME) } else { frame };
        self.tuple(f, &[Value::of(Kinds::NUMBER), frame], call)
    }

    /// All frames by one call; torchvision gives sound and rates beside them.
    pub(super) fn all_frames(&mut self, f: &mut Frame, name: &str, call: &ast::ExprCall) -> Value {
        let frames =
            Value { origin: Some(self.origin(located(f.file, &*call.func))), ..Value::of(Kinds::ARRAY) };
        let frames = frames.or(Kinds::TENSOR).with(Traits::DATA.with(Traits::WHOLE));
        if name.ends_with("read_video") {
            self.tuple(f, &[frames, Value::UNKNOWN, Value::UNKNOWN], call)
        } else {
            frames
        }
    }

    /// `reader[3]`, `reader[:]`.
    pub(super) fn frames_at(&mut self, f: &Frame, subscript: &ast::ExprSubscript) -> Value {
        let frames = Value::of(Kinds::ARRAY).or(Kinds::TENSOR).with(Traits::DATA);
        let all = matches!(&*subscript.slice, Expr::Slice(slice)
            if slice.lower.is_none() && slice.upper.is_none() && slice.step.is_none());
        if !all {
            return frames;
        }
        let origin = Some(self.origin(located(f.file, &*subscript.value)));
        Value { origin, ..frames }.with(Traits::WHOLE)
    }

    /// `capture.get(cv2.CAP_PROP_FRAME_COUNT)`.
    fn asks_for_count(&self, given: &Given) -> bool {
        given.first().objects.iter().any(|object| match self.heap.shape(object) {
            Shape::External(name) => self.symbols.name(name).ends_with("FRAME_COUNT"),
            _ => false,
        })
    }

    /// `read_video(path, start_pts=..)`.
    fn is_clipped(&self, given: &Given) -> bool {
        given.positional.len() > 1
            || given.named.iter().any(|(name, value)| {
                let bound = matches!(self.symbols.name(*name), "start_pts" | "end_pts");
                bound && !matches!(value.literal, Literal::Int(0)) && !value.only(Kinds::NONE)
            })
    }
}

/// The numbers of a `range`.
pub(super) fn counted(given: &Given) -> Value {
    let of_frames = given.positional.iter().any(|value| value.traits.has(Traits::FRAMES));
    let number = Value::of(Kinds::NUMBER);
    if of_frames { number.with(Traits::FRAME) } else { number }
}

/// Whether a `range` has the number of every frame.
pub(super) fn counted_whole(given: &Given) -> Traits {
    let stop = match &*given.positional {
        [stop] => stop,
        [start, stop] if start.literal == Literal::Int(0) => stop,
        _ => return Traits::NONE_OF_ALL,
    };
    if stop.traits.has(Traits::FRAMES) { Traits::WHOLE } else { Traits::NONE_OF_ALL }
}
