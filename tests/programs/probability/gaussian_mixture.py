"""A mixture of Gaussians: by expectation maximisation, then by gradients of MixtureSameFamily.log_prob."""

import numpy as np
import torch
import torch.distributions as D

rng = np.random.RandomState(0)
true_means = np.array([[-2.0, 0.0], [2.0, 1.0], [0.0, 4.0]])
x = torch.tensor(true_means[rng.randint(3, size=300)] + 0.5 * rng.randn(300, 2), dtype=torch.float64)

# --- EM with full covariances
K = 3
weights = torch.full((K,), 1.0 / K, dtype=torch.float64)
means = x[[0, 1, 5]].clone()
covs = torch.eye(2, dtype=torch.float64).repeat(K, 1, 1)
for step in range(12):
    components = D.MultivariateNormal(means, covs)
    log_joint = components.log_prob(x.unsqueeze(1)) + weights.log()
    log_evidence = torch.logsumexp(log_joint, dim=1)
    resp = (log_joint - log_evidence.unsqueeze(1)).exp()
    n = resp.sum(0)
    weights = n / n.sum()
    means = (resp.T @ x) / n.unsqueeze(1)
    off = x.unsqueeze(1) - means
    covs = torch.einsum("nk,nki,nkj->kij", resp, off, off) / n.view(-1, 1, 1) + 1e-6 * torch.eye(2, dtype=torch.float64)
    if step % 3 == 2:
        print(f"step {step} log-likelihood {log_evidence.mean().item():.4f}")
order = means[:, 0].argsort()
print("weights", [round(v, 3) for v in weights[order].tolist()])
print("means", [[round(v, 2) for v in row] for row in means[order].tolist()])

# --- the same by gradients
logits = torch.zeros(K, dtype=torch.float64, requires_grad=True)
loc = x[[0, 1, 5]].clone().requires_grad_(True)
log_scale = torch.zeros(K, 2, dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.Adam([logits, loc, log_scale], lr=0.05)
for step in range(80):
    gmm = D.MixtureSameFamily(D.Categorical(logits=logits), D.Independent(D.Normal(loc, log_scale.exp()), 1))
    loss = -gmm.log_prob(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(f"step {step} loss {loss.item():.4f}")
gmm = D.MixtureSameFamily(D.Categorical(logits=logits), D.Independent(D.Normal(loc, log_scale.exp()), 1))
print(gmm)
print("mean", [round(v, 3) for v in gmm.mean.tolist()], "variance", [round(v, 3) for v in gmm.variance.tolist()])
torch.manual_seed(0)
drawn = gmm.sample((4000,))
print(drawn.shape, bool(((drawn.mean(0) - gmm.mean).abs() < 0.15).all()))
one = D.MixtureSameFamily(D.Categorical(torch.tensor([0.3, 0.7])), D.Normal(torch.tensor([-1.0, 1.0]), torch.tensor([0.5, 1.0])))
print([round(v, 4) for v in one.cdf(torch.tensor([-1.0, 0.0, 2.0])).tolist()], one.support, one.expand((2,)).batch_shape)
