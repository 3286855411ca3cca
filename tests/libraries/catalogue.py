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

    @property
    def installs(self) -> tuple[str, ...]:
        return self.distributions


LIBRARIES: tuple[Library, ...] = ()
# What no stand-in can serve: (package, why, what to use in its place).
CANNOT = (
    ("torchaudio (wheel), torchtext (wheel)", "their `.so` files are linked against libtorch", "nnAudio; tokenizers"),
    ("xformers, flash-attn", "CUDA extensions built against libtorch", "`nn.functional.scaled_dot_product_attention`"),
    ("bitsandbytes", "a CUDA extension", "bfloat16 weights"),
    ("Horovod", "a C extension built against libtorch", "`tritensor.distributed` under `tritensor launch`"),
)
