"""Random numbers: Philox's published vectors, the same bits on both devices, streams, distributions, generators."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import stats

import tritensor as tt
from tritensor.ground.device import as_device
from tritensor.kernels.parts.random_words.philox import numpy_words
from tritensor.kernels.random import sampling
from tritensor.kernels.random.sampling import drawn_blocks
from tritensor.ops.table import registry
from tritensor.random import Generator

FLOATS = [tt.float32, tt.float64, tt.float16, tt.bfloat16]


def bits(x: tt.Tensor) -> np.ndarray:
    x = x.cpu()
    return x.numpy().reshape(-1).view(f"u{x.itemsize}")


def test_known_answer() -> None:
    """Random123's vector for philox4x32, 10 rounds, counter and key 0."""
    assert numpy_words(0, 0, 4).tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["rand", "randn"])
def test_bit_equal_on_both_devices(name: str, dtype: tt.dtype) -> None:
    for shape in ((5,), (3, 7), (2500,), (), (0,)):
        here, there = (getattr(tt, name)(*shape, dtype=dtype, device=d, generator=Generator().manual_seed(11)) for d in ("cpu", "cuda"))
        np.testing.assert_array_equal(bits(here), bits(there))


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_an_empty_range_is_refused_by_the_op_as_well(where: str) -> None:
    given = {"shape": (2,), "seed": 0, "offset": 0, "dtype": np.dtype(np.int64), "device": as_device(where)}
    for low, high in ((3, 3), (4, 3)):
        with pytest.raises(ValueError, match=rf"^randint: low {low} is not below high {high}; give"):
            tt.ops.randint(low=low, high=high, **given)
    with pytest.raises(ValueError, match=r"^randint: 0 to 255 does not fit int8; choose a wider dtype$"):
        tt.ops.randint(low=0, high=256, **given | {"dtype": np.dtype(np.int8)})


@pytest.mark.parametrize("dtype", [tt.float32, tt.float64])
def test_normals_take_whole_pairs_of_words(dtype: tt.dtype) -> None:
    """Numbers drawn one call after the other are those of one call, where calls end with a block."""
    per_block = 4 if dtype is tt.float32 else 2
    whole = tt.randn(6 * per_block, dtype=dtype, generator=Generator().manual_seed(5))
    for first in range(1, 2 * per_block + 1):
        generator = Generator().manual_seed(5)
        parts = [tt.randn(first, dtype=dtype, generator=generator), tt.randn(per_block, dtype=dtype, generator=generator)]
        used = -(-first // per_block) * per_block
        assert parts[0].tolist() == whole[:first].tolist()
        assert parts[1].tolist() == whole[used : used + per_block].tolist()


def test_integers_and_permutations_equal_on_both_devices() -> None:
    for low, high in ((0, 10), (-5, 2**40), (-(2**63), 2**63 - 1)):
        here, there = (tt.randint(low, high, (1500,), device=d, generator=Generator().manual_seed(2)) for d in ("cpu", "cuda"))
        np.testing.assert_array_equal(here.numpy(), there.cpu().numpy())
        assert low <= here.min().item()
        assert here.max().item() < high
    for n in (0, 1, 2, 257, 1000):
        here, there = (tt.randperm(n, device=d, generator=Generator().manual_seed(2)) for d in ("cpu", "cuda"))
        assert here.tolist() == there.tolist()
        assert sorted(here.tolist()) == list(range(n))


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_integers_beyond_those_of_int64(on: str) -> None:
    low = 2**63 + 5
    drawn = _integers(low, low + 7, 300, np.uint64, on).tolist()
    assert set(drawn) == set(range(low, low + 7))


def test_dropout_is_the_same_mask_everywhere_and_again_in_backward() -> None:
    x = np.random.default_rng(0).standard_normal((7, 300)).astype(np.float32)
    results = []
    for d in ("cpu", "cuda"):
        tt.manual_seed(5)
        leaf = tt.tensor(x, device=d, requires_grad=True)
        y = tt.dropout(leaf, 0.3)
        y.sum().backward()
        kept = y.detach().cpu().numpy() != 0
        np.testing.assert_array_equal(leaf.grad.cpu().numpy(), np.where(kept, np.float32(1 / 0.7), 0))
        assert abs(kept.mean() - 0.7) < 0.03
        results.append(y.detach().cpu().numpy())
    np.testing.assert_array_equal(*results)


def test_dropout_at_its_ends() -> None:
    x = tt.tensor([1.0, float("inf"), -2.0])
    assert tt.dropout(x, 0.0) is x
    assert tt.dropout(x, 0.5, train=False) is x
    assert tt.dropout(x, 1.0).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match=r"dropout: dropout probability has to be between 0 and 1, but got 1.5; give such a p"):
        tt.dropout(x, 1.5)


def test_stream_goes_on_where_it_stopped() -> None:
    """Draws of whole blocks are pieces of one sequence; each op uses as many blocks as it says."""
    whole = tt.rand(16, generator=Generator().manual_seed(9))
    g = Generator().manual_seed(9)
    parts = tt.cat([tt.rand(4, generator=g), tt.rand(12, generator=g)])
    assert whole.tolist() == parts.tolist()
    for name, make in {
        "rand": lambda n, t, g: tt.rand(n, dtype=t, generator=g),
        "randn": lambda n, t, g: tt.randn(n, dtype=t, generator=g),
        "randint": lambda n, t, g: tt.randint(9, (n,), generator=g),
        "randperm": lambda n, t, g: tt.randperm(n, generator=g),
    }.items():
        for dtype in (tt.float32, tt.float64):
            for n in (0, 1, 2, 3, 4, 5, 8, 9):
                g = Generator().manual_seed(1)
                make(n, dtype, g)
                assert g.offset == drawn_blocks(name, n, dtype.numpy)


