"""Plugin of the suite under TRITENSOR_LAZY=1: what a call raises late is raised inside of `pytest.raises`, and tests of how eager calls run are left out, with the reason."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from _pytest.raises import RaisesExc

# What asks how eager calls run, by the beginnings of tests' names, and why nothing of it holds where calls wait.
EAGER = {
    "tests/dispatch/": "plans of single calls, which lazy regions do not take",
    "tests/replay/": "recordings of single corners, and when they are made",
    "tests/bench/": "what single calls cost",
    "tests/fusion/": "graphs that are written and planned by hand",
    **{f"tests/compilation/test_{name}.py": "regions of functions, which are part of a program's" for name in ("control", "explain", "regions")},
    "tests/cuda/memory/": "memory at a line: what nobody holds is never there, what is held comes later",
    "tests/cuda/driver/": "calls of the driver at a line",
    "tests/cuda/streams/": "launches on a stream, or in a capture, at a line",
    "tests/cuda/test_device_errors.py": "which of two launches has reported first",
    "tests/autograd/test_checkpoint.py::test_what_a_second_run_gives": "which arrays are alive at a line",
    "tests/data/test_workers.py::test_batches_of_many_sizes": "memory that is used again at once",
    "tests/distributions/test_draws.py::test_each_example_of_a_vmap": "equal bits of a loop and of a batch, which are fused in other ways",
    "tests/familiar/test_cuda.py::test_watching_memory": "memory at a line",
    "tests/fuzz/test_fuzz.py::test_programs_of_fixed_seeds[modules]": "equal bits of two runs, which are fused in other ways where other values are held",
    "tests/kernels/convolution/test_gpu_tiles.py::test_both_gradients": "copies that two launches share",
    "tests/kernels/products/test_epilogues.py::test_without": "memory at a line",
    "tests/kernels/shaping/test_views.py::test_shares": "launches counted at a line",
    "tests/llvm/test_threads.py": "which calls threads share",
    "tests/nn/attention/test_layout.py": "launches of single calls",
    "tests/nn/recurrent/test_nets.py": "launches of single calls",
    "tests/nn/utils/test_gradients_together.py": "launches of single calls",
    "tests/lazy_evaluation/test_following.py": "paths of a region of its own",
    "tests/tensor/test_exchange.py::test_memory_lives": "memory at a line",
    "tests/tensor/test_keywords.py::test_functions_that_a_class_holds": "equal bits of two calls, which are fused in other ways",
    "tests/tensor/test_strided.py::test_every_write_without_arguments": "equal bits of numpy's functions and of a group's, which may differ in the last",
    "tests/tensor/test_views_by_plans.py": "plans of single calls",
    "tests/autograd/test_slices.py::test_a_tensor_split": "launches counted at a line",
    "tests/autograd/test_slices.py::test_a_long_loop": "launches counted at a line",
    "tests/kernels/reductions/test_reduction.py::test_ops_take_dims": "equal bits of two sums, of which one is fused with what makes its rows",
    "tests/torch_compat/test_foreach.py::test_what_stands": "equal bits of numpy's functions and of a group's, which may differ in the last",
    "tests/table/test_registration.py::test_the_rule_of_an_op_with_two": "an op whose kernels compute something else than its numpy side: a group takes the kernels' formulas on both",
    "tests/table/test_replacement.py::test_the_librarys_own": "the same",
    "tests/table/test_replacement.py::test_an_op_that_nobody": "the same",
    "tests/testing/test_op_check.py::test_a_finding_is_told": "which kernel has stored a value that a call gave",
    "tests/multiprocessing/test_sharing.py::test_sharing_moves_every": "who holds memory, which known paths do as well until garbage is collected",
    "tests/test_debug.py::test_compiles_lists": "compilations at a line, and of single calls",
    "tests/test_debug.py::test_the_variable_prints": "compilations of single calls",
    "tests/training/test_batch_size.py::test_bytes_and_seconds": "what calls cost by the clock, and bytes at a line",
    "tests/triton_kernels/test_compiled.py::test_later_calls_carry": "launches counted at a line",
    "tests/vision/second_version/test_recorded.py::test_functionals_give_what_torchvisions_do[F.resized_crop(x, 2": "a corner that is chosen among equals, by the last bit of a cosine",
    "tests/vision/second_version/test_samples.py::test_policies": "the type of a tensor whose array is not there, which is a subclass of Tensor",
    "tests/data/test_workers.py::test_memory_is_used_again": "memory that is used again at once",
    "tests/multiprocessing/test_sharing.py::test_a_tensor_that_is_alone": "who holds memory, which what waits does as well",
    "tests/site/test_reference.py::test_the_examples": "regions of functions, which are part of a program's",
    "tests/onnx/test_models.py::test_exports_in_several": "the type of a tensor's array",
    "tests/tools/test_precompile.py::test_a_script_that_fails": "what a program launches that asks for no value",
    "tests/tools/test_precompile.py::test_one_bad": "the same",
    "tests/tools/test_precompile.py::test_a_killed": "the same",
    "tests/triton_kernels/test_subscript.py::test_as_an_op_of_the_table": "recordings of single corners",
    "tests/tuning/test_force.py::test_replayed": "recordings of single corners",
    "tests/tuning/test_tuned_file.py::test_a_config_that": "the text of an error without the line that is told beside it",
    "tests/test_memory_trace.py": "memory at a line",
    **{
        f"tests/profiler/test_{name}": "times, launches and memory at a line"
        for name in (
            "device.py",
            "profile.py::test_a_training_step",
            "profile.py::test_every_way",
            "profile.py::test_memory_of_a_call",
            "table_and_trace.py::test_memory_over_time",
            "table_and_trace.py::test_ranges_for",
            "work.py",
        )
    },
    "tests/tensor/test_lobpcg.py::test_gradients_of_both": "equal bits of two runs, which are fused in other ways",
    "tests/threads/test_first_use.py": "first calls, which build plans",
}  # fmt: skip


def _settle() -> None:
    """Run what waits in this thread, also what nobody holds: its errors are asked for."""
    from tritensor.ground.thread_state import here

    if here.segment is not None:
        here.cursor.leave()
        here.segment.settle(everything=True)


class Lazily:
    """A value is asked for at the end of each `pytest.raises`, and of each test, so that no error of one test comes up in the next."""

    def __init__(self) -> None:
        leave = RaisesExc.__exit__

        def leave_settled(self: Any, kind: Any, error: Any, trace: Any) -> Any:
            if error is None:
                try:
                    _settle()
                except BaseException as late:
                    late.__notes__ = []  # which say the op and the line; the message is asked for
                    return leave(self, type(late), late, late.__traceback__)
            return leave(self, kind, error, trace)

        RaisesExc.__exit__ = leave_settled  # type: ignore[method-assign]

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect what asks how eager calls run: plans, recordings, launches counted one by one, memory at a line."""
        gone = [i for i in items if i.nodeid.startswith(tuple(EAGER))]
        config.hook.pytest_deselected(items=gone)
        items[:] = [i for i in items if not i.nodeid.startswith(tuple(EAGER))]

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self) -> None:
        """Nothing is left for the next test. What fails here the test did not ask for."""
        with contextlib.suppress(Exception):
            _settle()
