"""accelerate: Accelerator around a plain loop: prepare, accumulate, clip, gather, bfloat16, states saved and loaded."""

import tempfile

import numpy as np
import torch
from accelerate import Accelerator, DataLoaderConfiguration
from accelerate.state import AcceleratorState
from accelerate.utils import find_executable_batch_size, gather_object, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

set_seed(0)
drawn = np.random.RandomState(0)
x, y = torch.tensor(drawn.standard_normal((40, 6)), dtype=torch.float32), torch.tensor(drawn.randint(0, 3, 40))


def fresh():
    """A net with weights from numpy."""
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    draw = np.random.RandomState(1)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.tensor(draw.standard_normal(tuple(p.shape)) * 0.3, dtype=p.dtype))
    return net


def run(accelerator, steps=None, folder=None):
    net = fresh()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    net, optimizer, loader, schedule = accelerator.prepare(net, optimizer, DataLoader(TensorDataset(x, y), batch_size=8), schedule)
    losses = []
    for a, b in loader:
        with accelerator.accumulate(net):
            with accelerator.autocast():
                loss = nn.functional.cross_entropy(net(a), b)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(round(float(loss), 4))
    return net, optimizer, loader, losses


accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
net, optimizer, loader, losses = run(accelerator)
print(
    "losses", losses, "rate", round(optimizer.param_groups[0]["lr"], 5), "processes", accelerator.num_processes, accelerator.is_main_process
)
told, right = [], []
net.eval()
with torch.no_grad():
    for a, b in loader:
        guess, truth = accelerator.gather_for_metrics((net(a).argmax(-1), b))
        told.append(guess)
        right.append(truth)
print("right", int((torch.cat(told) == torch.cat(right)).sum()), "of", len(torch.cat(right)), gather_object([1, 2]))
print(
    "reduced",
    accelerator.reduce(torch.tensor([1.0, 2.0]), "mean").tolist(),
    accelerator.pad_across_processes(torch.ones(2, 3), dim=1).shape[1],
)

with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    saved = [p.detach().clone() for p in net.parameters()]
    with torch.no_grad():
        for p in net.parameters():
            p.zero_()
    accelerator.load_state(folder)
    print("state", all(torch.equal(a, b) for a, b in zip(saved, net.parameters(), strict=True)))
    accelerator.save_model(net, f"{folder}/model")
    plain = fresh()
    from safetensors.torch import load_file

    plain.load_state_dict(load_file(f"{folder}/model/model.safetensors"))
    print("model", torch.equal(plain[0].weight, accelerator.unwrap_model(net)[0].weight))

AcceleratorState._reset_state(True)
accelerator = Accelerator(cpu=True, mixed_precision="bf16", dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
net, *_, losses = run(accelerator)
print("bfloat16", [round(v, 2) for v in losses], str(net(x).dtype).rpartition(".")[2])


@find_executable_batch_size(starting_batch_size=64)
def fits(batch_size):
    if batch_size > 16:
        raise RuntimeError("CUDA out of memory. Tried to allocate")
    return batch_size


print("fits", fits())
skipping = accelerator.skip_first_batches(loader, 3)
print("skipped", sum(len(b) for _, b in skipping))
