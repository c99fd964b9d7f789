"""The text rules of ktir-cpu's default reader, line by line: what it would misread, said with the line's number.

Written from a description of that reader, imports nothing of ours. The reader has no verifier: a line it does not
know becomes an unknown operation at run time, and an unknown memory space silently means device memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

HANDLERS = {
    "arith": "absf addf addi andi bitcast ceildivsi ceildivui cmpf cmpi constant convertf divf divsi divui extf extsi "
    "extui floordivsi fptosi fptoui index_cast index_castui maxf maximumf maxnumf maxsi maxui minf minimumf minnumf "
    "minsi minui mulf muli negf ori remf remsi remui select shli shrsi shrui sitofp subf subi truncf trunci uitofp "
    "xori",
    "math": "absf absi ceil cos erf exp floor fma log log1p log2 powf rsqrt sin sqrt tanh",
    "linalg": "add batch_matmul broadcast fill generic index matmul max reduce transpose yield",
    "tensor": "collapse_shape empty expand_shape extract extract_slice from_elements generate insert_slice reshape "
    "splat yield",
    "ktdp": "get_compute_tile_id coreid construct_memory_view construct_distributed_memory_view construct_access_tile "
    "construct_indirect_access_tile load store inter_tile_produce inter_tile_reduce yield_partial yield_reduced",
    "scf": "for if yield",
    "func": "func return",
}
OPS = {f"{dialect}.{op}" for dialect, ops in HANDLERS.items() for op in ops.split()}
MODULE = re.compile(r"^(builtin\.)?module\s*\{$")
FUNCTION = re.compile(r"^func\.func @\w+\((.*)\) attributes \{grid = \[([0-9, ]+)\]\} \{$")
OP = re.compile(r"^(?:(?:%\w+(?:, )?)+ = )?([a-z]+\.\w+|return)\b")
COMBINER = re.compile(r"^\((%\w+: ?\w+(, )?)+\) \{$")
ELEMENT = re.compile(r"(?:tensor|memref)<(?:[0-9?]+x)*([a-z]\w*)[>,]")
MOST_CORES = 32


def problems(text: str, *, older_spaces: bool = False) -> list[str]:
    """What the reader would misread, one text per finding; none for a program it reads."""
    return [f"line {n}: {what}" for n, what in _problems(text, older_spaces)]


def _problems(text: str, older_spaces: bool) -> Iterator[tuple[int, str]]:
    depth = 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("//")[0].strip()
        if not line:
            continue
        depth += line.count("{") - line.count("}")
        if depth < 0:
            yield number, "a brace closes nothing"
        for what in (*_braces(line), *_words(line), *_heads(line), *_spaces(line, older_spaces)):
            yield number, what
    if depth:
        yield len(text.splitlines()), "unbalanced braces: the function is not found"
    heads = [n for n, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith("func.func")]
    if len(heads) > 1:
        yield heads[1], f"{len(heads)} functions in a module: all get the body of the last"
    yield from _scratchpad(text)


CONSTANT = re.compile(r"(%\w+) = arith.constant (\d+) : index")
VIEW = re.compile(
    r"(%\w+) = ktdp.construct_memory_view (%\w+), sizes: \[([\d, ]+)\], strides: \[([\d, ]+)\].*<(?:ct_local|LX)"
)
TILE = re.compile(r"(%\w+) = ktdp.construct_access_tile (%\w+)\[.*<([\dx]+)xindex>$")
STORE = re.compile(r"ktdp.store %\w+, (%\w+) :")


def _scratchpad(text: str) -> Iterator[tuple[int, str]]:
    """Stores to LX as its reader has them: a whole store makes an array, which keeps its size; others need one.

    Places count elements: two views of different element types at one place are not told apart.
    """
    places, views, tiles, arrays = dict[str, int](), dict[str, tuple[int, list[int], bool]](), dict[str, str](), {}
    for number, line in enumerate(text.splitlines(), 1):
        if found := CONSTANT.search(line):
            places[found[1]] = int(found[2])
        elif (found := VIEW.search(line)) and found[2] in places:
            sizes, strides = ([int(n) for n in found[k].split(",")] for k in (3, 4))
            dense = strides == [prod(sizes[d + 1 :]) for d in range(len(sizes))]
            views[found[1]] = (places[found[2]], sizes, dense)
        elif (found := TILE.search(line)) and found[2] in views:
            place, sizes, dense = views[found[2]]
            whole = dense and [int(n) for n in found[3].split("x")] == sizes
            views[found[1]], tiles[found[1]] = (place, sizes, whole), found[2]
        elif (found := STORE.search(line)) and found[1] in tiles:
            place, sizes, whole = views[found[1]]
            if not whole and not any(first <= place < first + n for first, n in arrays.items()):
                yield number, f"a store in parts to LX at {place}, which no whole store has made"
            elif whole and arrays.setdefault(place, prod(sizes)) < prod(sizes):
                yield number, f"{prod(sizes)} elements to LX at {place}, where an array of {arrays[place]} stays"


def _braces(line: str) -> Iterator[str]:
    """A region's brace ends its line, and the closing one stands alone."""
    rest = line
    if rest.startswith("}"):
        rest = rest[1:].strip()
        if rest and not rest.startswith("-> "):
            yield f"`}}` is followed by {rest!r}"
    dictionaries, opened = list[str](), list[int]()
    for place, sign in enumerate(rest):
        if sign == "{":
            opened.append(place)
        elif sign == "}":
            if not opened:
                yield "`}` does not stand alone"
                return
            dictionaries.append(rest[opened.pop() : place])
    if opened and opened != [len(rest) - 1]:
        yield "`{` of a region does not end its line"
    if any("%" in d for d in dictionaries):
        yield "an attribute dictionary has %"


