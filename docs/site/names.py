"""List of the reference: every public name once, on the page and in the group where a reader looks for it."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import tritensor as tt
from docs.site.nn_examples import EXAMPLES

FUNCTIONS = "tritensor.tensor.functions."


@dataclass(frozen=True)
class Entry:
    """A public name: where it is found (`tritensor.nn`), how it is called there, and what it is."""

    module: str
    name: str
    value: Any

    @property
    def full(self) -> str:
        """The dotted name that users write."""
        return f"{self.module}.{self.name}"

    @property
    def home(self) -> str:
        """The module whose file holds the body."""
        value = self.value if inspect.isclass(self.value) else inspect.unwrap(self.value)
        return str(getattr(value, "__module__", ""))


@dataclass(frozen=True)
class Group:
    """A heading of a page: a module's names, or those of them whose bodies stand below some module; those that are used most come first."""

    title: str
    module: str
    below: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    first: tuple[str, ...] = ()
    example: str = ""

    def place(self, name: str) -> tuple[int, str]:
        """What names are sorted by."""
        return self.first.index(name) if name in self.first else len(self.first), name.lower()

    def takes(self, entry: Entry) -> bool:
        """Whether a name of the module belongs under this heading."""
        if not self.below and not self.names:
            return True
        return entry.name in self.names or (bool(self.below) and entry.home.startswith(self.below))


@dataclass(frozen=True)
class Page:
    """A page of the reference; its groups in the order in which they claim names."""

    file: str
    title: str
    intro: str
    groups: tuple[Group, ...] = field(default=())


def of_tensors(file: str, title: str, intro: str, *families: tuple[str, str]) -> Page:
    """A page of the front door's functions, by the folders of tritensor/tensor/functions/."""
    return Page(file, title, intro, tuple(Group(heading, "tritensor", (FUNCTIONS + below,)) for below, heading in families))


def of_modules(file: str, title: str, intro: str, *modules: str) -> Page:
    """A page of modules, a heading for each."""
    return Page(file, title, intro, tuple(Group(f"tritensor.{m}", f"tritensor.{m}") for m in modules))


def layers(title: str, below: str, first: str = "", inside: str = "layers.") -> Group:
    """A heading of layers, by the folders and files of nn/layers/ or nn/, with its example."""
    homes = tuple(f"tritensor.nn.{inside}{b}" for b in below.split())
    return Group(title, "tritensor.nn", homes, first=tuple(first.split()), example=EXAMPLES[title].strip())


def functional(title: str, *below: str) -> Group:
    """A heading of nn.functional, by its files."""
    return Group(title, "tritensor.nn.functional", tuple(f"tritensor.nn.functional.{b}" for b in below))


