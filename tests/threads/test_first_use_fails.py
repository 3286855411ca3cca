"""A first use that fails half-way, for want of descriptors or memory or by Ctrl-C, is told in one line and leaves nothing half loaded: the next one works."""

from __future__ import annotations

import errno
import os
import pickle
import re
import resource
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A use of each: ops with and without machine code, BLAS, a late module, its functions, a file format, names that are looked up.
USES = [
    "x + x", "x.sum()", "T.softmax(x, 0)", "T.nn.functional.cross_entropy(x, T.tensor([0, 1, 2]))", "T.ones(70, 70) @ T.ones(70, 70)", "T.fft.fft(x)",
    "T.vmap(lambda r: r * 2)(x)", "T.func.grad(lambda t: (t * t).sum())(x)", "T.linalg.svd(x)[1]", "T.ops.gelu(x)", "x.sin_()",
    "T.distributions.Normal(0.0, 1.0).log_prob(x)", "T.special.i0(x)", "T.sort(x)[0]", "T.stft(T.ones(64), 16, window=T.ones(16), return_complex=True)",
]  # fmt: skip
OURS = tuple(str(ROOT / folder) + os.sep for folder in ("tritensor", "kernels", "autograd", "nn", "optim"))
PROGRAM = """
import tritensor as T
from tests.threads.test_first_use_fails import USES, {work}
{work}(T)
"""


def run(work: Callable[[Any], None], **environment: str) -> None:
    env = {k: v for k, v in os.environ.items() if k not in ("TRITON_INTERPRET", "PYTHONDONTWRITEBYTECODE")} | environment
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(work=work.__name__)], cwd=ROOT, env=env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


@pytest.fixture
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"PYTHONPYCACHEPREFIX": str(tmp_path_factory.getbasetemp().parent / "bytecode")}


def forked(T: Any, use: str, work: Callable[[Callable[[], Any]], None]) -> None:
    """`work(call)` in a process of its own, and then the call once more: its answer is that of another process in which nothing failed."""
    read, write = os.pipe()
    if not os.fork():
        os.write(write, pickle.dumps(numbers(T, use)))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        right = pickle.loads(told.read())
    os.wait()
    pid = os.fork()
    if pid:
        assert os.waitpid(pid, 0)[1] == 0, use
        return
    status = 1
    try:
        work(lambda: numbers(T, use))
        for _ in range(2):
            assert numbers(T, use) == right, use
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def numbers(T: Any, use: str) -> Any:
    """What a use gives, and its gradient."""
    given = eval(use, {"T": T, "x": T.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [0.5, 0.25, 2.0]])})
    leaf = T.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [0.5, 0.25, 2.0]], requires_grad=True)
    if "sin_" in use:
        return given.tolist(), None
    made = eval(use, {"T": T, "x": leaf})
    if made.requires_grad:
        (T.view_as_real(made) if made.is_complex() else made).sum().backward()
    return given.tolist(), None if leaf.grad is None else leaf.grad.tolist()


# -- no descriptors
def without_descriptors(T: Any, uses: Sequence[str] = USES[::4]) -> None:
    for use in uses:
        forked(T, use, _no_descriptor_left)


