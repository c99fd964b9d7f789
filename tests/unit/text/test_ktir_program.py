"""KTIR programs as files: the comments above them, and a text for each function."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.text.ktir_program import function_texts, program_text
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.universe import make_context

FIRST = """\
  func.func @first(%x : index) attributes {grid = [4, 2]GAP} {
    func.return
  }
"""
SECOND = """\
  func.func @second(%y : index) {
    func.return
  }
"""
POINTERS = "// Arguments are places in device memory, counted in elements.\n"
ORDER = (
    "the host launches them in this order, each when the one before has ended on all cores.\n"
    "// One name is one buffer in all of them.\n"
)


def module_of(*functions: str) -> ModuleOp:
    body = "".join(functions).replace("GAP", ', spyre.buffers = ["%x: the input", "64 x 64"]')
    return parse_module(f"builtin.module {{\n{body}}}", make_context())


def plain(*functions: str) -> str:
    """The text of functions without what is said of their buffers."""
    body = "".join(functions).replace("GAP", "").replace("%x : index", "%x: index").replace("%y : index", "%y: index")
    return f"builtin.module {{\n{body}}}\n"


def test_a_function_alone_says_what_it_points_to() -> None:
    assert program_text(module_of(FIRST)) == (
        POINTERS + "// @first on 4 x 2 cores\n//   %x: the input\n//   64 x 64\n" + plain(FIRST)
    )


def test_several_functions_say_their_order() -> None:
    assert program_text(module_of(FIRST, SECOND)) == (
        f"// 2 functions: {ORDER}{POINTERS}"
        "// @first on 4 x 2 cores\n//   %x: the input\n//   64 x 64\n// @second on  cores\n" + plain(FIRST, SECOND)
    )


def test_every_function_has_a_text_of_its_own() -> None:
    texts = function_texts(module_of(FIRST, SECOND))
    assert list(texts) == ["first", "second"]
    assert texts["first"] == (
        f"// Function 1 of 2: {ORDER}{POINTERS}"
        "// @first on 4 x 2 cores\n//   %x: the input\n//   64 x 64\n" + plain(FIRST)
    )
    assert texts["second"] == f"// Function 2 of 2: {ORDER}{POINTERS}// @second on  cores\n" + plain(SECOND)


def test_an_only_function_has_the_text_of_the_program() -> None:
    assert function_texts(module_of(FIRST)) == {"first": program_text(module_of(FIRST))}


def test_what_is_no_function_has_no_comment() -> None:
    text = program_text(module_of("  %c = arith.constant 1 : index\n", SECOND))
    assert text.startswith(f"{POINTERS}// @second on  cores\nbuiltin.module")
    assert "arith.constant 1 : index" in text


def test_the_module_stays_as_it_is() -> None:
    module = module_of(FIRST, SECOND)
    before = module_text(module)
    program_text(module)
    function_texts(module)
    assert "spyre.buffers" in before
    assert module_text(module) == before


def test_memory_spaces_can_be_spelled_as_before() -> None:
    text = "func.func @f() attributes {a = #ktdp.memory_space<global>} { func.return }"
    module = parse_module(text, make_context())
    newer, older = "#ktdp.memory_space<global>", "#ktdp.spyre_memory_space<HBM>"
    assert newer in program_text(module)
    assert newer in function_texts(module)["f"]
    assert older in program_text(module, older_spaces=True)
    assert older in function_texts(module, older_spaces=True)["f"]
