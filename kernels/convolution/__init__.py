"""Convolutions, a folder each."""
