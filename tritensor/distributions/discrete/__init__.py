"""Discrete distributions."""
