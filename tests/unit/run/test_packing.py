"""Packed weights: numbers against a slow formula, what is packed, and what is refused."""

import math
import struct
from collections.abc import Callable

import pytest
import torch
from safetensors.torch import save
from torch import Tensor

from warpzone.run import packing
from warpzone.run.packing import pack, read_packed, summary, unpack
from warpzone.run.sidecar import CheckpointError

#: The smallest matrix that is packed: 4 MiB in half precision.
ROWS, COLUMNS = 512, 4096


def weights(rows: int = ROWS, columns: int = COLUMNS) -> Tensor:
    """Rows of very different sizes, one of zeros, one with a number far from the others."""
    drawn = torch.randn(rows, columns, generator=torch.Generator().manual_seed(rows))
    drawn *= torch.logspace(-6, 3, rows)[:, None]
    drawn[1] = 0.0
    drawn[2, 5] = -40 * drawn[2].abs().max()
    return drawn


def single(number: float) -> float:
    """Rounded to single precision, by the machine's own format."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def slow(row: list[float]) -> tuple[list[int], float, list[float]]:
    """Whole numbers, scale and what is read again of a row, one number at a time."""
    scale = single(max(abs(one) for one in row) / 127)
    # Python rounds halves to even, as IEEE 754 does.
    whole = [round(single(one / scale)) if scale else 0 for one in row]
    return whole, scale, [single(one * scale) for one in whole]


def test_matrices_are_those_of_the_slow_formula() -> None:
    matrix = weights()
    packed = pack({"m": matrix})
    assert {name: value.dtype for name, value in packed.items()} == {
        "m:int8": torch.int8,
        "m:scale": torch.float32,
    }
    again = read_packed(save(packed))["m"]
    assert again.dtype == torch.float32
    for index in range(0, ROWS, 29):
        whole, scale, read = slow(matrix[index].tolist())
        assert packed["m:int8"][index].tolist() == whole
        assert packed["m:scale"][index].item() == scale
        assert again[index].tolist() == read
        assert max(map(abs, whole)) == (127 if scale else 0)


def test_no_number_is_off_by_more_than_half_a_scale() -> None:
    matrix = weights()
    again = unpack(pack({"m": matrix}))["m"]
    worst = (again.double() - matrix.double()).abs().amax(1)
    # Beside the rounding to whole numbers, that of the quotient and the product.
    bound = matrix.double().abs().amax(1) / 127 * 0.5 * (1 + 1e-4)
    assert bool((worst <= bound).all())
    assert again[1].tolist() == [0.0] * COLUMNS
    # The largest of a row is kept as good as exactly.
    largest = matrix.abs().argmax(1)
    kept = again.gather(1, largest[:, None])
    assert torch.allclose(kept, matrix.gather(1, largest[:, None]), rtol=1e-6, atol=0.0)


def test_size_and_sides_decide_and_names_do_not() -> None:
    tensors = {
        "any.name": weights(),
        "narrow": weights(columns=COLUMNS - 1),
        "encoder.linear.weight": weights(4, 8),
        "convolution": torch.ones(64, 64, 16, 16),
        "bias": torch.full((1 << 20,), 0.1),
        "count": torch.tensor([3, 1 << 40]),
    }
    packed = pack(tensors)
    assert list(packed) == sorted(
        [*(set(tensors) - {"any.name"}), "any.name:int8", "any.name:scale"]
    )
    for name in ("narrow", "encoder.linear.weight", "convolution", "bias"):
        assert torch.equal(packed[name], tensors[name].half())
    assert torch.equal(packed["count"], tensors["count"])
    assert unpack(packed).keys() == tensors.keys()


def test_what_is_packed_stays_as_it_is() -> None:
    once = pack({"m": weights(), "bias": torch.full((3,), 0.1)})
    assert save(pack(once)) == save(once)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("size", [COLUMNS, 8])
def test_numbers_that_are_none_are_not_packed(bad: float, size: int) -> None:
    matrix = weights(columns=size)
    matrix[3, 3] = bad
    with pytest.raises(ValueError, match="numbers that half precision cannot hold"):
        pack({"m": matrix})
    with pytest.raises(ValueError, match="b has numbers that half precision cannot hold"):
        pack({"b": torch.full((3,), 70_000.0)})


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16])
def test_files_that_are_not_packed_are_read_as_before(kind: torch.dtype) -> None:
    tensors = {"m": weights(8, 8).to(kind), "n": torch.tensor([1, 2], dtype=torch.int8)}
    found = read_packed(save({f"_orig_mod.{name}": value for name, value in tensors.items()}))
    assert found.keys() == tensors.keys()
    for name, value in tensors.items():
        assert (found[name].dtype, found[name].tolist()) == (value.dtype, value.tolist())


def test_the_summary_counts_parameters_and_not_scales() -> None:
    tensors = {"m": weights(), "bias": torch.ones(3)}
    count = ROWS * COLUMNS + 3
    assert summary(tensors) == {"parameters": count, "precision": "single"}
    halves = {name: value.half() for name, value in tensors.items()}
    assert summary(halves) == {"parameters": count, "precision": "half"}
    assert summary(pack(tensors)) == {"parameters": count, "precision": "mixed"}


Change = Callable[[dict[str, Tensor]], object]


def scale(number: float) -> Change:
    """One scale of many is this."""

    def change(stored: dict[str, Tensor]) -> None:
        stored["m:scale"][2] = number

    return change


HOSTILE: list[tuple[Change, str]] = [
    (lambda t: t.pop("m:scale"), "'m:int8' is a matrix without scales"),
    (lambda t: t.pop("m:int8"), "'m:scale' are scales without a matrix"),
    (lambda t: t.update({"m": torch.ones(4, 8)}), "it has two tensors for 'm'"),
    (lambda t: t.update({"_orig_mod.m": torch.ones(4, 8)}), "it has two tensors for 'm'"),
    (lambda t: t.update({"m:int8": torch.ones(4, 8)}), "'m:int8' has other numbers"),
    (lambda t: t.update({"m:int8": t["m:int8"].to(torch.uint8)}), "'m:int8' has other numbers"),
    (lambda t: t.update({"m:scale": t["m:scale"].half()}), "'m:int8' has other numbers"),
    (lambda t: t.update({"m:scale": t["m:scale"].to(torch.int32)}), "'m:int8' has other numbers"),
    (lambda t: t.update({"m:scale": torch.ones(3)}), "not have one scale for each row"),
    (lambda t: t.update({"m:scale": torch.ones(8)}), "not have one scale for each row"),
    (lambda t: t.update({"m:scale": torch.ones(4, 1)}), "not have one scale for each row"),
    (lambda t: t.update({"m:scale": torch.tensor(1.0)}), "not have one scale for each row"),
    (lambda t: t.update({"m:int8": t["m:int8"].reshape(4, 4, 2)}), "not have one scale"),
    (lambda t: t.update({"m:int8": t["m:int8"][:, 0].contiguous()}), "not have one scale"),
    (scale(math.nan), "'m:int8' has a scale that no row can have"),
    (scale(math.inf), "'m:int8' has a scale that no row can have"),
    (scale(-math.inf), "'m:int8' has a scale that no row can have"),
    (scale(-0.5), "'m:int8' has a scale that no row can have"),
    # Its products would not be numbers.
    (scale(3e38), "'m:int8' has a scale that no row can have"),
]


@pytest.mark.parametrize(("change", "sentence"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_files_get_one_sentence(
    monkeypatch: pytest.MonkeyPatch, change: Change, sentence: str
) -> None:
    monkeypatch.setattr(packing, "LEAST", 1)
    stored = pack({"m": weights(4, 8)})
    assert read_packed(save(stored)).keys() == {"m"}
    change(stored)
    with pytest.raises(CheckpointError) as refused:
        read_packed(save(stored))
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_names_cannot_steer_a_terminal() -> None:
    with pytest.raises(CheckpointError) as refused:
        unpack({"\x1b[2J" + "x" * 500 + ":int8": torch.ones(2, 2)})
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 200
