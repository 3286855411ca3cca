"""Segments run by plans: results, errors of single calls, memory that users see, what ends one."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt
from tritensor.ops.table import ops


def test_a_call_that_fails_fails_alone() -> None:
    x = tt.tensor(np.arange(6, dtype=np.float32))
    bad = tt.tensor([0, 9])
    with tt.lazy():
        y = tt.exp(x) + 1
        z = x[bad] * 2
        with pytest.raises(IndexError) as error:
            z.numpy()
        assert any("test_settling.py" in note for note in error.value.__notes__)
    assert np.allclose(y.numpy(), np.exp(np.arange(6)) + 1)


def test_writes_into_memory_that_is_there() -> None:
    x = tt.tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    row = x[0]
    with tt.lazy():
        y = x * 2
        x += y
        row *= 10
        z = x + 1
    assert np.array_equal(x.numpy(), [[0, 30, 60], [9, 12, 15]])
    assert np.array_equal(y.numpy(), [[0, 2, 4], [6, 8, 10]])
    assert np.array_equal(z.numpy(), x.numpy() + 1)
    assert np.array_equal(row.numpy(), x.numpy()[0])


def test_results_do_not_share_memory() -> None:
    x = tt.tensor(np.arange(6, dtype=np.float32))
    with tt.lazy():
        y = x + 1
        a, b = y.clone(), y.clone()
    a[0] = 100
    assert b.numpy()[0] == 1
    assert y.numpy()[0] == 1


def test_tables_of_an_optimizer_are_made_once_in_regions() -> None:
    for _ in range(3):  # the second is made on a path that is known
        params = [tt.randn(3, device="cuda").requires_grad_() for _ in range(2)]
        optimizer, batches = tt.optim.AdamW(params, lr=0.1), set()
        for _ in range(3):
            with tt.lazy():
                optimizer.zero_grad()
                (params[0] * params[1]).sum().backward()
                optimizer.step()
            batches |= {id(b) for found in optimizer._batches.values() for b in found}
        assert len(batches) == 1


def test_what_an_op_writes_at_once_is_read_before_by_what_waits() -> None:
    for _ in range(3):
        norm, x = tt.nn.BatchNorm1d(3), tt.randn(8, 3)
        with tt.lazy():
            y = norm.running_mean + 1
            norm(x)
            z = norm.running_mean + 1
        assert y.tolist() == [1.0] * 3
        assert np.allclose(z.numpy(), x.mean(0).numpy() * 0.1 + 1, atol=1e-6)


def test_what_is_assigned_by_an_index_is_read_before_by_what_waits() -> None:
    for _ in range(3):
        x, index, value = tt.zeros(3), tt.tensor([0, 2]), tt.tensor([5.0, 6.0])
        with tt.lazy():
            y = x * 2
            ops.index_assign(x, value, index, dims=(0,), front=False)
            z = x * 2
        assert y.tolist() == [0.0, 0.0, 0.0]
        assert z.tolist() == [10.0, 0.0, 12.0]
