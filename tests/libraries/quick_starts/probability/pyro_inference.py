"""Pyro: a regression by variational inference, by NUTS and by exact enumeration; what each predicts."""

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoMultivariateNormal, AutoNormal

pyro.set_rng_seed(0)
rng = np.random.default_rng(0)
x = torch.tensor(rng.standard_normal((60, 2)), dtype=torch.float32)
y = x @ torch.tensor([1.5, -0.7]) + 0.3 + 0.1 * torch.tensor(rng.standard_normal(60), dtype=torch.float32)


def regression(x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
    """Weights, a bias and a width, each with a prior."""
    weights = pyro.sample("weights", dist.Normal(torch.zeros(2), 2.0).to_event(1))
    bias = pyro.sample("bias", dist.Normal(0.0, 2.0))
    width = pyro.sample("width", dist.HalfNormal(1.0))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(x @ weights + bias, width), obs=y)


trace = pyro.poutine.trace(
    pyro.poutine.condition(regression, {"weights": torch.tensor([1.0, -1.0]), "bias": torch.tensor(0.0), "width": torch.tensor(0.5)})
)
print("log density", round(float(trace.get_trace(x, y).log_prob_sum()), 3))
for guide_class in (AutoNormal, AutoMultivariateNormal):
    pyro.clear_param_store()
    guide = guide_class(regression)
    svi = SVI(regression, guide, pyro.optim.ClippedAdam({"lr": 0.05}), Trace_ELBO())
    losses = [svi.step(x, y) for _ in range(300)]
    median = guide.median()
    near = bool((median["weights"] - torch.tensor([1.5, -0.7])).abs().max() < 0.1 and abs(float(median["bias"]) - 0.3) < 0.1)
    print(guide_class.__name__, "loss falls", sum(losses[-20:]) < 0.5 * sum(losses[:20]), "weights are found", near)
predicted = Predictive(regression, guide=guide, num_samples=50)(x)["y"]
print("predictions", tuple(predicted.shape), "are near", bool((predicted.mean(0) - y).abs().mean() < 0.2))

chain = MCMC(NUTS(regression, jit_compile=False), num_samples=40, warmup_steps=40, disable_progbar=True)
chain.run(x, y)
samples = chain.get_samples()
print(
    "nuts",
    {name: tuple(v.shape) for name, v in sorted(samples.items())},
    "near",
    bool((samples["weights"].mean(0) - torch.tensor([1.5, -0.7])).abs().max() < 0.1),
)


@config_enumerate
def mixture(data: torch.Tensor) -> None:
    """Two normals with weights."""
    share = pyro.param("share", torch.tensor([0.3, 0.7]), constraint=dist.constraints.simplex)
    centre = pyro.param("centre", torch.tensor([-1.0, 2.0]))
    with pyro.plate("data", len(data)):
        which = pyro.sample("which", dist.Categorical(share))
        pyro.sample("x", dist.Normal(centre[which], 1.0), obs=data)


pyro.clear_param_store()
loss = TraceEnum_ELBO(max_plate_nesting=1).differentiable_loss(mixture, lambda data: None, y)
loss.backward()
print("enumerated", round(float(loss), 4), *[round(float(v), 4) for v in pyro.param("centre").grad])