def _words(line: str) -> Iterator[str]:
    if re.search(r'"\w+\.\w+"\s*\(', line):
        yield "generic assembly"
    for word in ("else", "affine.apply"):
        if re.search(rf"(?<![\w.]){re.escape(word)}\b", line):
            yield f"`{word}` is dropped"
    if re.search(r"access_tile<[^>]*\?", line):
        yield "`?` in an access tile"
    for element in ELEMENT.findall(line):
        if element not in ("f16", "f32", "i1", "i32", "i64", "index"):
            yield f"unknown element type {element}"


def _heads(line: str) -> Iterator[str]:
    if line.startswith(("}", "^bb", "#")) or MODULE.match(line) or COMBINER.match(line):
        return
    if line.startswith("func.func"):
        yield from _function(line)
        return
    found = OP.match(line)
    if found is None or found.group(1) not in {*OPS, "return"}:
        yield f"no operation is known of: {line[:60]}"


def _function(line: str) -> Iterator[str]:
    found = FUNCTION.match(line)
    if found is None:
        yield "a function is `func.func @name(args) attributes {grid = [numbers]} {`"
        return
    arguments, grid = found.groups()
    if "(" in arguments:
        yield "parentheses inside argument types"
    numbers = [int(n) for n in grid.split(",")]
    if not 1 <= len(numbers) <= 3 or prod(numbers) > MOST_CORES:
        yield f"a grid of {numbers}"


def _spaces(line: str, older: bool) -> Iterator[str]:
    if "construct_memory_view" not in line:
        return
    space = re.search(r"memory_space = (#ktdp\.\w+<[^>]*>)", line)
    name = "spyre_memory_space" if older else "memory_space"
    words = "HBM|LX" if older else r"global|ct_local(?:, ct_id = \d+)?"
    if space is None or not re.fullmatch(rf"#ktdp\.{name}<(?:{words})>", space.group(1)):
        yield f"the memory space is read as device memory: {space.group(1) if space else 'none'}"


__all__ = ["problems"]
