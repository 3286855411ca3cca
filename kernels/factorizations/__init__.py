"""Factorizations of matrices and what rests on them, on the host: triangles, LU, Cholesky, QR, singular values, eigenvalues, exponentials."""
