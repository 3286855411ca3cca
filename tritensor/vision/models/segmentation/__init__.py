"""torchvision.models.segmentation: networks that give a class to each pixel, with torchvision's signatures and the enums of their published weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor import nn
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.public_api.publish import rename_function
from tritensor.vision.models._utils import IntermediateLayerGetter
from tritensor.vision.models.registry import ENUM_OF, get_model, register_model
from tritensor.vision.models.segmentation.heads import FCN as FCN
from tritensor.vision.models.segmentation.heads import LRASPP as LRASPP
from tritensor.vision.models.segmentation.heads import DeepLabHead, FCNHead
from tritensor.vision.models.segmentation.heads import DeepLabV3 as DeepLabV3
from tritensor.vision.models.weights import ENUMS, SEGMENTATION, make_segmentation_enum

_Parts = tuple[nn.Module, int, int]  # a backbone that gives "out" and "aux", and the channels of the two


def _from_resnet(name: str, weights: Any, aux: bool) -> _Parts:
    resnet = get_model(name, weights=weights, replace_stride_with_dilation=[False, True, True])
    return IntermediateLayerGetter(resnet, {"layer4": "out", **({"layer3": "aux"} if aux else {})}), 2048, 1024


def _from_mobilenet(name: str, weights: Any, aux: bool, names: tuple[str, str] = ("out", "aux")) -> _Parts:
    features: Any = get_model(name, weights=weights, dilated=True).features
    ends = [0, *(i for i, block in enumerate(features) if getattr(block, "_is_cn", False)), len(features) - 1]  # where the size changes
    far, near = ends[-1], ends[-4]
    wanted = {**({str(near): names[1]} if aux else {}), str(far): names[0]}
    return IntermediateLayerGetter(features, wanted), features[far].out_channels, features[near].out_channels


def _make_fcn(parts: _Parts, classes: int, aux: bool) -> nn.Module:
    return FCN(parts[0], FCNHead(parts[1], classes), FCNHead(parts[2], classes) if aux else None)


def _make_deeplab(parts: _Parts, classes: int, aux: bool) -> nn.Module:
    return DeepLabV3(parts[0], DeepLabHead(parts[1], classes), FCNHead(parts[2], classes) if aux else None)


def _publish(
    name: str, backbone: str, take: Callable[..., _Parts], build: Callable[[_Parts, int, bool], nn.Module], has_aux: bool = True
) -> Any:
    enum = ENUMS[next(key for key in SEGMENTATION if key.lower() == f"{name}_weights")]

    def make(
        *, weights: Any = None, progress: bool = True, num_classes: int | None = None, aux_loss: bool | None = None,
        weights_backbone: Any = "IMAGENET1K_V1", **settings: Any,
    ) -> nn.Module:  # fmt: skip
        if aux_loss and not has_aux:
            raise NotImplementedError(f"{name}: This model does not use auxiliary loss; leave aux_loss out")
        chosen = enum.verify(weights)
        if chosen is not None:
            if num_classes not in (None, 21):
                raise ArgumentError(f"The parameter 'num_classes' expected value 21 but got {num_classes} instead.")
            weights_backbone, aux_loss = None, has_aux
        made = build(take(backbone, weights_backbone, bool(aux_loss)), 21 if num_classes is None else num_classes, bool(aux_loss))
        if chosen is not None:
            made.load_state_dict(chosen.get_state_dict(progress=progress, check_hash=True))
        return made

    doc = f"A new {name}; `weights` is a member of {enum.__name__}, weights_backbone one of its backbone's, {backbone}, which is not trained without."
    ENUM_OF[name] = enum
    return register_model(name)(rename_function(make, name, doc))


def _take_both(name: str, weights: Any, aux: bool) -> _Parts:
    return _from_mobilenet(name, weights, True, ("high", "low"))


for _name in SEGMENTATION:
    ENUMS[_name] = make_segmentation_enum(_name)
globals().update({_name: ENUMS[_name] for _name in SEGMENTATION})
fcn_resnet50 = _publish("fcn_resnet50", "resnet50", _from_resnet, _make_fcn)
fcn_resnet101 = _publish("fcn_resnet101", "resnet101", _from_resnet, _make_fcn)
deeplabv3_resnet50 = _publish("deeplabv3_resnet50", "resnet50", _from_resnet, _make_deeplab)
deeplabv3_resnet101 = _publish("deeplabv3_resnet101", "resnet101", _from_resnet, _make_deeplab)
deeplabv3_mobilenet_v3_large = _publish("deeplabv3_mobilenet_v3_large", "mobilenet_v3_large", _from_mobilenet, _make_deeplab)
lraspp_mobilenet_v3_large = _publish(
    "lraspp_mobilenet_v3_large",
    "mobilenet_v3_large",
    _take_both,
    lambda parts, classes, aux: LRASPP(parts[0], parts[2], parts[1], classes),
    has_aux=False,
)
