"""An independent reader of ``bundle.mlir`` text: which file runs, in which order, with which addresses.

Written from the published grammar of the bundle, line by line with regular expressions; it imports nothing of
the compiler. It evaluates every symbol id to a byte address, given the addresses of the arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MOST_TRIPS = 65_535
SSA = r"%[A-Za-z0-9_$.\-]+"
FUNC = re.compile(r'func\.func\s+(?:@sdsc_bundle|"sdsc_bundle")\s*\((?P<params>.*)\)\s*(?:attributes\s*\{.*\}\s*)?\{$')
PARAM = re.compile(rf"(?P<name>{SSA})\s*:\s*!sdscbundle\.input_arg<index(?P<rest>[^>]*)>")
EXTRACT = re.compile(
    rf"(?P<res>{SSA})\s*=\s*sdscbundle\.input_arg_extract\s+(?P<what>value|granularity|max_value)\s+from\s+(?P<arg>{SSA})\s*:.*"
)
ALLOCATE = re.compile(rf"(?P<res>{SSA})\s*=\s*sdscbundle\.device_mem_allocate\s+(?P<bytes>\d+)\s+bytes\s*:\s*index")
CONSTANT = re.compile(rf"(?P<res>{SSA})\s*=\s*arith\.constant\s+(?P<value>-?\d+)\s*:\s*index")
ADD = re.compile(rf"(?P<res>{SSA})\s*=\s*arith\.addi\s+(?P<lhs>{SSA})\s*,\s*(?P<rhs>{SSA})\s*:\s*index")
MAP = re.compile(
    r"(?P<name>#\w+)\s*=\s*affine_map<\((?P<dims>[^)]*)\)\s*(?:\[(?P<syms>[^\]]*)\])?\s*->\s*\((?P<expr>.*)\)>"
)
APPLY = re.compile(
    rf"(?P<res>{SSA})\s*=\s*affine\.apply\s+(?P<map>#\w+)\s*\((?P<dims>[^)]*)\)\s*(?:\[(?P<syms>[^\]]*)\])?"
)
FOR = re.compile(rf"scf\.for\s+(?P<iv>{SSA})\s*=\s*(?P<lo>{SSA})\s+to\s+(?P<hi>{SSA})\s+step\s+(?P<step>{SSA})\s*\{{$")
EXECUTE = re.compile(r"sdscbundle\.sdsc_execute\s*\((?P<args>[^)]*)\)\s*\{(?P<attrs>.*)\}$")
FILENAME = re.compile(r'sdsc_filename\s*=\s*"(?P<file>[^"]*)"')
SYMBOLS = re.compile(r"symbol_ids\s*=\s*(?:array<i64\s*:\s*|\[)(?P<ids>[-\d,\s]*)[>\]]")


class BundleSyntaxError(Exception):
    """A line outside the published grammar."""


@dataclass(frozen=True)
class Launch:
    """One ``sdsc_execute`` that happens: the file and the address of each of its symbols."""

    filename: str
    symbols: Mapping[int, int]


@dataclass
class _Scope:
    values: dict[str, int]
    maps: dict[str, tuple[list[str], list[str], str]]
    arguments: dict[str, int]
    pools: list[int]
    pool_sizes: list[int] = field(default_factory=list)
    constants: set[str] = field(default_factory=set)


def argument_count(text: str) -> int:
    """How many ``input_arg`` parameters the bundle takes."""
    return len(PARAM.findall(_signature(text)))


def pool_bytes(text: str) -> list[int]:
    """Sizes of the scratch allocations, in program order."""
    return [int(m["bytes"]) for m in ALLOCATE.finditer(text)]


def read_bundle(text: str, arguments: Sequence[int], pools: Sequence[int] = ()) -> list[Launch]:
    """Run the address arithmetic of a bundle.

    Args:
        text: the file.
        arguments: byte address (or size) of each ``input_arg``, in order.
        pools: byte address of each ``device_mem_allocate``, in program order.

    Returns:
        Every launch in execution order, loops unrolled.
    """
    names = [m["name"] for m in PARAM.finditer(_signature(text))]
    if len(names) != len(arguments):
        raise BundleSyntaxError(f"the bundle takes {len(names)} arguments, got {len(arguments)}")
    scope = _Scope({}, {}, dict(zip(names, arguments, strict=True)), list(pools))
    lines = [line.split("//")[0].strip() for line in text.splitlines()]
    for line in lines:
        if match := MAP.match(line):
            scope.maps[match["name"]] = (_names(match["dims"]), _names(match["syms"]), match["expr"])
    start = next(i for i, line in enumerate(lines) if FUNC.match(line))
    return list(_block(lines, start + 1, _end_of(lines, start), scope))


def _signature(text: str) -> str:
    for line in text.splitlines():
        if match := FUNC.match(line.strip()):
            return match["params"]
    raise BundleSyntaxError("no func.func @sdsc_bundle")


def _names(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _end_of(lines: Sequence[str], opening: int) -> int:
    """Index of the line that closes the block opened at the end of line ``opening``."""
    depth = 0
    for index in range(opening, len(lines)):
        depth += lines[index].endswith("{") - (lines[index] == "}")
        if depth == 0:
            return index
    raise BundleSyntaxError("a block is not closed")


def _block(lines: Sequence[str], first: int, last: int, scope: _Scope) -> Iterator[Launch]:
    index = first
    while index < last:
        line = lines[index]
        if match := FOR.match(line):
            end = _end_of(lines, index)
            for value in _trips(match, scope):
                scope.values[match["iv"]] = value
                yield from _block(lines, index + 1, end, scope)
            index = end
        elif match := EXECUTE.match(line):
            yield _launch(match["args"], match["attrs"], scope)
        elif line and line != "return" and line != "func.return":
            _assign(line, scope)
        index += 1


def _trips(loop: re.Match[str], scope: _Scope) -> range:
    """Values of an induction variable: constant bounds, counting upwards, no more trips than the back end counts."""
    names = [loop[key] for key in ("lo", "hi", "step")]
    if loop["iv"] in scope.constants or any(name not in scope.constants for name in names):
        raise BundleSyntaxError(f"the bounds of a loop are not all constants: {loop.group()}")
    low, high, step = (scope.values[name] for name in names)
    trips = range(low, high, step) if step > 0 else range(0)
    if not 0 < len(trips) <= MOST_TRIPS:
        raise BundleSyntaxError(f"a loop of {len(trips)} trips: {loop.group()}")
    return trips


def _assign(line: str, scope: _Scope) -> None:
    values = scope.values
    if match := EXTRACT.match(line):
        if match["what"] != "value":
            raise BundleSyntaxError(f"symbolic sizes are not read: {line}")
        values[match["res"]] = scope.arguments[match["arg"]]
    elif match := ALLOCATE.match(line):
        values[match["res"]] = scope.pools[len(scope.pool_sizes)]
        scope.pool_sizes.append(int(match["bytes"]))
    elif match := CONSTANT.match(line):
        values[match["res"]] = int(match["value"])
        scope.constants.add(match["res"])
    elif match := ADD.match(line):
        values[match["res"]] = values[match["lhs"]] + values[match["rhs"]]
    elif match := APPLY.match(line):
        dims, syms, expression = scope.maps[match["map"]]
        given = [values[n] for n in _names(match["dims"]) + _names(match["syms"])]
        values[match["res"]] = _evaluate(expression, dict(zip(dims + syms, given, strict=True)))
    else:
        raise BundleSyntaxError(f"not in the grammar: {line}")


def _evaluate(expression: str, names: Mapping[str, int]) -> int:
    """Value of an affine expression by recursive descent: sums of products of atoms."""
    tokens = re.findall(r"\d+|[a-z]\w*|[()+*-]", expression)
    position = 0

    def peek() -> str:
        return tokens[position] if position < len(tokens) else ""

    def take() -> str:
        nonlocal position
        position += 1
        return tokens[position - 1]

    def atom() -> int:
        token = take()
        if token == "(":
            value = total()
            take()
            return value
        if token == "-":
            return -atom()
        return int(token) if token.isdigit() else names[token]

    def product() -> int:
        value = atom()
        while peek() in ("*", "floordiv", "ceildiv", "mod"):
            operator, right = take(), atom()
            value = {
                "*": lambda a, b: a * b,
                "floordiv": lambda a, b: a // b,
                "ceildiv": lambda a, b: -(-a // b),
                "mod": lambda a, b: a % b,
            }[operator](value, right)
        return value

    def total() -> int:
        value = product()
        while peek() in ("+", "-"):
            value = value + product() if take() == "+" else value - product()
        return value

    return total()


def _launch(arguments: str, attributes: str, scope: _Scope) -> Launch:
    filename = FILENAME.search(attributes)
    if filename is None:
        raise BundleSyntaxError(f"sdsc_execute without a file: {attributes}")
    ids_match = SYMBOLS.search(attributes)
    ids = [int(i) for i in _names(ids_match["ids"])] if ids_match else []
    names = _names(arguments)
    if len(ids) != len(names):
        raise BundleSyntaxError(f"{filename['file']}: {len(names)} operands and {len(ids)} symbol ids")
    return Launch(filename["file"], {i: scope.values[n] for i, n in zip(ids, names, strict=True)})
