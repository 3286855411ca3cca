"""Names of older scripts in torch.autograd, beside those that tritensor/autograd has."""
