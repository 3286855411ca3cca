"""Stand-in of PyTorch that pip believes: packages on disk whose import gives tritensor."""
