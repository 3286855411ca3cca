"""Distributions made of gamma numbers: gamma, chi-squared, beta, Dirichlet, Fisher-Snedecor."""
