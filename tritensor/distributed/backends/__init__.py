"""Backends that carry bytes between processes: one interface, a folder for each library that does it."""
