"""A Wasserstein GAN's critic with a gradient penalty: autograd.grad with create_graph, a norm over dimensions, two backwards."""

import numpy as np
import torch
import torch.autograd as autograd
import torch.nn as nn

rng = np.random.RandomState(5)
torch.set_default_dtype(torch.float64)


def draw(*shape):
    return torch.from_numpy(rng.randn(*shape))


critic = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Softplus(), nn.Linear(16, 1))
generator = nn.Sequential(nn.Linear(3, 16), nn.ELU(), nn.Linear(16, 2))
for net in (critic, generator):
    for p in net.parameters():
        p.data = 0.3 * draw(*p.shape)


def compute_gradient_penalty(D, real_samples, fake_samples):
    alpha = torch.from_numpy(rng.rand(real_samples.size(0), 1))
    interpolates = (alpha * real_samples + ((1 - alpha) * fake_samples)).requires_grad_(True)
    d_interpolates = D(interpolates)
    fake = torch.ones(real_samples.shape[0], 1)
    gradients = autograd.grad(
        outputs=d_interpolates, inputs=interpolates, grad_outputs=fake, create_graph=True, retain_graph=True, only_inputs=True
    )[0]
    gradients = gradients.view(gradients.size(0), -1)
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


optimizer_D = torch.optim.Adam(critic.parameters(), lr=0.01, betas=(0.5, 0.9))
optimizer_G = torch.optim.Adam(generator.parameters(), lr=0.01, betas=(0.5, 0.9))
for i in range(24):
    real = draw(32, 2) * 0.5 + torch.tensor([1.0, -1.0])
    fake = generator(draw(32, 3))
    penalty = compute_gradient_penalty(critic, real.data, fake.data)
    d_loss = -torch.mean(critic(real)) + torch.mean(critic(fake.detach())) + 10 * penalty
    optimizer_D.zero_grad()
    d_loss.backward()
    optimizer_D.step()
    if i % 4 == 0:
        g_loss = -torch.mean(critic(generator(draw(32, 3))))
        optimizer_G.zero_grad()
        g_loss.backward()
        optimizer_G.step()
    if i % 8 == 7:
        print("[Batch %d] [D loss: %.6f] [G loss: %.6f] [penalty: %.6f]" % (i, d_loss.item(), g_loss.item(), penalty.item()))
print(torch.get_default_dtype() == torch.float64, critic[0].weight.grad.norm().item() > 0)
torch.set_default_dtype(torch.float32)
