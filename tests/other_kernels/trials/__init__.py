"""The trials, a file for each project."""
