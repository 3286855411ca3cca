"""The pages of docs/ that are written by a tool, and the test that they are fresh."""
