"""A sample of some families of core ops in every run; with `-m slow` of all, and of every core overload.

No sample may end worse than the committed counts say that the worst of its op does: `tools/data/opinfo.json`, which
`python -m tests.opinfo --run DIR --summary FILE` writes and the page of coverage shows.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from tests.opinfo.core import core_cases, noted_calls
from tests.opinfo.judge import judge
from tests.opinfo.run import Plan, run
from tests.opinfo.samples import cases, spread
from tests.opinfo.store import Store
from tests.opinfo.summary import is_worse, kind_of, worse_than, worst
from tests.paths import ROOT

COUNTS = ROOT / "tools" / "data" / "opinfo.json"
# Entries that stand for their families, by dtype.
FAMILIES = {
    "float32": (
        *("add", "div.floor_rounding", "remainder", "maximum", "pow", "where", "clamp", "copysign", "atan2"),
        *("exp", "log1p", "sin", "erf", "sigmoid", "round", "sign", "reciprocal", "logical_not", "eq", "isnan"),
        *("sum", "mean", "amax", "prod", "var", "argmax", "any", "std", "logsumexp", "linalg.vector_norm"),
        *("cumsum", "sort", "topk", "max.reduction_with_dim", "median", "mm", "addmm", "bmm", "einsum"),
        *("softmax", "nn.functional.layer_norm", "nn.functional.group_norm", "nn.functional.batch_norm"),
        *("nn.functional.gelu", "nn.functional.silu", "nn.functional.softplus", "nn.functional.leaky_relu"),
        *("nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv_transpose2d"),
        *("nn.functional.avg_pool2d", "nn.functional.max_pool2d", "nn.functional.adaptive_avg_pool2d"),
        *("nn.functional.interpolate.bilinear", "nn.functional.pad.reflect", "nn.functional.pixel_shuffle"),
        *("nn.functional.mse_loss", "nn.functional.cross_entropy", "nn.functional.scaled_dot_product_attention"),
        *("cat", "stack", "flip", "roll", "tril", "diagonal", "expand", "permute", "reshape", "split", "unfold"),
        *("index_select", "gather", "scatter", "index_put", "scatter_add", "masked_fill", "select_scatter"),
        *("arange", "full_like", "zeros_like", "nn.functional.embedding", "to", "clone", "as_strided"),
    ),
    "int64": ("add", "mul", "sum", "eq", "bitwise_and", "cumsum", "argmax", "gather", "floor_divide", "remainder"),
    "bool": ("logical_and", "bitwise_or", "any", "where", "sum", "cat"),
    "float16": ("add", "softmax", "mm", "nn.functional.gelu"),
}
# Rows whose programs take ten seconds and more.
LONG = (
    *("atan2/float32", "remainder/float32", "pow/float32", "median/float32", "topk/float32", "floor_divide/int64"),
    *("nn.functional.max_pool2d/float32", "nn.functional.adaptive_avg_pool2d/float32"),
    *("nn.functional.conv_transpose2d/float32", "nn.functional.interpolate.bilinear/float32"),
)
ROWS = [(name, dtype) for dtype, names in FAMILIES.items() for name in names]
# Neighbours are akin: one of two stands for both.
IN_EVERY_RUN = [row for row in ROWS[::2] if "/".join(row) not in LONG]
# Of the ten samples of a row, those in the middle: the first ones are often the simplest.
TRIED = 1


@cache
def counts() -> dict[str, dict[str, int]]:
    return json.loads(COUNTS.read_text(encoding="utf-8"))["rows"]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(
            *row,
            id="/".join(row),
            marks=() if row in IN_EVERY_RUN else pytest.mark.slow(reason="takes seconds, or one akin runs by default"),
        )
        for row in ROWS
    ],
)
def test_samples_end_no_worse_than_the_page_says(name: str, dtype: str) -> None:
    known = counts().get(f"{name}/{dtype}")
    found = list(cases(name, dtype, 2 * TRIED + 1))
    assert found, "the database has no such entry"
    for case in spread(found[1:], TRIED):
        outcome = judge(case, device=True)
        if known is not None:
            assert not is_worse(outcome.record(), known), f"{worst(known)} at worst before\n{outcome.line()}"
        else:
            assert outcome.status != "crash", outcome.line()


@pytest.mark.parametrize(
    "name", ["_native_batch_norm_legit_no_training.default", "upsample_nearest2d.vec", "pow.Scalar"]
)
def test_core_overloads_have_samples_of_their_own(name: str) -> None:
    found = list(core_cases(name, 2, entries=("neg",)))
    assert len(found) == 2
    known = counts().get(f"aten::{name}/float32", {"crash": 1})
    outcomes = [judge(case, device=True) for case in found]
    assert not [o.line() for o in outcomes if is_worse(o.record(), known)]


def test_core_overloads_are_tried_with_what_others_call_them_with() -> None:
    calls = noted_calls(("var", "nn.functional.softplus"))
    assert set(calls["var.correction"]) == {"var"}
    (case, *_) = core_cases("var.correction", 2, entries=("var", "nn.functional.softplus"))
    assert case.key == "aten::var.correction/float32/0"
    assert judge(case).status in ("ok", "refused")


@pytest.mark.slow(reason="every core overload; the subset runs by default")
@pytest.mark.parametrize("part", range(4))
def test_core_overloads_end_no_worse_than_the_page_says(part: int, tmp_path: Path) -> None:
    store = Store(tmp_path)
    found = [kind_of(record) for record in run(Plan(dtypes=(), first=4, shard=(part, 4)), store)]
    assert len(found) > 100
    assert worse_than(store, COUNTS) == {}
