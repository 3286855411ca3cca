"""Findings that docs/differences.md explains: a pattern of how the finding prints, and the line of the page."""

from __future__ import annotations

import re

_LINES: list[tuple[str, str]] = [
    (
        r"pairs: .*raises (GradError|PicklingError|RuntimeError|AttributeError): .*(deepcopy|Can't pickle|Serialization)",
        "PyTorch, too, copies leaves only, and pickles no lambda and no parametrized module",
    ),
    (r"of grad: .*optim.SGD.*foreach=True.*nesterov=True", "PyTorch's foreach form writes to the gradients"),
    (r"torch: (step|dictcomp): values.*optim.(ASGD|NAdam|RAdam)\(.*float64", "PyTorch keeps what it multiplies the step with in float32"),
    (r"dtype: .*(load_state_dict).*", "numbers of an optimizer's state stay float32 here, PyTorch casts them to the parameter's type"),
    (r"conv_transpose\dd: input \(0,.*output_padding", "arguments are checked whatever the number of elements"),
    (r"functional_call.*\| torch: .*is_leaf=False", "PyTorch leaves what it was given in a module that stands twice in another"),
    (r"conv_transpose\dd: .*the output would be", "PyTorch gives no pixels in some types and raises in others"),
    (
        r"VonMises|(variance|stddev|entropy).*tt.distributions.VonMises",
        "VonMises.variance in float64 is the value, PyTorch's that of polynomials for float32",
    ),
    (r"DTypeError: .*takes float types.*\(0", "a type that an op does not take is refused whatever the number of elements"),
    (
        r"torch: \w+: values: .*func.*layer_norm",
        "PyTorch's forward derivative of layer_norm is wrong when it is differentiated backwards; its other three orders agree with ours",
    ),
    (r"NumberRangeError", "a number that the tensor's type cannot hold raises here"),
]

KNOWN = [(re.compile(pattern, re.DOTALL), reason) for pattern, reason in _LINES]
