"""The harness itself: verdicts, inputs, a run that nothing stops, results that outlive it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.opinfo import run as running
from tests.opinfo.compare import equally_selected, error_of, exceptional
from tests.opinfo.judge import Outcome, judge
from tests.opinfo.run import Plan
from tests.opinfo.samples import Case, case_of, cases, named, representable, spread
from tests.opinfo.store import Store
from tests.opinfo.summary import is_worse, row_summary, update_summary

X = torch.tensor([[1.0, -2.0, 3.5], [0.25, 4.0, -0.5]])


def verdict(op: Callable[..., Any], *inputs: torch.Tensor, **options: Any) -> Outcome:
    return judge(case_of("op", "float32", 0, op, (inputs, {})), **options)


def differs_when_traced(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if torch.compiler.is_exporting() else x + 2


def raises_when_traced(x: torch.Tensor) -> torch.Tensor:
    return {}["nothing"] if torch.compiler.is_exporting() else x


def slow_when_traced(x: torch.Tensor) -> torch.Tensor:
    while torch.compiler.is_exporting():
        sum(range(1000))
    return x


def test_one_function_is_native() -> None:
    outcome = verdict(torch.add, X, X, device=True, levels=True)
    assert (outcome.status, outcome.support, outcome.kernels) == ("ok", "native", 1)
    assert outcome.device_error == 0


def test_several_kernels_are_composed() -> None:
    outcome = verdict(lambda x: torch.softmax(x, 1), X)
    assert (outcome.status, outcome.support) == ("ok", "composed")
    assert outcome.kernels > 1


def test_wrong_numbers_are_found() -> None:
    outcome = verdict(differs_when_traced, X)
    assert outcome.status == "wrong" and "error" in outcome.detail


def test_wrong_numbers_are_excused_only_by_values() -> None:
    outcome = verdict(differs_when_traced, torch.tensor([1.0, float("inf")]))
    assert outcome.status == "exception" and "infinity" in outcome.detail


def test_the_sign_of_zero_excuses_only_what_it_changes() -> None:
    def signed(x: torch.Tensor) -> torch.Tensor:
        return differs_when_traced(torch.copysign(torch.ones(2), x))

    zeros = torch.tensor([-0.0, 1.0])
    assert verdict(differs_when_traced, zeros).status == "wrong"
    assert verdict(signed, zeros).status == "exception"


def test_results_of_another_type_are_wrong() -> None:
    outcome = verdict(lambda x: x > 0 if torch.compiler.is_exporting() else x, X)
    assert outcome.status == "wrong" and "torch.bool" in outcome.detail


def test_what_is_no_error_of_ours_is_a_crash() -> None:
    outcome = verdict(raises_when_traced, X)
    assert outcome.status == "crash" and outcome.detail.startswith("KeyError: 'nothing'")


def test_a_sample_has_a_time_limit() -> None:
    assert verdict(slow_when_traced, X, seconds=1).status == "slow"


def test_what_torch_refuses_does_not_count() -> None:
    assert verdict(torch.mm, X, X).status == "none"


def test_refusals_have_their_message() -> None:
    outcome = verdict(lambda x: x * torch.rand(1, generator=torch.Generator()), X)
    assert outcome.status == "refused" and "SPY-U001" in outcome.detail


def test_inputs_are_cut_towards_zero_and_keep_their_strides() -> None:
    x = torch.tensor([[0.99999, -0.99999], [1.00001, 0.1]]).t()
    cut = representable(x)
    assert cut.stride() == x.stride()
    assert cut.t().tolist() == [[1 - 2**-10, -1 + 2**-10], [1.0, 0.0999755859375]]


def test_errors_are_relative_to_the_largest_and_infinity_has_a_place() -> None:
    wanted = torch.tensor([1.0, 4.0, float("inf")])
    assert error_of(torch.tensor([1.0, 4.5, float("inf")]), wanted, merged=False) == 0.125
    merged = torch.tensor([1.0, 4.0, float("nan")])
    assert error_of(merged, wanted, merged=True) == 0.0
    assert error_of(merged, wanted, merged=False) == float("inf")
    assert error_of(torch.tensor([1.0, 4.0, 5.0]), wanted, merged=True) == float("inf")


def test_exceptions_are_seen_in_values() -> None:
    assert exceptional([X, torch.tensor([1])]) == []
    assert exceptional([torch.tensor([2**31]), True, X]) == ["beyond 32 bits"]
    values = torch.tensor([float("nan"), -0.0, 1e-12])
    assert exceptional([values]) == ["-0", "nan or infinity", "range"]


def test_indices_may_name_any_of_equal_elements() -> None:
    x = torch.tensor([[3.0, 3.0, 1.0], [0.0, 2.0, 2.0]])
    assert equally_selected(x, torch.tensor([1, 2]), torch.tensor([0, 1]))
    assert not equally_selected(x, torch.tensor([2, 2]), torch.tensor([0, 1]))
    assert equally_selected(x, torch.tensor(1), torch.tensor(0))


def test_indices_into_the_last_dimensions_as_one() -> None:
    x = torch.tensor([[[1.0, 1.0], [0.0, 2.0]]])
    one, two, other = (torch.tensor([[[n]]]) for n in (0, 1, 2))
    assert equally_selected(x, two, one)
    assert not equally_selected(x, other, one)


def test_random_numbers_are_those_of_the_same_seed() -> None:
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if torch.compiler.is_exporting() else torch.rand_like(x)

    def later(x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_exporting():
            torch.rand(1)
        return torch.rand_like(x)

    assert verdict(torch.rand_like, X).status == "ok"
    assert verdict(doubled, X).status == "wrong"
    assert verdict(later, X).status == "wrong"


def test_ops_may_write_to_their_inputs() -> None:
    case = case_of("op", "float32", 0, lambda x: x.add_(1), ((X.clone(),), {}))
    assert judge(case, device=True).status == "ok"
    assert torch.equal(case.inputs[0], X)


def test_samples_are_spread() -> None:
    assert spread(list(range(20)), 3) == [0, 10, 19]
    assert spread([1, 2], 10) == [1, 2]


def test_names_find_variants_and_namespaces() -> None:
    assert named("softmax") == ["softmax", "softmax.with_dtype"]
    assert "nn.functional.conv2d" in named("conv2d")
    assert named("no_such_op") == []


def test_samples_are_the_same_every_time() -> None:
    first, again = (list(cases("add", "float32", 3)) for _ in range(2))
    assert len(first) == 3
    for one, other in zip(first, again, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one.inputs, other.inputs, strict=True))


Ops = dict[str, Callable[..., Any]]


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Ops:
    """Rows in place of the database's, two samples each."""
    ops: Ops = {"good": torch.neg, "last": torch.abs}

    def all_rows(_: Plan) -> Iterator[tuple[str, str]]:
        yield from ((name, "float32") for name in ops)

    def row_cases(name: str, dtype: str, _: int) -> list[Case]:
        return [case_of(name, dtype, number, ops[name], ((X,), {})) for number in range(2)]

    monkeypatch.setattr(Plan, "rows", all_rows)
    monkeypatch.setattr(running, "row_cases", row_cases)
    return ops


