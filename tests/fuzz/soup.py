"""Texts that make a careless lexer or parser take for ever: quotes, brackets, long names and numbers, deep nesting."""

from __future__ import annotations

from collections.abc import Callable

MEGABYTE = 1_000_000

_IN_ATTRIBUTE = '"builtin.module"() ({}) {a = '


def _repeated(text: str, head: str = "", tail: str = "") -> Callable[[int], str]:
    return lambda size: head + text * (size // len(text) + 1) + tail


def _numbered(text: str, head: str = "", tail: str = "") -> Callable[[int], str]:
    return lambda size: head + "".join(text.format(n) for n in range(size // (len(text) + 3))) + tail


SOUPS: dict[str, Callable[[int], str]] = {
    "an unclosed quote": _repeated("a string that goes on ", 'func.func @m() {\n "t.op"() {a = "'),
    "quotes": _repeated('"'),
    "backslashes": _repeated("\\", '"'),
    "escaped quotes": _repeated('\\"', '"'),
    "escapes": _repeated("\\0a", '"'),
    "quoted symbols": _repeated('@"'),
    "round brackets": _repeated("(", "!a = "),
    "square brackets": _repeated("[", _IN_ATTRIBUTE),
    "curly brackets": _repeated("{a = ", _IN_ATTRIBUTE),
    "angles": _repeated("<<<<"),
    "angles of an attribute": _repeated("<", "#a = #x<"),
    "types in types": _repeated("tensor<4xf32, [", "#a = "),
    "tuples in tuples": _repeated("tuple<", "!a = "),
    "functions of functions": _repeated("() -> (", "!a = "),
    "dimensions": _repeated("1x", "!a = tensor<", "f32>"),
    "dimensions apart": _repeated("x1", "!a = memref<1 ", "xf32>"),
    "strides": _repeated("1,", "!a = memref<4xf32, strided<[", "1]>>"),
    "a long number": _repeated("9", "#a = "),
    "a long hexadecimal number": _repeated("f", "#a = 0x", " : index"),
    "a long fraction": _repeated("9", "#a = 1."),
    "a long width": _repeated("9", "!a = i"),
    "comments": _repeated("//\n"),
    "one comment": _repeated("//"),
    "nested locations": _repeated("fused[", '"builtin.module"() ({}) : () -> () loc('),
    "nested calls": _repeated("callsite(", '"builtin.module"() ({}) : () -> () loc('),
    "nested modules": _repeated("builtin.module {\n"),
    "nested regions": _repeated('"builtin.module"() ({'),
    "brackets of a map": _repeated("(", "#a = affine_map<(d0) -> ("),
    "signs of a map": _repeated("-", "#a = affine_map<(d0) -> ("),
    "a long sum": _repeated("d0 + ", "#a = affine_map<(d0) -> (", "d0)>"),
    "names of a map": lambda size: (
        f"#a = affine_map<({', '.join(f'd{n}' for n in range(size // 16))}) -> "
        f"({', '.join(f'd{n}' for n in range(size // 16))})>"
    ),
    "elements": _repeated("1, ", "#a = dense<[", "1]> : tensor<2xi32>"),
    "lists of elements": _repeated("[1],", "#a = dense<[", "[1]]> : tensor<2xi32>"),
    "whole numbers": _repeated("1,", _IN_ATTRIBUTE + "[", "1]} : () -> ()"),
    "numbers with types": _repeated("1:i8,", _IN_ATTRIBUTE + "[", "1]} : () -> ()"),
    "empty dictionaries": _repeated("{},", _IN_ATTRIBUTE + "[", "{}]} : () -> ()"),
    "arguments": _repeated("i1,", "func.func private @m(", "i1)"),
    "terminators": _repeated("func.return\n"),
    "empty modules": _repeated("builtin.module{}"),
    "dense in dense": _repeated("[", "#a = dense<"),
    "bytes of elements": _repeated("f", '#a = dense<"0x', '"> : tensor<2xi32>'),
    "operands": _repeated("%0, ", '"builtin.module"('),
    "values": _numbered("%{}, ", tail='%a = "test.op"() : () -> ()'),
    "many results": lambda _: '%0:1000000000 = "test.op"() : () -> ()',
    "blocks": _numbered("^b{}:\n", '"func.func"() ({{\n'.replace("{{", "{"), "}) : () -> ()"),
    "attributes": _numbered("a{} = 1, ", '"builtin.module"() ({}) {', "a = 1} : () -> ()"),
    "doubling aliases": lambda _: (
        "#a0 = [1, 1]\n" + "".join(f"#a{n + 1} = [#a{n}, #a{n}]\n" for n in range(60)) + _IN_ATTRIBUTE + "#a60}"
    ),
    "a chain of aliases": lambda size: (
        "#a0 = [1]\n" + "".join(f"#a{n + 1} = [#a{n}]\n" for n in range(size // 20)) + _IN_ATTRIBUTE + "#a9} : () -> ()"
    ),
    "a long name": _repeated("a."),
    "zeros": _repeated("\0"),
    "letters": _repeated("é"),
    "digits": _repeated("²"),
    "symbols": _repeated("::@a", "#a = @a"),
    "loops": _repeated("scf.for %j = %i to %i step %i {\n", "func.func @m(%i: index) {\n"),
}
