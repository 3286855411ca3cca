"""A process that has loaded what no fault changes, and forks for each question: `python -m tests.mutate.server MODULE ...` names what it loads.

A line of JSON in, a line of JSON out: `{"do": "ask", "what": ["softmax/float32/cpu", ...], "limit": 60, "tier": "quick"}` walks ops with the six
questions, `{"do": "pytest", "what": [arguments], ...}` runs tests, both as that tier does; the answer is `{"killer": ...}`, "" where all is well.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import resource
import signal
import sys
import time
import traceback

from tests.tiers import TIERS

PATIENCE = 20  # seconds by the wall for each that a child may compute: other programs run beside it
TIERS_IN_ORDER = ("quick", "standard", "full")


def asked(what: list[str], tier: str) -> str:
    """The first of op/type/device on which a question finds something, "" where none does."""
    from tests.ops.test_walk import LAYOUTS, tier_of
    from tritensor.ground.device import device
    from tritensor.ops.table import registry
    from tritensor.testing.questions.ask import ask
    from tritensor.testing.questions.cases import cases, types

    places = {"cpu": device("cpu"), "emulated": device("cuda", 0)}
    for one in what:
        name, dtype, on = one.split("/")
        op = registry[name]
        if dtype not in types(op) or (on == "emulated" and TIERS_IN_ORDER.index(tier_of(op, dtype)) > TIERS_IN_ORDER.index(tier)):
            continue
        if any(ask(case) for case in cases(op, dtype, places[on], LAYOUTS[tier] if on == "emulated" else None)):
            return one
    return ""


def tested(arguments: list[str], tier: str) -> str:
    """The first test that fails, "import" where pytest itself does; "" where all pass."""
    import pytest

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = pytest.main(
            [
                "-x",
                "-q",
                "-n",
                "0",
                "-p",
                "no:cacheprovider",
                "-m",
                TIERS.get(tier, TIERS["standard"]),
                "--no-header",
                "--tb=no",
                *arguments,
            ]
        )
    if code in (0, 5):  # 5: nothing was collected
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+::\S.*?)(?: - .*)?$", said.getvalue(), re.MULTILINE)
    return failed.group(1) if failed else "import"


def answer(request: dict[str, object], into: int) -> None:
    """In the child: do what is asked and write the answer."""
    os.setsid()
    seconds = int(request["limit"])  # type: ignore[call-overload]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    try:
        killer = (asked if request["do"] == "ask" else tested)(request["what"], request["tier"])  # type: ignore[operator]
    except BaseException:
        killer = "import: " + traceback.format_exc().strip().split("\n")[-1][:80]
    os.write(into, json.dumps({"killer": killer}).encode())
    os._exit(0)


def served(request: dict[str, object]) -> dict[str, str]:
    """Fork for one request; a child that computes for longer than its limit is ended, and "time" is what found the fault."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        answer(request, into)
    os.close(into)
    end = time.monotonic() + PATIENCE * float(request["limit"])  # type: ignore[arg-type]
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, 9)
            os.waitpid(child, 0)
            os.close(out)
            return {"killer": "time"}
        time.sleep(0.01)
    if os.WIFSIGNALED(ended[1]) and os.WTERMSIG(ended[1]) in (signal.SIGXCPU, signal.SIGKILL):
        os.close(out)
        return {"killer": "time"}
    said = os.read(out, 1 << 16)
    os.close(out)
    return json.loads(said) if said else {"killer": "crash"}  # type: ignore[no-any-return]


def main() -> None:
    for name in sys.argv[1:]:
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(served(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
