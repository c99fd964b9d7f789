"""Keys: the same for the same program, another one for whatever lowering depends on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from spyre_mlir.cache import key as keys
from spyre_mlir.cache.errors import NotCacheableError
from spyre_mlir.cache.key import program_key
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.options import CompileOptions
from spyre_mlir.plugins import registry
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

TEXT = """
builtin.module @model {
  func.func @main(%x : tensor<4x64xf32> {aten.name = "x", aten.kind = "input"}) -> tensor<4x64xf32> {
    %y = aten.relu(%x) : (tensor<4x64xf32>) -> tensor<4x64xf32> loc("layer"("model.py":3:0))
    func.return %y : tensor<4x64xf32>
  }
}
"""


def module(text: str = TEXT) -> ModuleOp:
    return parse_module(text, make_context(), locations=False)


def key_of(text: str = TEXT, **choices: Any) -> str:
    options = CompileOptions(**choices)
    return program_key(module(text), options.passes(), options.spec)


@pytest.fixture(autouse=True)
def nothing_stays_registered() -> Iterator[None]:
    with registry.isolated():
        yield


def test_the_same_program_has_the_same_key() -> None:
    assert key_of() == key_of()
    assert len(key_of()) == 64


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("aten.relu", "aten.exp"),
        ("4x64", "5x64"),
        ("f32", "f16"),
        ("@model", "@other"),
        ("%y", "%z"),
        ("model.py", "other.py"),
        (":3:0", ":4:0"),
        ('"layer"', '"layers"'),
        ('aten.name = "x"', 'aten.name = "w"'),
        ('aten.kind = "input"', 'aten.kind = "parameter"'),
    ],
)
def test_another_program_has_another_key(old: str, new: str) -> None:
    assert old in TEXT
    assert key_of(TEXT.replace(old, new)) != key_of()


@pytest.mark.parametrize(
    "choices",
    [
        {"addresses": "concrete"},
        {"regions": False},
        {"share_files": True},
        {"tile": False},
        {"loops": "unroll"},
        {"sdsc_version": "TS25"},
        {"spec": replace(SPYRE, cores_per_card=16)},
        {"prefer_device": True},
        {"keep_float32": True},
    ],
)
def test_another_option_of_lowering_has_another_key(choices: dict[str, Any]) -> None:
    assert key_of(**choices) != key_of()


@pytest.mark.parametrize(
    "choices",
    [
        {"numerics": "exact"},
        {"on_fault": "warn"},
        {"on_overflow": "ignore"},
        {"host_fallback": "allow"},
        {"progress": False},
    ],
)
def test_what_only_calls_depend_on_has_none(choices: dict[str, Any]) -> None:
    assert key_of(**choices) == key_of()


def registering(kind: str, number: int) -> None:
    """Registers something that computes with a number."""

    def compute(*_: Any, **__: Any) -> Any:
        return number

    class Counted(ModulePass):
        name = "counted"

        def apply(self, ctx: Any, op: ModuleOp) -> None:
            compute()

    if kind == "when":
        registry.register_fallback("erfinv", when=compute)(len)
    elif kind == "priority":
        registry.register_lowering("erfinv", priority=number)(len)
    elif kind == "ulps":
        registry.register_decomposition("acme::op", ulps=float(number))(lambda build: None)
    elif kind == "pass":
        registry.register_pass("aten")(Counted)
    elif kind == "whole":
        registry.keep_whole(f"op{number}")
    else:
        getattr(registry, f"register_{kind}")("erfinv")(compute)


@pytest.mark.parametrize(
    "kind",
    ["decomposition", "lowering", "fallback", "op", "executor", "pass", "when", "priority", "ulps", "whole"],
)
def test_what_is_registered_is_in_the_key(kind: str) -> None:
    found = {key_of()}
    for number in (1, 2):
        with registry.isolated():
            registering(kind, number)
            first = key_of()
        with registry.isolated():
            registering(kind, number)
            assert key_of() == first
        found.add(first)
    assert len(found) == 3


def test_the_order_of_registering_does_not_matter() -> None:
    def one(build: Any) -> None:
        return None

    def other(build: Any) -> None:
        return None

    made = {"acme::a": one, "acme::b": other}
    found: set[str] = set()
    for names in (("acme::a", "acme::b"), ("acme::b", "acme::a")):
        with registry.isolated():
            for name in names:
                registry.register_lowering(name)(made[name])
                registry.register_decomposition(name)(made[name])
            found.add(key_of())
    assert len(found) == 1


def test_a_registration_without_identity_has_no_key() -> None:
    thing = object()
    registry.register_lowering("erfinv")(lambda *_: thing)
    with pytest.raises(NotCacheableError, match=r"an object of builtins\.object has no identity"):
        key_of()


@pytest.mark.parametrize("package", ["xdsl", "torch", "numpy", "ml_dtypes", "spyre_mlir"])
def test_another_version_has_another_key(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of()
    if package == "spyre_mlir":
        monkeypatch.setattr(keys, "compiler_digest", lambda: "source of another one")
    else:
        known = keys.version
        monkeypatch.setattr(keys, "version", lambda name: "0.0" if name == package else known(name))
    keys._code.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert key_of() != before
    monkeypatch.undo()
    keys._code.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert key_of() == before


def test_a_package_without_version_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "VERSIONED", ("no_such_package",))
    keys._code.cache_clear()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(NotCacheableError, match="the version of no_such_package is not known"):
        key_of()
    monkeypatch.undo()
    keys._code.cache_clear()  # pyright: ignore[reportPrivateUsage]
