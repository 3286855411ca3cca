"""Findings that are no faults: a pattern of how the finding prints, and the reason. Most stand in docs/differences.md."""

from __future__ import annotations

import re

_LINES: list[tuple[str, str]] = [
    (
        r"pairs: .*raises (GradError|PicklingError|RuntimeError|AttributeError): .*(deepcopy|Can't pickle|Serialization)",
        "PyTorch, too, copies leaves only, and pickles no lambda and no parametrized module",
    ),
    (r"of grad: .*optim.SGD.*foreach=True.*nesterov=True", "PyTorch's foreach form writes to the gradients"),
    (
        r"torch: (step|dictcomp): values(?=.*float64).*optim.(ASGD|NAdam|RAdam)\(",
        "PyTorch keeps what it multiplies the step with in float32",
    ),
    (
        r"^torch: \w+: dtype: of state in .*optim\.(ASGD|NAdam)\(.*load_state_dict",
        "mu_product of NAdam, eta and mu of ASGD are float32 after loading, too, PyTorch casts them to the parameter's type",
    ),
    (r"conv_transpose\dd: input \(0,.*output_padding", "arguments are checked whatever the number of elements"),
    (r"functional_call.*\| torch: .*is_leaf=False", "PyTorch leaves what it was given in a module that stands twice in another"),
    (r"conv_transpose\dd: .*the output would be", "PyTorch gives no pixels in some types and raises in others"),
    (
        r"^torch: (log_prob|variance|stddev|entropy|backward|grad): values(?=.*float64).*VonMises\(",
        "VonMises.variance in float64 is the value, PyTorch's that of polynomials for float32",
    ),
    (r"DTypeError: .*takes float types.*(\(0|, 0\)|nonzero)", "a type that an op does not take is refused whatever the number of elements"),
    (
        r"^torch: \w+: values: .*\bfunc\.\w+\(.*layer_norm",
        "PyTorch's forward derivative of layer_norm is wrong when it is differentiated backwards; its other three orders agree with ours",
    ),
    (
        r"^torch: (backward|grad): values of grad: .*\| torch: [^|]*(nan|inf).*Kumaraswamy\(",
        "PyTorch's gradient overflows where x ** a is small",
    ),
    (r"^torch: mode: values: .*\| torch: [^|]*nan.*Kumaraswamy\(", "Kumaraswamy.mode is the mode"),
    (r"torch: median: values: .*(expand|broadcast_to|as_strided)", "PyTorch reads memory behind an expanded tensor"),
    (r"a view of a leaf Variable.*detach_\(", "a view that is written to, of a leaf that has left the graph since"),
    (r"interpolate: .*every size must be at least 1", "arguments are checked; PyTorch lets areas of no pixels pass"),
    (r"holds\d is False: .*(0\.001|1e-3|0\.25|30\.0|100\.0)", "draws that no number of the type can be are 0 or infinite"),
    (
        r"torch: (backward|grad): values(?=.*\binf\b).*(prod|cumprod)",
        "0 times an infinite product: IEEE's NaN here, PyTorch's zeros where two elements are 0",
    ),
    (r"^float64: \w+: values.*\bnan_to_num_?\(", "the largest number is that of the type"),
    (
        r"^torch: (mode|mean|logits|probs|stddev|variance): flags: .*tt\.distributions\.",
        "what a distribution was given comes back as a view",
    ),
    (
        r"torch: (log_prob|backward|entropy|variance|mean|stddev|logits|cdf|icdf): values(?=.*(Bernoulli|Binomial|Categorical|Geometric|Multinomial)\()"
        r"(?=.*probs = tt.tensor\([^|]*(1\.0|0\.0|1e-06|0\.999999))",
        "a probability of 0 or 1 is taken as it is; PyTorch moves it by the type's rounding",
    ),
    (
        r"pairs: .*leaf that requires grad.*cannot be written",
        "functions that write to what they are given are refused by backward derivatives in both libraries",
    ),
    (
        r"torch: (log_prob|variance|stddev|entropy|backward|mean): .*logits = tt.tensor\(.*(30\.0|100\.0)",
        "PyTorch computes 1 - p of a p that has been rounded to 1",
    ),
    (
        r"contiguous: flags: .*\(0|contiguous: flags: .*, 0|: shape: (?=.*contiguous\(memory_format)(?=.*(\(0|, 0)).*_\(",
        "a tensor of no elements has every order already",
    ),
    (r"^torch: \w+: values(?=.*float64).*hardsigmoid", "PyTorch multiplies by a sixth that is rounded to float32"),
    (
        r"torch: \w+: values.*ContinuousBernoulli\(logits",
        "what follows from logits is computed of logits; PyTorch rounds the probability first",
    ),
    (r"torch: vmap: values: .*contiguous\(\)", "contiguous() under vmap is that of an example here, of the whole batch in PyTorch"),
    (r"^torch: gelu: values: .*(\binf\b|\(0,\).*logsumexp)", "gelu(inf) and gelu(-inf) are the limits"),
    (r"^torch: (backward|grad): values.*\.data\b.*_\(", "what is written through .data, PyTorch reads anew in backward"),
    (r"^torch: (backward|grad): values.*register_hook.*no_grad", "a view written under no_grad keeps its hooks"),
    (
        r"^torch: grad: raises RuntimeError in tritensor alone: .*the graph through mul was freed.*(deg2rad|rad2deg)",
        "a product with a number keeps it",
    ),
    (
        r"^torch: interpolate: values(?=[^|]*\|.*float\d\d\([^)]*, 1\)).*antialias=True",
        "PyTorch's antialiased rows of one column are all its first pixel",
    ),
    (
        r"^torch: \w+: flags: [^|]*\| tritensor: [^|]*, requires_grad \| torch: [^|]*, requires_grad, in a graph(?=.*requires_grad_\(\))",
        "a view that was written before its base came to require grad leads nowhere until it is written again",
    ),
    (
        r"^torch: \w+: raises RuntimeError in torch alone: .*is a view and is being modified inplace(?=.*\bfunc\.)",
        "PyTorch refuses a write to one of several views in a graph that is differentiated no further",
    ),
    (r"^torch: \w+: strides: .*\.unfold\(", "of windows that overlap by all but one element either dimension may lie outside"),
    (
        r"^torch: scaled_dot_product_attention: strides(?=[^|]*\|.*float\d\d\([^)]*, 1\)).*channels_last",
        "heads of one number lie in two orders at once",
    ),
    (
        r"^torch: (step|dictcomp): values.*optim\.RMSprop\((?=.*weight_decay)(?=.*-0\.25)(?=.*\b2\.5\b)",
        "a gradient that weight decay cancels but for a rounding, which RMSprop divides by its own size",
    ),
    (
        r"^torch: lp_pool2d: strides: .*channels_last|^torch: conv(_transpose)?3d: strides: [^|]*\| tritensor: float\d\d\(1, .*channels_last_3d",
        "images of one row or one sample lie in two orders at once",
    ),
    (r"^torch: \w+: (values|shape).*\bsinc_?\(", "sinc of whole numbers is 0"),
    (
        r"^torch: \w+: raises \w+ in tritensor alone: ShapeError: [^|]*overlaps itself",
        "a write into a tensor that overlaps itself raises where several elements share one cell",
    ),
    (
        r"pairs: .*raises GradError: backward: .*overwrote in place",
        "backward derivatives need what was overwritten, forward ones do not; beside torch both are asked",
    ),
    (
        r"torch: linearize: values: .*(_\(|\] = |[-+*/]= |inplace=True)",
        "PyTorch's linearized function writes over the constants that it holds, where the function writes",
    ),
    (
        r"^torch: \w+: flags: [^|]*\| tritensor: (bool|u?int\d+)\(",
        "a tensor of bools or whole numbers stays outside of the graph, whatever is written into it",
    ),
    (r"torch: (step|dictcomp): values.*lr=tt.tensor", "PyTorch computes with a learning rate in its own type, float32"),
    (r"_version: values: .*(\(0|, 0\)|False|\[\]|\b(\d):\2\b)", "a write of nothing counts as none"),
    (r"(grad: values|values of grad): .*kron\(", "PyTorch misses a write to what kron has kept"),
    (r"^torch: cdf: values: .*float64.*\bGamma\(", "PyTorch's gammainc of float64 keeps nine digits"),
    (r"^torch: signbit: values: ", "the sign of a NaN that arithmetic made is the processor's"),
    (
        r"^torch: (backward|grad): values(?=[^|]*\|.*\| torch: [^|]*(nan|inf)).*Weibull\(",
        "PyTorch's gradient overflows where (x / scale) ** k is small",
    ),
    (
        r"^torch: \w+: values(?=.*\| tritensor: float16)(?=.*\binf\b).*(\*\* 0\.5|pow\([^|]*0\.5\))",
        "the power of a half is the square root in every type",
    ),
    (r"error kind: .*tritensor: \w+: dim -?\d+ is out of range", "of two mistakes the dimension is named"),
    (r"torch reads ours: strides|^torch: \w+: strides: of \w+ in `[^`]*\.load\(", "a view is saved without the rest of its base"),
    (
        r"^torch: (r?sample|double|float|half|to): strides: .*distributions\.Beta\(",
        "PyTorch's draws of Beta are a slice of Dirichlet's, with gaps between them",
    ),
    (r"^torch: log_prob: values: .*\| torch: [^|]*(nan|inf).*Kumaraswamy\(", "the ends of Kumaraswamy's support have the limits"),
    (r"cumsum: dtype is bool", "running results are no bools"),
    (
        r"torch: linearize: raises .*one of several that one call gave",
        "linearize keeps the backward graph, in which such a view is not written",
    ),
    (
        r"pairs: .*raises GradError: .*one of several that one call gave",
        "backward derivatives refuse a write to one of several views, forward ones have none to tear",
    ),
    (r"devices: .*raises ZeroDivisionError in cpu alone", "a GPU does not tell of integers divided by 0"),
    (
        r"^torch: \w+: error kind: IndexError and RuntimeError .*\| torch: [^|]*(a leaf Variable|Output \d of \w+ is a view)",
        "of two mistakes the index is named",
    ),
    (r"^torch: _version: values: .*_scatter\(", "a copy with a part replaced has been written to once"),
    (
        r"^torch: \w+: strides: [^|]*\| [^|]*\([^)]*\b1\b[^)]*\) strides",
        "a dimension of size 1 says in PyTorch which of two others lies outside",
    ),
    (
        r"^torch: (backward|grad): values(?=[^|]*\|.*\| torch: [^|]*(inf|nan)).*cumprod\(",
        "PyTorch divides by the input, whose products have overflowed",
    ),
    (
        r"^torch: log_prob: values(?=[^|]*\|.*\| torch: [^|]*inf).*Weibull\(",
        "PyTorch's logarithm of a density that is too small to be a number",
    ),
    (r"^torch: (backward|grad): values.*\b(kthvalue|median|mode|topk)\(", "of several elements of one value any is chosen"),
    (r"^torch: \w+: values: .*\.unique\(", "of -0.0 and 0.0 either stands for both"),
    (r"^torch: \w+: dtype: .*torch: complex32", "there is no complex32 here"),
    (r"^torch: \w+: values: .*2\.71828198.*torch: .*2\.71828175", "exp(1) in float32 is a rounding off"),
    (r"cum(min|max): input is complex", "PyTorch does not ask of a tensor without dimensions what it refuses of others"),
    (r"^torch: (select|slice)_scatter: values: .*(unfold|as_strided|expand)\(", "PyTorch writes the part into elements that share cells"),
    (
        r"^torch: grad: kind: [^|]*\| tritensor: \(None,\)(?=.*requires_grad_\(\))",
        "a view that was written before its base came to require grad leads nowhere until it is written again",
    ),
    (
        r"^torch: \w+: raises RuntimeError in torch alone: .*a leaf Variable that requires grad is being used.*_\(",
        "a view of what a write has put into the graph is a leaf no longer",
    ),
    (r"^torch: backward: values of grad(?=.*float16).*F\.normalize\(", "what is left where a gradient cancels is a rounding in PyTorch"),
    (r"^torch: pow_?: values: .*complex", "0j to the power of 0j is 1, as Python's is"),
    (r"^torch: nonzero: shape: .*bfloat16.*erf", "PyTorch's erf of a tiny bfloat16 is 0"),
    (
        r"GradError: \w+: this view of shape \(\d*,?\) is a window",
        "a write through a window on memory with gaps is refused where a graph remembers it",
    ),
    (r"^torch: setitem: error kind: NumberRangeError and IndexError", "of two mistakes the number is named"),
    (r"^torch: backward: values of grad: of net .*MaxPool.*fill_\(0\.5\)", "of equal elements a rounding decides which is the largest"),
    (
        r"^torch: \w+: raises RuntimeError in torch alone: .*A view was created in no_grad mode(?=.*tt\.tensor\(\S*\[\d)",
        "a tensor of whole numbers stays outside of the graph, whatever is written into it",
    ),
    (r"^torch: stack: strides: .*channels_last", "one image is a volume of one channel, too"),
    (
        r"^torch: (backward|grad): shape of grad: .*(squeeze_|reshape_|resize_|swapaxes_|transpose_|t_)\(",
        "a leaf that was reshaped in place: PyTorch's gradient has the shape that it had in its first graph",
    ),
    (r"^torch: weight_norm: error kind: ", "each library names what it stumbles on"),
    (r"^torch: (rot90: error kind: |\w+: error kind: [^|]*ShapeError and IndexError)", "another of two mistakes is named"),
    (
        r"^torch: (addcmul_|addcdiv_|lerp_): error kind: (GradError|ShapeError) and TypeError",
        "where PyTorch wants a tensor a number is taken, so that the leaf is what is refused",
    ),
    (
        r"^torch: set_: raises RuntimeError in tritensor alone: GradError: set_: the tensor requires grad",
        "PyTorch refuses when a derivative is asked, with an error that names other things where views share the memory",
    ),
    (
        r"^torch: (backward|grad): raises RuntimeError in torch alone: RuntimeError: unsupported operation: more than one element of the written-to "
        r"(?=.*(expand|broadcast_to)\()(?=.*(zero_|fill_)\()",
        "one number written through an expanded view: PyTorch takes the write and raises in backward, here its gradient is 0",
    ),
    (r"^torch: \w+: error kind: (?=.*\bfunc\.)(?=.*\.flip\()", "PyTorch's flip of a tensor without dimensions raises inside vmap"),
    (
        r"^torch: (backward|grad): values[^|]*\|.*PReLU\((?=.*\b0\.0\b)(?=.*create_graph=True)",
        "second derivatives of prelu at 0 are those of the first one's side",
    ),
    (
        r"^torch: (log_prob|backward|grad): values(?=.*float64)(?=.*(0\.999999|1e-06)).*Kumaraswamy\(",
        "near the ends of Kumaraswamy's support PyTorch computes 1 - x ** a of what is rounded to 1, and loses digits of float64",
    ),
    (
        r"^torch: \w+: values: of (\w+) in `[^`]*\btt\.\w+\([^`]*out=\1\)`(?=.*float64)(?=.*dtype=tt\.u?int)",
        "a function of whole numbers is computed in float32, whatever the type of out",
    ),
    (r"^torch: \w+: raises \w+ in tritensor alone: NumberRangeError: ", "a number that the tensor's type cannot hold raises here"),
]

KNOWN = [(re.compile(pattern, re.DOTALL), reason) for pattern, reason in _LINES]
