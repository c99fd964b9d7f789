"""Equal pieces of a sequence of signatures."""

from collections.abc import Sequence

import pytest

from spyre_mlir.transforms.regions.repetitions import Repetition, best_repetition, numbered_prefixes

PIECE = list(range(10, 50))  # forty ops, all different
NO_PATHS = [""] * 1000


def found(
    signatures: list[int],
    paths: list[str] | None = None,
    widths: list[int] | None = None,
    effects: Sequence[int] = (),
) -> Repetition | None:
    count = len(signatures)
    return best_repetition(signatures, (paths or NO_PATHS)[:count], widths or [1] * count, effects)


def test_pieces_one_behind_the_other() -> None:
    assert found([1, *PIECE * 3, 2]) == Repetition((1, 41, 81), 40)


def test_two_pieces_of_forty_pay() -> None:
    assert found([1, *PIECE * 2, 2]) == Repetition((1, 41), 40)
    paths = ["", *["layers.0.x"] * 40, *["layers.1.x"] * 40, ""]
    assert found([1, *PIECE * 2, 2], paths) == Repetition((1, 41), 40)


@pytest.mark.parametrize("signatures", [PIECE[1:] * 2, list(range(5)) * 8, list(range(200)), []])
def test_what_does_not_pay(signatures: list[int]) -> None:
    assert found(signatures) is None


def test_pieces_apart_are_found_by_their_modules() -> None:
    signatures = [*PIECE, 1, 2, 3, *PIECE, 4, *PIECE]
    paths = [*["a.0"] * 40, "", "", "", *["b.0.x"] * 40, "", *["b.1"] * 40]
    assert found(signatures) is None
    assert found(signatures, paths) == Repetition((0, 43, 84), 40)


def test_a_piece_that_differs_in_one_op_is_left_out() -> None:
    other = [*PIECE[:20], 99, *PIECE[21:]]
    paths = [f"layers.{n}" for n in range(5) for _ in PIECE]
    assert found([*PIECE * 2, *other, *PIECE * 2], paths) == Repetition((0, 40, 120, 160), 40)


def test_paths_decide_where_to_cut() -> None:
    """The head goes on like a fourth layer, and the stretch could be cut anywhere."""
    signatures = [7, *PIECE * 3, *PIECE[:15]]
    paths = ["embed", *[f"layers.{n}" for n in range(3) for _ in PIECE], *["norm"] * 15]
    assert found(signatures, paths) == Repetition((1, 41, 81), 40)


def test_without_paths_the_fewest_values_cross_the_border() -> None:
    signatures = [*PIECE * 3, *PIECE[:5]]
    widths = [1 if at % 40 == 3 else 4 for at in range(len(signatures))]
    assert found(signatures, widths=widths) == Repetition((3, 43, 83), 40)


def test_pieces_do_not_overlap() -> None:
    assert found([1, 2] * 200) is not None
    repeated = found([1, 2] * 200)
    assert repeated is not None
    assert all(b - a >= repeated.length for a, b in zip(repeated.starts, repeated.starts[1:], strict=False))


def test_numbered_prefixes() -> None:
    assert numbered_prefixes("encoder.0.block.12.mlp") == ["encoder.0", "encoder.0.block.12"]
    assert numbered_prefixes("head") == []


def test_a_layer_is_a_piece_and_not_two_of_them() -> None:
    """Half as many calls of twice the ops would save a little more."""
    paths = [f"layers.{n}" for n in range(16) for _ in PIECE]
    repeated = found(PIECE * 16, paths)
    assert repeated is not None
    assert (len(repeated.starts), repeated.length) == (16, 40)


def test_what_stands_between_ops_with_effects_is_a_piece() -> None:
    """Layers with two collectives each, which are numbered alone: no layer equals another as a whole."""
    first, second = PIECE[:20], PIECE[20:32]
    signatures, effects = [1, 2], list[int]()
    for number in range(6):
        for part, piece in enumerate((first, second)):
            effects.append(len(signatures))
            signatures += [100 + 2 * number + part, *piece]
    paths = ["", "", *[f"layers.{n}" for n in range(6) for _ in range(34)]]
    assert found(signatures, paths) is None
    assert found(signatures, paths, effects=effects) == Repetition(tuple(range(3, 207, 34)), 20)
    for at in range(3, 207, 34):
        signatures[at : at + 20] = [-1 - at] * 20
    # The last one has no end, and 4 * 12 saved ops are worth more than 5 calls of a launch that is there anyway.
    assert found(signatures, paths, effects=effects) == Repetition(tuple(range(24, 228, 34)), 12)
