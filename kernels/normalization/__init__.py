"""Normalisations: softmax, layer, root mean square, batch and group normalisation, alone and with what follows or precedes them."""
