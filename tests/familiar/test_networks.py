"""Networks in every PyTorch introduction's lines, with only the import changed."""

from __future__ import annotations

import pytest

import tritensor as torch
import tritensor.nn as nn
import tritensor.nn.functional as F
import tritensor.optim as optim


class Net(nn.Module):
    """The convolutional network for 1x32x32 images that introductions begin with."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(-1, self.num_flat_features(x))
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)

    def num_flat_features(self, x):
        count = 1
        for s in x.size()[1:]:
            count *= s
        return count


def net() -> Net:
    torch.manual_seed(0)
    return Net()


def test_parameters_and_shapes() -> None:
    model = net()
    sizes = [tuple(p.size()) for p in model.parameters()]
    assert len(sizes) == 10
    assert sizes[0] == (6, 1, 5, 5)
    assert sizes[2] == (16, 6, 5, 5)
    assert sizes[4] == (120, 400)
    assert model(torch.randn(2, 1, 32, 32)).size() == (2, 10)
    assert "(conv1): Conv2d(1, 6, kernel_size=(5, 5), stride=(1, 1))" in repr(model)
    assert "(fc3): Linear(in_features=84, out_features=10, bias=True)" in repr(model)


def test_backward_with_a_gradient() -> None:
    model = net()
    model.zero_grad()
    model(torch.randn(1, 1, 32, 32)).backward(torch.randn(1, 10))
    assert all(p.grad is not None and p.grad.shape == p.shape for p in model.parameters())


def test_a_loss_and_its_graph() -> None:
    model = net()
    output = model(torch.randn(1, 1, 32, 32))
    target = torch.arange(1.0, 11.0).view(1, -1)
    loss = nn.MSELoss()(output, target)
    assert loss.item() == pytest.approx(((output.detach() - target) ** 2).mean().item(), rel=1e-6)
    assert loss.grad_fn is not None
    assert loss.grad_fn.next_functions[0][0] is not None
    model.zero_grad()
    assert model.conv1.bias.grad is None or model.conv1.bias.grad.sum().item() == 0
    loss.backward()
    assert model.conv1.bias.grad.abs().sum().item() > 0


def test_the_update_by_hand() -> None:
    model, twin = net(), net()
    x, target = torch.randn(2, 1, 32, 32), torch.randn(2, 10)
    for m in (model, twin):
        nn.MSELoss()(m(x), target).backward()
    learning_rate = 0.01
    for p in model.parameters():
        p.data.sub_(p.grad.data * learning_rate)
    optim.SGD(twin.parameters(), lr=learning_rate).step()
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.allclose(p, q, atol=1e-7)


def test_a_training_loop_learns() -> None:
    model = net()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    x, labels = torch.randn(4, 1, 32, 32), torch.tensor([3, 1, 4, 1])
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        loss = criterion(model(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    with torch.no_grad():
        _, predicted = torch.max(model(x).data, 1)
    assert (predicted == labels).sum().item() >= 3


def test_sequential_and_hooks() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    seen = []
    handle = model[0].register_forward_hook(lambda module, inputs, output: seen.append((inputs[0].shape, output.shape)))
    model(torch.randn(3, 4))
    handle.remove()
    model(torch.randn(3, 4))
    assert seen == [((3, 4), (3, 8))]


def test_state_travels() -> None:
    a, b = net(), Net()
    b.load_state_dict(a.state_dict())
    x = torch.randn(1, 1, 32, 32)
    assert torch.equal(a(x), b(x))


def test_a_recurrent_module() -> None:
    class RNN(nn.Module):
        def __init__(self, data_size, hidden_size, output_size):
            super().__init__()
            self.i2h = nn.Linear(data_size + hidden_size, hidden_size)
            self.h2o = nn.Linear(hidden_size, output_size)

        def forward(self, data, last_hidden):
            hidden = self.i2h(torch.cat((data, last_hidden), 1))
            return hidden, self.h2o(hidden)

    rnn = RNN(50, 20, 10)
    batch, hidden, loss = torch.randn(10, 50), torch.zeros(10, 20), 0
    for _ in range(6):
        hidden, output = rnn(batch, hidden)
        loss = loss + nn.MSELoss()(output, torch.zeros(10, 10))
    loss.backward()
    assert rnn.i2h.weight.grad.abs().sum().item() > 0
