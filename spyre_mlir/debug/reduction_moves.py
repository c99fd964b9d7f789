"""Changes that make a module smaller; a reduction keeps those after which the failure is still there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator

_EXTENT = re.compile(r"(?<=[<x])\d+(?=x)")


def removable(module: ModuleOp) -> list[Operation]:
    """Return the ops that may be dropped, in the order of the text: all but the module and terminators."""
    return [op for op in module.walk() if op is not module and not op.has_trait(IsTerminator)]


def drop_ops(module: ModuleOp, low: int, high: int, *, keep_operands: bool) -> bool:
    """Drop some of the removable ops with what they hold; whatever uses a result of theirs uses another value then.

    Args:
        module: is changed.
        low: the first of the ops.
        high: one behind the last.
        keep_operands: whether an operand of the same type replaces a result, if there is one, or always a new argument
            of the function.

    Returns:
        Whether all of these ops could be dropped.
    """
    chosen = removable(module)[low:high]
    for op in reversed(_outermost(chosen)):
        for result in op.results:
            if result.first_use is None:
                continue
            replacement = _operand_like(op, result) if keep_operands else None
            replacement = replacement or _argument_like(op, result)
            if replacement is None:
                return False
            result.replace_all_uses_with(replacement)
        Rewriter.erase_op(op)
    return bool(chosen)


def _outermost(ops: Sequence[Operation]) -> list[Operation]:
    chosen = set(ops)
    return [op for op in ops if not any(parent in chosen for parent in _ancestors(op))]


def _ancestors(op: Operation) -> Iterator[Operation]:
    while (parent := op.parent_op()) is not None:
        yield parent
        op = parent


def _operand_like(op: Operation, result: SSAValue) -> SSAValue | None:
    return next((value for value in op.operands if value.type == result.type), None)


def _argument_like(op: Operation, result: SSAValue) -> SSAValue | None:
    function = next((parent for parent in _ancestors(op) if isinstance(parent, FuncOp)), None)
    if function is None:
        return None
    block = function.body.blocks[0]
    added = block.insert_arg(result.type, len(block.args))
    if function.arg_attrs is not None:
        function.arg_attrs = ArrayAttr([*function.arg_attrs, DictionaryAttr({})])
    function.update_function_type()
    return added


def functions(module: ModuleOp) -> list[FuncOp]:
    """Return the functions that have a body."""
    return [op for op in module.walk() if isinstance(op, FuncOp) and not op.is_declaration]


def drop_results(module: ModuleOp, function: int, low: int, high: int) -> bool:
    """Drop some results of a function; returns whether it has them."""
    changed = functions(module)[function]
    back = changed.get_return_op()
    block = None if back is None else back.parent_block()
    if back is None or block is None or high > len(back.operands):
        return False
    kept = [value for number, value in enumerate(back.operands) if not low <= number < high]
    block.insert_op_before(ReturnOp(*kept), back)
    Rewriter.erase_op(back)
    if changed.res_attrs is not None:
        changed.res_attrs = _without(changed.res_attrs, range(low, high))
    changed.update_function_type()
    return True


def drop_unused_arguments(module: ModuleOp, function: int) -> bool:
    """Drop the arguments of a function that nothing uses; returns whether there are any."""
    changed = functions(module)[function]
    unused = [argument for argument in changed.args if argument.first_use is None]
    for argument in unused:
        changed.body.blocks[0].erase_arg(argument)
    if changed.arg_attrs is not None:
        changed.arg_attrs = _without(changed.arg_attrs, [argument.index for argument in unused])
    changed.update_function_type()
    return bool(unused)


def _without(attributes: ArrayAttr[DictionaryAttr], dropped: Sequence[int]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr([one for number, one in enumerate(attributes) if number not in dropped])


def drop_attribute(module: ModuleOp, op: int, name: str) -> bool:
    """Drop an attribute of an op; returns whether there was one."""
    changed = list(module.walk())[op]
    return changed.attributes.pop(name, None) is not None


def smaller_sizes(text: str) -> Iterator[str]:
    """Return texts of a module in which one size is smaller: in types only, or wherever the number stands.

    Args:
        text: of the module.
    """
    for size in sorted({int(found[0]) for found in _EXTENT.finditer(text)}, reverse=True):
        for smaller in sorted({1, 2, 3, size // 2}):
            if 0 < smaller < size:
                yield re.sub(rf"(?<![\w.%#@^]){size}(?![\w.])|(?<=[<x]){size}(?=x)", str(smaller), text)
                yield re.sub(rf"(?<=[<x]){size}(?=x)", str(smaller), text)
