"""The cost model: waves, the three limits and loops, on made-up reports and on kernels compiled for three generations of GPUs."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import pytest

from tests.static.test_compile import alone
from tritensor.cuda.compiler.kernel_report import Report
from tritensor.cuda.compiler.prediction import RATES, cannot_run, predict
from tritensor.cuda.compiler.program_work import Passes, ProgramWork, program_work
from tritensor.cuda.compiler.sass import Loop


def made(registers: int = 32, warps: int = 4, instructions: int = 100, **more: Any) -> Report:
    return Report("k", 90, registers, 0, 0, more.pop("shared", 0), warps, 0, instructions=instructions, longest=instructions, **more)


def work(loads: dict[int, float] | None = None, flops: dict[str, float] | None = None, loops: tuple[Passes, ...] = ()) -> ProgramWork:
    return ProgramWork(loads or {}, {}, flops or {}, loops, ())


def test_a_grid_just_over_one_wave_runs_at_half() -> None:
    one = made(registers=255, warps=8)  # one program for each multiprocessor
    found = predict(one, 90, 145, work())
    assert (found.blocks, round(found.waves, 2), round(found.tail, 2)) == (1, 1.1, 0.55)
    assert found.issue == 2 * predict(one, 90, 132, work()).issue
    assert predict(one, 90, 132, work()).tail == 1.0


def test_a_persistent_grid_waits_for_its_longest_program() -> None:
    one = made(registers=255, warps=8, tensor={"wgmma.mma_async": 4})
    even = work(flops={"bf16": 4096e3})
    found = predict(one, 90, 132, even._replace(longest=16 / 15.5))
    assert found.tail == 15.5 / 16
    assert found.tensor == pytest.approx(predict(one, 90, 132, even).tensor * 16 / 15.5)
    assert predict(one, 90, 1320, even._replace(longest=2.0)).tensor == predict(one, 90, 1320, even).tensor, "many waves mix them"


def test_stores_wait_for_nothing() -> None:
    """A fill has no loads under way, and moves at the memory's rate all the same."""
    found = predict(made(), 90, 132 * 160, ProgramWork({}, {0: 32768.0}, {}, (), ()))
    assert found.microseconds == pytest.approx(132 * 160 * 32768 / 4.8e12 * 1e6)


def test_a_small_grid_leaves_multiprocessors_idle() -> None:
    found = predict(made(), 90, 1, work())
    assert round(found.tail, 4) == round(1 / 132, 4)
    assert found.issue == 100 * 4 / 4


def test_each_of_the_three_can_be_the_limit() -> None:
    loads = {"128": 4}
    streaming = predict(made(loads=loads), 90, 132 * 160, work({0: 32768.0}))
    assert streaming.limit == "bytes"
    assert streaming.microseconds == pytest.approx(132 * 160 * 32768 / 4.8e12 * 1e6)
    assert predict(made(instructions=100000, loads=loads), 90, 132 * 160, work({0: 8192.0})).limit == "issue"
    product = made(tensor={"wgmma.mma_async": 4})
    busy = predict(product, 90, 132, work(flops={"bf16": 4096e6}))
    assert (busy.limit, busy.tensor) == ("tensor", 1e6)
    assert busy.microseconds == pytest.approx(1e6 / 1.8e3)


def test_the_older_tensor_core_instruction_is_slower_and_without_any_it_is_arithmetic() -> None:
    flops = work(flops={"bf16": 4096e6})
    assert predict(made(tensor={"mma.sync": 4}), 90, 132, flops).tensor == pytest.approx(1e6 / 0.63)
    assert predict(made(), 90, 132, flops).tensor == 0.0
    assert predict(made(tensor={"mma.sync": 4}), 80, 108, flops).tensor == 2e6


def test_an_array_read_many_times_comes_from_memory_once() -> None:
    one = made(loads={"128": 4})
    once = predict(one, 90, 1320, work({0: 1e6}), [1e6])
    assert once.bytes == pytest.approx(1320 * 1e6 / (132 * 64)), "the second-level cache is what remains"
    assert predict(one, 90, 1320, work({0: 1e6}), [2e9]).bytes > once.bytes


def test_too_little_under_way_costs_bandwidth() -> None:
    few, many = made(loads={"16": 1}), made(loads={"128": 4})
    there = work({0: 32768.0})
    assert predict(few, 90, 132 * 160, there).bytes > 1.5 * predict(many, 90, 132 * 160, there).bytes


def test_a_program_alone_asks_for_its_own_bytes_alone() -> None:
    """One program on 132 multiprocessors: 4 warps x 32 lanes x 16 bytes under way, a latency for each such portion; not the whole GPU's."""
    one = made(loads={"128": 1})
    found = predict(one, 90, 1, work({0: 1 << 20}), [1 << 20])
    assert found.bytes == pytest.approx((1 << 20) / (4 * 32 * 16) * RATES[90].latency)
    half = predict(one, 90, 66, work({0: 1 << 20}), [66 << 20])
    assert half.bytes == pytest.approx(found.bytes), "as long as each has a multiprocessor of its own"


