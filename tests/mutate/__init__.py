"""Mutation testing: one bug at a time is planted in a copy of the tree, and the tests must find it."""
