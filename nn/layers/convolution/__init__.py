"""Layers that convolve rows, images and volumes."""
