"""The dominator tree of a region's blocks.

The algorithm is the iterative one of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001):
near-linear on the graphs that structured programs make.
"""

from __future__ import annotations

from xdsl.ir import Block, Region


def dominator_children(region: Region) -> dict[Block, list[Block]]:
    """Children of each reachable block in the dominator tree; unreachable blocks are absent."""
    order = _reverse_postorder(region)
    number = {block: index for index, block in enumerate(order)}
    predecessors: list[list[int]] = [[] for _ in order]
    for block in order:
        for successor in _successors(block):
            predecessors[number[successor]].append(number[block])
    parents = _immediate_dominators(predecessors)
    children: dict[Block, list[Block]] = {}
    for index in range(1, len(order)):
        children.setdefault(order[parents[index]], []).append(order[index])
    return children


def _successors(block: Block) -> tuple[Block, ...]:
    last = block.last_op
    return tuple(last.successors) if last is not None else ()


def _reverse_postorder(region: Region) -> list[Block]:
    entry = region.blocks.first
    if entry is None:
        return []
    finished: list[Block] = []
    seen = {entry}
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, rest = stack[-1]
        successor = next(rest, None)
        if successor is None:
            finished.append(block)
            stack.pop()
        elif successor not in seen:
            seen.add(successor)
            stack.append((successor, iter(_successors(successor))))
    return finished[::-1]


def _immediate_dominators(predecessors: list[list[int]]) -> list[int]:
    """Parents in the dominator tree; blocks are numbered in reverse postorder, the entry is its own parent."""
    unknown = -1
    parents = [0] + [unknown] * (len(predecessors) - 1)
    changed = True
    while changed:
        changed = False
        for index in range(1, len(predecessors)):
            known = [one for one in predecessors[index] if parents[one] != unknown]
            best = known[0]
            for other in known[1:]:
                best = _common(best, other, parents)
            if parents[index] != best:
                parents[index] = best
                changed = True
    return parents


def _common(first: int, second: int, parents: list[int]) -> int:
    while first != second:
        if first > second:
            first = parents[first]
        else:
            second = parents[second]
    return first
