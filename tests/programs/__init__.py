"""Whole programs as public repositories have them, unchanged PyTorch, whose printed results agree here and there."""