def test_a_multiprocessor_has_a_port_of_64_bytes() -> None:
    """What few programs read again and again comes from the second-level cache, 64 bytes a clock each."""
    one = made(shared=100_000, bulk={"cp.async 128": 4})
    assert predict(one, 90, 2, work({0: 64e6}), [1024]).bytes == pytest.approx(1e6)
    assert predict(one, 90, 133, work({0: 64e6}), [1024]).bytes == pytest.approx(2e6), "the fullest multiprocessor runs two"


def test_what_cannot_run_takes_forever_and_nothing_takes_no_time() -> None:
    assert predict(made(shared=1 << 20), 90, 100, work()).microseconds == math.inf
    assert predict(made(), 90, 0, work()).microseconds == 0.0
    with pytest.raises(KeyError):
        predict(made(), 70, 1, work())


def test_why_a_kernel_cannot_run() -> None:
    assert "needs 300000 bytes of shared memory; a program on sm_90 has at most 232448" in cannot_run(made(shared=300000))
    assert "needs 255 registers for each of 512 threads; a multiprocessor has 65536" in cannot_run(made(registers=255, warps=16))
    assert "columns of tensor memory" in cannot_run(Report("k", 100, 32, 0, 0, 0, 4, 1024))


def test_loops_count_as_often_as_they_run() -> None:
    looping = made(instructions=100, loops=[Loop(10, 60, 50, 16, 0)])
    pass_of_text = 16 * 32 * 4
    plain = predict(looping, 90, 132, work(loops=(Passes(-1, 10.0, 10.0 * pass_of_text),)))
    assert (plain.passes, plain.issue) == (10.0, 100 + 9 * 50)
    unrolled = predict(looping, 90, 132, work(loops=(Passes(-1, 40.0, 10.0 * pass_of_text),)))
    assert unrolled.passes == 10.0, "four passes of the text are one of the machine's"


def test_a_loop_within_a_loop() -> None:
    nested = made(instructions=100, loops=[Loop(0, 90, 90, 0, 0), Loop(10, 50, 40, 16, 0)])
    found = predict(nested, 90, 132, work(loops=(Passes(-1, 3.0, 0.0), Passes(0, 12.0, 12.0 * 2048))))
    assert found.issue == 100 + 11 * 40 + 2 * 50


def test_loops_that_the_assembler_took_apart() -> None:
    """The text has one loop, the machine code an unrolled one and one for the rest: the longest stands for all."""
    found = predict(
        made(instructions=200, loops=[Loop(0, 100, 100, 64, 0), Loop(110, 150, 40, 16, 0)]), 90, 132,
        work(loops=(Passes(-1, 40.0, 40.0 * 2048),)),
    )  # fmt: skip
    assert (found.passes, found.issue) == (10.0, 200 + 9 * 100)


def test_rates_are_those_that_nvidia_publishes() -> None:
    """Dense TFLOP/s in 16 bits, with the clock that the figure is given for, and the bytes of a clock for each multiprocessor."""
    for arch, clock, peak in ((80, 1.41, 312), (90, 1.83, 989), (100, 1.855, 2250)):
        has = RATES[arch]
        assert has.multiprocessors * has.flops["bf16"] * clock / 1e3 == pytest.approx(peak, rel=0.01)
    h200 = RATES[90]
    assert h200.bandwidth / h200.multiprocessors / h200.ghz / 1e9 == pytest.approx(20.2, rel=0.01)


KERNEL = """module {
  tt.func public @k(%x: !tt.ptr<bf16> {tt.divisibility = 16 : i32} loc("x"(#loc)), %y: !tt.ptr<f32>, %n: i32, %scale: f32) attributes {noinline = false} {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %one = arith.constant dense<1.000000e+00> : tensor<64xf32>
    %pid = tt.get_program_id x : i32
    %next = arith.addi %pid, %c64 : i32
    %xs = tt.splat %x : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
    %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %one) -> (tensor<64xf32>)  : i32 {
      %v = tt.load %xs : tensor<64x!tt.ptr<bf16>> loc(#loc)
      %inner = scf.for %j = %c0 to %i step %c64 iter_args(%p = %xs) -> (tensor<64x!tt.ptr<bf16>>)  : i32 {
        %w = tt.load %p, %m : tensor<64x!tt.ptr<bf16>> loc(#loc)
        scf.yield %p : tensor<64x!tt.ptr<bf16>>
      }
      scf.yield %acc : tensor<64xf32> loc(#loc)
    } loc(#loc)
    %small = arith.cmpi slt, %pid, %c0 : i32
    scf.if %small {
      tt.store %y, %scale : !tt.ptr<f32>
    } else {
      %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      tt.store %ys, %sum : tensor<64x!tt.ptr<f32>> loc(#loc)
    }
    %d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x32xf32> * tensor<32x8xf32> -> tensor<16x8xf32>
    tt.return
  }
}
"""