# In the order of the reference's table of contents.
PAGES: tuple[Page, ...] = (
    Page("tensor", "Tensor", "The class, its attributes and its methods. Every function of a first argument `input` is a method, too."),
    of_tensors(
        "creation", "Creating tensors", "From data, from memory that somebody else holds, filled, counted and drawn.",
        ("creation.constructors", "From data, and filled"), ("creation.memory", "On memory that is there"),
        ("creation.sequences", "Sequences"), ("creation.random", "Random numbers"), ("creation.distributions", "Draws from distributions"), ("creation.dropout", "Dropout"),
        ("creation", "Windows and the rest"),
    ),
    of_tensors(
        "pointwise", "Elementwise functions", "Shapes broadcast and types promote as in PyTorch. Each function takes `out=`.",
        ("pointwise.elementary", "Arithmetic, comparison, elementary functions"), ("pointwise.floats", "Floating point numbers and integers"),
        ("pointwise.special", "Special functions"), ("pointwise.complex_numbers", "Complex numbers"), ("pointwise.activations", "Activations"),
        ("pointwise", "Copies and fills"),
    ),
    of_tensors(
        "reductions", "Reductions", "Sums, means, extremes, statistics, and what accumulates along a dimension.",
        ("reductions.reductions", "Over dimensions"), ("reductions.cumulative", "Cumulative"), ("reductions.statistics", "Statistics"),
        ("reductions.differences", "Differences and integrals"), ("reductions", "Distances and the rest"),
    ),
    of_tensors(
        "shaping", "Shapes: reshape, cat, split", "Views, which move no data, and what joins, splits and copies.",
        ("shaping.reshaping", "Views of another shape"), ("shaping.joining", "Joining, splitting, turning"),
        ("shaping.combining", "Combining"), ("shaping.copies", "Copies of views"), ("shaping", "Strides and sizes"),
    ),
    of_tensors(
        "indexing", "Indexing, sorting, searching", "What picks elements by place, by value, or by order.",
        ("indexing.scattering", "Gather and scatter"), ("indexing", "Picking and writing"), ("sorting.ordering", "Sorting"), ("sorting", "Searching and distinct values"),
    ),
    of_tensors(
        "linear", "Products, factorisations, images", "Matrix products, solvers, Fourier transforms over short times, and what images need.",
        ("linear", "Products"), ("factorizations", "Factorisations"), ("images", "Images"), ("spectral", "Short-time Fourier transforms"),
    ),
    Page(
        "types", "dtype, device, layout", "What a tensor's elements are, where they lie, and how types meet.",
        (
            Group("Types, devices, sizes", "tritensor", ("tritensor.ground.dtypes", "tritensor.ground.device", "tritensor.tensor.size", "tritensor.ground.strides", "tritensor.tensor.public_api.layout"),
                  frozenset(["finfo", "iinfo", "is_tensor", "is_floating_point", "numel", "get_default_dtype", "set_default_dtype"])),
            Group("Promotion and storages", "tritensor", (FUNCTIONS + "types",)),
            Group("Constructors by type", "tritensor", names=frozenset(f"{n}Tensor" for n in ["BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"])),
        ),
    ),
    of_modules("linalg", "Linear algebra", "Decompositions, solvers, norms.", "linalg"),
    of_modules("spectral", "Fourier transforms and windows", "Discrete transforms of every length, and windows for them.", "fft", "signal.windows"),
    of_modules("special", "Special functions", "To a few units in the last place, NaN and infinities included.", "special"),
    of_modules("masked", "Masked reductions", "Reductions over the elements that a mask lets through.", "masked"),
    Page(
        "random", "Random numbers", "Philox, counter-based: one seed gives the same numbers, bit for bit, on every device.",
        (Group("Seeds and generators", "tritensor", ("tritensor.random",)), Group("tritensor.random", "tritensor.random")),
    ),
    of_modules(
        "autograd", "autograd: automatic differentiation", "Gradients of any order, functions with a backward of your own, hooks, checks.",
        "autograd", "autograd.functional", "autograd.graph", "autograd.forward_ad", "utils.checkpoint",
    ),
    of_modules("func", "func: grad, vmap, jvp, hessian", "Transforms that nest in any order; [how they work](../func.md).", "func"),
    Page(
        "nn", "nn: layers and losses", "Modules: parameters, and a function of them. In the order in which a network is built; names that are used most come first.",
        (
            layers("Modules and containers", "module container parameter", "Module Sequential ModuleList ModuleDict Parameter Buffer", inside=""),
            layers("Linear, flatten", "linear lazy", "Linear Flatten Unflatten Identity Bilinear"),
            layers("Activations", "activation", "ReLU GELU SiLU Sigmoid Tanh Softmax LogSoftmax LeakyReLU"),
            layers("Losses", "losses", "CrossEntropyLoss MSELoss BCEWithLogitsLoss L1Loss NLLLoss"),
            layers("Convolutions", "convolution", "Conv2d Conv1d Conv3d ConvTranspose2d ConvTranspose1d ConvTranspose3d"),
            layers("Pooling", "pooling", "MaxPool2d AvgPool2d AdaptiveAvgPool2d"),
            layers("Normalisation", "normalization", "BatchNorm2d BatchNorm1d BatchNorm3d LayerNorm GroupNorm RMSNorm"),
            layers("Dropout", "dropout", "Dropout"),
            layers("Embeddings", "embedding", "Embedding"),
            layers("Recurrent", "recurrent", "LSTM GRU RNN LSTMCell GRUCell RNNCell"),
            layers("Attention, Transformers", "attention", "MultiheadAttention TransformerEncoderLayer TransformerEncoder TransformerDecoderLayer TransformerDecoder"),
            layers("Padding", "padding", "ZeroPad2d ReflectionPad2d ReplicationPad2d ConstantPad2d"),
            layers("Upsampling, pixel shuffles, patches", "images", "Upsample PixelShuffle Fold Unfold"),
            layers("Distances", "distance"),
            Group("The rest", "tritensor.nn"), Group("tritensor.nn.attention", "tritensor.nn.attention"),
            Group("tritensor.nn.attention.bias", "tritensor.nn.attention.bias"),
        ),
    ),
    Page(
        "nn.functional", "nn.functional", "Layers without parameters of their own.",
        (
            functional("Products and embeddings", "products", "sparse"), functional("Convolutions", "convolution"),
            functional("Pooling", "pooling", "windows"), functional("Activations", "activation"),
            functional("Losses", "losses"), functional("Attention and recurrence", "attention", "recurrent"),
            functional("Normalisation", "normalization", "batch_statistics"), functional("Images and padding", "images", "padding"),
            Group("The rest", "tritensor.nn.functional"),
        ),
    ),
    of_modules("nn.init", "nn.init: initialisation", "How parameters begin.", "nn.init"),
    of_modules(
        "nn.utils", "nn.utils: clipping, pruning", "Clipping, packing of sequences, parametrisations, pruning.",
        "nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations", "nn.utils.prune", "nn.utils.stateless",
    ),
    of_modules("optim", "optim: optimizers, lr_scheduler", "An optimiser is a formula; a schedule says what its rate is.", "optim", "optim.lr_scheduler", "optim.swa_utils"),
    of_modules("data", "data: Dataset, DataLoader", "Datasets, the order in which they are read, batches; [worker processes](../data.md).", "data"),
    of_modules("multiprocessing", "multiprocessing", "Tensors that several processes share.", "multiprocessing"),
    Page(
        "vision", "vision: datasets, transforms", "Data sets, transforms, files, with torchvision's names; [what each does](../vision.md).",
        (
            *of_modules("", "", "", "vision", "vision.datasets", "vision.transforms", "vision.transforms.functional").groups,
            Group("tritensor.vision.transforms.v2", "tritensor.vision.transforms.v2", names=frozenset(["CutMix", "Identity", "MixUp", "ToDtype", "ToImage"])),
            *of_modules("", "", "", "vision.io", "vision.utils", "vision.models").groups,
        ),
    ),
    of_modules(
        "audio", "audio: transforms, functional", "Features, filters and augmentation of sound, with torchaudio's names; [what is here](../audio.md).",
        "audio", "audio.transforms", "audio.functional",
    ),
    of_modules("io", "save, load, safetensors", "Files, and what they may hold; [formats](../checkpoints.md).", "io", "serialization"),
    of_modules("training", "training: Trainer, callbacks", "The loop, written once; [how to use it](../training.md).", "training"),
    of_modules("models", "models: ResNet, GPT-2, ...", "Networks that everyone builds.", "models"),
    of_modules("hub", "Hub", "Models and weights by name, their hashes pinned; [what is trusted](../hub.md).", "hub"),
    of_modules("onnx", "ONNX", "Models for other programs to run; [how](../onnx.md).", "onnx", "export"),
    of_modules("distributions", "Distributions", "Draws, densities, divergences.", "distributions"),
    of_modules("amp", "amp: autocast, mixed precision", "Products in 16 bits, gradients scaled.", "amp"),
    of_modules("cuda", "cuda: the GPU", "Devices, memory, streams, events, graphs; [how an op reaches the GPU](../cuda.md).", "cuda"),
    of_modules("distributed", "distributed", "Process groups, collectives, sharded training; [how to use it](../distributed.md).", "distributed"),
    of_modules("utils", "utils: tensorboard, benchmark", "What stands around a program.", "utils", "utils.tensorboard", "utils.benchmark", "utils.flop_counter", "utils.pytree", "utils.linting", "utils.progress"),
    of_modules("profiler", "Profiler", "Where the time goes, on the CPU and on the GPU; [how to read it](../profiling.md).", "profiler", "autograd.profiler_util"),
    of_modules("debug", "debug: memory, compilations", "What was compiled, where the host waits, who takes memory; [profiling](../profiling.md).", "debug"),
    of_modules("viz", "viz: graphs, model summary", "Of graphs and of models.", "viz"),
    of_modules("testing", "testing: assert_close, check", "Comparison of tensors, and questions to ops and kernels; [testing](../testing.md).", "testing"),
    Page(
        "authors", "Writing ops: op, launch, tuning", "What kernels are registered, tuned and watched with; [writing a kernel](../kernels.md).",
        (
            Group("Registration", "tritensor", ("tritensor.ops.table", "tritensor.kernels", "tritensor.cuda.launch")),
            Group("tritensor.tuning", "tritensor.tuning", ("tritensor.ops.tuning",)),
        ),
    ),
    of_modules("array_api", "Array API standard", "The standard's names with the standard's meaning, over the same ops.", "array_api"),
    Page("errors", "Errors", "Each is also what PyTorch raises there, a RuntimeError, ValueError, TypeError or IndexError.", (Group("", "tritensor", ("tritensor.ground.errors",)),)),
    Page(
        "settings", "Settings and the rest", "What else stands at the front door.",
        (
            Group("Settings", "tritensor", ("tritensor.torch_compat.settings", "tritensor.torch_compat.modules", "tritensor.ops.matmul_precision", "tritensor.tensor.printing")),
            Group("Gradient modes", "tritensor", ("tritensor.autograd",)), Group("Autocast", "tritensor", ("tritensor.torch_compat.autocast",)),
            Group("Numbers", "tritensor", ("tritensor.torch_compat.symbolic_sizes",)), Group("Functions of nn in PyTorch's first spelling", "tritensor"),
        ),
    ),
)  # fmt: skip

