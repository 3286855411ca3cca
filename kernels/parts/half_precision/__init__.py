"""What kernels of 16-bit results are made of: approximate functions whose errors the rounding covers, and formulas made of them."""
