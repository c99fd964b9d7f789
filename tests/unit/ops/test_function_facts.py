"""Records of hardware functions: what a plain one is, and how sure its name is."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from spyre_mlir.hw.certainty import Tag
from spyre_mlir.ops.function_facts import Group, HardwareFunction, LaneOrder, Seen, Special
from spyre_mlir.ops.table import Unit


def function(seen: Seen = Seen.FILE) -> HardwareFunction:
    return HardwareFunction("twice", Group.ELEMENTWISE, 1, "x + x", seen)


# What occurs in files, or in a list and the front end alike, is certain; without a settled meaning it is inferred.
TAGS = {
    Seen.FILE: Tag.CERTAIN,
    Seen.BOTH: Tag.CERTAIN,
    Seen.FRONT_END: Tag.LIKELY,
    Seen.RESEARCH: Tag.LIKELY,
    Seen.LIST: Tag.LIKELY,
    Seen.UNSETTLED: Tag.INFERRED,
}


@pytest.mark.parametrize("seen", Seen)
def test_certainty_follows_from_where_a_name_was_seen(seen: Seen) -> None:
    assert function(seen).tag is TAGS[seen]


def test_a_function_is_plain_unless_told() -> None:
    facts = asdict(function())
    assert [facts.pop(name) for name in ("name", "group", "inputs", "meaning", "seen")] == [
        "twice",
        Group.ELEMENTWISE,
        1,
        "x + x",
        Seen.FILE,
    ]
    said = {"formats": "DL16, FP32", "constants": (), "unit": Unit.SFP, "neutral": 0.0, "mask_words": (0,)}
    assert {name: facts.pop(name) for name in said} == said
    rules = ("form", "combine", "factor", "lane_order", "special")
    assert {name: facts.pop(name) for name in rules} == dict.fromkeys(rules)
    flags = "nonstick accumulates exact picks selects composed absolute contracts packed eight_bits restickifies"
    assert facts == dict.fromkeys([*flags.split(), "converts_integers", "pole", "positive", "lifts"], False)


def test_headings_of_the_reference() -> None:
    groups = ["matrix", "element by element", "reduction", "window", "selection", "conversion", "movement"]
    assert [g.value for g in Group] == groups
    assert {seen.name: seen.value for seen in Seen} == {
        "FILE": "real files",
        "BOTH": "published list and front end",
        "FRONT_END": "front end only",
        "RESEARCH": "files of one research build only",
        "LIST": "published list only",
        "UNSETTLED": "published list; meaning not settled",
    }
    assert [order.value for order in LaneOrder] == ["kept", "widened", "narrowed"]


def test_rules_of_their_own_have_names_of_their_own() -> None:
    assert {s.name: s.value for s in Special} == {
        "SHUFFLE": "shuffle",
        "LARGEST": "top k, values",
        "PLACES_OF_LARGEST": "top k, places",
        "POOLING": "pooling",
        "CONVOLUTION": "convolution",
        "DEPTHWISE": "depthwise convolution",
        "MOMENTS": "moments of a row",
        "INVERSE_DEVIATION": "inverse standard deviation from moments",
        "TOKEN_SCALE": "scale of a quantised row",
    }
