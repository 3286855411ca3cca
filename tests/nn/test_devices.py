"""A network on device cuda (emulated): moving it, training it as on the CPU, checkpoints across devices."""

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn, optim
from tritensor.ground.errors import DeviceError


def network():
    tt.manual_seed(4)
    return nn.Sequential(
        nn.Conv2d(1, 2, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 5), nn.LayerNorm(5), nn.GELU(), nn.Dropout(0.2), nn.Linear(5, 3),
    )  # fmt: skip


def train(device, make):
    net = network().to(device)
    optimizer = make(net.parameters())
    loss_of = nn.CrossEntropyLoss()
    rng = np.random.default_rng(3)
    tt.manual_seed(9)
    losses = []
    for _ in range(2):
        x = tt.tensor(rng.standard_normal((3, 1, 4, 4)).astype(np.float32), device=device)
        y = tt.tensor(rng.integers(0, 3, 3), device=device)
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    return losses, net


@pytest.mark.parametrize(
    "make", [lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True), lambda ps: optim.AdamW(ps, lr=0.01, amsgrad=True)]
)
def test_training_is_the_same_on_both_devices(make):
    here, net = train("cpu", make)
    there, other = train("cuda", make)
    assert here == pytest.approx(there, abs=1e-5)
    for p, q in zip(net.parameters(), other.parameters(), strict=True):
        assert q.device.type == "cuda"
        np.testing.assert_allclose(q.detach().cpu().numpy(), p.detach().numpy(), atol=2e-5)


def test_moving_keeps_objects_and_values():
    net = network()
    net.register_buffer("count", tt.tensor([3]))
    first, before = net[0].weight, net[0].weight.tolist()
    first.grad = tt.ones(*first.shape)
    assert net.cuda() is net
    assert net[0].weight is first
    assert {str(p.device) for p in net.parameters()} == {"cuda:0"}
    assert first.grad.device == first.device == net.count.device
    assert first.tolist() == before
    state = net.state_dict()
    assert state["0.weight"].device.type == "cuda"
    fresh = nn.Sequential(*network())
    fresh.load_state_dict({k: v for k, v in state.items() if k != "count"})  # copies across devices
    assert fresh[0].weight.device.type == "cpu"
    assert fresh[0].weight.tolist() == before
    assert net.cpu()[0].weight.device.type == "cpu"
    assert nn.Linear(2, 2, device="cuda").weight.is_cuda


def test_optimizer_state_follows_the_parameters():
    _, net = train("cpu", optim.Adam)
    source = optim.Adam(net.parameters())
    for p in net.parameters():
        p.grad = p.detach() * 0 + 1
    source.step()
    target = optim.Adam(network().cuda().parameters())
    target.load_state_dict(source.state_dict())
    entry = target.state[target.param_groups[0]["params"][0]]
    assert entry["exp_avg"].is_cuda
    assert entry["step"] == 1


def test_mixed_devices_are_named():
    with pytest.raises(DeviceError, match=r"linear: input on cpu, weight on cuda:0, bias on cuda:0: all tensors must be on one device"):
        nn.Linear(2, 2, device="cuda")(tt.ones(1, 2))


def test_start_values_are_the_same_on_both_devices():
    tt.manual_seed(1)
    here = nn.Linear(6, 5)
    tt.manual_seed(1)
    there = nn.Linear(6, 5, device="cuda")
    assert here.weight.tolist() == there.weight.tolist()
    for fill in (nn.init.trunc_normal_, nn.init.orthogonal_, nn.init.xavier_normal_):
        tt.manual_seed(1)
        fill(here.weight)
        tt.manual_seed(1)
        fill(there.weight)
        np.testing.assert_allclose(there.weight.detach().cpu().numpy(), here.weight.detach().numpy(), rtol=1e-6)
