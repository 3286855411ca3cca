"""Random programs of every kind that people write, run and judged; what fails is shrunk to a script (python -m tests.fuzz)."""
