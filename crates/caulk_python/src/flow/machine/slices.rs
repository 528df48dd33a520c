//! Growth by a slice: `xs[len(xs):] = [y]` and `xs[:] = [*xs, y]` make a list longer where it is.

use ruff_python_ast::{self as ast, Expr};

use crate::flow::event::Growth;
use crate::flow::heap::Shape;
use crate::flow::joined::{is_same, joined};
use crate::flow::machine::Machine;
use crate::flow::machine::entry::Entry;
use crate::flow::machine::frame::Frame;
use crate::flow::syntax::last_name;
use crate::flow::value::Value;

impl<'p> Machine<'p> {
    /// Notes what an assignment to a slice adds; false if it adds nothing to what the list has.
    pub(super) fn lengthen_by_slice(
        &mut self,
        f: &mut Frame,
        target: &'p Expr,
        source: &'p Expr,
        value: &Value,
    ) -> bool {
        let Expr::Subscript(ast::ExprSubscript { value: list, slice, .. }) = target else { return false };
        let Expr::Slice(slice) = &**slice else { return false };
        let added = if is_behind(list, slice) {
            self.element_of(f, *value)
        } else if slice.lower.is_none() && slice.upper.is_none() {
            let Some(join) = joined(list, source) else { return false };
            self.added(f, list, join, value).0
        } else {
            return false;
        };
        let owner = self.eval(f, list);
        let is_list = |object| matches!(self.heap.shape(object), Shape::List | Shape::Deque);
        for object in owner.objects.iter().filter(|object| is_list(*object)).collect::<Vec<_>>() {
            let entry = Entry { value: added, key: Value::NOTHING, stored: Some(source) };
            self.grow(f, object, Growth::Extend, entry, &**list);
        }
        true
    }
}

/// Whether a slice begins where its list ends: `xs[len(xs):]`.
fn is_behind(list: &Expr, slice: &ast::ExprSlice) -> bool {
    let Some(Expr::Call(call)) = slice.lower.as_deref() else { return false };
    let measured = call.arguments.args.first().is_some_and(|measured| is_same(list, measured));
    slice.upper.is_none() && last_name(&call.func) == Some("len") && measured
}