# Modules that have no page because their names are PyTorch's spelling of something above, or rooms of the house.
NO_PAGE = frozenset([
    "accelerator", "backends", "compiler", "jit", "kernels", "parts", "signal", "types", "version", "elementwise", "launch", "reduction",
])  # fmt: skip
# Where name_ is name, written into its first argument: one line names them all. In nn.init it is the name itself.
_IN_PLACE = ("tritensor", "tritensor.nn.functional", "tritensor.utils.pytree")
# These pages claim before the front door does, which shows a second time what stands in them.
_FIRST = ("nn.functional", "autograd", "random", "io", "training", "amp", "func")


def public(module: ModuleType, called: str) -> Iterator[Entry]:
    """The classes and functions of ours that a module shows, by the module's public name: its file may stand elsewhere."""
    package = str(getattr(module, "__file__", "__init__.py")).endswith("__init__.py")
    listed = getattr(module, "__all__", None)
    for name in sorted(dir(module) if module is tt or listed is None else listed, key=str.lower):
        if name.startswith("_"):
            continue
        value = getattr(module, name)
        home = str(getattr(value, "__module__", ""))
        if inspect.ismodule(value) or not callable(value) or not home.startswith("tritensor"):
            continue
        if listed is None and not package and home != module.__name__:
            continue  # what the file itself imports
        yield Entry(called, name, value)


