"""Functions that reduce windows of rows, images and volumes."""
