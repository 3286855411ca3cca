"""A hidden Markov model: the forward algorithm in log space, Viterbi, and training by gradients; Categorical and Normal."""

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical, Dirichlet, Normal

rng = np.random.RandomState(5)
STATES, LENGTH = 3, 60
true_transition = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]])
states, at = [], 0
for _ in range(LENGTH * 4):
    at = int((true_transition[at].cumsum() < rng.rand()).sum())
    states.append(at)
observed = torch.tensor(np.array([-2.0, 0.0, 2.5])[states] + 0.5 * rng.randn(len(states)), dtype=torch.float32).view(4, LENGTH)
truth = torch.tensor(states).view(4, LENGTH)


class HMM(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(STATES))
        self.transition = nn.Parameter(torch.eye(STATES))
        self.loc = nn.Parameter(torch.tensor([-1.0, 0.2, 1.0]))
        self.log_scale = nn.Parameter(torch.zeros(STATES))

    def emissions(self, x):
        return Normal(self.loc, self.log_scale.exp()).log_prob(x.unsqueeze(-1))

    def forward(self, x):
        start, transition = Categorical(logits=self.start).logits, Categorical(logits=self.transition).logits
        emit = self.emissions(x)
        alpha = start + emit[:, 0]
        for k in range(1, x.shape[1]):
            alpha = torch.logsumexp(alpha.unsqueeze(-1) + transition, dim=1) + emit[:, k]
        return torch.logsumexp(alpha, dim=-1)

    @torch.no_grad()
    def viterbi(self, x):
        transition, emit = Categorical(logits=self.transition).logits, self.emissions(x)
        score, back = Categorical(logits=self.start).logits + emit[:, 0], []
        for k in range(1, x.shape[1]):
            best, arg = (score.unsqueeze(-1) + transition).max(dim=1)
            score = best + emit[:, k]
            back.append(arg)
        path = [score.argmax(-1)]
        for arg in reversed(back):
            path.insert(0, arg.gather(1, path[0].unsqueeze(1)).squeeze(1))
        return torch.stack(path, 1)


model = HMM()
prior = Dirichlet(torch.full((STATES, STATES), 1.1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for step in range(40):
    rows = Categorical(logits=model.transition)
    loss = -model(observed).sum() / observed.numel() - prior.log_prob(rows.probs).sum() / observed.numel()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step} loss {loss.item():.4f}")
print("locations", [round(v, 1) for v in model.loc.tolist()])
print("transition", [[round(v, 2) for v in row] for row in Categorical(logits=model.transition).probs.tolist()])
found = model.viterbi(observed)
print(found.shape, "right:", round((found == truth).float().mean().item(), 2))
chain = Categorical(logits=model.transition)
print(chain, "entropy rates", [round(v, 2) for v in chain.entropy().tolist()])
print(chain.enumerate_support(expand=False).shape, chain.support, chain.log_prob(torch.arange(3)).shape)
