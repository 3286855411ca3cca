"""torchvision.models._api: networks and weights by name."""

from tritensor.vision.models.registry import BUILTIN_MODELS as BUILTIN_MODELS
from tritensor.vision.models.registry import get_model as get_model
from tritensor.vision.models.registry import get_model_builder as get_model_builder
from tritensor.vision.models.registry import get_model_weights as get_model_weights
from tritensor.vision.models.registry import get_weight as get_weight
from tritensor.vision.models.registry import list_models as list_models
from tritensor.vision.models.registry import register_model as register_model
from tritensor.vision.models.weights import Weights as Weights
from tritensor.vision.models.weights import WeightsEnum as WeightsEnum
