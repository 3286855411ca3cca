"""Convolution on a GPU: which kernel takes a call, products over blocks of channels, products that gather single cells, depthwise sums."""
