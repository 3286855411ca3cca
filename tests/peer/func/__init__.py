"""Programs of torch.func that torch and tritensor are given alike."""
