"""nn.utils and nn.init beside torch: parametrizations, norms of weights, pruning, fusion, clipping, stateless calls."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.utils.prune

import tritensor as tt
import tritensor.nn.utils.parametrizations
import tritensor.nn.utils.prune
import tritensor.nn.utils.stateless

pytestmark = pytest.mark.peer
LIBRARIES = (tt, torch)


def given(lib, array):
    return (tt.from_numpy if lib is tt else torch.from_numpy)(np.array(array, copy=True))


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def layer(lib, kind, *args, **kwargs):
    """A layer of either library with the same weights."""
    made = getattr(lib.nn, kind)(*args, **kwargs)
    for i, p in enumerate(made.parameters()):
        p.data = given(lib, drawn(*p.shape, seed=30 + i))
    return made


def same(found, tolerance=2e-5):
    ours, theirs = found
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        if hasattr(b, "detach"):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)
        else:
            assert a == b


def learn(lib, module, *shape, steps=4):
    """Some steps of gradient descent, and what is there afterwards."""
    optimizer = lib.optim.SGD(module.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        (module(given(lib, drawn(*shape, seed=step))) ** 2).sum().backward()
        optimizer.step()
    return [module.weight, *module.state_dict().values(), *module.state_dict(), repr(module)]


def symmetric(lib):
    class Symmetric(lib.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

        def right_inverse(self, a):
            return a.triu()

    return Symmetric()


def rank_one(lib):
    class RankOne(lib.nn.Module):
        def forward(self, x, y):
            return x.unsqueeze(-1) @ y.unsqueeze(-2)

        def right_inverse(self, z):
            return z[:, 0].clone(), z[0].clone()

    return RankOne()


def test_parametrize():
    found = []
    for lib in LIBRARIES:
        p = lib.nn.utils.parametrize
        m = layer(lib, "Linear", 4, 4)
        p.register_parametrization(m, "weight", symmetric(lib))
        seen = [
            m.weight,
            p.is_parametrized(m),
            p.is_parametrized(m, "bias"),
            p.type_before_parametrizations(m).__name__,
            *learn(lib, m, 3, 4),
        ]
        p.register_parametrization(m, "weight", symmetric(lib))
        p.register_parametrization(m, "bias", lib.nn.Tanh(), unsafe=True)
        seen += learn(lib, m, 3, 4)
        m.weight = given(lib, np.arange(16.0, dtype=np.float32).reshape(4, 4))
        seen += [m.weight]
        with p.cached():
            seen += [m.weight is m.weight, m.bias is m.bias]
        other = copy.deepcopy(m)
        seen += [repr(other), other.weight]
        target = layer(lib, "Linear", 4, 4)
        p.transfer_parametrizations_and_params(other, target)
        seen += [repr(target), target.weight, target.bias]
        p.remove_parametrizations(m, "weight")
        seen += [*learn(lib, m, 3, 4), isinstance(m.weight, lib.nn.Parameter)]
        p.remove_parametrizations(m, "bias", leave_parametrized=False)
        seen += [repr(m), m.bias, list(m.state_dict())]
        m = layer(lib, "Linear", 4, 4)
        p.register_parametrization(m, "weight", rank_one(lib))
        seen += learn(lib, m, 3, 4)
        p.remove_parametrizations(m, "weight")
        seen += [m.weight, repr(m), [n for n, _ in m.named_parameters()]]
        found.append(seen)
    same(found)


def test_what_parametrize_refuses():
    class Narrow:
        def forward(self, x):
            return x[:1]

    class Cast:
        def forward(self, x):
            return x.double()

    class Odd:
        def forward(self, x):
            return x

        def right_inverse(self, x):
            return 3

    for lib in LIBRARIES:
        p = lib.nn.utils.parametrize
        m = lib.nn.Linear(3, 3)
        for base in (Narrow, Cast, Odd):
            with pytest.raises(ValueError):
                p.register_parametrization(m, "weight", type("P", (base, lib.nn.Module), {})())
        with pytest.raises(ValueError):
            p.register_parametrization(m, "weights", symmetric(lib))
        with pytest.raises(ValueError):
            p.remove_parametrizations(m, "weight")
        p.register_parametrization(m, "bias", lib.nn.Tanh())
        with pytest.raises(RuntimeError):
            m.bias = lib.zeros(3)
        p.register_parametrization(m, "weight", rank_one(lib))
        with pytest.raises(ValueError):
            p.remove_parametrizations(m, "weight", leave_parametrized=False)


@pytest.mark.parametrize("dim", [0, 1, -1, None])
@pytest.mark.parametrize("newer", [True, False])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_weight_norm(dim, newer):
    found = []
    for lib in LIBRARIES:
        utils = lib.nn.utils
        m = (utils.parametrizations.weight_norm if newer else utils.weight_norm)(layer(lib, "Linear", 3, 4), dim=dim)
        seen = [m.weight, *learn(lib, m, 5, 3)]
        if newer:
            utils.parametrize.remove_parametrizations(m, "weight")
        else:
            with pytest.raises(RuntimeError, match="two weight_norm"):
                utils.weight_norm(m)
            utils.remove_weight_norm(m)
            with pytest.raises(ValueError, match="not found"):
                utils.remove_weight_norm(m)
        found.append([*seen, m.weight, repr(m), list(m.state_dict())])
    same(found)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_older_weight_norm_loads_into_the_newer():
    found = []
    for lib in LIBRARIES:
        old = lib.nn.utils.weight_norm(layer(lib, "Linear", 3, 4))
        new = lib.nn.utils.parametrizations.weight_norm(lib.nn.Linear(3, 4))
        new.load_state_dict(old.state_dict())
        found.append([new.weight, new.bias])
    same(found)


@pytest.mark.parametrize("newer", [True, False])
def test_spectral_norm(newer):
    found = []
    for lib in LIBRARIES:
        utils = lib.nn.utils
        m = layer(lib, "Conv2d", 3, 5, 2)
        (utils.parametrizations.spectral_norm if newer else utils.spectral_norm)(m, n_power_iterations=2)
        holder = m.parametrizations.weight[0] if newer else m
        for name, size in (("u", 5), ("v", 12)):
            vector = drawn(size, seed=size)
            getattr(holder, ("_" if newer else "weight_") + name).copy_(given(lib, vector / np.linalg.norm(vector)))
        seen = learn(lib, m, 2, 3, 4, 4)
        m.eval()
        seen += [m(given(lib, drawn(2, 3, 4, 4)))]
        if newer:
            utils.parametrize.remove_parametrizations(m, "weight")
        else:
            with pytest.raises(RuntimeError, match="two spectral_norm"):
                utils.spectral_norm(m)
            seen += [m.state_dict()._metadata[""]]
            utils.remove_spectral_norm(m)
            seen += [m.state_dict()._metadata[""]]
        found.append([*seen, m.weight, repr(m), list(m.state_dict())])
    same(found, 1e-4)


@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(5, 5), (6, 4), (4, 6)])
def test_orthogonal(orthogonal_map, shape):
    """From an orthogonal weight the same path, as far as nothing is drawn (a tall base is completed at random)."""
    found = []
    for lib in LIBRARIES:
        m = layer(lib, "Linear", shape[1], shape[0])
        q = np.linalg.qr(drawn(max(shape), min(shape), seed=3))[0]
        m.weight.data = given(lib, q if shape[0] >= shape[1] else q.T.copy())
        fixed = shape[0] == shape[1]
        lib.nn.utils.parametrizations.orthogonal(
            m, orthogonal_map=orthogonal_map, use_trivialization=fixed or orthogonal_map != "householder"
        )
        seen = [m.weight, repr(m), list(m.state_dict())]
        if fixed or orthogonal_map == "householder":
            seen += learn(lib, m, 3, shape[1])
        found.append(seen)
    same(found, 2e-4)


def pruned(lib, how, *args, kind="Linear", sizes=(4, 6), twice=None, **kwargs):
    prune = lib.nn.utils.prune
    m = layer(lib, kind, *sizes)
    getattr(prune, how)(m, "weight", *args, **{k: given(lib, v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()})
    if twice:
        twice(prune, m)
    seen = [m.weight, prune.is_pruned(m), *learn(lib, m, 3, *((4,) if kind == "Linear" else (3, 5, 5)))]
    prune.remove(m, "weight")
    return [*seen, m.weight, prune.is_pruned(m), repr(m), list(m.state_dict())]


PRUNINGS = {
    "identity": {"how": "identity"},
    "l1": {"how": "l1_unstructured", "amount": 7},
    "l1, fraction": {"how": "l1_unstructured", "amount": 0.35},
    "l1, scores": {"how": "l1_unstructured", "amount": 5, "importance_scores": drawn(6, 4, seed=9)},
    "ln": {"how": "ln_structured", "amount": 2, "n": 2, "dim": 0},
    "ln, last": {"how": "ln_structured", "amount": 0.5, "n": float("-inf"), "dim": -1},
    "ln of a convolution": {"how": "ln_structured", "amount": 2, "n": 1, "dim": 1, "kind": "Conv2d", "sizes": (3, 4, 2)},
    "mask": {"how": "custom_from_mask", "mask": (drawn(6, 4, seed=4) > 0).astype(np.float32)},
    "twice": {"how": "l1_unstructured", "amount": 3, "twice": lambda p, m: p.l1_unstructured(m, "weight", 4)},
    "structured after": {"how": "l1_unstructured", "amount": 3, "twice": lambda p, m: p.ln_structured(m, "weight", 1, 2, 0)},
    "thrice": {"how": "ln_structured", "amount": 1, "n": 2, "dim": 0, "twice": lambda p, m: (p.ln_structured(m, "weight", 2, 2, 0), p.identity(m, "weight"))},
}  # fmt: skip


@pytest.mark.parametrize("name", PRUNINGS)
def test_pruning(name):
    same([pruned(lib, **PRUNINGS[name]) for lib in LIBRARIES])


def test_global_and_random_pruning():
    found = []
    for lib in LIBRARIES:
        prune = lib.nn.utils.prune
        net = lib.nn.Sequential(layer(lib, "Linear", 4, 6), layer(lib, "Linear", 6, 2))
        prune.l1_unstructured(net[0], "weight", 2)
        prune.global_unstructured([(net[0], "weight"), (net[1], "weight")], prune.L1Unstructured, amount=9)
        seen = [net[0].weight, net[1].weight, list(net.state_dict())]
        m = layer(lib, "Conv2d", 4, 5, 3)
        prune.random_unstructured(m, "weight", 0.25)
        seen += [
            int((m.weight_mask == 0).sum()),
            type(next(iter(prune.RandomUnstructured.apply(m, "bias", 2).compute_mask(m.bias, m.bias_mask).shape))).__name__,
        ]
        prune.remove(m, "weight")
        prune.random_structured(m, "weight", 2, 1)
        seen += [sorted((m.weight_mask.sum((0, 2, 3)) == 0).tolist()), prune.L1Unstructured(0.5).prune(given(lib, drawn(3, 4)))]
        found.append(seen)
    same(found)


def test_what_pruning_refuses():
    for lib in LIBRARIES:
        prune = lib.nn.utils.prune
        wrong = [
            (ValueError, lambda p, m: p.l1_unstructured(m, "weight", -1)),
            (ValueError, lambda p, m: p.l1_unstructured(m, "weight", 1.5)),
            (ValueError, lambda p, m: p.l1_unstructured(m, "weight", 99)),
            (TypeError, lambda p, m: p.l1_unstructured(m, "weight", "x")),
            (ValueError, lambda p, m: p.ln_structured(m, "bias", 1, 2, 0)),
            (IndexError, lambda p, m: p.ln_structured(m, "weight", 1, 2, 5)),
            (AttributeError, lambda p, m: p.identity(m, "weights")),
            (ValueError, lambda p, m: p.remove(m, "weight")),
            (AssertionError, lambda p, m: p.custom_from_mask(m, "weight", m.bias)),
            (TypeError, lambda p, m: p.global_unstructured([(m, "weight")], p.LnStructured, amount=1, n=1)),
            (TypeError, lambda p, m: p.global_unstructured(3, p.L1Unstructured, amount=1)),
        ]
        for kind, call in wrong:
            m = lib.nn.Linear(3, 2)
            with pytest.raises(kind):
                call(prune, m)
            assert list(m.state_dict()) == ["weight", "bias"] or list(m.state_dict()) == ["bias", "weight"]


def test_fusion():
    found = []
    for lib in LIBRARIES:
        utils, seen = lib.nn.utils, []
        for kind, args, bn, shape in (
            ("Conv2d", (3, 4, 2), "BatchNorm2d", (2, 3, 5, 5)), ("Linear", (3, 4), "BatchNorm1d", (6, 3)), ("Linear", (3, 4), "BatchNorm1d", (6, 3)),
        ):  # fmt: skip
            first, norm = layer(lib, kind, *args), layer(lib, bn, 4)
            x = given(lib, drawn(*shape))
            norm(first(x))
            first.eval(), norm.eval()
            fused = (utils.fuse_conv_bn_eval if kind == "Conv2d" else utils.fuse_linear_bn_eval)(first, norm)
            np.testing.assert_allclose(fused(x).detach().numpy(), norm(first(x)).detach().numpy(), atol=1e-4)
            seen += [fused.weight, fused.bias, fused.weight.requires_grad, repr(fused)]
            with pytest.raises(AssertionError):
                (utils.fuse_conv_bn_eval if kind == "Conv2d" else utils.fuse_linear_bn_eval)(first.train(), norm)
        w, vectors = given(lib, drawn(3, 4, 2, 2)), [given(lib, np.abs(drawn(4, seed=i)) + 0.1) for i in range(4)]
        seen += [*utils.fuse_conv_bn_weights(w, None, *vectors[:2], 1e-3, *vectors[2:], transpose=True)]
        seen += [*utils.fuse_conv_bn_weights(w.permute(1, 0, 2, 3), vectors[0], *vectors[:2], 1e-3, None, None)]
        found.append(seen)
    same(found)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_clipping():
    found = []
    for lib in LIBRARIES:
        utils, seen = lib.nn.utils, []
        for norm_type in (2.0, 1, float("inf"), 3, 0.5, 0, -1, -2.5, -float("inf")):
            ps = [lib.nn.Parameter(lib.zeros(n)) for n in (3, 4)]
            ps[0].grad, ps[1].grad = given(lib, drawn(3)), given(lib, drawn(4, seed=1))
            seen += [utils.get_total_norm([p.grad for p in ps], norm_type)]
            seen += [utils.clip_grad_norm_(iter(ps), 0.7, norm_type), *[p.grad for p in ps]]
            utils.clip_grads_with_norm_(ps, 0.2, seen[0])
            seen += [*[p.grad for p in ps], utils.clip_grad_norm(ps, 0.1), ps[0].grad]
            utils.clip_grad_value_(ps, 0.01)
            seen += [ps[1].grad]
            ps[0].grad[0] = float("nan")
            with pytest.raises(RuntimeError, match="error_if_nonfinite=False"):
                utils.clip_grad_norm_(ps, 1.0, error_if_nonfinite=True)
            with pytest.warns(UserWarning, match="empty generator"):
                seen += [utils.clip_grad_norm_((p for p in []), 1.0)]
        found.append(seen)
    same(found)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_stateless_calls():
    found = []
    for lib in LIBRARIES:
        net = lib.nn.Sequential(layer(lib, "Linear", 3, 3), lib.nn.BatchNorm1d(3), lib.nn.Linear(3, 3))
        net[2].weight, net[2].bias = net[0].weight, net[0].bias
        call, x = lib.nn.utils.stateless.functional_call, given(lib, drawn(5, 3))
        w = given(lib, drawn(3, 3, seed=2)).requires_grad_()
        running = given(lib, drawn(3, seed=5))
        y = call(net, {"0.weight": w, "1.running_mean": running}, x)
        y.square().sum().backward()
        seen = [y, w.grad, running, net[1].running_mean, net[2].weight is net[0].weight, net[0].weight.grad is None]
        seen += [call(net, {"2.weight": w}, (x,), {}), call(net, {"2.weight": w}, x, tie_weights=False)]
        with pytest.raises(RuntimeError, match="Missing key"):
            call(net, {"0.weight": w}, x, strict=True)
        with pytest.raises(RuntimeError, match="Unexpected key"):
            call(net, {**dict(net.named_parameters()), **dict(net.named_buffers()), "more": w}, x, strict=True)
        with pytest.raises(ValueError):
            call(net, {"0.weight": w, "2.weight": w * 2}, x)
        with pytest.raises(TypeError):
            call(net, {"0.weight": 3}, x)
        found.append(seen)
    same(found)


def test_skip_init_and_memory_formats():
    found = []
    for lib in LIBRARIES:
        lib.manual_seed(3)
        m = lib.nn.utils.skip_init(lib.nn.Linear, 3, out_features=4)
        seen = [repr(m), [tuple(p.shape) for p in m.parameters()]]
        with pytest.raises(RuntimeError):
            lib.nn.utils.skip_init(int)
        with pytest.raises(RuntimeError):
            lib.nn.utils.skip_init(lib.nn.ReLU)
        net = lib.nn.Sequential(layer(lib, "Conv2d", 3, 4, 2), lib.nn.ReLU())
        lib.nn.utils.convert_conv2d_weight_memory_format(net, lib.channels_last)
        seen += [net[0].weight, net[0].weight.is_contiguous(memory_format=lib.channels_last)]
        found.append(seen)
    same(found)


WRONG = (
    (ValueError, lambda lib, init: init.eye_(lib.empty(3))),
    (ValueError, lambda lib, init: init.dirac_(lib.empty(3, 3))),
    (ValueError, lambda lib, init: init.dirac_(lib.empty(3, 3, 1), 2)),
    (ValueError, lambda lib, init: init.sparse_(lib.empty(3), 0.5)),
    (ValueError, lambda lib, init: init.orthogonal_(lib.empty(3))),
    (ValueError, lambda lib, init: init.xavier_normal_(lib.empty(3))),
    (ValueError, lambda lib, init: init.kaiming_normal_(lib.empty(3, 3), mode="in")),
    (ValueError, lambda lib, init: init.calculate_gain("leaky_relu", True)),
    (RuntimeError, lambda lib, init: init.trunc_normal_(lib.empty(3), a=2.0, b=1.0)),
)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_initial_values_that_nothing_draws():
    found = []
    for lib in LIBRARIES:
        init = lib.nn.init
        seen = [init.dirac_(lib.empty(*s), g) for s, g in (((4, 2, 3), 2), ((3, 5, 3, 2), 1), ((2, 2, 3, 1, 3), 2), ((6, 1, 4), 3))]
        seen += [init.eye_(lib.empty(3, 5)), init.constant_(lib.empty(2), 3), init.ones_(lib.empty(1)), init.zeros_(lib.empty(2, 2))]
        seen += [init.eye(lib.empty(2, 2)), init.dirac(lib.empty(2, 2, 1)), init.constant(lib.empty(1), 0.5)]
        names = ["linear", "conv2d", "conv_transpose3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]
        seen += [init.calculate_gain(n) for n in names] + [init.calculate_gain("leaky_relu", 0.3)]
        seen += [init._calculate_fan_in_and_fan_out(lib.empty(4, 3, 2, 5)), init._calculate_correct_fan(lib.empty(4, 3), "FAN_OUT")]
        for kind, call in WRONG:
            with pytest.raises(kind):
                call(lib, init)
        found.append(seen)
    same(found)
