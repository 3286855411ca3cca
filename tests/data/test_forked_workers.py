"""Forked workers, for what new processes cannot be given: local classes, lambdas, what a notebook defines."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
from tests.data.test_workers import left
from tests.data.worker_datasets import Rows
from tritensor.data import DataLoader, Dataset, IterableDataset, get_worker_info
from tritensor.data.workers import iterator
from tritensor.ground.errors import ForkedWorkersWarning

pytestmark = pytest.mark.filterwarnings("ignore:.*processors for this process", "ignore:.*fork:DeprecationWarning")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterator, "_warned", set())


def squares() -> Dataset[Any]:
    class Squares(Dataset[Any]):
        def __len__(self) -> int:
            return 6

        def __getitem__(self, i: int) -> Any:
            return tt.tensor(float(i * i))

    return Squares()


def stream() -> IterableDataset[int]:
    class Numbers(IterableDataset[int]):
        def __iter__(self) -> Any:
            worker = get_worker_info()
            return iter(range(worker.id, 6, worker.num_workers))

    return Numbers()


def locked() -> Rows:
    data = Rows(6)
    data.lock = threading.Lock()  # type: ignore[attr-defined]
    return data


@pytest.mark.parametrize("persistent", [False, True])
def test_a_local_dataset(persistent: bool) -> None:
    """The fault: PicklingError, where PyTorch on Linux reads it."""
    made = DataLoader(squares(), batch_size=2, num_workers=2, persistent_workers=persistent)
    with pytest.warns(
        ForkedWorkersWarning, match=r"^DataLoader: workers cannot be given dataset: .*Squares.*Its workers are forked"
    ) as told:
        first = [b.tolist() for b in made]
    assert [Path(w.filename).name for w in told] == [Path(__file__).name], "it names the line that iterates"
    assert first == [[0.0, 1.0], [4.0, 9.0], [16.0, 25.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # told once
        warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
        assert [b.tolist() for b in made] == first
        assert [b.tolist() for b in DataLoader(squares(), batch_size=2, num_workers=2)] == first
    del made
    assert not left()


@pytest.mark.parametrize(
    ("dataset", "options", "sums"),
    [
        (lambda: Rows(6), {"collate_fn": lambda samples: sum(i for _, i in samples)}, [3, 12]),
        (lambda: Rows(6), {"worker_init_fn": lambda rank: None}, [3, 12]),
        (locked, {}, [3, 12]),
        (stream, {}, [6, 9]),
    ],
    ids=["a lambda collate_fn", "a lambda worker_init_fn", "a lock in the dataset", "a local stream"],
)
def test_what_cannot_be_pickled(dataset: Any, options: dict[str, Any], sums: list[int]) -> None:
    with pytest.warns(ForkedWorkersWarning):
        batches = list(DataLoader(dataset(), batch_size=3, num_workers=2, **options))
    assert [int(b[1].sum() if isinstance(b, list) else tt.as_tensor(b).sum()) for b in batches] == sums


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_way_that_was_chosen_is_taken(method: str) -> None:
    with pytest.raises(pickle.PicklingError, match="or use multiprocessing_context='fork'"):
        iter(DataLoader(squares(), num_workers=1, multiprocessing_context=method))
    assert not left()


def test_what_can_be_pickled_is_spawned() -> None:
    made = DataLoader(Rows(4), batch_size=2, num_workers=1)
    batches = iter(made)
    assert batches._pool.method == "spawn"
    assert [b[1].tolist() for b in batches] == [[0, 1], [2, 3]]


PROGRAM = """
import tritensor as torch
from tritensor.utils.data import DataLoader, Dataset
class Squares(Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return torch.tensor(i * i)
for epoch in range(2):
    print([b.tolist() for b in DataLoader(Squares(), batch_size=2, num_workers=1)])
"""


@pytest.mark.parametrize("how", ["stdin", "-c"])
def test_a_dataset_of_a_program_without_a_file(how: str) -> None:
    """As in a notebook: there is nothing that a new process could import."""
    given = {"input": PROGRAM} if how == "stdin" else {}
    command = [sys.executable, "-" if how == "stdin" else "-c", *([] if how == "stdin" else [PROGRAM])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, **given)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[[0, 1], [4, 9]]\n" * 2
    assert done.stderr.count("ForkedWorkersWarning") == 1, done.stderr
