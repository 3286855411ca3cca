"""Continuous distributions of one number."""
