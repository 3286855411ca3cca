"""Actions of small programs, a statement each in torch, in numpy, which is the floor of a host that computes with numpy, and in jax.numpy."""

from __future__ import annotations

from typing import NamedTuple


class Action(NamedTuple):
    """A statement in torch, the least that numpy has to do for it, and its like in jax.numpy where that is given.

    `setup` is read in every library with the names of bench/small/child.py; `before` is torch's own part of it and comes after it.
    """

    name: str
    body: str
    floor: str
    setup: str = ""
    before: str = ""
    jax: str = ""

    def questions(self) -> dict[str, dict[str, str]]:
        """What each kind of library is to build."""
        asked = {"torch": statement(self.body, self.setup, self.before), "numpy": statement(self.floor, self.setup)}
        return asked | {"jax": statement(f"ready({self.jax})", self.setup)} if self.jax else asked


def statement(body: str, *setup: str) -> dict[str, str]:
    """A statement to build, and the lines before it."""
    return {"how": "statement", "setup": "\n".join(setup), "body": body}


def tens(operand: str) -> str:
    """a OPERAND OPERAND ..., ten times."""
    return "a" + f" {operand}" * 10


ONE, LEARNT, NUMBER = "a = drawn(4, 4)", "a = learnt(4, 4)", "a = scalar(2.0)"
TWO, LEARNT_TWO, NUMBERS = f"{ONE}; b = drawn(4, 4)", f"{LEARNT}; b = drawn(4, 4)", f"{NUMBER}; b = scalar(3.0)"
FOUR = "ps = [learnt(4, 4) for _ in range(4)]; gs = [drawn(4, 4) for _ in range(4)]"
STEPPED = "o = torch.optim.{}\nfor p, g in zip(ps, gs):\n    p.grad = g"
CHAIN = "a = learnt(4, 4); s = drawn(4, 4); c = drawn(4, 4)"
CUT = "[a[:, 0:4], a[:, 4:8], a[:, 8:12], a[:, 12:]]"
CHANCE = "m = torch.distributions.Categorical(F.softmax(p, dim=1))"
FUNCTION = """
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {}
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 2.0
"""
PART = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Identity()
m = Net()
"""

ARITHMETIC = [
    Action("x + y", "a + b", "a + b", TWO, jax="a + b"),
    Action("x + y, recorded", "a + b", "a + b", LEARNT_TWO),
    Action("x * 2.0, recorded", "a * 2.0", "a * two", LEARNT + "; two = scalar(2.0)", jax="a * 2.0"),
    Action("0-d * x", "b * a", "b * a", ONE + "; b = scalar(2.0)", jax="b * a"),
    Action("sigmoid, recorded", "torch.sigmoid(a)", "np.tanh(a)", LEARNT, jax="jax.nn.sigmoid(a)"),
    Action("tanh, recorded", "torch.tanh(a)", "np.tanh(a)", LEARNT, jax="jnp.tanh(a)"),
    Action("relu, recorded", "torch.relu(a)", "np.maximum(a, 0)", LEARNT, jax="jax.nn.relu(a)"),
    Action("x.exp()", "a.exp()", "np.exp(a)", ONE, jax="jnp.exp(a)"),
    Action("x @ y", "a @ b", "a @ b", TWO, jax="a @ b"),
    Action("x @ y, recorded", "a @ b", "a @ b", LEARNT_TWO),
    Action("x @ vector", "a @ b", "a @ b", ONE + "; b = drawn(4)", jax="a @ b"),
    Action("sum, recorded", "a.sum()", "a.sum()", LEARNT, jax="a.sum()"),
    Action("mean, recorded", "a.mean()", "a.mean()", LEARNT, jax="a.mean()"),
    Action("sum(0, keepdim), recorded", "a.sum(0, keepdim=True)", "a.sum(0, keepdims=True)", LEARNT, jax="a.sum(0, keepdims=True)"),
    Action("x ** 2, recorded", "a ** 2", "a * a", LEARNT, jax="a ** 2"),
    Action("softmax, recorded", "F.softmax(a, dim=-1)", "np.exp(a)", LEARNT, jax="jax.nn.softmax(a)"),
    Action("log_softmax", "F.log_softmax(a, dim=-1)", "np.exp(a)", ONE, jax="jax.nn.log_softmax(a)"),
    Action("x += y, in place", "a += b", "a += b", ONE + "; b = drawn(4, 4) * 0"),
    Action("p.data += -0.1 * g", "a.data += -0.1 * b", "a += -0.1 * b", LEARNT + "; b = drawn(4, 4) * 0"),
    Action("where", "torch.where(c, a, b)", "np.where(c, a, b)", TWO + "; c = a > b", jax="jnp.where(c, a, b)"),
    Action("clamp(min=)", "a.clamp(min=0.1)", "np.maximum(a, 0.1)", ONE, jax="jnp.clip(a, 0.1)"),
    Action("topk(3) of 150", "torch.topk(a, 3)", "np.argpartition(a, 3)", "a = drawn(150)", jax="jax.lax.top_k(a, 3)"),
    Action("linalg.solve, 2 x 2", "torch.linalg.solve(a, b)", "np.linalg.solve(a, b)", "a = drawn(2, 2); b = drawn(2, 4)", jax="jnp.linalg.solve(a, b)"),
    Action("logdet, 2 x 2", "torch.logdet(a)", "np.linalg.slogdet(a)", "a = drawn(2, 2); a = a @ a.T", jax="jnp.linalg.slogdet(a)"),
]  # fmt: skip
VIEWS = [
    Action("x.T", "a.T", "a.T", ONE, jax="a.T"),
    Action("x.T, recorded", "a.T", "a.T", LEARNT),
    Action("x[0]", "a[0]", "a[0]", ONE, jax="a[0]"),
    Action("x[0], recorded", "a[0]", "a[0]", LEARNT),
    Action("x[:, 1:3]", "a[:, 1:3]", "a[:, 1:3]", ONE, jax="a[:, 1:3]"),
    Action("x[:, -1]", "a[:, -1]", "a[:, -1]", "a = drawn(4, 4, 4)", jax="a[:, -1]"),
    Action("x[index]", "a[i]", "a[i]", "a = drawn(27, 10); i = whole(0, 27, 2)", jax="a[i]"),
    Action("x[index], recorded", "a[i]", "a[i]", "a = learnt(27, 10); i = whole(0, 27, 2)"),
    Action("view", "a.view(2, 8)", "a.reshape(2, 8)", ONE, jax="a.reshape(2, 8)"),
    Action("view, recorded", "a.view(2, 8)", "a.reshape(2, 8)", LEARNT + " * 1.0"),
    Action("transpose(1, 2)", "a.transpose(1, 2)", "a.swapaxes(1, 2)", "a = drawn(2, 4, 4)", jax="a.swapaxes(1, 2)"),
    Action("unsqueeze(0)", "a.unsqueeze(0)", "a[None]", ONE, jax="a[None]"),
    Action("chunk(4, 1), recorded", "a.chunk(4, 1)", CUT, "a = learnt(4, 16)", jax="jnp.split(a, 4, 1)"),
    Action("split(4, dim=1)", "a.split(4, dim=1)", CUT, "a = drawn(4, 16)"),
    Action("[row for row in x], 4", "[r for r in a]", "[r for r in a]", ONE, jax="[r for r in a]"),
    Action("cat of 2", "torch.cat([a, b], 1)", "np.concatenate([a, b], 1)", TWO, jax="jnp.concatenate([a, b], 1)"),
    Action("stack of 3, recorded", "torch.stack([a, b, b], -1)", "np.stack([a, b, b], -1)", LEARNT_TWO, jax="jnp.stack([a, b, b], -1)"),
    Action("detach", "a.detach()", "a[()]", LEARNT + " * 2.0"),
]  # fmt: skip
VALUES = [
    Action("item", "a.item()", "a.item()", NUMBER, jax="a.item()"),
    Action("float(x)", "float(a)", "float(a)", NUMBER, jax="float(a)"),
    Action("x < y, 0-d", "a < b", "a < b", NUMBERS, jax="a < b"),
    Action("bool(x < y)", "bool(a < b)", "bool(a < b)", NUMBERS, jax="bool(a < b)"),
    Action("tensor(2.0)", "torch.tensor(2.0)", "np.array(2.0, 'f4')", jax="jnp.array(2.0)"),
    Action("tensor([1.0, 2.0, 3.0])", "torch.tensor([1.0, 2.0, 3.0])", "np.array([1.0, 2.0, 3.0], 'f4')", jax="jnp.array([1.0, 2.0, 3.0])"),
    Action("zeros(4, 4)", "torch.zeros(4, 4)", "np.zeros((4, 4), 'f4')", jax="jnp.zeros((4, 4))"),
    Action("zeros_like", "torch.zeros_like(a)", "np.zeros_like(a)", ONE, jax="jnp.zeros_like(a)"),
    Action("arange(0, 64, 2)", "torch.arange(0, 64, 2)", "np.arange(0, 64, 2)", jax="jnp.arange(0, 64, 2)"),
    Action("randn(4, 4)", "torch.randn(4, 4)", "rng.standard_normal((4, 4), 'f4')", jax="jax.random.normal(key, (4, 4))"),
    Action("from_numpy", "torch.from_numpy(n)", "n[()]", "n = np.ones((4, 4), 'f4')", jax="jnp.asarray(n)"),
    Action("x.shape", "a.shape", "a.shape", ONE),
    Action("x.size(-1)", "a.size(-1)", "a.shape[-1]", ONE),
    Action("with no_grad()", "with torch.no_grad(): pass", "a.shape", ONE),
]  # fmt: skip
LAYERS = [
    Action("F.linear, recorded", "F.linear(a, w, b)", "a @ w.T + b", "a = drawn(1, 10); w = learnt(32, 10); b = learnt(32)", jax="a @ w.T + b"),
    Action("nn.Linear(10, 32)", "m(a)", "a @ w + b", "a = drawn(1, 10); w = drawn(10, 32); b = drawn(32)", "m = nn.Linear(10, 32)"),
    Action("nn.Linear(10, 32), not recorded", "m(a)", "a @ w + b", "a = drawn(1, 10); w = drawn(10, 32); b = drawn(32)",
           "m = nn.Linear(10, 32).requires_grad_(False)"),
    Action("nn.Identity", "m(a)", "a[()]", ONE, "m = nn.Identity()"),
    Action("Sequential of 2 Identity", "m(a)", "a[()]", ONE, "m = nn.Sequential(nn.Identity(), nn.Identity())"),
    Action("nn.LayerNorm(64)", "m(a)", "a - a.mean(-1, keepdims=True)", "a = drawn(3, 1, 64)", "m = nn.LayerNorm(64)"),
    Action("gelu", "F.gelu(a)", "np.tanh(a)", "a = drawn(3, 64)", jax="jax.nn.gelu(a, approximate=False)"),
    Action("nn.Embedding", "m(i)", "a[i]", "a = drawn(50, 64); i = whole(0, 3, 1).reshape(3, 1)", "m = nn.Embedding(50, 64)", jax="a[i]"),
    Action("cross_entropy, recorded", "F.cross_entropy(a, y)", "np.exp(a)", "a = learnt(8, 5); y = whole(0, 8, 1) // 2"),
    Action("mse_loss, recorded", "F.mse_loss(a, y)", "np.square(a)", "a = learnt(8, 5); y = drawn(8, 5)", jax="((a - y) ** 2).mean()"),
    Action("a module's part", "m.part", "a.shape", ONE, PART),
]  # fmt: skip
GRADIENTS = [
    Action("Function.apply, input returned", "Own.apply(a)", "a[()]", LEARNT, FUNCTION.format("x")),
    Action("Function.apply", "Own.apply(a)", "a + 1.0", LEARNT, FUNCTION.format("x + 1.0")),
    Action("Function and its gradient", "torch.autograd.grad(Own.apply(a), a, s)", "a + 1.0; s * 2.0", CHAIN, FUNCTION.format("x + 1.0")),
    Action("grad of a sum", "torch.autograd.grad(a + 1.0, a, s)", "a + 1.0", CHAIN),
    Action("grad of 10 sums", f"torch.autograd.grad({tens('+ 1.0')}, a, s)", tens("+ 1.0"), CHAIN),
    Action("grad of 10 products", f"torch.autograd.grad({tens('* c')}, a, s)", f"{tens('* c')}; {tens('* c')}", CHAIN),
    Action("backward of 10 products", f"({tens('* c')}).backward(s); a.grad = None", f"{tens('* c')}; {tens('* c')}", CHAIN),
    Action("backward of 10 tanh", f"{'t(' * 10}a{')' * 10}.backward(s); a.grad = None", f"{'np.tanh(' * 10}a{')' * 10}; {tens('* c')}", CHAIN, "t = torch.tanh"),
    Action("grad of 10 products, create_graph", f"torch.autograd.grad({tens('* c')}, a, s, create_graph=True)", f"{tens('* c')}; {tens('* c')}", CHAIN),
    Action("nn.Linear(10, 32), backward", "m(a).backward(s)", "a @ w + b; a.T @ s",
           "a = drawn(1, 10); w = drawn(10, 32); b = drawn(32); s = drawn(1, 32)", "m = nn.Linear(10, 32)"),
]  # fmt: skip
TRAINING = [
    Action("SGD, step of 4", "o.step()", "for p in ps: p += p", FOUR, STEPPED.format("SGD(ps, lr=0.0)")),
    Action("SGD with momentum, step of 4", "o.step()", "for p, g in zip(ps, gs): p += g", FOUR, STEPPED.format("SGD(ps, lr=0.0, momentum=0.9)")),
    Action("Adam, step of 4", "o.step()", "for p, g in zip(ps, gs): p += g", FOUR, STEPPED.format("Adam(ps, lr=0.0)")),
    Action("zero_grad of 4", "o.zero_grad()", "ps[0].shape", FOUR, "o = torch.optim.SGD(ps, lr=0.0)"),
    Action("Categorical(probs)", "torch.distributions.Categorical(p)", "p / p.sum(-1, keepdims=True)", "p = drawn(1, 2)", "p = F.softmax(p, dim=1)"),
    Action("Categorical.sample", "m.sample()", "rng.random()", "p = drawn(1, 2)", CHANCE),
    Action("Categorical.log_prob", "m.log_prob(v)", "np.log(p)[0, 1]", "p = abs(drawn(1, 2))", CHANCE + "; v = torch.tensor([1])"),
]  # fmt: skip
ACTIONS = [*ARITHMETIC, *VIEWS, *VALUES, *LAYERS, *GRADIENTS, *TRAINING]
