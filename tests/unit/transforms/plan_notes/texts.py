"""Kernels with notes of loops, written by hand."""

from __future__ import annotations


def noted(text: str, loops: str, *said: tuple[str, str]) -> str:
    """A text with loops at its function, and a note at the kernel of each function."""
    lines = text.splitlines()
    head = next(n for n, line in enumerate(lines) if "func.func" in line)
    lines[head] = f"{lines[head].removesuffix('{')}attributes {{spyre.loops = [{loops}]}} {{"
    for function, note in said:
        number = next(n for n, line in enumerate(lines) if f'compute "{function}"' in line)
        lines[number] += f" attributes {{spyre.plan = {{{note}}}}}"
    return "\n".join(lines)


__all__ = ["noted"]