def _no_descriptor_left(call: Callable[[], Any]) -> None:
    """With 0, 1, 2, ... descriptors left, until the call succeeds."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(64, hard), hard))
    held: list[int] = []
    while True:
        try:
            held.append(os.dup(0))
        except OSError:
            break
    refused = 0
    while held:
        try:
            call()
            break
        except OSError as error:
            named = type(error).__name__ == "OutOfDescriptorsError" and isinstance(error, RuntimeError) and error.errno == errno.EMFILE
            if not named or not re.fullmatch(r"[^\n]*: this process has no file descriptor left, and the first use [^\n]*", str(error)):
                raise AssertionError(repr(error)) from error
            refused += 1
        os.close(held.pop())
    assert refused, "nothing was loaded late"
    for descriptor in held:
        os.close(descriptor)


def without_descriptors_at_all(T: Any) -> None:
    without_descriptors(T, USES)


@pytest.mark.parametrize(
    "work", [without_descriptors, pytest.param(without_descriptors_at_all, marks=[pytest.mark.slow, pytest.mark.full])]
)
def test_no_descriptor_is_left(work: Callable[[Any], None], bytecode: dict[str, str]) -> None:
    """The fault: a bare OSError from inside an import."""
    run(work, **bytecode)


def test_the_op_is_named(bytecode: dict[str, str]) -> None:
    run(names_the_op, **bytecode)


def names_the_op(T: Any) -> None:
    def work(call: Callable[[], Any]) -> None:
        def no_file(*args: Any, **kwargs: Any) -> Any:
            raise OSError(errno.EMFILE, "Too many open files")

        import importlib.machinery

        before = importlib.machinery.SourceFileLoader.get_data
        importlib.machinery.SourceFileLoader.get_data = no_file  # type: ignore[method-assign]
        with pytest.raises(OSError, match=r"^\[Errno 24\] lgamma: this process has no file descriptor left"):
            call()
        importlib.machinery.SourceFileLoader.get_data = before  # type: ignore[method-assign]

    forked(T, "T.lgamma(x)", work)


# -- whatever else is raised in the middle
def interrupted(T: Any, uses: Sequence[str] = USES[1::7]) -> None:
    """Ctrl-C and a lack of memory, at points spread over the first use."""
    for k, use in enumerate(uses):
        for error in (KeyboardInterrupt, MemoryError):
            forked(T, use, lambda call, k=k, error=error: _raising(call, error, k))


def _raising(call: Callable[[], Any], error: type[BaseException], first: int) -> None:
    """Raise an error at the n-th call of a function of ours, for growing n, until the use gets through. (What Ctrl-C leaves of Triton's or numpy's own
    import is theirs.)"""
    left, raised = 0, 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal left
        if event == "call" and frame.f_code.co_filename.startswith(OURS) and not _within_a_finder(frame):
            left -= 1
            if left == 0:
                sys.setprofile(None)
                raise error

    n = 3 + first
    while True:
        left = n
        sys.setprofile(count)
        try:
            call()
        except error:
            raised += 1
        finally:
            sys.setprofile(None)
        if left > 0:
            break
        n = n * 2 + 1
    assert raised, "it was not interrupted"


def _within_a_finder(frame: Any) -> bool:
    """Whether one of ours is asked where a module is, which may be anybody's, in the middle of what that does."""
    while frame is not None:
        if frame.f_code.co_name in ("find_spec", "_after_triton", "_after_interpreter"):
            return True
        frame = frame.f_back
    return False


def interrupted_everywhere(T: Any) -> None:
    interrupted(T, USES)


@pytest.mark.parametrize("work", [interrupted, pytest.param(interrupted_everywhere, marks=[pytest.mark.slow, pytest.mark.full])])
def test_interrupts_and_a_lack_of_memory(work: Callable[[Any], None], bytecode: dict[str, str]) -> None:
    run(work, **bytecode)


# -- caches that cannot be written
@pytest.mark.parametrize("folder", ["a file", "read-only", "/proc"])
def test_a_cache_that_cannot_be_written(folder: str, tmp_path: Path, bytecode: dict[str, str]) -> None:
    place = tmp_path / "cache"
    if folder == "a file":
        place.write_text("")
    elif folder == "read-only":
        place.mkdir(mode=0o500)
    where = folder if folder == "/proc" else str(place)
    run(answers, TRITON_CACHE_DIR=where, TRITENSOR_CACHE=where, **bytecode)


def answers(T: Any) -> None:
    x = T.ones(64, 64, requires_grad=True)
    T.softmax(x, 1).sum().backward()
    assert T.softmax(x, 1)[0, 0].item() == 1 / 64
    assert abs(x.grad.sum().item()) < 1e-5