def _more_pages() -> tuple[Page, ...]:
    """A page for each public module that PAGES does not name yet."""
    named = {g.module.removeprefix("tritensor.").split(".")[0] for p in PAGES for g in p.groups}
    found = sorted(n for n in dir(tt) if n not in named | NO_PAGE and inspect.ismodule(getattr(tt, n)))
    return tuple(of_modules(n, n, _caption(f"tritensor.{n}"), n) for n in found)


def _caption(module: str) -> str:
    return (importlib.import_module(module).__doc__ or "").partition("\n")[0]


@dataclass
class Listed:
    """A group with what it holds: names told here, names told elsewhere (with that place), and in-place forms."""

    group: Group
    told: list[Entry] = field(default_factory=list)
    elsewhere: list[tuple[Entry, str]] = field(default_factory=list)
    in_place: list[Entry] = field(default_factory=list)


def listed() -> dict[Page, list[Listed]]:
    """Every page with its groups. Each object is told once, under the name by which users know it."""
    pages = (*PAGES, *_more_pages())
    told: dict[int, str] = {id(tt.Tensor): "tritensor.Tensor"}
    taken: set[str] = {"tritensor.Tensor"}
    found: dict[Page, list[Listed]] = {}
    for page in sorted(pages, key=lambda p: p.file not in _FIRST):
        found[page] = [_fill(group, told, taken) for group in page.groups]
    filled = {page: [g for g in found[page] if g.told or g.elsewhere or g.in_place] for page in pages}
    return {page: groups for page, groups in filled.items() if groups or page.file == "tensor"}


def _fill(group: Group, told: dict[int, str], taken: set[str]) -> Listed:
    """Give a heading the names of its module that no heading before it has taken."""
    here = Listed(group)
    module = importlib.import_module(group.module)
    # A function under its own name before other names of it.
    for entry in sorted(public(module, group.module), key=lambda e: getattr(inspect.unwrap(e.value), "__name__", "") != e.name):
        if entry.full in taken or not group.takes(entry):
            continue
        taken.add(entry.full)
        body = id(entry.value if inspect.isclass(entry.value) else inspect.unwrap(entry.value))
        if entry.name.endswith("_") and hasattr(module, entry.name[:-1]) and group.module in _IN_PLACE:
            here.in_place.append(entry)
        elif body in told:
            here.elsewhere.append((entry, told[body]))
        else:
            told[body] = entry.full
            here.told.append(entry)
    here.told.sort(key=lambda e: group.place(e.name))
    return here
