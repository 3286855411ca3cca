"""torchvision.models.feature_extraction: networks cut at nodes of their traced graph. Nothing is traced here, and calling says so."""

from __future__ import annotations

from typing import Any, NoReturn

_INSTEAD = "hooks of the modules, module.register_forward_hook, give what they compute"


def create_feature_extractor(model: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    raise NotImplementedError(
        f"create_feature_extractor: cutting a network needs torch.fx to trace it, which is not in tritensor; {_INSTEAD}"
    )


def get_graph_node_names(model: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError."""
    raise NotImplementedError(f"get_graph_node_names: a network's nodes need torch.fx to trace it, which is not in tritensor; {_INSTEAD}")
