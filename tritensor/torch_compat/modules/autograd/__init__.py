"""What torch.autograd has beside what stands in tritensor/autograd: names of older scripts."""
