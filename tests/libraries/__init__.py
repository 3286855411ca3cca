"""Public libraries of PyTorch under the stand-in: a quick start of each beside torch, and their own test suites under both."""
