"""TorchMetrics: classification, regression, retrieval, images and detection; collections, averages over batches, wrappers."""

import numpy as np
import torch
import torchmetrics
from torchmetrics.classification import MulticlassAUROC, MulticlassAveragePrecision, MulticlassCalibrationError, MulticlassConfusionMatrix
from torchmetrics.detection import IntersectionOverUnion
from torchmetrics.functional.image import structural_similarity_index_measure
from torchmetrics.wrappers import BootStrapper, ClasswiseWrapper, MinMaxMetric

torch.manual_seed(0)
rng = np.random.default_rng(0)
scores = torch.from_numpy(rng.random((3, 40, 4)).astype(np.float32)).softmax(-1)
labels = torch.from_numpy(rng.integers(0, 4, (3, 40)))
together = torchmetrics.MetricCollection({
    "accuracy": torchmetrics.Accuracy("multiclass", num_classes=4), "f1": torchmetrics.F1Score("multiclass", num_classes=4, average="macro"),
    "auroc": MulticlassAUROC(4), "ap": MulticlassAveragePrecision(4), "ece": MulticlassCalibrationError(4),
})  # fmt: skip
for p, t in zip(scores, labels, strict=True):
    together.update(p, t)
for name, value in together.compute().items():
    print(name, round(float(value), 4))
print("matrix", MulticlassConfusionMatrix(4)(scores[0], labels[0]).diagonal().tolist())
each = ClasswiseWrapper(torchmetrics.Recall("multiclass", num_classes=4, average=None))
print("recall", [round(float(v), 4) for v in each(scores[1], labels[1]).values()])
x, y = torch.from_numpy(rng.standard_normal((2, 50)).astype(np.float32))
for metric in (torchmetrics.MeanSquaredError(), torchmetrics.PearsonCorrCoef(), torchmetrics.SpearmanCorrCoef(), torchmetrics.R2Score()):
    print(type(metric).__name__, round(float(metric(x, y)), 4))
kept = MinMaxMetric(torchmetrics.MeanAbsoluteError())
for k in range(3):
    last = kept(x[k::3], y[k::3])
print("least and most", round(float(last["min"]), 4), round(float(last["max"]), 4))
found = torchmetrics.RetrievalMAP()(
    torch.tensor([0.2, 0.3, 0.5, 0.1, 0.3]), torch.tensor([False, True, False, True, False]), indexes=torch.tensor([0, 0, 0, 1, 1])
)
print("map", round(float(found), 4))
images = torch.from_numpy(rng.random((2, 2, 3, 24, 24)).astype(np.float32))
print("ssim", round(float(structural_similarity_index_measure(images[0], (images[0] + 0.1 * images[1]).clamp(0, 1), data_range=1.0)), 4))
boxes = torch.tensor([[10.0, 10, 30, 30], [5, 5, 20, 25]])
iou = IntersectionOverUnion()([{"boxes": boxes, "labels": torch.tensor([0, 1])}], [{"boxes": boxes + 3, "labels": torch.tensor([0, 1])}])
print("iou", round(float(iou["iou"]), 4))
drawn = BootStrapper(torchmetrics.MeanAbsoluteError(), num_bootstraps=5)
drawn.update(x, y)
print("bootstrapped", sorted(drawn.compute()))
