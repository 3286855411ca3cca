"""Samplers and loaders: every index once, the same by the same seed, splits that cover, states that go on where they were."""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz.judges import Judge, beside_torch, equal_pairs, errors, twice
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.program import Program

DATA = (
    "list(range({n}))",
    "tt.utils.data.TensorDataset(tt.arange({n}), tt.arange({n}) * 2.0)",
    "[{{'a': k, 'b': [k, float(k)]}} for k in range({n})]",
    "tt.utils.data.ConcatDataset([list(range({n})), list(range(3))])",
    "tt.utils.data.Subset(list(range(20)), list(range({n})))",
    "tt.utils.data.StackDataset(list(range({n})), list(range({n})))",
    "[(k, 'x' * k, np.float32(k), np.arange(2) + k) for k in range({n})]",
)


def draw(rng: random.Random) -> Program:
    """A dataset, then three ways to go through it."""
    n = rng.choice((0, 1, 2, 3, 5, 7, 10))
    lines = [f"data = {rng.choice(DATA).format(n=n)}", "size = len(data)"]
    for k in range(rng.randint(1, 3)):
        lines += _way(rng, k, n)
    return Program(tuple(lines))


def _way(rng: random.Random, k: int, n: int) -> list[str]:
    batch, last, seed = rng.choice((1, 2, 3, 4, 20)), rng.choice((True, False)), rng.randint(0, 9)
    seeded = f"generator=tt.Generator().manual_seed({seed})"
    sampler = rng.choice(
        (
            "tt.utils.data.SequentialSampler(data)",
            f"tt.utils.data.RandomSampler(data, {seeded})",
            f"tt.utils.data.SubsetRandomSampler(range({n}), {seeded})",
        )
    )
    weights = [rng.choice((0.0, 0.5, 1.0, 2.0)) for _ in range(max(n, 1))]
    once = lambda made: [f"drawn{k} = list({made})", f"left{k} = sorted(drawn{k})", f"right{k} = list(range({n}))"]  # noqa: E731
    again = lambda made: [f"drawnleft{k} = [str(b) for b in {made}]", f"drawnright{k} = [str(b) for b in {made}]"]  # noqa: E731
    options = f"batch_size={batch}, drop_last={last}" + rng.choice(
        ("", ", pin_memory=False", ", num_workers=0", ", collate_fn=list", ", timeout=0")
    )
    return rng.choice([
        [f"b{k} = list(tt.utils.data.DataLoader(data, {options}))", f"n{k} = len(tt.utils.data.DataLoader(data, {options}))"], [f"b{k} = list(tt.utils.data.DataLoader(data, batch_size=None))"], [f"b{k} = list(tt.utils.data.BatchSampler(tt.utils.data.SequentialSampler(data), {batch}, {last}))"],
        [f"drawn{k} = list(tt.utils.data.DataLoader(data, shuffle=True, {options}, {seeded}))", f"n{k} = len(drawn{k})"], again(f"tt.utils.data.DataLoader(data, shuffle=True, {options}, {seeded})"), [f"b{k} = list(tt.utils.data.DataLoader(data, batch_sampler=tt.utils.data.BatchSampler(tt.utils.data.SequentialSampler(data), {batch}, {last})))"],
        [f"s{k} = {sampler}", f"n{k} = len(s{k})", *[s.replace("range(" + str(n), "range(size" if "Subset" not in sampler else f"range({n}") for s in once(f"s{k}")]], again(sampler), again(f"tt.utils.data.WeightedRandomSampler({weights}, {batch}, replacement=True, {seeded})"),
        [f"drawn{k} = list(tt.utils.data.WeightedRandomSampler({[w + 0.5 for w in weights]}, {min(batch, len(weights))}, replacement=False, {seeded}))", f"left{k} = len(set(drawn{k}))", f"right{k} = {min(batch, len(weights))}"], [f"drawn{k} = list(tt.utils.data.RandomSampler(data, replacement=True, num_samples={batch}, {seeded}))", f"n{k} = len(drawn{k})"],
        [f"parts = tt.utils.data.random_split(data, [{n // 2}, size - {n // 2}], {seeded})", f"left{k} = sorted(i for p in parts for i in p.indices)", f"right{k} = list(range(size))"], [f"parts = tt.utils.data.random_split(data, [0.5, 0.25, 0.25], {seeded})", f"n{k} = [len(p) for p in parts]", f"left{k} = sorted(i for p in parts for i in p.indices)", f"right{k} = list(range(size))"],
        [f"s{k} = tt.utils.data.DistributedSampler(data, num_replicas={batch}, rank=0, shuffle=False, drop_last={last})", f"i{k} = list(s{k})", f"n{k} = len(s{k})"], [f"left{k} = sorted(i for r in range(3) for i in tt.utils.data.DistributedSampler(data, num_replicas=3, rank=r, seed={seed}, drop_last=False))[0:1]", f"right{k} = list(range(size))[0:1]"],
        [f"b{k} = tt.utils.data.default_collate([data[i] for i in range(min(size, 2))])"], [f"e{k} = list(tt.utils.data.ChainDataset([])) if 0 else list(iter(tt.utils.data.DataLoader(data, {options})))[-1:]"], [f"n{k} = len(tt.utils.data.RandomSampler(data, num_samples={batch}))"],
        [f"l{k} = tt.utils.data.DataLoader(data, batch_size={batch})", f"a{k} = next(iter(l{k}))", f"b{k} = list(l{k})"], [f"l{k} = tt.utils.data.DataLoader(data, batch_size={rng.choice((0, -1))})"], [f"l{k} = tt.utils.data.DataLoader(data, batch_size=2, shuffle=True, sampler=tt.utils.data.SequentialSampler(data))"],
    ])  # fmt: skip


def judges(torch: Any) -> list[Judge]:
    return [beside_torch(torch), equal_pairs] if torch is not None else [errors, twice, equal_pairs]


KIND = Kind("loaders", draw, judges, weight=6)
