"""Tricks of public code with modules: wrappers by __getattr__, state_dict of one's own, hooks found by name, parametrizations, masks, shared weights."""

import copy
import gc
import io
import pickle
import weakref
import functools
import operator
import collections
import sys
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
import torch.nn.utils.parametrize as P
from torch.nn.utils import prune, skip_init, fuse_conv_bn_eval

rs = np.random.RandomState(0)


def fill(m):
    for p in m.parameters():
        p.data = torch.from_numpy(rs.randn(*p.shape)).to(p.dtype) * 0.3
    return m


class Tracked(nn.Module):
    instances = 0

    def __init__(self):
        super().__init__()
        type(self).instances += 1
        object.__setattr__(self, "hidden_ref", nn.Linear(2, 2))
        self.__dict__["plain"] = [nn.Linear(1, 1)]
        self.fc = nn.Linear(3, 3)
        self.alias = self.fc
        self.register_buffer("mask", torch.ones(3))
        self.register_buffer("maybe", None)
        self.scale = None

    def __setattr__(self, k, v):
        if isinstance(v, float):
            v = torch.tensor(v)
        super().__setattr__(k, v)

    def __call__(self, *a, **k):
        return super().__call__(*a, **k)

    def forward(self, x, *, gain=1.0):
        return self.fc(x) * self.mask * gain

    def _load_from_state_dict(self, sd, prefix, *args):
        if prefix + "old_mask" in sd:
            sd[prefix + "mask"] = sd.pop(prefix + "old_mask")
        super()._load_from_state_dict(sd, prefix, *args)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "extra"] = torch.tensor(7)

    def get_extra_state(self):
        return {"v": 1}

    def set_extra_state(self, s):
        self.loaded = s


m = fill(Tracked())
m.temp = 0.5
print(
    m,
    list(m.state_dict()),
    m.temp,
    len(list(m.parameters())),
    [n for n, _ in m.named_modules()],
    [n for n, _ in m.named_modules(remove_duplicate=False)],
    list(dict(m.named_parameters(remove_duplicate=False))),
)
h1 = m.register_forward_pre_hook(lambda mod, args, kw: (args, {**kw, "gain": 2.0}), with_kwargs=True)
h2 = m.register_forward_hook(lambda mod, args, kw, out: out + kw["gain"], with_kwargs=True)
x = torch.ones(1, 3)
y = m(x)
h1.remove()
h2.remove()
print(y - m(x) * 2, Tracked.instances)
sd = m.state_dict()
sd["old_mask"] = sd.pop("mask") * 0
sd.pop("extra")
print(m.load_state_dict(sd), m.mask, m.loaded)
h = (
    m.register_state_dict_post_hook(lambda mod, d, p, meta: d.update({p + "hooked": torch.zeros(1)}))
    if hasattr(m, "register_state_dict_post_hook")
    else m._register_state_dict_hook(lambda mod, d, p, meta: d)
)
print("hooked" in m.state_dict())
h.remove()


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)

    def right_inverse(self, A):
        return A.triu()


class MatExp(nn.Module):
    def forward(self, X):
        return torch.matrix_exp(X)


lin = fill(nn.Linear(3, 3))
P.register_parametrization(lin, "weight", Symmetric())
P.register_parametrization(lin, "weight", MatExp())
print(
    lin,
    torch.allclose(lin.weight, lin.weight.T, atol=1e-5),
    P.is_parametrized(lin, "weight"),
    type(lin).__name__,
    lin.parametrizations.weight.original.shape,
)
with P.cached():
    print(lin.weight is lin.weight)
P.remove_parametrizations(lin, "weight", leave_parametrized=True)
print(type(lin).__name__, lin.weight.requires_grad, lin)
conv = fill(nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4))).eval()
z = torch.from_numpy(rs.randn(1, 1, 5, 5)).float()
print((fuse_conv_bn_eval(conv[0], conv[1])(z) - conv(z)).abs().max() < 1e-5)
prune.l1_unstructured(conv[0], "weight", amount=0.5)
prune.random_structured(conv[0], "bias", amount=1, dim=0) if False else prune.ln_structured(conv[0], name="weight", amount=1, n=2, dim=0)
print(
    sorted(n for n, _ in conv[0].named_buffers()),
    float((conv[0].weight == 0).float().mean()),
    list(conv[0]._forward_pre_hooks.values())[0].__class__.__name__,
)
prune.remove(conv[0], "weight")
print(prune.is_pruned(conv))
lazy = nn.Sequential(nn.LazyConv1d(4, 2), nn.ReLU(), nn.LazyLinear(2))
print(lazy[2], lazy[2].weight.__class__.__name__)
lazy(torch.ones(1, 2, 5))
print(lazy, skip_init(nn.Linear, 2, 3).weight.shape)
tied = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
tied[1].weight = tied[0].weight
c = copy.deepcopy(tied)
print(c[1].weight is c[0].weight, c[0].weight is not tied[0].weight, len(list(c.parameters())))
buf = io.BytesIO()
pickle.dump(fill(tied), buf)
buf.seek(0)
loaded = pickle.load(buf)
print(loaded[0].weight is loaded[1].weight, torch.equal(loaded[0].bias, tied[0].bias))
seq = nn.Sequential(collections.OrderedDict(a=nn.Linear(2, 4), b=nn.GELU()))
seq.append(nn.Linear(4, 1))
seq.extend([nn.Sigmoid()])
del seq[1]
print(seq, seq[-1], len(seq), seq[:2], [*seq][0])
pd = nn.ParameterDict({"a": nn.Parameter(torch.ones(2)), "b": torch.zeros(1)})
pd["c"] = nn.Parameter(torch.eye(2))
pd.update({"d": torch.ones(1)})
print(pd, "c" in pd, pd.pop("a").shape, list(pd))
pl = nn.ParameterList([torch.ones(1), torch.zeros(2)])
pl += [nn.Parameter(torch.ones(3))]
print(pl, len(pl))
print(
    functools.reduce(operator.add, [p.numel() for p in seq.parameters()]),
    seq.get_parameter("2.weight").shape if False else [n for n, _ in seq.named_parameters()],
    seq.training,
    seq.eval()[0].training,
    nn.Identity(5, unused=3),
    sum(1 for _ in seq.modules()),
)


class Wrapper(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)


wrapped = Wrapper(nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
wrapped.anchor = torch.ones(2)
wrapped.anchor.require_grad = False
setattr(wrapped, "head.0", nn.Linear(2, 2))
print(
    len(wrapped.inner),
    wrapped.append is not None,
    wrapped.anchor.requires_grad,
    [n for n, _ in wrapped.named_parameters()],
    torch.ones(2).max(0),
)
try:
    m.fc.weight = torch.zeros(3, 3)
except TypeError:
    print("TypeError")
try:
    nn.Linear(2, 2)(torch.ones(3))
except RuntimeError as e:
    print("RuntimeError")
try:
    m.nothing
except AttributeError as e:
    print(e)
w = weakref.ref(tied)
del tied, loaded, c
gc.collect()
print(w() is None, sys.getrefcount(m) > 1)
