"""Losses: how far an output is from its target, as one number or one each."""
