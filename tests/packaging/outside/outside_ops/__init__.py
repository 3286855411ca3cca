"""Ops of another package than tritensor; its entry points name the modules that register them."""
