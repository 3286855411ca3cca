"""Fourier transforms, and windows of a signal added up."""
