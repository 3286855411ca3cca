"""A deep convolutional GAN: generator with transposed convolutions, discriminator, weights set by module, one-sided label smoothing."""

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(999)
nz, ngf, ndf = 8, 8, 8


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, x):
        return self.main(x).view(-1, 1).squeeze(1)


rng = np.random.default_rng(0)


def weights_init(m):
    name = m.__class__.__name__
    if name.find("Conv") != -1:
        m.weight.data.copy_(torch.from_numpy(0.1 * rng.standard_normal(tuple(m.weight.shape))))
    elif name.find("BatchNorm") != -1:
        m.weight.data.fill_(1.0)
        m.bias.data.fill_(0)


G, D = Generator(), Discriminator()
G.apply(weights_init)
D.apply(weights_init)
criterion = nn.BCELoss()
optimizerD = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.999))
real = torch.tensor(np.sign(rng.standard_normal((16, 1, 1, 16))) * np.ones((16, 1, 16, 16)) * 0.8, dtype=torch.float32)
for step in range(6):
    noise = torch.tensor(rng.standard_normal((16, nz, 1, 1)), dtype=torch.float32)
    D.zero_grad()
    label = torch.full((16,), 0.9, dtype=torch.float)
    errD_real = criterion(D(real), label)
    errD_real.backward()
    fake = G(noise)
    errD_fake = criterion(D(fake.detach()), label.fill_(0.0))
    errD_fake.backward()
    optimizerD.step()
    G.zero_grad()
    output = D(fake)
    errG = criterion(output, torch.ones_like(output))
    errG.backward()
    optimizerG.step()
    print(f"[{step}] Loss_D: {(errD_real + errD_fake).item():.3f} Loss_G: {errG.item():.3f} D(G(z)): {output.mean().item():.3f}")
print(tuple(G(noise).shape), G.main[1].num_batches_tracked)
