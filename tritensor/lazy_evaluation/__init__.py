"""Lazy evaluation: ops are noted as they are called, and what leads to a value is computed when somebody asks for it."""
