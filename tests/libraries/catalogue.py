"""Libraries of the trial: what pip installs, the quick starts, the own test suite, and a word where one cannot run."""

from __future__ import annotations

from typing import NamedTuple

from tests.libraries.own_tests import Suite


class Library(NamedTuple):
    """A library: its name, the distributions that pip installs (the first tells the version), its quick starts, its own suite."""

    name: str
    distributions: tuple[str, ...]
    quick_starts: tuple[str, ...] = ()
    suite: Suite | None = None
    note: str = ""
    cannot: str = ""  # why its quick start cannot agree: a failing of its own, or what is not here yet
    alone: bool = False  # what it asks of other libraries' versions keeps it from sharing an environment


_TRANSFORMERS = tuple(
    f"tests/models/{name}/test_modeling_{name}.py"
    for name in (
        "bert", "gpt2", "llama", "qwen2", "qwen3", "mistral", "mixtral", "gemma", "t5", "bart", "whisper", "vit", "clip", "detr", "mamba", "roberta",
        "distilbert", "electra", "opt", "phi3",
    )
)  # fmt: skip

# those of its files that build their models; the others take them from a hub
_PEFT = tuple(
    f"tests/test_{name}.py"
    for name in (
        "custom_models", "config", "tuners_utils", "other", "bufferdict", "incremental_pca", "initialization", "lora_variants", "loraplus",
        "low_level_api", "mapping", "mixed", "bdlora", "deft", "lorafa", "osf", "vblora", "velora", "vera",
    )
)  # fmt: skip

