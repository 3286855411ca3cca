"""fully_shard of a model that was built on device meta: memory for the shards alone, then values, then steps as of one process."""

from __future__ import annotations

from sharded_models import Mlp, batches, part, run, train

import tritensor as tt
from tritensor.distributed.fsdp import full_state_dict, fully_shard


def built_on_meta(rank: int, size: int) -> None:
    plain = Mlp(tt.float32)
    with tt.device("meta"):
        model = Mlp(tt.float32)
    for one in model.parts():
        fully_shard(one)
    fully_shard(model)
    shards = list(model.parameters())
    assert all(p.is_meta and p.global_shape[0] >= p.shape[0] for p in shards)
    model.to_empty(device="cpu")
    assert all(a is b and not b.is_meta for a, b in zip(shards, model.parameters(), strict=True))
    model.load_state_dict(plain.state_dict())
    steps = batches(10, tt.float32)
    train(model, tt.optim.SGD(model.parameters(), lr=0.05), steps, part(rank, size))
    train(plain, tt.optim.SGD(plain.parameters(), lr=0.05), steps)
    for name, value in full_state_dict(model).items():
        assert tt.allclose(value, plain.state_dict()[name], atol=1e-5), name


if __name__ == "__main__":
    run([built_on_meta])
