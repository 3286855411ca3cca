"""A variational autoencoder: reparameterisation, reconstruction and KL terms, chunk, exp; noise from numpy."""

import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F

rng = np.random.RandomState(2)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 16)
        self.fc21 = nn.Linear(16, 3)
        self.fc22 = nn.Linear(16, 3)
        self.fc3 = nn.Linear(3, 16)
        self.fc4 = nn.Linear(16, 20)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.as_tensor(rng.randn(*std.shape), dtype=std.dtype)
        return mu + eps * std

    def decode(self, z):
        return self.fc4(F.relu(self.fc3(z)))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 20))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy_with_logits(recon_x, x.view(-1, 20), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


model = VAE()
for p in model.parameters():
    p.data = torch.from_numpy((0.2 * rng.randn(*p.shape)).astype(np.float32))
optimizer = optim.Adam(model.parameters(), lr=1e-2)
data = torch.from_numpy((rng.rand(256, 4, 5) > 0.7).astype("float32"))
loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=False)
for epoch in range(1, 6):
    model.train()
    train_loss = 0
    for batch in loader:
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(batch)
        loss = loss_function(recon_batch, batch, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print("====> Epoch: {} Average loss: {:.3f}".format(epoch, train_loss / len(loader.dataset)))
with torch.no_grad():
    sample = torch.sigmoid(model.decode(torch.from_numpy(rng.randn(8, 3)).float()))
    print(sample.size(), f"{sample.mean():.3f}")