LIBRARIES: tuple[Library, ...] = (
    # language
    Library(
        "transformers",
        ("transformers", "sentencepiece", "protobuf"),
        ("language/bert", "language/gpt2", "language/decoders", "language/sequence_to_sequence", "language/images", "language/trainer"),
        Suite("huggingface/transformers", "v{version}", _TRANSFORMERS, needs=("parameterized", "pytest-timeout", "timeout-decorator")),
    ),
    Library(
        "accelerate",
        ("accelerate",),
        ("language/accelerator", "language/accelerate_meta"),
        Suite("huggingface/accelerate", "v{version}", ("tests/test_*.py",)),
    ),
    Library("datasets, tokenizers", ("datasets", "tokenizers"), ("language/columns",)),
    Library(
        "peft",
        ("peft",),
        ("language/lora",),
        Suite(
            "huggingface/peft",
            "v{version}",
            _PEFT,
            ("-o", "addopts=", "-k", "not TestPeftCustomModel or LoraConfig or IA3Config"),  # of 332 configurations those of two methods
        ),
    ),
    Library("trl", ("trl",), ("language/sft",)),
    Library("diffusers", ("diffusers",), ("language/unet",)),
    Library("sentence-transformers", ("sentence-transformers",), ("language/sentence_embeddings",)),
    Library("liger-kernel", ("liger-kernel",), ("language/liger",)),
    Library("open_clip", ("open_clip_torch",), ("language/open_clip_pairs",)),
    Library("flair", ("flair",), ("language/flair_tagger",), note="asks for transformers before 5", alone=True),
    Library(
        "ParlAI",
        ("parlai", "setuptools<81"),
        ("training/parlai_seq2seq",),
        note="imports pkg_resources, which setuptools left out from 81 on",
        alone=True,
    ),
    # training
    Library(
        "Lightning",
        ("lightning", "tensorboard"),
        ("training/lightning", "training/lightning_fabric"),
        Suite(
            "Lightning-AI/pytorch-lightning",
            "{version}",
            (
                *(f"tests/tests_pytorch/{part}/**/test_*.py" for part in ("callbacks", "core", "loops", "models", "trainer", "utilities")),
                "tests/tests_fabric/test_fabric.py",
                "tests/tests_fabric/test_wrappers.py",
                "!tests/tests_pytorch/models/test_onnx.py",
                "!tests/tests_pytorch/utilities/migration/test_utils.py",
            ),
            # each of these starts processes that import everything anew: hours
            ("-k", "not spawn and not spike and not ddp and not fsdp and not deepspeed"),
            needs=("cloudpickle", "psutil"),
        ),
    ),
    Library(
        "ignite",
        ("pytorch-ignite",),
        ("training/ignite",),
        Suite(
            "pytorch/ignite",
            "v{version}",
            (
                *(f"tests/ignite/{part}/**/test_*.py" for part in ("base", "engine", "handlers", "metrics")),
                "tests/ignite/test_utils.py",
                "!tests/ignite/handlers/test_clearml_logger.py",
                "!tests/ignite/handlers/test_neptune_logger.py",
            ),
            ("-m", "not distributed"),
        ),
    ),
    Library("fastai", ("fastai",), ("training/fastai",)),
    Library(
        "TorchMetrics",
        ("torchmetrics",),
        ("training/torchmetrics",),
        Suite(
            "Lightning-AI/torchmetrics",
            "v{version}",
            ("tests/unittests/**/test_*.py",),
            ("-m", "not DDP"),
            ("lightning-utilities", "cachier"),
            every=24,
        ),
    ),
    Library("PyTorch Metric Learning", ("pytorch-metric-learning",), ("training/metric_learning",)),
    Library("PyTorch Forecasting", ("pytorch-forecasting",), ("training/forecasting",)),
    # vision
    Library("torchvision", (), ("vision/torchvision", "vision/torchvision_boxes"), note="tritensor.vision in torchvision's place"),
    Library(
        "timm",
        ("timm",),
        ("vision/timm",),
        Suite(
            "huggingface/pytorch-image-models",
            "v{version}",
            ("tests/test_*.py",),
            ("-k", "not test_model_forward_features and not test_model_forward_fx and not torchscript"),
            every=8,
        ),
    ),
    Library(
        "kornia",
        ("kornia",),
        ("vision/kornia",),
        Suite(
            "kornia/kornia",
            "v{version}",
            (
                *(
                    f"tests/{part}/**/test_*.py"
                    for part in ("augmentation", "color", "contrib", "core", "enhance", "feature", "filters", "geometry")
                ),
                *(
                    f"tests/{part}/**/test_*.py"
                    for part in ("image", "integration", "losses", "metrics", "morphology", "sensors", "tracking")
                ),
            ),
        ),
    ),
    Library("MONAI", ("monai",), ("vision/monai",)),
    # audio
    Library("nnAudio", ("nnAudio",), ("audio/nnaudio_features",)),
    Library(
        "torchaudio",
        (),
        ("audio/torchaudio_transforms",),
        note="tritensor.audio in torchaudio's place: transforms and functional, no codecs",
    ),
    # science
    Library(
        "Captum",
        ("captum",),
        ("science/captum_attributions",),
        Suite(
            "pytorch/captum",
            "v{version}",
            tuple(f"tests/{part}/**/test_*.py" for part in ("attr", "concept", "influence", "metrics", "module", "robust", "utils")),
            every=4,
        ),
    ),
    Library("KeOps", ("pykeops",), ("science/keops_kernels",), note="compiles C++ of its own"),
    Library(
        "torchdiffeq", ("torchdiffeq",), ("science/torchdiffeq_spiral",), Suite("rtqichen/torchdiffeq", "v{version}", ("tests/*_tests.py",))
    ),
    Library("xitorch", ("xitorch",), ("science/xitorch_equations",), Suite("xitorch/xitorch", "v{version}", ("xitorch/_tests/test_*.py",))),
    # probability
    Library(
        "Pyro",
        ("pyro-ppl",),
        ("probability/pyro_inference",),
        Suite(
            "pyro-ppl/pyro",
            "{version}",
            (
                *(f"tests/{part}/**/test_*.py" for part in ("distributions", "infer", "nn", "ops", "optim", "params", "poutine")),
                "tests/test_primitives.py",
                "tests/test_settings.py",
                "tests/test_util.py",
                "!tests/distributions/test_cuda.py",
            ),
            ("-k", "not funsor"),
            every=12,
        ),
    ),
    Library("sbi", ("sbi",), ("probability/sbi_posterior",)),
    Library(
        "linear_operator",
        ("linear_operator",),
        ("probability/linear_operator",),
        Suite("cornellius-gp/linear_operator", "v{version}", ("test/**/*_test.py", "test/**/test_*.py")),
        "without what it computes through sparse layouts",
    ),
    Library(
        "GPyTorch",
        ("gpytorch",),
        ("probability/gpytorch",),
        Suite(
            "cornellius-gp/gpytorch",
            "v{version}",
            ("test/**/*test*.py", "!test/examples/*.py"),  # the examples train for hours
        ),
    ),
    Library("BoTorch", ("botorch",), ("probability/botorch",)),
    Library("Storchastic", ("storchastic",), ("probability/storchastic",)),
    Library("zuko", ("zuko",), ("probability/zuko",), Suite("probabilists/zuko", "{version}", ("tests/test_*.py",))),
    Library(
        "nflows",
        ("nflows",),
        ("probability/nflows",),
        Suite("bayesiains/nflows", "v{version}", ("tests/**/*_test.py",), needs=("torchtestcase",)),
    ),
    Library("normflows", ("normflows",), ("probability/normflows",)),
    # second order
    Library(
        "BackPACK",
        ("backpack-for-pytorch",),
        ("second_order/backpack_quantities",),
        Suite("f-dangel/backpack", "{version}", ("test/**/test_*.py", "test/**/*_test.py"), every=4),
    ),
    Library(
        "PyHessian",
        ("pyhessian",),
        ("second_order/pyhessian_spectrum",),
        note="its density() calls torch.eig, which PyTorch removed as well",
    ),
    Library("ASDL", ("asdfghjkl",), ("second_order/asdl_curvature",)),
    Library("curvlinops", ("curvlinops-for-pytorch",), ("second_order/curvlinops_operators",)),
    Library("higher", ("higher",), ("second_order/higher_inner_loop",)),
    Library("laplace-torch", ("laplace-torch",), ("second_order/laplace_posterior",)),
    # reinforcement
    Library("Stable-Baselines3", ("stable-baselines3",), ("reinforcement/stable_baselines3_agents",)),
    Library(
        "CleanRL",
        ("gymnasium",),
        ("reinforcement/cleanrl_ppo",),
        note="scripts of one file, in the way of which ours is written; the version is gymnasium's",
    ),
    Library("Tianshou", ("tianshou",), ("reinforcement/tianshou_dqn",)),
    # graphs
    Library("torch_geometric", ("torch_geometric",), ("graphs/torch_geometric_nets",), note="without sparse layouts"),
    # tools
    Library(
        "einops",
        ("einops",),
        ("tools/einops_layers",),
        Suite("arogozhnikov/einops", "v{version}", ("einops/tests/test_*.py",), variables=(("EINOPS_TEST_BACKENDS", "numpy,torch"),)),
    ),
    Library("hydra", ("hydra-core",), ("tools/hydra_config",)),
    Library("mlflow", ("mlflow",), ("tools/mlflow_models",)),
    Library("optuna", ("optuna",), ("tools/optuna_search",)),
    Library("ray", ("ray",), ("tools/ray_tasks",)),
    Library("safetensors", ("safetensors",), ("tools/safetensors_files",)),
    Library("skorch", ("skorch",), ("tools/skorch_net",)),
    Library("tensorboardX", ("tensorboardX",), ("tools/tensorboardx_writer",)),
    Library("torchopt", ("torchopt",), ("tools/torchopt_functional",)),
    Library("torchviz", ("torchviz",), ("tools/torchviz_graph",)),
    Library("visdom", ("visdom",), ("tools/visdom_offline",)),
    Library("wandb", ("wandb",), ("tools/wandb_offline",)),
)
# What no stand-in can serve: (package, why, what to use in its place).
CANNOT = (
    (
        "torchaudio (wheel), torchtext (wheel)",
        "their `.so` files are linked against libtorch",
        "`tritensor.audio`, which `import torchaudio` gives; tokenizers",
    ),
    ("xformers, flash-attn", "CUDA extensions built against libtorch", "`nn.functional.scaled_dot_product_attention`"),
    ("bitsandbytes", "a CUDA extension", "bfloat16 weights"),
    ("Horovod", "a C extension built against libtorch", "`tritensor.distributed` under `tritensor launch`"),
)
