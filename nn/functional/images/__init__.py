"""Functions of images: patches as columns, other sizes, values between pixels."""
