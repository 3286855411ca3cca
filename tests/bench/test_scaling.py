"""The model of many ranks: values computed by hand, and constants that are found again in measurements which were made from them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.distributed.prediction import lines, picture, predicted
from bench.distributed.scaling import (
    Bucket,
    Network,
    Sharing,
    Step,
    Timed,
    Work,
    all_reduce,
    doubling,
    efficiency,
    exposed,
    fitted,
    fitted_step,
    halving,
    ring,
    step_seconds,
)

SIZES = (4, 1 << 12, 1 << 16, 1 << 20, 1 << 24)
NETWORK = Network(5e-6, 8e9)
SHARING = Sharing(2, 2e-4)


def test_what_a_rank_does_in_each_algorithm() -> None:
    assert doubling(100, 8) == Work(3, 300, 300)
    assert halving(80, 8) == Work(6, 140, 70), "40 + 20 + 10 bytes that are added, and back"
    assert ring(80, 8) == Work(14, 140, 70), "7 pieces of 10 bytes, twice"
    for algorithm in (doubling, halving, ring):
        assert algorithm(64, 2).added in (32, 64)
        assert algorithm(64, 2).sent == 64, "on two ranks all send what they have"


def test_ranks_beyond_a_power_of_two_are_folded_into_others() -> None:
    assert doubling(100, 6) == Work(4, 400, 300), "once there, two exchanges of four ranks, and back"
    assert halving(100, 6) == Work(6, 350, 175)
    assert ring(60, 6) == Work(10, 100, 50)


def test_the_fastest_algorithm_is_taken() -> None:
    network = Network(latency=1e-6, bandwidth=1e9)
    assert all_reduce(8, 1, network) == 0
    assert all_reduce(1000, 16, network) == pytest.approx(4 * (1e-6 + 1e-6)), "doubling; halving would take 8 us of latency and 1.875 us"
    assert all_reduce(1_000_000, 16, network) == pytest.approx(8e-6 + 1875e-6), "halving; doubling would take 4 ms"
    assert all_reduce(1_000_000, 16, network, algorithms=(doubling, ring)) == pytest.approx(30e-6 + 1875e-6)
    assert all_reduce(1_000_000, 16, network._replace(sums=2e9)) == pytest.approx(8e-6 + 1875e-6 + 468.75e-6)


def test_ranks_that_share_a_core_wait_for_their_turn() -> None:
    network = Network(latency=1e-6, bandwidth=1e9)
    assert all_reduce(1_000_000, 2, network, Sharing(2, 1e-3)) == all_reduce(1_000_000, 2, network)
    assert all_reduce(1_000_000, 4, network, Sharing(2, 1e-5)) == pytest.approx(4 * 11e-6 + 2 * 1500e-6)


def test_backward_hides_what_it_can() -> None:
    buckets = [Bucket(1, 3.0), Bucket(1, 1.0), Bucket(1, 0.0)]
    assert exposed(buckets, [1.0, 0.5, 0.0]) == 0
    assert exposed(buckets, [1.0, 0.5, 2.0]) == 2.0
    assert exposed(buckets, [4.0, 0.5, 2.0]) == 3.5, "the second waits for the first: -3 + 4, then 0.5 and 2"
    assert exposed(buckets, [4.0, 0.5, 2.0], hides=0.0) == 6.5
    assert exposed(buckets, [4.0, 0.5, 2.0], hides=0.25) == pytest.approx(3.5 + 0.75 * 3)


def test_a_step_by_hand() -> None:
    network = Network(latency=1e-3, bandwidth=1e6)
    step = Step(1.0, (Bucket(1_000_000, 0.5), Bucket(500_000, 0.0)), averaging=0.25)
    # On 4 ranks 4 ms + 1.5 s and 4 ms + 0.75 s.
    assert step_seconds(step, 4, network) == pytest.approx(1.25 + (1.504 - 0.5) + 0.754)
    assert step_seconds(step, 4, network, hides=0) == pytest.approx(1.25 + 1.504 + 0.754)
    assert step_seconds(step, 4, network, slower=2) == pytest.approx(2.5 + (1.504 - 1.0) + 0.754)
    assert step_seconds(step, 1, network) == 1.0
    assert efficiency(step, 1, network) == 1
    assert efficiency(step, 4, network) == pytest.approx(1 / (1.25 + 1.004 + 0.754))


def made_up(network: Network = NETWORK, sharing: Sharing = SHARING, ranks: tuple[int, ...] = (2, 4)) -> list[Timed]:
    return [Timed(n, p, all_reduce(n, p, network, sharing)) for p in ranks for n in SIZES]


def test_known_constants_are_found_again() -> None:
    for network in (NETWORK, Network(1e-4, 2e9), Network(1e-7, 1e11)):
        found = fitted(made_up(network), SHARING.cores)
        assert found.network == (pytest.approx(network.latency), pytest.approx(network.bandwidth), math.inf)
        assert found.sharing == (2, pytest.approx(SHARING.turn))
        assert found.residuals == pytest.approx([0] * 10, abs=1e-9)


def test_a_machine_of_many_cores_has_no_turns() -> None:
    found = fitted(made_up(sharing=Sharing(16, 1.0), ranks=(2, 4, 8)), 16)
    assert found.network == (pytest.approx(NETWORK.latency), pytest.approx(NETWORK.bandwidth), math.inf)
    assert found.sharing == (16, 0)


def test_noise_is_told_as_residuals() -> None:
    rng = np.random.default_rng(0)
    noisy = [m._replace(seconds=m.seconds * (1 + rng.uniform(-0.05, 0.05))) for m in made_up()]
    found = fitted(noisy, SHARING.cores)
    assert found.network.latency == pytest.approx(NETWORK.latency, rel=0.05)
    assert found.network.bandwidth == pytest.approx(NETWORK.bandwidth, rel=0.05)
    assert 0 < max(map(abs, found.residuals)) < 0.11


def test_constants_are_never_negative() -> None:
    found = fitted([Timed(1000, 2, 1e-3), Timed(1_000_000, 2, 0.9e-3)], 2)
    assert found.network.latency > 0
    assert found.network.bandwidth == math.inf, "what takes no longer with more bytes has no bandwidth, rather than a negative one"


def test_one_size_tells_no_latency_from_a_bandwidth() -> None:
    with pytest.raises(ValueError, match="measured at 1 sizes on ranks with one of 2 cores each"):
        fitted([Timed(4, 2, 1e-5), Timed(4, 4, 1e-3), Timed(8, 4, 1e-3)], 2)


def test_what_several_ranks_add_to_a_step_is_found_again() -> None:
    step = Step(4e-3, (Bucket(1 << 20, 1e-3), Bucket(1 << 21, 0.0)), averaging=7e-4)
    slower = {1: 1.0, 2: 1.1, 4: 2.2}

    def seconds(step: Step, n: int) -> float:
        return step_seconds(step, n, NETWORK, 0.0, SHARING, slower[n])

    measured = {n: seconds(step, n) for n in slower}
    assert fitted_step(step._replace(averaging=0.0), measured, seconds).averaging == pytest.approx(7e-4)
    assert fitted_step(step, {n: 0.5 * s for n, s in measured.items()}, seconds).averaging == 0


def report() -> dict[str, Any]:
    """What the command would write on a machine that follows the model."""
    step = Step(4e-3, (Bucket(1 << 20, 1e-3), Bucket(1 << 21, 0.0)), averaging=7e-4)
    slower = {1: 1.0, 2: 1.1, 4: 2.2}
    ours = {n: {"step": step_seconds(step, n, NETWORK, 0.0, SHARING, slower[n]), "without_averages": 3.9e-3 * slower[n]} for n in slower}
    return {
        "cores": 2, "processor": "A Processor", "date": "2030-01-02 03:04 UTC", "sums": 5e9,
        "all_reduce": [{"ranks": m.ranks, "nbytes": m.nbytes, "seconds": {"async": m.seconds}} for m in made_up()],
        "steps": [{"ranks": n, "tritensor": times} for n, times in ours.items()],
        "timeline": {"1": {"buckets": [[0, 1 << 20, 0.5e-3, 1.5e-3], [1, 1 << 21, 1.5e-3, 1.5e-3]]}},
    }  # fmt: skip


def test_a_report_gives_the_constants_back() -> None:
    made = predicted(report())
    assert made.step.compute == 4e-3
    assert made.step.averaging == pytest.approx(7e-4)
    assert [b.left for b in made.step.buckets] == pytest.approx([1e-3, 0])
    for measured, model in made.steps.values():
        assert model == pytest.approx(measured)
    stated = Network(3e-6, 12.5e9, 5e9)
    assert made.stated == stated
    assert made.as_json()["efficiency"][1024]["stated, hides 1"] == efficiency(made.step, 1024, stated)
    text = "\n".join(lines(report(), made))
    assert made.unfitted == pytest.approx({n: seen - 7e-4 * made.slower[n] * (n > 1) for n, (seen, _) in made.steps.items()})
    assert "latency 5.0 us, bandwidth 8.00 GB/s, a turn on a shared core 200 us" in text
    assert "1.10 times as long on 2 ranks, 2.20 times as long on 4 ranks" in text
    assert text.count("+0%") + text.count("-0%") == 14, "ten calls, three steps, and the one on one rank unfitted"
    assert text.splitlines()[-1].split()[0] == "1024"


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_picture_says_what_is_assumed(kind: str, tmp_path: Path) -> None:
    to = tmp_path / f"scaling.{kind}"
    picture(report(), predicted(report()), to)
    if kind == "png":
        assert to.read_bytes().startswith(b"\x89PNG")
        return
    text = to.read_text()
    for words in ("no stragglers", "1,024", "100 Gbit/s", "2030-01-02", "A Processor"):
        assert words in text
    again = tmp_path / "again.svg"
    picture(report(), predicted(report()), again)
    assert again.read_text() == text, "the same figures give the same file"
