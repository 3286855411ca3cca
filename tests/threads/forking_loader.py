"""A program whose DataLoader forks its workers while four threads load ops; prints what each of three epochs adds up to."""

from __future__ import annotations

import threading
import warnings

from tests.data.worker_datasets import Rows
from tritensor.data import DataLoader
from tritensor.ops.table import registry

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # Python's own word on forks beside threads; more workers than processors
    names = registry.names()
    loading = [threading.Thread(target=lambda part: [registry[n] for n in part], args=(names[k::4],)) for k in range(4)]
    for thread in loading:
        thread.start()
    for _ in range(3):
        loader = DataLoader(Rows(24), batch_size=4, num_workers=2, multiprocessing_context="fork", timeout=60)
        print(sum(float(numbers.sum()) for _, numbers in loader))
    for thread in loading:
        thread.join()
