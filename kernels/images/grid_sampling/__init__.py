"""Sampling images and volumes at the positions of a grid."""
