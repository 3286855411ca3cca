"""Train a character GPT on the Python standard library's own source, watch it learn to write Python, and go on where it stopped.

    python examples/train_gpt.py                     # the GPU where there is one, else a model that two CPU cores can train
    python examples/train_gpt.py --steps 2000        # goes on from out/gpt.safetensors where the last run stopped
    python examples/train_gpt.py --fresh --layers 6 --width 384 --heads 6 --context 256 --batch-size 64

If you know PyTorch you know every line: only the import is another.
"""

from __future__ import annotations

import argparse
import math
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tritensor as tt
import tritensor.nn.functional as F
from tritensor import nn, optim
from tritensor.models import GPT2, GPT2Config

try:
    import matplotlib.pyplot as plt
    from tqdm import tqdm
except ModuleNotFoundError as missing:
    package = str(missing.name).partition(".")[0]
    sys.exit(f"This example needs {package}, which is not installed: pip install tritensor[examples]")

ALPHABET = "\n" + "".join(map(chr, range(32, 127)))  # what Python is written in
PROMPT = "def "
VALIDATION = 0.05  # of the text, at its end
CHECKS = 20  # batches that a validation loss is the mean of


def source(megabytes: float) -> np.ndarray:
    """The standard library's files one after the other, as numbers of the alphabet's characters; the same on every run."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    number = np.full(128, -1, np.int64)
    number[[ord(c) for c in ALPHABET]] = np.arange(len(ALPHABET))
    text = "\n\n".join(f.read_text("utf-8", errors="ignore").replace("\t", "    ") for f in files)
    codes = np.frombuffer(text.encode("ascii", "ignore"), np.uint8)[: int(megabytes * 1e6)]
    known = number[codes]
    return known[known >= 0]


class Text(NamedTuple):
    """Training and validation text, as numbers of characters, on the device."""

    train: tt.Tensor
    validation: tt.Tensor

    def batch(self, part: str, size: int, context: int) -> tuple[tt.Tensor, tt.Tensor]:
        """(size, context) characters from random places, and those that follow each."""
        text = getattr(self, part)
        starts = tt.randint(0, len(text) - context - 1, (size, 1), device=text.device)
        places = starts + tt.arange(context, device=text.device)
        return text[places], text[places + 1]


def split(codes: np.ndarray, device: tt.device) -> Text:
    """The end of the text is kept for validation."""
    cut = int(len(codes) * (1 - VALIDATION))
    return Text(tt.tensor(codes[:cut]).to(device), tt.tensor(codes[cut:]).to(device))


def parameter_groups(model: nn.Module) -> list[dict[str, Any]]:
    """Matrices decay, vectors do not."""
    wide = [p for p in model.parameters() if p.ndim >= 2]
    flat = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": wide, "weight_decay": 0.1}, {"params": flat, "weight_decay": 0.0}]


def rate(step: int, peak: float, total: int) -> float:
    """The learning rate: up in a line for the first steps, then down along a cosine to a tenth."""
    warm = max(1, min(100, total // 10))
    if step < warm:
        return peak * (step + 1) / warm
    done = (step - warm) / max(1, total - warm)
    return peak * (0.1 + 0.45 * (1 + math.cos(math.pi * min(done, 1.0))))


@tt.no_grad()
def validation_loss(model: GPT2, text: Text, size: int, context: int) -> float:
    """The mean cross-entropy on text that training never sees, in nats for a character; always of the same places."""
    model.eval()
    kept = tt.get_rng_state()
    tt.manual_seed(1)
    losses = []
    for _ in range(CHECKS):
        x, y = text.batch("validation", size, context)
        losses.append(F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item())
    tt.set_rng_state(kept)
    model.train()
    return sum(losses) / len(losses)


def sample(model: GPT2, characters: int, device: tt.device) -> str:
    """What the model writes after a prompt."""
    model.eval()
    ids = tt.tensor([[ALPHABET.index(c) for c in PROMPT]], device=device)
    written = model.generate(ids, characters, temperature=0.8, top_k=20)[0].tolist()
    model.train()
    return "".join(ALPHABET[i] for i in written)


class Progress(NamedTuple):
    """What is known of a run: (step, loss) of training and of validation."""

    steps: list[int]
    losses: list[float]
    checked: list[int]
    validation: list[float]


def train(model: GPT2, text: Text, args: argparse.Namespace, state: dict[str, Any] | None) -> Progress:
    """Train until step `args.steps`, saving as it goes; `state` is a checkpoint to go on from."""
    optimizer = optim.AdamW(parameter_groups(model), lr=args.lr, betas=(0.9, 0.95))
    progress, begun = Progress([], [], [], []), 0
    if state is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        tt.set_rng_state(state["random"])
        progress, begun = Progress(*state["progress"]), state["step"]

    bar = tqdm(total=args.steps, initial=begun, unit=" steps", disable=None if sys.stderr.isatty() else args.quiet)
    start, tokens = time.perf_counter(), 0
    for step in range(begun, args.steps):
        for group in optimizer.param_groups:
            group["lr"] = rate(step, args.lr, args.steps)
        x, y = text.batch("train", args.batch_size, args.context)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        tokens += x.numel()
        bar.update()

        last = step + 1 == args.steps
        if (step + 1) % 10 == 0 or last:
            progress.steps.append(step + 1)
            progress.losses.append(loss.item())
            bar.set_postfix_str(f"loss {progress.losses[-1]:.3f}, {tokens / (time.perf_counter() - start):,.0f} tokens/s", refresh=False)
        if (step + 1) % args.check_every == 0 or last:
            progress.checked.append(step + 1)
            progress.validation.append(validation_loss(model, text, args.batch_size, args.context))
            bar.write(f"step {step + 1:6d}: loss {loss.item():.4f}, validation {progress.validation[-1]:.4f} nats a character")
            kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "random": tt.get_rng_state()}
            tt.save({**kept, "step": step + 1, "progress": list(progress), "sizes": sizes(args)}, args.out / "gpt.safetensors")
    bar.close()
    if tokens:
        seconds = time.perf_counter() - start
        print(f"{args.steps - begun} steps in {seconds:.1f} s: {tokens / seconds:,.0f} tokens/s")
    return progress


def sizes(args: argparse.Namespace) -> dict[str, int]:
    """What a checkpoint and the model that loads it must agree on."""
    return {name: getattr(args, name) for name in ("layers", "width", "heads", "context")}


def draw(path: Path, progress: Progress, written: str) -> None:
    """A picture: the losses, and what the model writes."""
    ink, faint, accent = "#1b1f3b", "#c9cdd8", "#d1495b"
    plt.switch_backend("agg")  # a file, no window
    with plt.rc_context({"axes.edgecolor": faint, "text.color": ink, "axes.labelcolor": ink, "xtick.color": ink, "ytick.color": ink}):
        figure, (axes, page) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=(1.2, 1))
        axes.plot(progress.steps, progress.losses, color=faint, linewidth=1, label="training, each batch")
        axes.plot(progress.checked, progress.validation, color=accent, linewidth=2, marker="o", markersize=4, label="validation")
        axes.set(xlabel="step", ylabel="nats a character", ylim=(0, None))
        axes.set_title(f"Validation loss {progress.validation[-1]:.3f}", loc="left", fontweight="bold")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        page.axis("off")
        lines = [line[:58] for line in written.replace("$", r"\$").splitlines()[:22]]
        page.text(0, 1, "\n".join(lines), family="monospace", fontsize=7.5, va="top", transform=page.transAxes)
        page.set_title("What it writes", loc="left", fontweight="bold")
        figure.savefig(path, dpi=130)
        plt.close(figure)


def options(argv: list[str] | None) -> argparse.Namespace:
    gpu = tt.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if gpu else "cpu", help="cpu, cuda or cuda:N (default: %(default)s)")
    parser.add_argument(
        "--steps", type=int, default=5000 if gpu else 500, help="training steps, those of earlier runs among them (default: %(default)s)"
    )
    parser.add_argument("--batch-size", type=int, default=64 if gpu else 16, help="texts in a step (default: %(default)s)")
    parser.add_argument("--context", type=int, default=256 if gpu else 64, help="characters of a text (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=6 if gpu else 4, help="blocks (default: %(default)s)")
    parser.add_argument("--width", type=int, default=384 if gpu else 128, help="features of a character (default: %(default)s)")
    parser.add_argument("--heads", type=int, default=6 if gpu else 4, help="attention heads (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=1e-3, help="highest learning rate (default: %(default)s)")
    parser.add_argument("--megabytes", type=float, default=5.0, help="of source to learn from (default: %(default)s)")
    parser.add_argument("--check-every", type=int, default=100, help="steps between validations and checkpoints (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same numbers (default: %(default)s)")
    parser.add_argument("--sample", type=int, default=400, help="characters to write at the end (default: %(default)s)")
    parser.add_argument("--fresh", action="store_true", help="begin anew, even where a checkpoint is")
    parser.add_argument("--quiet", action="store_true", help="no progress bar where the output is no terminal")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture and the checkpoint (default: %(default)s)")
    found = parser.parse_args(argv)
    if min(found.steps, found.batch_size, found.context, found.layers, found.check_every) < 1:
        parser.error("--steps, --batch-size, --context, --layers and --check-every are at least 1")
    if found.width % found.heads:
        parser.error(f"--heads {found.heads} does not divide --width {found.width}")
    return found


def main(argv: list[str] | None = None) -> float:
    """Train, validate, write, draw; returns the last validation loss."""
    args = options(argv)
    device = tt.device(args.device)
    args.out.mkdir(parents=True, exist_ok=True)
    checkpoint = args.out / "gpt.safetensors"
    text = split(source(args.megabytes), device)

    tt.manual_seed(args.seed)
    state = None
    if checkpoint.exists() and not args.fresh:
        state = tt.load(checkpoint)
        if state["sizes"] != sizes(args):
            sys.exit(f"{checkpoint} holds a model of {state['sizes']}, asked for is {sizes(args)}: give those, or --fresh")
    config = GPT2Config(len(ALPHABET), args.context, args.width, args.layers, args.heads, dropout=0.0)
    model = GPT2(config).to(device)
    print(f"GPT on {device}: {sum(p.numel() for p in model.parameters()):,} parameters, {len(text.train):,} characters, seed {args.seed}")
    if state is not None:
        print(f"going on from step {state['step']} of {checkpoint}")

    progress = train(model, text, args, state)
    written = sample(model, args.sample, device)
    print(f"\n{written}\n")
    picture = args.out / "train_gpt.png"
    draw(picture, progress, written)
    print(f"picture     {picture.resolve()}\ncheckpoint  {checkpoint.resolve()}")
    return progress.validation[-1]


if __name__ == "__main__":
    main()
