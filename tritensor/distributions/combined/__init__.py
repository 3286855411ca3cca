"""Distributions made of other distributions: Independent and TransformedDistribution."""
