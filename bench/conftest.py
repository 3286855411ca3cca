"""Set-up of `python -m pytest bench`: which ops are asked for, on which devices, and what the header says of those that are not."""

from __future__ import annotations

import os

import pytest


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    # Before pytest reads the rest of the command line, where --benchmark-only would be a stranger without the plug-in.
    if not pluginmanager.hasplugin("benchmark"):
        raise pytest.UsageError(
            "bench/ is timed with pytest-benchmark, which is not installed or not active here: pip install 'pytest-benchmark[histogram]' "
            "(extra tritensor[bench]); without it, `python -m bench ops` times the same"
        )
    parser.addoption(
        "--op", action="append", default=[], metavar="NAME",
        help="ops to time, by name, pattern (conv*) or file (my_ops.py); several with commas or options (default: all)",
    )  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported: a busy neighbour slows several threads
    # A time is no test of values: what warns is timed, and the summary shows it. Here, since pytest-benchmark warns while it is configured.
    config.addinivalue_line("filterwarnings", "default")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    from bench.walk import walk

    walk(session.config)  # a wrong --op is told before anything is collected, with -q too, which prints no header


def pytest_report_header(config: pytest.Config) -> list[str]:
    from bench.walk import walk

    return walk(config).header


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    from bench.walk import synchronised, walk

    if "call" not in metafunc.fixturenames:
        return
    params, least = [], metafunc.config.getoption("benchmark_min_time")
    for call in walk(metafunc.config).calls:
        group = f"{call.case.op.name} {call.case.corner} {call.case.dtype}"
        # A round of 2 ms and more: the wait at its end takes some 10 us.
        timer = {"timer": synchronised, "min_time": max(0.002, float(least))} if call.device == "cuda" else {}
        params.append(pytest.param(call, id=call.name, marks=pytest.mark.benchmark(group=group, **timer)))
    metafunc.parametrize("call", params)