def test_generators() -> None:
    first = tt.manual_seed(3)
    assert tt.initial_seed() == 3
    state = tt.get_rng_state()
    assert state.dtype == tt.uint8
    a = tt.rand(5)
    tt.set_rng_state(state)
    assert tt.rand(5).tolist() == a.tolist()
    tt.cuda.set_rng_state_all([state, state])
    tt.cuda.set_rng_state_all([])
    assert tt.rand(5).tolist() == a.tolist()
    assert len(tt.cuda.get_rng_state_all()) == tt.cuda.device_count()
    assert first is tt.random.default_generator
    with tt.random.fork_rng():
        b = tt.rand(5)
    assert tt.rand(5).tolist() == b.tolist()
    g = Generator().manual_seed(-1)
    assert g.initial_seed() == 2**64 - 1
    g.draw(5)
    for twin in (copy.deepcopy(g), pickle.loads(pickle.dumps(g)), g.clone_state()):
        assert (twin.key, twin.offset) == (g.key, g.offset)
    assert Generator().seed() != Generator().seed()
    with pytest.raises(ValueError, match="16 uint8 values"):
        g.set_state(tt.zeros(3))


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_stays_below_one(dtype: tt.dtype) -> None:
    u = tt.rand(100_000, dtype=dtype, generator=Generator().manual_seed(0)).double().numpy()
    assert u.min() >= 0
    assert u.max() < 1
    assert abs(u.mean() - 0.5) < 0.005
    if dtype in (tt.float32, tt.float64):
        assert stats.kstest(u, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("dtype", [tt.float32, tt.float64])
def test_normal_distribution(dtype: tt.dtype) -> None:
    z = tt.randn(200_000, dtype=dtype, generator=Generator().manual_seed(1)).double().numpy()
    assert stats.kstest(z, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(z[::2], z[1::2])[0, 1]) < 0.02
    assert abs(stats.kurtosis(z)) < 0.05


def test_integers_are_uniform() -> None:
    counts = np.bincount(tt.randint(7, (70_000,), generator=Generator().manual_seed(1)).numpy(), minlength=7)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_fills_in_place() -> None:
    tt.manual_seed(0)
    for on in ("cpu", "cuda"):
        x = tt.zeros(1000, device=on)
        assert x.uniform_(2, 3) is x
        assert 2 <= x.min().item() <= x.max().item() <= 3
        assert abs(x.normal_(5, 0.1).mean().item() - 5) < 0.05
        assert abs(x.exponential_(2.0).mean().item() - 0.5) < 0.1
        assert set(x.bernoulli_(0.3).tolist()) == {0.0, 1.0}
        assert set(x.random_(0, 3).tolist()) == {0.0, 1.0, 2.0}
        assert tt.bernoulli(tt.ones(4, device=on)).tolist() == [1.0] * 4
    with pytest.raises(TypeError, match="int64 cannot hold"):
        tt.zeros(3, dtype=tt.int64).uniform_()


def test_multinomial() -> None:
    tt.manual_seed(0)
    w = tt.tensor([[0.0, 1.0, 3.0], [1.0, 0.0, 0.0]])
    drawn = w.multinomial(4000, replacement=True).numpy()
    assert set(drawn[1]) == {0}
    assert abs((drawn[0] == 2).mean() - 0.75) < 0.03
    assert sorted(w[0].multinomial(2).tolist()) == [1, 2]
    with pytest.raises(ValueError, match="4 draws from 3"):
        w[0].multinomial(4)


def _integers(low: int, high: int, n: int = 2, dtype: type = np.uint8, on: str = "cpu") -> tt.Tensor:
    return tt.ops.randint(low=low, high=high, shape=(n,), seed=0, offset=0, dtype=np.dtype(dtype), device=as_device(on))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tt.rand(2, dtype=tt.int64), "int64 is not a floating type"),
        (lambda: tt.rand(-1), "negative size"),
        (lambda: tt.randint(5, 5, (2,)), "low 5 is not below high 5"),
        (lambda: tt.randint(300, (2,), dtype=tt.uint8), "does not fit uint8"),
        (lambda: _integers(low=0, high=300), "randint: 0 to 299 does not fit uint8"),
        (lambda: _integers(low=-1, high=3), "randint: -1 to 2 does not fit uint8"),
        (lambda: tt.randperm(-1), "n is -1"),
    ],
)
def test_refused(call: object, says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        call()  # type: ignore[operator]


def test_a_permutation_of_equal_words_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two numbers that draw the same word keep their order, as they do on a GPU."""
    monkeypatch.setattr(sampling, "numpy_words", lambda seed, offset, n: np.array([5, 0, 3, 0, 5, 0, 3, 0, 1, 0, 5, 0], np.uint32))
    assert registry["randperm"].cpu(n=6, seed=0, offset=0, dtype=np.dtype(np.int64), device=None).tolist() == [4, 1, 3, 0, 2, 5]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_dropout_keeps_what_draws_the_threshold_itself(on: str) -> None:
    """Elements whose word lies below p * 2^32 are dropped: not the one whose word that is."""
    words = numpy_words(3, 0, 64)
    at = 17
    x = tt.ones(64, device=on)
    y = tt.ops.dropout(x, p=float(words[at]) / 2**32, seed=3, offset=0)
    kept = (y != 0).tolist()
    assert kept == (words >= words[at]).tolist()
    assert kept[at]
