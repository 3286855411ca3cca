"""ONNX export tutorial's shape: legacy and dynamo forms, names and dynamic axes, checked by onnx, run by its reference evaluator."""

import io
import os
import tempfile

import numpy as np
import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.onnx
from onnx.reference import ReferenceEvaluator


class SuperResolutionNet(nn.Module):
    def __init__(self, upscale_factor, inplace=False):
        super().__init__()
        self.relu = nn.ReLU(inplace=inplace)
        self.conv1 = nn.Conv2d(1, 8, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(8, upscale_factor**2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        self._initialize_weights()

    def forward(self, x):
        return self.pixel_shuffle(self.conv2(self.relu(self.conv1(x))))

    def _initialize_weights(self):
        nn.init.orthogonal_(self.conv1.weight, nn.init.calculate_gain("relu"))
        nn.init.orthogonal_(self.conv2.weight)


class Image(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 5)
        self.fc1 = nn.Linear(4 * 6 * 6, 10)

    def forward(self, x: torch.Tensor):
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
        return self.fc1(torch.flatten(x, 1))


def to_numpy(tensor):
    return tensor.detach().cpu().numpy() if tensor.requires_grad else tensor.cpu().numpy()


where = tempfile.mkdtemp()
torch_model = SuperResolutionNet(upscale_factor=3, inplace=True)
torch_model.eval()
x = torch.randn(1, 1, 12, 12, requires_grad=True)
torch_out = torch_model(x)
path = os.path.join(where, "super.onnx")
torch.onnx.export(
    torch_model,
    x,
    path,
    export_params=True,
    opset_version=17,
    do_constant_folding=True,
    input_names=["input"],
    output_names=["output"],
    dynamic_axes={"input": {0: "batch_size"}, "output": {0: "batch_size"}},
    dynamo=False,
)
model = onnx.load(path)
onnx.checker.check_model(model)
print([i.name for i in model.graph.input], [o.name for o in model.graph.output], model.opset_import[0].version)
print([d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim])
print({"conv1.bias", "conv1.weight", "conv2.bias", "conv2.weight"} <= {i.name for i in model.graph.initializer})
session = ReferenceEvaluator(model)
np.testing.assert_allclose(to_numpy(torch_out), session.run(None, {"input": to_numpy(x)})[0], rtol=1e-3, atol=1e-5)
five = torch.randn(5, 1, 12, 12)
np.testing.assert_allclose(to_numpy(torch_model(five)), session.run(None, {"input": to_numpy(five)})[0], rtol=1e-3, atol=1e-5)
buffer = io.BytesIO()
net = Image().eval()
torch.onnx.export(net, (torch.randn(1, 1, 16, 16),), buffer, dynamo=False)
print(len(onnx.load_from_string(buffer.getvalue()).graph.node) > 3)


class Two(nn.Module):
    def forward(self, a, b=None, scale=2.0):
        if b is None:
            return a * scale
        return a + b, a - b


torch.onnx.export(Two(), (torch.ones(2), torch.ones(2)), path, input_names=["a", "b"], output_names=["sum", "difference"], dynamo=False)
print([o.name for o in onnx.load(path).graph.output])
torch.onnx.export(Two(), (torch.ones(2), {"b": torch.ones(2)}), path, dynamo=False)
print(len(onnx.load(path).graph.input))
torch.onnx.export(Two(), (torch.ones(2),), path, kwargs={"b": torch.ones(2)}, dynamo=False)
print(len(onnx.load(path).graph.input))
print(torch.onnx.is_in_onnx_export(), torch.onnx.TrainingMode.EVAL, torch.onnx.OperatorExportTypes.ONNX)
