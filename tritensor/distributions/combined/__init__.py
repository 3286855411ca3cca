"""Distributions made of others: independent together, transformed."""
