"""Captum: what each input gave to a classifier's answer, by gradients, by paths, by leaving out, and in a hidden layer."""

import numpy as np
import torch
from captum.attr import (
    DeepLift,
    FeatureAblation,
    GradientShap,
    InputXGradient,
    IntegratedGradients,
    KernelShap,
    LayerConductance,
    NeuronConductance,
    Occlusion,
    Saliency,
)
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3), nn.Softmax(dim=1))
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.tensor(0.8 * rng.standard_normal(tuple(p.shape))))
model.eval()
inputs = torch.tensor(rng.standard_normal((2, 4)), dtype=torch.float32)
baseline = torch.zeros(2, 4)


def shown(x: torch.Tensor) -> list[float]:
    """Rounded numbers."""
    return [round(float(v), 4) for v in x.detach().flatten()]


found, delta = IntegratedGradients(model).attribute(inputs, baseline, target=1, n_steps=50, return_convergence_delta=True)
print("integrated", *shown(found))
print("is complete", bool((delta.abs() < 1e-2).all()))
print("saliency", *shown(Saliency(model).attribute(inputs, target=1)))
print("input x gradient", *shown(InputXGradient(model).attribute(inputs, target=1)))
print("deep lift", *shown(DeepLift(model).attribute(inputs, baseline, target=1)))
print("ablation", *shown(FeatureAblation(model).attribute(inputs, target=1)))
print("occlusion", *shown(Occlusion(model).attribute(inputs, sliding_window_shapes=(2,), target=1)))
print("layer", *shown(LayerConductance(model, model[1]).attribute(inputs, baselines=baseline, target=1)))
print("neuron", *shown(NeuronConductance(model, model[1]).attribute(inputs, neuron_selector=2, baselines=baseline, target=1)))
print("gradient shap", tuple(GradientShap(model).attribute(inputs, baselines=baseline, target=1, n_samples=8).shape))
print("kernel shap", tuple(KernelShap(model).attribute(inputs[:1], target=1, n_samples=30).shape))
