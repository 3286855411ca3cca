"""Translations of ops to ONNX, a file for each family."""

from tritensor.onnx.translations import activations as activations
from tritensor.onnx.translations import arithmetic as arithmetic
from tritensor.onnx.translations import comparison as comparison
from tritensor.onnx.translations import creation as creation
from tritensor.onnx.translations import images as images
from tritensor.onnx.translations import indexing as indexing
from tritensor.onnx.translations import losses as losses
from tritensor.onnx.translations import normalization as normalization
from tritensor.onnx.translations import pooling as pooling
from tritensor.onnx.translations import products as products
from tritensor.onnx.translations import recurrent as recurrent
from tritensor.onnx.translations import reductions as reductions
from tritensor.onnx.translations import shaping as shaping