def test_nothing_stops_it(rows: Ops, tmp_path: Path) -> None:
    rows |= {"dies": lambda _: os._exit(1), "slow": slow_when_traced, "last": rows.pop("last")}
    found = {r["key"]: r["status"] for r in running.run(Plan(core=False, seconds=2), Store(tmp_path))}
    each = {"good": "ok", "dies": "crash", "slow": "slow", "last": "ok"}
    assert found == {f"{name}/float32/{n}": status for name, status in each.items() for n in range(2)}


@pytest.mark.parametrize(("held", "processes"), [(-running.MEMORY, 2), (running.MEMORY, 1)])
def test_a_process_that_holds_much_is_replaced(
    held: int, processes: int, rows: Ops, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noted(x: torch.Tensor) -> torch.Tensor:
        (tmp_path / f"{os.getpid()}.ran").touch()
        return x + 1

    rows |= {"good": noted, "last": noted}
    monkeypatch.setattr(running, "HELD", held)
    assert len(list(running.run(Plan(core=False), Store(tmp_path)))) == 4
    assert len(list(tmp_path.glob("*.ran"))) == processes


@pytest.mark.usefixtures("rows")
def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first = running.run(Plan(core=False), Store(tmp_path))
    assert next(first)["key"] == "good/float32/0"
    first.close()
    store = Store(tmp_path)
    rest = [record["key"] for record in running.run(Plan(core=False), store)]
    assert rest == ["good/float32/1", "last/float32/0", "last/float32/1"]
    assert list(running.run(Plan(core=False, fresh=True), store)) == []


def test_rows_are_divided_over_shards() -> None:
    whole = list(Plan(dtypes=("bool",)).rows())
    parts = [list(Plan(dtypes=("bool",), shard=(n, 3)).rows()) for n in range(3)]
    assert sorted(row for part in parts for row in part) == sorted(whole)
    assert all(len(part) > len(whole) / 5 for part in parts)


def test_other_code_tries_again_what_is_asked_for(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number, status in enumerate(("ok", "wrong")):
        store.add({"key": f"add/float32/{number}", "status": status, "code": "of yesterday"})
    with (tmp_path / "results-all.jsonl").open("a") as stream:
        stream.write('{"key": "add/float32/2", "sta')  # a process was killed
    store = Store(tmp_path)
    both = frozenset({"add/float32/0", "add/float32/1"})
    assert store.done("add/float32", frozenset(), fresh=False) == both
    assert store.done("add/float32", frozenset({"wrong"}), fresh=False) == {"add/float32/0"}
    assert store.done("add/float32", frozenset(), fresh=True) == frozenset()


def test_rows_count_support_of_what_ran_and_what_stopped_the_rest() -> None:
    records = [
        {"status": "ok", "support": "native"},
        {"status": "exception", "support": "composed"},
        {"status": "wrong", "support": "composed"},
        {"status": "none", "support": ""},
    ]
    row = row_summary(records)
    assert row == {"samples": 3, "native": 1, "composed": 1, "wrong": 1, "exception": 1}
    assert not is_worse({"status": "wrong", "support": "composed"}, row)
    assert is_worse({"status": "crash", "support": ""}, row)
    assert is_worse({"status": "ok", "support": "host"}, {"native": 3})
    assert not is_worse({"status": "ok", "support": "composed"}, {"native": 3})
    assert not is_worse({"status": "refused", "support": ""}, {"native": 3, "untried": 7})
    assert is_worse({"status": "wrong", "support": ""}, {"native": 3, "untried": 7})
    assert row_summary(records, 10)["untried"] == 6


def test_rows_of_a_run_replace_those_of_the_counts(tmp_path: Path) -> None:
    counts = tmp_path / "counts.json"
    rows = {"a/float32": {"samples": 2, "refused": 2, "reasons": {"old": 2}}, "b/float32": {"samples": 1, "native": 1}}
    torch_version = torch.__version__.partition("+")[0]
    known = {"left_out": {}, "core": ["c"], "torch": torch_version, "codes": {"ab": 3}, "rows": rows}
    counts.write_text(json.dumps(known), encoding="utf-8")
    store = Store(tmp_path / "run")
    store.add({"row": "a/float32", "count": 2})
    store.add({"key": "a/float32/0", "status": "ok", "support": "host", "detail": "", "code": "cd"})
    with pytest.raises(SystemExit, match="samples of a/float32 are still to come"):
        update_summary(store, counts)
    refused = "UnsupportedError: [SPY-U001] no parts\n  1 x aten.a: it is new"
    store.add({"key": "a/float32/1", "status": "refused", "support": "", "detail": refused, "code": "cd"})
    update_summary(store, counts)
    found = json.loads(counts.read_text(encoding="utf-8"))
    assert found["rows"] == {
        "a/float32": {"samples": 2, "host": 1, "refused": 1, "reasons": {"it is new": 1}},
        "b/float32": rows["b/float32"],
    }
    assert (found["codes"], found["again"], found["core"]) == ({"ab": 3}, {"cd": 2}, ["c"])


def test_counts_of_another_torch_stay(tmp_path: Path) -> None:
    counts = tmp_path / "counts.json"
    counts.write_text(json.dumps({"torch": "1.0", "rows": {}}), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"the counts are of torch 1\.0"):
        update_summary(Store(tmp_path / "run"), counts)


def test_a_row_is_an_entry_at_one_dtype() -> None:
    plan = Plan(only=("linalg.eig/float32",))
    assert list(plan.rows()) == [("linalg.eig", "float32")]
