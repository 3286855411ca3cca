"""Normalisations of channels with the activation behind them, and what is added between the two."""
