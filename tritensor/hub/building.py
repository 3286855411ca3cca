"""Networks by a name or a config: from tritensor.models or an installed package, never from a repository."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from tritensor import models
from tritensor.ground.errors import ArgumentError, CheckpointError
from tritensor.models.gpt2 import GPT2, GPT2Config
from tritensor.models.installed import find_installed, list_entry_points


def list_own_models() -> list[str]:
    """The names of the functions of tritensor.models that make a network."""
    return sorted(n for n, v in vars(models).items() if inspect.isfunction(v) and not n.startswith("_"))


def list_models() -> list[str]:
    """The names of models here, and of installed packages' entry points."""
    return sorted({*list_own_models(), *list_entry_points()})


def find_maker(model: str | Callable[..., Any]) -> Callable[..., Any]:
    """The function or class that makes the network of a name: one of tritensor.models, or of an installed package; a function or class is taken as it is.

    Raises ValueError for another name, PluginError for a package that cannot be imported.
    """
    if callable(model):  # nothing is looked up by name, so nothing of a package is imported
        return model
    if model in list_own_models():
        return getattr(models, model)  # type: ignore[no-any-return]
    found = find_installed(model)
    if found is None:
        near = difflib.get_close_matches(model, list_models(), 1)
        hint = f"; {near[0]!r} is there" if near else ""
        raise ArgumentError(
            f"hub: no model {model!r} in tritensor.models, nor by an entry point of the group 'tritensor.models' in an installed package{hint}; "
            "give the class itself, or install its package. No code of a repository is run"
        )
    return found


def build_network(
    model: str | Callable[..., Any] | None, config: Mapping[str, Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any], elements: int
) -> Any:  # fmt: skip
    """The network: by the arguments where there are some, else by the config: of its class's `from_config(config)`, or of an architecture known here.

    `elements` is the number of elements of the weights: a config that asks for more is not followed.

    Raises ValueError for a config that names nothing known here, and nothing else is given.
    """
    if model is None:
        if config is None:
            raise ArgumentError("hub.load: there is no config.json, and model= does not say what the weights are of")
        return _build_by_config(config, args, kwargs, elements)
    make = find_maker(model)
    from_config = getattr(make, "from_config", None)
    if config is not None and callable(from_config) and not args and not kwargs:  # arguments of the caller say more than the file
        return from_config(dict(config))
    known = _ARCHITECTURES.get(str(getattr(make, "__name__", "")).lower())
    if config is not None and known is not None and not args and not kwargs and config.get("model_type") == known[0]:
        return known[1](config, elements)
    return make(*args, **kwargs)


def _build_by_config(config: Mapping[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any], elements: int) -> Any:
    kind = config.get("model_type")
    for known, (model_type, make) in _ARCHITECTURES.items():
        if kind == model_type:
            return make(config, elements) if not args and not kwargs else find_maker(known)(*args, **kwargs)
    name = config.get("architecture")
    if isinstance(name, str) and name in list_models():
        if not args and not kwargs and isinstance(config.get("num_classes"), int):
            kwargs = {"num_classes": config["num_classes"]}
        return build_network(name, config, args, kwargs, elements)
    given = {k: config[k] for k in ("model_type", "architectures", "architecture") if k in config}
    raise ArgumentError(
        f"hub.load: config.json says {given or 'no model_type'}, which is not known here; give model=, one of {', '.join(list_models())}"
    )


def _build_gpt2(config: Mapping[str, Any], elements: int) -> GPT2:
    """GPT-2 of a published config.json. Raises ValueError where it asks for what GPT2 has not, CheckpointError for more parameters than there are."""
    n_embd = config.get("n_embd", 768)
    for key, allowed in (
        ("activation_function", ("gelu_new", "gelu_pytorch_tanh")),
        ("n_inner", (None, 4 * n_embd)),
        ("scale_attn_weights", (True,)),
        ("scale_attn_by_inverse_layer_idx", (False,)),
        ("add_cross_attention", (False,)),
    ):
        if key in config and config[key] not in allowed:
            raise ArgumentError(f"hub.load: config.json: {key} is {config[key]!r}; models.GPT2 has {' or '.join(map(repr, allowed))}")
    given = {k: config[k] for k in ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "layer_norm_epsilon") if k in config}
    wrong = [k for k, v in given.items() if type(v) not in ((int, float) if k == "layer_norm_epsilon" else (int,)) or v <= 0]
    if wrong:
        raise ArgumentError(f"hub.load: config.json: {wrong[0]} is {given[wrong[0]]!r}; give a number above 0")
    sizes = GPT2Config(**given, dropout=config.get("resid_pdrop", GPT2Config.dropout))
    width = sizes.n_embd  # counted before anything is made: a config could ask for more memory than there is
    needed = (sizes.vocab_size + sizes.n_positions + 2) * width + sizes.n_layer * (12 * width + 13) * width
    if needed > elements:
        raise CheckpointError(
            f"hub: config.json describes a GPT-2 of {needed:,} parameters, and the weights hold {elements:,}; they are of two models"
        )
    return GPT2(sizes)


# By the name of the function here: the model_type of published configs, and the function that makes the network of one.
_ARCHITECTURES: dict[str, tuple[str, Callable[[Mapping[str, Any], int], Any]]] = {"gpt2": ("gpt2", _build_gpt2)}
