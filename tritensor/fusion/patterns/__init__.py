"""Patterns: chains of calls that programs write by hand, and the library's own ops that take their place."""
