"""The page that tells the result of the trial: docs/other_kernels.md."""

from __future__ import annotations

from importlib.metadata import version

from tests.other_kernels.checkouts import PROJECTS
from tests.other_kernels.results import Result

_HEAD = """# Triton kernels of other projects

Written by `python -m tests.other_kernels --checkouts FOLDER --clone --write docs/other_kernels.md`, with Triton {triton}, numpy {numpy}.

The files of the projects below are fetched at the commits that are named and not changed: `import torch` in them is answered by tritensor
(`tritensor.tools.run_script.opened()`, which is `tritensor run`). The tutorials follow Triton: with 3.6 those of December 2025 are tried. Each trial calls the project's own function with small inputs,

- on the **emulated device**, under the sanitizer, and compares results, and gradients where there are any, with our CPU tensors, which numpy computes;
- on a **virtual GPU** that records the launches, each of which is then compiled for sm_90. Of a kernel that is tuned, {most} configs are compiled.

**right** means right under the sanitizer. **right, masked lanes as 0** means that masked-off lanes of a load without `other=` reach the result: Triton
promises nothing of them, and the emulated device fills them with NaN and the like; its code for NVIDIA's GPUs leaves 0 there, with which
(`TRITENSOR_MASKED_LANES=zero`) the numbers are right. **refused** means that the library or the
emulated device names something that PyTorch or a GPU would let pass.

{good} of {all} trials end as they should: {right} right, {masked} right with masked lanes as 0, {refused} refused with reason.
"""

_FOOT = """
## What does not run, and why

- `tl.inline_asm_elementwise` holds PTX: the emulated device evaluates arithmetic, conversions and predicates of it, and names any other instruction.
  mamba 3's kernels above hold some.
- Tutorial 09's `matmul_kernel_tma_clc`, and its warp-specialised variants but one, want sm_100: they are not called on a device that says sm_90.
- Tutorial 09 asserts with `tl.max_contiguous(tl.multiple_of(...))` that rows run on to the end of a tile. Where a size does not divide by the tile the
  promise is false for the last one, and the emulated device refuses it (`matmul_kernel`, `offs_am`); the trial's sizes divide.
- Tutorial 10's nvfp4 products do not compile for sm_90 with Triton 3.6 ("PassManager::run failed"): it asks for sm_100. With 3.9 they do.
- Tutorial 08 assumes full tiles, as it says: other sizes are refused as reads past a tensor's end.
- attorch's attention layer raises an error of its own: the project has put it aside.
- unsloth's package imports transformers and unsloth_zoo: its files are imported alone, with stand-ins that hold the names of classes and loggers which
  its kernels do not use.
- FlagGems registers every operator with PyTorch's dispatcher when it is imported, which is not here: its files are imported alone. Its `libentry` calls a
  kernel that it has met before by `kernel[grid](*args)` without the constants, which is how Triton 3.2 took it; from 3.6 on that fails, with PyTorch as well.
  Its generator writes block pointers, which Triton 3.9 has not: there its own setting `prefer_block_pointer` is off.
- mamba's, flash-attention's and lightllm's packages import CUDA extensions or a server: their files are imported alone.
- flash-attention's `flash_attn_triton.py` and `flash_attn_triton_og.py` say `tl.dot(..., trans_b=True)`, and its `linear.py` imports `triton.ops`: Triton 2 had
  both, from 3 on neither, with PyTorch as well. Its `layer_norm.py` asks for the dispatch modes of PyTorch's tracer (`torch._subclasses`), which is not here.
"""


def written(results: list[Result]) -> str:
    """The page, in Markdown."""
    from tests.other_kernels.child import MOST_CONFIGS

    words = [r.numbers_in_words for r in results]
    text = _HEAD.format(
        triton=version("triton"), numpy=version("numpy"), most=MOST_CONFIGS, good=sum(r.as_wanted for r in results), all=len(results),
        right=words.count("right"), masked=words.count("right, masked lanes as 0"), refused=words.count("refused"),
    )  # fmt: skip
    for project in PROJECTS:
        rows = [r for r in results if r.trial.project is project]
        if not rows:
            continue
        text += f"\n## {project.name.split('-20')[0]}\n\n{project.url} at `{project.commit[:12]}`\n\n"
        text += "| file | kernels launched | numbers | compiled for sm_90 | |\n|---|---|---|---|---|\n"
        text += "".join(map(_row, rows))
    return text + _FOOT


def _row(result: Result) -> str:
    kernels = ", ".join(f"`{k}`" for k in {**result.numbers["kernels"], **result.compiled["kernels"]}) or "none"
    numbers = result.numbers_in_words
    if numbers in ("refused", "WRONG"):
        numbers += f": {' '.join(result.numbers['error'].split())[:200]}"
    cells = (f"`{result.trial.file}`", kernels, numbers, result.compiled_in_words, result.trial.note)
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |\n"
