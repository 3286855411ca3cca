"""Ops that make arrays from numbers."""
