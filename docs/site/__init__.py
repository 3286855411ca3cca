"""The site: Sphinx over docs/, a reference made of docstrings, notebooks that are run, and what is asked of the result. `make docs` builds it."""
