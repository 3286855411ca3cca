"""torch_dispatch: classes and modes below autograd, whose `__torch_dispatch__` is handed every op by PyTorch's name of it."""
