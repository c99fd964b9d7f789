"""Options of `compile`: one declaration each, from which signature, docstring and fields of passes follow."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from spyre_mlir.errors import InputError
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.options import ENABLED, CompileOptions, about, option_names, read_spec, takes_options
from spyre_mlir.transforms import get_all_passes


def test_every_option_sets_what_its_pass_has() -> None:
    for entry in fields(CompileOptions):
        match about(entry).sets:
            case (pass_name, field):
                assert field in {ENABLED, *(f.name for f in fields(get_all_passes()[pass_name]()))}
            case (pass_name,):
                assert pass_name in get_all_passes()
            case None:
                pass


def test_passes_alone_do_what_the_options_ask_for_where_nothing_is_said() -> None:
    other = {("decompose-aten", "integers")}  # only a call can meet a larger integer, so no pass takes that choice
    for entry in fields(CompileOptions):
        chosen = about(entry).sets
        if chosen is not None and len(chosen) == 2 and chosen not in other:
            alone = get_all_passes()[chosen[0]]()()
            assert (True if chosen[1] == ENABLED else getattr(alone, chosen[1])) == entry.default


def test_fields_of_passes_follow_from_the_options() -> None:
    chosen = CompileOptions(addresses="concrete", loops="unroll", share_files=True, keep_float32=True).passes()
    assert chosen == {
        "convert-spyre-kernel-to-superdsc": {
            "addresses": "concrete",
            "share": True,
            "loops": "unroll",
            "version": "TS26",
        },
        "pad-rows": {"keep_float32": True, "keep_float32_in": ()},
        "choose-layouts": {"keep_float32": True, "keep_float32_in": ()},
        "convert-spyre-loop-to-spyre-kernel": {"keep_float32": True, "keep_float32_in": ()},
        "decompose-aten": {"prefer_device": False, "integers": "auto"},
        "outline-regions": {},
        "pad-heads": {"keep_float32": True},
        "pack-weights": {"enabled": True},
        "plan": {"loops": True},
        "place-inputs": {"inputs": "default"},
        "take-experts": {"enabled": False},
        "update-in-place": {"enabled": False},  # an address that is in a file is the same in every call
        "reuse-inputs": {"enabled": False},
        "put-pages": {"enabled": False},
        "put-entries": {"enabled": False},
    }
    for name in ("put-entries", "put-pages"):
        assert CompileOptions(in_place=False).passes()[name] == {"enabled": False}
    assert CompileOptions(whole_pages=False).passes()["put-pages"] == {"enabled": False}
    # An address that is in a file cannot advance from trip to trip.
    assert CompileOptions(addresses="concrete").passes()["plan"] == {"loops": False}
    assert CompileOptions(tile=False).passes()["plan"] == {"loops": False}


def test_an_optional_pass_runs_if_its_option_is_true() -> None:
    assert CompileOptions().passes()["outline-regions"] == {}
    assert "outline-regions" not in CompileOptions(regions=False).passes()


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"numerics": "fast"}, "numerics must be one of exact, device, none, got 'fast'"),
        ({"loops": ""}, "loops must be one of loop, unroll, got ''"),
        ({"sdsc_version": "TS27"}, "sdsc_version must be one of TS25, TS26, TSNEW"),
        ({"tile": "yes"}, "tile must be True or False, got 'yes'"),
        ({"spec": 64}, "spec must be a SpyreSpec, got 64"),
        ({"cache": "off"}, "cache must be True or False, got 'off'"),
        ({"progress": "bar"}, "progress must be None, True, False or a function, got 'bar'"),
    ],
)
def test_values_an_option_does_not_have_are_refused(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CompileOptions.of(choices)


def test_an_unknown_option_is_refused_with_the_nearest_or_with_all() -> None:
    with pytest.raises(InputError, match="compile has no option numeric\n  try: did you mean numerics"):
        CompileOptions.of({"numeric": "exact"})
    with pytest.raises(InputError, match="acme has no option zzz\n  try: the options are numerics, addresses, "):
        CompileOptions.of({"zzz": 1}, by="acme")


def test_options_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        CompileOptions().loops = "unroll"  # type: ignore[misc]


def test_a_card_is_read_from_text() -> None:
    assert read_spec("cores_per_card=64,loop_trips=9") == replace(SPYRE, cores_per_card=64, loop_trips=9)
    assert read_spec("") == SPYRE
    for text, message in (("cores=1", "a card has no number cores"), ("lx_bytes", "a card is NAME=NUMBER")):
        with pytest.raises(InputError, match=message):
            read_spec(text)


def test_signature_and_docstring_follow() -> None:
    @takes_options
    def run(model: Any, **choices: Any) -> None:
        """Runs.

        Args:
            model: it.
            **choices: options, the fields of `CompileOptions`.
        """

    parameters = inspect.signature(run).parameters
    assert list(parameters) == ["model", *option_names()]
    assert parameters["loops"].default == "loop"
    assert parameters["loops"].kind is inspect.Parameter.KEYWORD_ONLY
    text = inspect.getdoc(run) or ""
    assert "choices" not in text
    assert all(f"    {name}: " in text for name in option_names())
