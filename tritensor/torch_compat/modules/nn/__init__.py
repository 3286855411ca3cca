"""Modules below torch.nn whose paths differ here."""
