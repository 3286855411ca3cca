"""Random draws: ops that draw numbers."""
