"""Arrays as rows, tiles of rows, and the softmax of a row, which several families walk in."""
