"""What a container grows by: `append`, `+=`, a slice, `extend`, `insert`, an item, `update`; sums in two ways."""

from __future__ import annotations

from typing import ClassVar

import libcst as cst

from .registry import each_file
from .tree import Edit, can_move, field_of_self, is_plain, named, small


class Append(Edit):
    """Writes `xs.append(v)` of a list in another way."""

    template: ClassVar[str]
    rebinds: ClassVar[bool] = False

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.BaseSmallStatement:
        call = updated.value
        if not isinstance(call, cst.Call) or len(call.args) != 1 or not isinstance(call.func, cst.Attribute):
            return updated
        kept, value = call.func.value, call.args[0]
        if call.func.attr.value != "append" or value.star or value.keyword or self.kind(kept) != "list":
            return updated
        # A name that another scope owns cannot be assigned to here.
        if self.rebinds and not (field_of_self(kept) or self.is_local(named(kept) or "")):
            return updated
        return small(self.template, xs=kept, v=value.value) if can_move(value.value) else updated


@each_file("append-to-add-assign")
class AddAssign(Append):
    """`xs += [v]`."""

    template = "{xs} += [{v}]"
    rebinds = True


@each_file("append-to-slice")
class Slice(Append):
    """`xs[len(xs):] = [v]`."""

    template = "{xs}[len({xs}):] = [{v}]"


@each_file("append-to-extend")
class Extend(Append):
    """`xs.extend([v])`."""

    template = "{xs}.extend([{v}])"


@each_file("append-to-insert")
class Insert(Append):
    """`xs.insert(len(xs), v)`."""

    template = "{xs}.insert(len({xs}), {v})"


@each_file("append-to-rebuilt")
class Rebuilt(Append):
    """`xs[:] = [*xs, v]`."""

    template = "{xs}[:] = [*{xs}, {v}]"


@each_file("item-to-update")
class ItemToUpdate(Edit):
    """`d[k] = v` as `d.update({k: v})`."""

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.BaseSmallStatement:
        target = updated.targets[0].target
        if len(updated.targets) != 1 or not isinstance(target, cst.Subscript) or len(target.slice) != 1:
            return updated
        key = target.slice[0].slice
        if self.kind(target.value) != "dict" or not isinstance(key, cst.Index) or not can_move(updated.value):
            return updated
        # The value is evaluated before the key in an assignment, and after it in a display.
        if not (is_plain(key.value) or is_plain(updated.value)):
            return updated
        pair = cst.Dict([cst.DictElement(key.value, updated.value)])
        return small("{d}.update({pair})", d=target.value, pair=pair)


@each_file("sum-written-out")
class SumWrittenOut(Edit):
    """`total += v` of a number or a tensor as `total = total + v`."""

    def leave_AugAssign(self, original: cst.AugAssign, updated: cst.AugAssign) -> cst.BaseSmallStatement:
        if not isinstance(updated.operator, cst.AddAssign) or self.kind(updated.target) != "number":
            return updated
        value = updated.value
        if not isinstance(value, (cst.Name, cst.Call, cst.Attribute, cst.Subscript)):
            value = value.with_changes(lpar=[cst.LeftParen(), *value.lpar], rpar=[*value.rpar, cst.RightParen()])
        return small("{t} = {t} + {v}", t=updated.target, v=value)