def test_a_kernels_text_says_what_a_program_does() -> None:
    found = program_work(KERNEL, [("*", 1), ("*", 2), ("i32", 640), ("fp32", 1.0)], (4,))
    assert found.stores == {1: 256.0}, "the branch that is taken, and no other"
    assert found.flops == {"tf32": 2.0 * 16 * 8 * 32}
    assert [(p.parent, p.passes) for p in found.loops] == [(-1, 10.0), (0, 50.0)], "the inner loop: 5 passes on average"
    assert found.loads == {0: (10 + 50) * 128.0}
    assert found.assumed == ()
    assert found.longest == 1.0


def test_programs_that_do_more_than_others() -> None:
    """A persistent kernel's loop: 10 tiles among 4 programs, of which two do 3 and two do 2."""
    strided = KERNEL.replace("%i = %c0 to %n step %c64", "%i = %pid to %n step %tiles").replace(
        "%next =", "%tiles = tt.get_num_programs x : i32\n%next ="
    )
    found = program_work(strided, [("*", 1), ("*", 2), ("i32", 10), ("fp32", 1.0)], (4,))
    assert found.loops[0].passes == 2.5
    assert found.longest == pytest.approx(1.0), "the dot outweighs what the loop moves"
    moving = "\n".join(line for line in strided.splitlines() if "tt.dot" not in line)
    assert program_work(moving, [("*", 1), ("*", 2), ("i32", 10), ("fp32", 1.0)], (4,)).longest > 1.05


def test_what_a_text_does_not_tell_is_said() -> None:
    found = program_work(
        KERNEL.replace("tt.get_program_id x : i32", "tt.load %y : !tt.ptr<i32>"), [("*", 1), ("*", 2), ("i32", 640), ("fp32", 1.0)], (4,)
    )
    assert found.stores == {1: 130.0}, "half of each side"
    assert "each side is counted half" in found.assumed[0]
    unknown = program_work(KERNEL, [("*", 1), ("*", 2)], (1,))
    assert "a loop whose length depends on data is taken for one pass" in unknown.assumed
    assert unknown.loops[0].passes == 1.0


@cache
def real() -> dict[str, dict[str, Any]]:
    done = alone("tests.static.predicted")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize("arch", [80, 90, 100])
def test_addition_is_limited_by_bytes(arch: int) -> None:
    found = real()[f"add {arch}"]
    assert found["limit"] == "bytes"
    assert found["microseconds"] == pytest.approx(3 * 2 * 2**24 / RATES[arch].bandwidth * 1e6, rel=0.01)


@pytest.mark.parametrize("arch", [80, 90])
def test_a_large_product_is_limited_by_tensor_cores(arch: int) -> None:
    found = real()[f"matmul {arch}"]
    assert found["limit"] == "tensor"
    has = RATES[arch]
    at_best = 2 * 4096**3 / (has.multiprocessors * has.flops["bf16"] * has.ghz * 1e3)
    assert found["microseconds"] == pytest.approx(at_best / found["tail"], rel=0.01)
    assert found["passes"] == pytest.approx(64 * tiles_of_a_program(arch), rel=0.02)


def tiles_of_a_program(arch: int) -> float:
    """Of the 512 tiles of the large product: one on sm_80; later, programs walk over them, one for each multiprocessor."""
    return 1 if arch == 80 else 512 / RATES[arch].multiprocessors


def test_a_product_with_few_columns_to_sum_is_limited_by_bytes() -> None:
    assert real()["matmul_small_k 90"]["limit"] == "bytes"


@pytest.mark.parametrize("arch", [80, 90, 100])
def test_loops_of_real_kernels_run_as_often_as_their_text_says(arch: int) -> None:
    assert real()[f"softmax_long {arch}"]["passes"] == 65536 / 4096
    assert real()[f"matmul {arch}"]["passes"] == pytest.approx(64 * tiles_of_a_program(arch), rel=0.02)
    product = real()[f"matmul {arch}"]["loops"]
    hot = max(
        product, key=lambda loop: (loop["bytes"], loop["tensor"])
    )  # of tiles that are copied behind the registers' backs, no bytes are counted
    assert hot["tensor"] > 0
    assert not [a for a in product for b in product if a["first"] < b["first"] < a["last"] < b["last"]], "loops are nested"


def test_many_launches_are_predicted_in_child_processes() -> None:
    """One that does not compile, one that is too much for the assembler and one that kills its process leave the others unharmed."""
    found = real()["all"]
    assert found["good"]["failure"] == ""
    assert found["good"]["microseconds"] > 0
    assert "incompatible" in found["broken"]["failure"] or "shape" in found["broken"]["failure"], found
    assert "\n" not in found["broken"]["failure"]
    assert "Insufficient registers" in found["large"]["failure"], "what the assembler says, not where it was called"
    assert found["large"]["microseconds"] is None, "not to be had"
    assert "killed by signal 9" in found["killed"]["failure"]
