"""sbi: a posterior learned from simulations by neural posterior estimation, and samples of it."""

import numpy as np
import torch
from sbi.inference import NPE
from sbi.utils import BoxUniform

torch.manual_seed(0)
np.random.seed(0)
prior = BoxUniform(low=-2 * torch.ones(2), high=2 * torch.ones(2))
theta = prior.sample((600,))
data = theta + 0.1 * torch.randn(600, 2)
inference = NPE(prior=prior, show_progress_bars=False, density_estimator="mdn")
estimator = inference.append_simulations(theta, data).train(max_num_epochs=40, training_batch_size=100, learning_rate=5e-3)
posterior = inference.build_posterior(estimator)
samples = posterior.sample((200,), x=torch.tensor([0.5, -0.5]), show_progress_bars=False)
print("samples", tuple(samples.shape), "near", bool((samples.mean(0) - torch.tensor([0.5, -0.5])).abs().max() < 0.4))
print("inside the prior", bool((samples.abs() <= 2).all()))
print("densities", tuple(posterior.log_prob(samples[:5], x=torch.tensor([0.5, -0.5])).shape))
