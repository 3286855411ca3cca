"""Containers, embedding bags and lookups beside torch: the same programs in both, their reprs and errors."""

import numpy as np
import pytest
import torch

import tritensor as tt

pytestmark = pytest.mark.peer

PROGRAMS = [
    """
d=nn.ParameterDict({'b':nn.Parameter(T.ones(2)),'a':T.zeros(3,2)})
out+= [d, list(d), list(d.state_dict()), [n for n,_ in d.named_parameters()]]
""",
    """
d=nn.ParameterDict([('b',T.ones(2)),('a',5)])
d['c']='x'
out+=[d]
out+=[len(d)]
out+=['a' in d]
out+=[d.get('z')]
out+=[d.get('z',3)]
out+=[d.setdefault('q',7)]
out+=[list(reversed(d))]
out+=[d.pop('a')]
out+=[d.popitem()]
out+=[list(d.keys())]
out+=[[type(v).__name__ for v in d.values()]]
""",
    "d=nn.ParameterDict(); d['x']",
    "d=nn.ParameterDict(); d[3]=T.ones(1)",
    """
d=nn.ParameterDict({'a':T.ones(1)})
e=d.copy()
e.update({'z':T.ones(2)})
out+=[list((d|e)), list(d.fromkeys(['u','v'],None)), len(e)]
d|=e
out+=[list(d)]
d.clear()
out+=[len(d), d]
""",
    "d=nn.ParameterDict(); d.update(5)",
    "d=nn.ParameterDict([(1,2,3)])",
    "nn.ParameterDict()(1)",
    """
l=nn.ParameterList([T.ones(2),3,nn.Parameter(T.zeros(1))])
l.append('s')
l+=[T.ones(1)]
out+=[l,len(l),l[1],l[-1],l[1:3],list(l.state_dict()),[n for n,_ in l.named_parameters()], [d for d in dir(l) if d.isdigit()]]
""",
    "l=nn.ParameterList([T.ones(2)]); l[5]",
    "l=nn.ParameterList([T.ones(2)]); l.extend(T.ones(2))",
    "nn.ParameterList()(1)",
    "l=nn.ParameterList([T.ones(2)]); l[0]=T.zeros(3); out+=[l]",
    """
s=nn.Sequential(nn.ReLU(),nn.Tanh())
out+=[s*2, 2*s, s+s]
s*=2
out+=[s,len(s)]
s+=nn.Sequential(nn.ReLU())
out+=[s, s.pop(0), s, s[1:3]]
s.insert(1,nn.GELU())
s.insert(-1,nn.GELU())
out+=[s]
""",
    "nn.Sequential(nn.ReLU())*0",
    "nn.Sequential(nn.ReLU())*1.5",
    "s=nn.Sequential(nn.ReLU(),nn.Tanh()); del s[0]; out+=[s,list(s.state_dict())]; s[0]=nn.GELU(); out+=[s]",
    "m=nn.ModuleList([nn.ReLU()]); m+=[nn.Tanh()]; m.insert(0,nn.GELU()); out+=[m, m+[nn.ReLU()], m.pop(1), m[-1], m[0:1]]; m[0]=nn.ReLU(); out+=[m]",
    """
m=nn.ModuleDict({'b':nn.ReLU(),'a':nn.Tanh()})
m.update([['c',nn.GELU()]])
out+=[m,list(m),'a' in m, m.pop('a'), list(m.values()), list(m.items())]
m.clear()
out+=[m]
""",
    "nn.ModuleDict().update([('a',)])",
    "nn.ModuleDict().update(3)",
    "nn.Linear(2,3).get_extra_state()",
    """
class M(nn.Module):
    def get_extra_state(self): return {'k':1}
    def set_extra_state(self,s): self.k=s['k']
m=M(); sd=m.state_dict(); out+=[dict(sd)]; n=M(); n.load_state_dict(sd); out+=[n.k]
""",
    """
class A:
    def __init__(self,x): self.x=x
class M(nn.Module,A):
    call_super_init=True
    def __init__(self): super().__init__(5)
out+=[M().x]
""",
    "nn.Module(3)",
    "nn.Module(a=3)",
    "m=nn.LazyLinear(3); out+=[m, m.has_uninitialized_params()]; y=m(T.ones(2,5)); out+=[m, tuple(y.shape), type(m).__name__, list(m.state_dict())]",
    """
import copy,pickle
m=nn.ParameterDict({'a':T.ones(1)}); n=copy.deepcopy(m); out+=[n, list(n)]; o=pickle.loads(pickle.dumps(nn.ParameterList([T.ones(1)]))); out+=[o]
""",
    """
from collections import OrderedDict
s=nn.Sequential(OrderedDict(a=nn.ReLU(),b=nn.Tanh(),c=nn.GELU())); del s[0]; out+=[s]
""",
    """
m=nn.Linear(2,2)
m._register_load_state_dict_pre_hook(lambda sd,prefix,*a: out.append(sorted(sd)))
m.load_state_dict(m.state_dict())
h=m._register_state_dict_hook(lambda mod,sd,p,md: out.append(p))
m.state_dict(prefix='q.')
""",
]  # fmt: skip


def outcome(library, program):
    """What a program shows, and its error's class."""
    out = []
    try:
        exec(program, {"T": library, "nn": library.nn, "out": out})
    except Exception as error:
        return [repr(v) for v in out], type(error)
    return [repr(v).replace("tritensor.", "torch.") for v in out], None


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_containers(program):
    theirs, wrong = outcome(torch, program)
    ours, error = outcome(tt, program)
    assert ours == theirs
    assert (error is None) == (wrong is None)
    if wrong is not None:
        assert issubclass(error, wrong) or error.__name__ == wrong.__name__


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bags_of_many(mode):
    rng = np.random.default_rng(0)
    table = rng.standard_normal((50, 7)).astype(np.float32)
    index, starts = rng.integers(0, 50, 400), np.sort(np.concatenate([[0], rng.integers(0, 400, 60)]))
    found = []
    for library in (torch, tt):
        w = library.tensor(table, requires_grad=True)
        y = library.nn.functional.embedding_bag(library.tensor(index), w, library.tensor(starts), mode=mode, padding_idx=3)
        (y * library.tensor(np.cos(np.arange(y.numel())).reshape(y.shape).astype(np.float32))).sum().backward()
        found.append((y.detach().numpy(), w.grad.numpy()))
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)
