"""The kernel level on the machine, on hand-written programs, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.errors import InputError, MachineFault
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context
from tests.unit.machine.modules import Array, close, device, host, main, numbers, program, run, send


@pytest.mark.parametrize("shape", [(), (200,), (128, 256), (3, 70), (5, 100, 150), (2, 3, 4, 70)])
def test_transfer_and_back(shape: tuple[int, ...]) -> None:
    for stick in (None, *range(len(shape))):
        t = device(shape, stick)
        text = main(
            f"%a: {host(shape)}",
            send("a", shape, t) + f"%out = spyre.kernel.from_device %da : {t} to {host(shape)}",
            host(shape),
        )
        a = np.asarray(numbers(*shape))
        np.testing.assert_array_equal(run(text, a), a)


def test_pointwise_on_padded_rows() -> None:
    t = device((3, 70), 1)
    body = (
        send("a", (3, 70), t)
        + send("b", (3, 70), t)
        + f"""spyre.kernel.compute "sub" [m = 3, n = 70]
        ins(%da[m, n] : {t}, %db[m, n] : {t}) outs(%o[m, n] : {t})"""
    )
    a, b = numbers(3, 70), numbers(3, 70, seed=1)
    close(run(program({"a": (3, 70), "b": (3, 70)}, body, t, (3, 70)), a, b), a - b)


def test_pointwise_between_two_orders_of_the_dimensions() -> None:
    s, t = device((5, 3, 70), 2, order=[0, 1, 2]), device((5, 3, 70), 2, order=[1, 2, 0])
    body = (
        send("a", (5, 3, 70), s)
        + f"""spyre.kernel.compute "exp" [x = 5, m = 3, n = 70]
        ins(%da[x, m, n] : {s}) outs(%o[x, m, n] : {t})"""
    )
    a = numbers(5, 3, 70)
    close(run(program({"a": (5, 3, 70)}, body, t, (5, 3, 70)), a), np.exp(a))


def test_broadcast_of_a_row_and_of_a_sparse_column() -> None:
    t, row, column = device((3, 130), 1), device((130,), 0), device((3,), None)
    body = (
        send("r", (130,), row)
        + send("c", (3,), column)
        + f"""spyre.kernel.compute "add" [m = 3, n = 130]
        ins(%dr[n] : {row}, %dc[m] : {column}) outs(%o[m, n] : {t})"""
    )
    r, c = numbers(130), numbers(3, seed=1)
    close(run(program({"r": (130,), "c": (3,)}, body, t, (3, 130)), r, c), r + c[:, None])


def test_broadcast_of_one_number() -> None:
    t, one = device((3, 64), 1), device((), None)
    body = (
        send("a", (3, 64), t)
        + f"""%one = spyre.kernel.constant 0.75 : f64 : {one}
        spyre.kernel.compute "mul" [m = 3, n = 64] ins(%da[m, n] : {t}, %one[] : {one}) outs(%o[m, n] : {t})"""
    )
    a = numbers(3, 64)
    close(run(program({"a": (3, 64)}, body, t, (3, 64)), a), 0.75 * a)


def test_all_sparse_operands_use_lane_0_alone() -> None:
    t = device((3, 5), None)
    body = (
        send("a", (3, 5), t)
        + f"""spyre.kernel.compute "neg" [m = 3, n = 5] ins(%da[m, n] : {t}) outs(%o[m, n] : {t})"""
    )
    a = numbers(3, 5)
    close(run(program({"a": (3, 5)}, body, t, (3, 5)), a), -a)


def test_slice_of_rows_and_write_into_a_part() -> None:
    t, u = device((8, 64), 1), device((6, 128), 1)
    body = (
        send("a", (8, 64), t)
        + f"""
        spyre.kernel.compute "identity" [m = 6, n = 64] ins(%da[m + 2, n] : {t}) outs(%o[m, n + 64] : {u})
        spyre.kernel.compute "identity" [m = 6, n = 64] ins(%da[m, n] : {t}) outs(%o[m, n] : {u})"""
    )
    a = numbers(8, 64)
    close(run(program({"a": (8, 64)}, body, u, (6, 128)), a), np.concatenate([a[:6], a[2:]], 1))


MATMUL_SHAPES = {"a": (5, 100), "b": (100, 70)}


def matmul(*, zeros_a: bool, zeros_b: bool, rows: int = 128) -> str:
    a, b, o = device((5, 100), 1), device((100, 70), 1, extents=(rows, 128)), device((5, 70), 1)
    body = (
        send("a", (5, 100), a, zeros=zeros_a)
        + send("b", (100, 70), b, zeros=zeros_b)
        + f"""
        spyre.kernel.compute "batchmatmul" [m = 5, n = 70, k = 100] ins(%da[m, k] : {a}, %db[k, n] : {b})
        outs(%o[m, n] : {o})"""
    )
    return program(MATMUL_SHAPES, body, o, (5, 70))


def test_product_with_padded_inner_dimension() -> None:
    a, b = numbers(5, 100), numbers(100, 70, seed=1)
    close(run(matmul(zeros_a=True, zeros_b=True), a, b), a @ b)


@pytest.mark.parametrize(("zeros_a", "zeros_b"), [(False, True), (True, False)])
def test_product_over_poisoned_padding(zeros_a: bool, zeros_b: bool) -> None:
    with pytest.raises(MachineFault, match=r"uninitialised-read: batchmatmul computes element \[m = 0, n = 0\]"):
        run(matmul(zeros_a=zeros_a, zeros_b=zeros_b), numbers(5, 100), numbers(100, 70))


def test_batched_product_with_heads_inside_the_features() -> None:
    q, k, o = device((5, 128), 1), device((2, 64, 6), 2), device((2, 5, 6), 2)
    body = (
        send("q", (5, 128), q)
        + send("k", (2, 64, 6), k)
        + f"""
        spyre.kernel.compute "batchmatmul" [h = 2, m = 5, n = 6, d = 64]
        ins(%dq[m, h * 64 + d] : {q}, %dk[h, d, n] : {k}) outs(%o[h, m, n] : {o})"""
    )
    a, b = numbers(5, 128), numbers(2, 64, 6, seed=1)
    got = run(program({"q": (5, 128), "k": (2, 64, 6)}, body, o, (2, 5, 6)), a, b)
    close(got, a.reshape(5, 2, 64).transpose(1, 0, 2) @ b)


def test_product_with_shared_second_operand() -> None:
    a, b, o = device((3, 4, 64), 2), device((64, 70), 1), device((3, 4, 70), 2)
    body = (
        send("a", (3, 4, 64), a)
        + send("b", (64, 70), b)
        + f"""
        spyre.kernel.compute "batchmatmul" [x = 3, m = 4, n = 70, k = 64]
        ins(%da[x, m, k] : {a}, %db[k, n] : {b}) outs(%o[x, m, n] : {o})"""
    )
    x, w = numbers(3, 4, 64), numbers(64, 70, seed=1)
    close(run(program({"a": (3, 4, 64), "b": (64, 70)}, body, o, (3, 4, 70)), x, w), x @ w)


@pytest.mark.parametrize(("function", "reference"), [("sum", np.sum), ("max", np.max), ("min", np.min)])
def test_reduction_of_the_lanes_leaves_padding_out(function: str, reference: object) -> None:
    assert callable(reference)
    t, o = device((3, 70), 1), device((3,), None)
    body = (
        send("a", (3, 70), t)
        + f"""spyre.kernel.compute "{function}" [m = 3, n = 70]
        ins(%da[m, n] : {t}) outs(%o[m] : {o})"""
    )
    a = -1 - np.abs(numbers(3, 70))  # a padding of zeros would be the largest element
    close(run(program({"a": (3, 70)}, body, o, (3,)), a), reference(a, axis=1))


def test_reduction_of_rows_keeps_the_lanes() -> None:
    t, o = device((4, 3, 70), 2), device((3, 70), 1)
    body = (
        send("a", (4, 3, 70), t)
        + f"""spyre.kernel.compute "sum" [x = 4, m = 3, n = 70]
        ins(%da[x, m, n] : {t}) outs(%o[m, n] : {o})"""
    )
    a = numbers(4, 3, 70)
    close(run(program({"a": (4, 3, 70)}, body, o, (3, 70)), a), a.sum(0))


def test_reduction_of_sparse_rows() -> None:
    t, o = device((4, 3), None), device((3,), None)
    body = (
        send("a", (4, 3), t) + f"""spyre.kernel.compute "max" [x = 4, m = 3] ins(%da[x, m] : {t}) outs(%o[m] : {o})"""
    )
    a = numbers(4, 3)
    close(run(program({"a": (4, 3)}, body, o, (3,)), a), a.max(0))


def test_restickify_there_and_back() -> None:
    s, t = device((64, 128), 1), device((64, 128), 0)
    body = (
        send("a", (64, 128), s)
        + f"""%t = spyre.kernel.alloc : {t}
        spyre.kernel.restickify [m = 64, n = 128] ins(%da[m, n] : {s}) outs(%t[m, n] : {t})
        spyre.kernel.restickify [m = 64, n = 128] ins(%t[m, n] : {t}) outs(%o[m, n] : {s})"""
    )
    a = numbers(64, 128)
    close(run(program({"a": (64, 128)}, body, s, (64, 128)), a), a)


def test_transposed_product_after_a_restickify() -> None:
    a, b, r, o = device((64, 64), 1), device((128, 64), 1), device((128, 64), 0), device((64, 128), 1)
    body = (
        send("a", (64, 64), a)
        + send("b", (128, 64), b)
        + f"""%t = spyre.kernel.alloc : {r}
        spyre.kernel.restickify [n = 128, k = 64] ins(%db[n, k] : {b}) outs(%t[n, k] : {r})
        spyre.kernel.compute "batchmatmul" [m = 64, n = 128, k = 64] ins(%da[m, k] : {a}, %t[n, k] : {r})
        outs(%o[m, n] : {o})"""
    )
    x, w = numbers(64, 64), numbers(128, 64, seed=1)
    close(run(program({"a": (64, 64), "b": (128, 64)}, body, o, (64, 128)), x, w), x @ w.T)


def test_operand_beyond_its_buffer() -> None:
    # The inner dimension runs in whole sticks of the first operand; the second reserves no rows for the rest.
    # The verifier says so first; the machine does not rely on it.
    module = parse_module(matmul(zeros_a=True, zeros_b=True, rows=100), make_context())
    with pytest.raises(MachineFault, match="out-of-bounds: input 1"):
        run_function(module, [numbers(5, 100), numbers(100, 70)])


def test_comparison_gives_zeros_and_ones() -> None:
    t = device((1, 64), 1)
    body = (
        send("a", (1, 64), t)
        + f"""%z = spyre.kernel.constant 0.0 : f64 : {device((), None)}
        spyre.kernel.compute "greaterthan" [m = 1, n = 64] ins(%da[m, n] : {t}, %z[] : {device((), None)})
        outs(%o[m, n] : {t})"""
    )
    a = numbers(1, 64)
    got = run(program({"a": (1, 64)}, body, t, (1, 64)), a)
    np.testing.assert_array_equal(got, np.where(a > 0, 1.0, 0.0))


def test_operands_of_two_widths() -> None:
    wide = device((3, 70), 1, form="IEEE_FP32", extents=(3, 128))
    t = device((3, 70), 1)
    body = (
        send("a", (3, 70), wide)
        + f"""spyre.kernel.compute "identity" [m = 3, n = 70]
        ins(%da[m, n] : {wide}) outs(%o[m, n] : {t})"""
    )
    a = numbers(3, 70)
    close(run(program({"a": (3, 70)}, body, t, (3, 70)), a), a)


def test_leading_ones() -> None:
    t = device((70,), 0)
    text = main(
        "",
        f"""%c = spyre.kernel.constant #spyre.first_ones<66> : {t}
        %out = spyre.kernel.from_device %c : {t} to {host((70,))}""",
        host((70,)),
    )
    assert run(text).tolist() == [1.0] * 66 + [0.0] * 4


def gather(ids: Array, rows: Array) -> Array:
    i, t, o = device(ids.shape, ids.ndim - 1, form="SENUINT32"), device(rows.shape, 1, order=[0, 1]), device((5, 70), 1)
    body = (
        send("i", ids.shape, i, element="i64")
        + send("t", rows.shape, t)
        + f"""
        spyre.kernel.gather axis 0 [s = 5, h = 70] ins(%di[s] : {i}, %dt[0, h] : {t}) outs(%o[s, h] : {o})"""
    )
    return run(program({"i": ids.shape, "t": rows.shape}, body, o, (5, 70), {"i": "i64"}), ids, rows)


def test_gather() -> None:
    ids, rows = np.array([3, 0, 9, 3, 1]), numbers(10, 70)
    close(gather(ids, rows), rows[ids])


def test_gather_out_of_range() -> None:
    with pytest.raises(MachineFault, match=r"index 10 at position \[2, 0\] .* 10 rows") as caught:
        gather(np.array([3, 0, 10, 3, 1]), numbers(10, 70))
    assert caught.value.kind == "index-out-of-range"


def test_negative_index_does_not_fit_its_format() -> None:
    with pytest.raises(InputError, match=r"holds -1 at \[2\], and SENUINT32 holds 0 to 4,294,967,295"):
        gather(np.array([3, 0, -1, 3, 1]), numbers(10, 70))


def test_pointwise_that_loses_a_dimension() -> None:
    t, o = device((3, 64), 1), device((64,), 0)
    body = (
        send("a", (3, 64), t) + f"""spyre.kernel.compute "neg" [m = 3, n = 64] ins(%da[m, n] : {t}) outs(%o[n] : {o})"""
    )
    with pytest.raises(MachineFault, match="double-write: neg writes the same element for every m"):
        run(program({"a": (3, 64)}, body, o, (64,)), numbers(3, 64))


def test_wrong_number_of_operands() -> None:
    t = device((3, 64), 1)
    body = (
        send("a", (3, 64), t)
        + f"""spyre.kernel.compute "add" [m = 3, n = 64] ins(%da[m, n] : {t}) outs(%o[m, n] : {t})"""
    )
    with pytest.raises(MachineFault, match="operand-count: add takes 2 tensors, here 1"):
        run(program({"a": (3, 64)}, body, t, (3, 64)), numbers(3, 64))


def test_update_in_place() -> None:
    t = device((3, 70), 1)
    body = (
        send("a", (3, 70), t)
        + f"""
        spyre.kernel.compute "identity" [m = 3, n = 70] ins(%da[m, n] : {t}) outs(%o[m, n] : {t})
        spyre.kernel.compute "add" [m = 3, n = 70] ins(%o[m, n] : {t}, %o[m, n] : {t}) outs(%o[m, n] : {t})"""
    )
    a = numbers(3, 70)
    close(run(program({"a": (3, 70)}, body, t, (3, 70)), a), 2 * a)
