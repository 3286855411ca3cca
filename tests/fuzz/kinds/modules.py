"""The lives of modules: built, trained, copied, hooked, tied, cast, saved into dicts and bytes, called with other parameters."""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz.drawing import array, literal, number
from tests.fuzz.judges import Judge, beside_torch, equal_pairs, errors, twice
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.program import Program

FILL = "[p.data.copy_((tt.arange(p.numel()) % 7 - 3.03).div(8).reshape(p.shape)) for p in {0}.parameters()]"
ACTIVATIONS = (
    "nn.ReLU()",
    "nn.Tanh()",
    "nn.GELU()",
    "nn.SiLU()",
    "nn.Sigmoid()",
    "nn.LeakyReLU(0.1)",
    "nn.ELU()",
    "nn.Softmax(-1)",
    "nn.Identity()",
    "nn.ReLU(inplace=True)",
    "nn.PReLU()",
    "nn.Hardtanh()",
    "nn.Softplus()",
)


def network(rng: random.Random) -> tuple[str, tuple[int, ...]]:
    """A Sequential, and the shape that it takes."""
    if rng.random() < 0.35:
        return _images(rng)
    first = width = rng.randint(1, 4)
    layers: list[str] = []
    for _ in range(rng.randint(1, 4)):
        pick = rng.random()
        if pick < 0.45:
            wider = width if rng.random() < 0.4 else rng.randint(1, 4)
            layers.append(f"nn.Linear({width}, {wider}{rng.choice(('', '', ', bias=False'))})")
            width = wider
        elif pick < 0.7:
            layers.append(rng.choice(ACTIVATIONS))
        elif pick < 0.95:
            layers.append(
                rng.choice(
                    (
                        f"nn.LayerNorm({width})",
                        f"nn.BatchNorm1d({width}{rng.choice(('', ', affine=False', ', momentum=None', ', track_running_stats=False'))})",
                        f"nn.RMSNorm({width}, eps=1e-5)",
                        f"nn.GroupNorm(1, {width})",
                    )
                )
            )
        else:
            layers.append(f"nn.Sequential(nn.Linear({width}, {width}), nn.Tanh())")
    return f"nn.Sequential({', '.join(layers)})", (3, first)


def _images(rng: random.Random) -> tuple[str, tuple[int, ...]]:
    width = first = rng.randint(1, 2)
    layers = []
    for _ in range(rng.randint(1, 3)):
        wider = rng.randint(1, 3)
        layers.append(
            rng.choice((f"nn.Conv2d({width}, {wider}, {rng.choice((1, 3))}, padding=1)", f"nn.ConvTranspose2d({width}, {wider}, 2)"))
        )
        width = wider
        layers.append(
            rng.choice(
                (
                    f"nn.BatchNorm2d({width})",
                    "nn.ReLU()",
                    "nn.MaxPool2d(2, ceil_mode=True)",
                    "nn.AvgPool2d(2, 1)",
                    f"nn.InstanceNorm2d({width}, affine=True)",
                    "nn.AdaptiveAvgPool2d(2)",
                    "nn.Upsample(scale_factor=2)",
                )
            )
        )
    if rng.random() < 0.5:
        layers.append("nn.Flatten()")
    return f"nn.Sequential({', '.join(layers)})", (2, first, 4, 4)


