"""Probes: wrappers around calls while a profile is on. Each takes a recording and the patches that put everything back."""
