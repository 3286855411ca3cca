"""A generative adversarial network on vectors: two optimizers, detach, binary cross-entropy on logits."""

import numpy as np
import torch
from torch import nn, optim

rng = np.random.RandomState(1)
latent, hidden, size, batch = 4, 16, 6, 32
D = nn.Sequential(nn.Linear(size, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 1))
G = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, size), nn.Tanh())


def init_weights(m):
    if isinstance(m, nn.Linear):
        m.weight.data.copy_(torch.from_numpy(0.2 * rng.randn(*m.weight.shape)))
        m.bias.data.fill_(0.01)


D.apply(init_weights)
G.apply(init_weights)
criterion = nn.BCEWithLogitsLoss()
d_optimizer = optim.Adam(D.parameters(), lr=0.002, betas=(0.5, 0.999))
g_optimizer = optim.Adam(G.parameters(), lr=0.002, betas=(0.5, 0.999))
real_labels, fake_labels = torch.ones(batch, 1), torch.zeros(batch, 1)

for step in range(60):
    real = torch.tensor(np.tanh(rng.randn(batch, size) + 0.5), dtype=torch.float32)
    z = torch.from_numpy(rng.randn(batch, latent)).float()
    fake = G(z)
    d_loss_real = criterion(D(real), real_labels)
    d_loss_fake = criterion(D(fake.detach()), fake_labels)
    d_loss = d_loss_real + d_loss_fake
    d_optimizer.zero_grad()
    d_loss.backward()
    d_optimizer.step()
    g_loss = criterion(D(fake), real_labels)
    g_optimizer.zero_grad(set_to_none=True)
    g_loss.backward()
    g_optimizer.step()
    if (step + 1) % 20 == 0:
        print("Step [{}], d_loss: {:.4f}, g_loss: {:.4f}".format(step + 1, d_loss.item(), g_loss.item()))
print(D(G(z)).sigmoid().mean().item() < 1, sum(p.numel() for p in G.parameters() if p.requires_grad))