def _events(rng: random.Random, sizes: tuple[int, ...], k: int) -> list[str]:
    """Something that happens to a network."""
    x = literal(rng, sizes)
    pair = lambda left, right: [f"left{k} = {left}", f"right{k} = {right}"]  # noqa: E731
    reads = "{n: p for n, p in net.state_dict().items()}"
    return rng.choice([
        ["net.train()"], ["net.eval()"], [f"y{k} = net({x})"], [f"y{k} = net(x)", f"y{k}.square().sum().backward()"], [f"y{k} = net(x)", f"(y{k} * y{k}).mean().backward()"], ["net.zero_grad()"], ["net.zero_grad(set_to_none=False)"],
        ["sd = net.state_dict()", FILL.format("net").replace("% 7", "% 5"), f"r{k} = net.load_state_dict(sd)"], ["sd = {n: p.clone() for n, p in net.state_dict().items()}", "net(x)", f"r{k} = str(net.load_state_dict(sd))"],
        pair("(net.eval(), net(x))[1]", "copy.deepcopy(net)(x)"), pair("(net.eval(), net(x))[1]", "pickle.loads(pickle.dumps(net))(x)"), pair("(net.eval(), net(x))[1]", "tt.func.functional_call(net, dict(net.named_parameters()), (x,))"), pair(reads, "copy.deepcopy(net).state_dict()"),
        pair("(net.eval(), tt.func.functional_call(net, {n: p * 2 for n, p in net.named_parameters()}, (x,)))[1]", "(twin := copy.deepcopy(net), [p.data.mul_(2) for p in twin.parameters()], twin(x))[2]"), ["twin = copy.deepcopy(net)", "with tt.no_grad(): [p.add_(1) for p in net.parameters()]", f"y{k} = twin(x)"],
        [f"h{k} = net[0].register_forward_hook(lambda m, i, o: o * 2)"], [f"h{k} = net.register_forward_pre_hook(lambda m, i: (i[0] + 1,))"], [f"h{k} = net[-1].register_full_backward_hook(lambda m, gi, go: tuple(g * 2 if g is not None else None for g in gi))"], [f"h{k} = net[0].register_forward_hook(lambda m, i, o: o + 1)", f"y{k} = net(x)", f"h{k}.remove()"],
        ["net.half()", "net.float()"], ["net.double()", "x = x.double()"], ["net.to(tt.float64)", "x = x.double()"], ["net.bfloat16()", "net.float()"], ["net.requires_grad_(False)"], ["net[0].requires_grad_(False)"], [f"n{k} = [n for n, _ in net.named_parameters()]"], [f"n{k} = [n for n, _ in net.named_buffers()]"],
        [f"n{k} = [n for n, _ in net.named_modules()]"], [f"n{k} = repr(net)"], ["net.append(nn.Tanh())"], ["net[-1] = nn.Identity()"], ["net.insert(0, nn.Identity())"], ["net = net[1:]"] if rng.random() < 0.3 else ["net = nn.Sequential(net, net)"], [f"g{k} = [p.grad for p in net.parameters()]"],
        ["net.apply(lambda m: m.weight.data.fill_(0.5) if hasattr(m, 'weight') and m.weight is not None else None)"], ["nn.utils.clip_grad_norm_(net.parameters(), 0.5)"], ["nn.utils.clip_grad_value_(net.parameters(), 0.1)"], [f"v{k} = nn.utils.parameters_to_vector(net.parameters())"], ["nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(net.parameters()) * 2, net.parameters())"],
        ["twin = copy.deepcopy(net)", "twin[0].weight = net[0].weight", f"y{k} = twin(net(x)) if 0 else twin(x) + net(x)", f"y{k}.sum().backward()"], ["nn.utils.parametrize.register_parametrization(net[0], 'weight', nn.Tanh())"], ["nn.utils.parametrizations.weight_norm(net[0])"], ["nn.utils.parametrize.remove_parametrizations(net[0], 'weight')"], ["nn.utils.weight_norm(net[0])"],
        ["x = x.detach().requires_grad_()", f"y{k} = net(x)", f"g{k} = tt.autograd.grad(y{k}.square().sum(), x, create_graph=True)[0]", f"g{k}.square().sum().backward()"], ["net.register_buffer('extra', tt.ones(2))"], ["net.register_parameter('extra', nn.Parameter(tt.ones(2)))"], ["del net[0]"] if rng.random() < 0.3 else [f"c{k} = len(list(net.children()))"],
        ["with tt.no_grad(): [p.sub_(p.grad if p.grad is not None else 0.5) for p in net.parameters()]"], [f"r{k} = net.load_state_dict({{'0.weight': tt.ones(1)}}, strict=False)"], ["net.load_state_dict({n: p * 2 for n, p in net.state_dict().items()}, assign=True)"], [f"m{k} = net.training, [c.training for c in net]"], ["twin = copy.deepcopy(net)", "net.load_state_dict(twin.state_dict())"],
        ["with tt.inference_mode(): net(x)"], [f"y{k} = tt.utils.checkpoint.checkpoint(net, x, use_reentrant=False)", f"y{k}.sum().backward()"],
    ])  # fmt: skip


def draw(rng: random.Random) -> Program:
    """A network, an input, and five to nine events."""
    made, sizes = network(rng)
    lines = [f"net = {made}; {FILL.format('net')}", f"x = tt.tensor({array(rng, sizes, lambda: number(rng, 'float32'))}, dtype=tt.float32)"]
    for k in range(rng.randint(3, 8)):
        lines += _events(rng, sizes, k)
    return Program((*lines, "end = net(x)", "(end * (tt.arange(end.numel()) % 5 - 1.5).reshape(end.shape).to(end.dtype)).sum().backward()"))


def judges(torch: Any) -> list[Judge]:
    return [beside_torch(torch), equal_pairs] if torch is not None else [errors, twice, equal_pairs]


KIND = Kind("modules", draw, judges, weight=4)
