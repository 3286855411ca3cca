"""TORCH_LOGS: what PyTorch's variable of the environment asks to be told of segments, on stderr as they run."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any

from tritensor.compilation.watching import SegmentReport, watch
from tritensor.ground.call_site import warn
from tritensor.lazy_evaluation import segment as segments

TOLD = ("graph", "graph_breaks", "graph_code", "output_code", "recompiles")
# PyTorch's, which have nothing to tell of here.
_SILENT = """
all annotation aot aot_graphs aot_graphs_effects aot_joint_graph async_compile auto_chunker autograd autotuning benchmarking bytecode c10d
cache caching compiled_autograd compiled_autograd_verbose compute_dependencies cudagraph_static_inputs cudagraphs ddp ddp_graphs distributed
dtensor dynamic dynamo export fake_tensor fsdp fusion graph_code_verbose graph_region_expansion graph_sizes guards hierarchical_compile
incremental inductor inductor_metrics ir_post_fusion ir_pre_fusion kernel_code loop_ordering loop_tiling native_dsl node_runtime_estimation
not_implemented onnx onnx_diagnostics overlap overlap_scheduling perf_hints post_grad_graphs pp pre_grad_graphs recompiles_verbose schedule
side_effects sym_node torch trace_bytecode trace_call trace_shape_events trace_source verbose_guards
""".split()  # noqa: SIM905


@cache
def read_environment() -> None:
    """Do what TORCH_LOGS says, once. Names that PyTorch has not are warned of."""
    asked = [n.strip().lstrip("+-") for n in os.environ.get("TORCH_LOGS", "").split(",")]
    unknown = [n for n in asked if n and n not in TOLD and n not in _SILENT and "." not in n]
    if unknown:
        warn(f"TORCH_LOGS: {', '.join(map(repr, unknown))} is not known; what is told here is {', '.join(TOLD)}")
    told = [n for n in asked if n in TOLD]
    if told:
        segments.watchers.append(watch(lambda report: _tell(report, told)))


def _tell(report: SegmentReport, asked: list[str]) -> None:
    for name in asked:
        for line in _lines(report, name):
            print(f"[{name}] {line}", file=sys.stderr)


def _lines(report: SegmentReport, name: str) -> Any:
    if name == "graph_breaks" and "the end of" not in report.why:
        yield f"{report.line}: {report.why}, after {len(report.calls)} calls"
    elif name == "recompiles" and not report.known:
        yield f"{report.line}: a plan was made for {report.needed} calls, in {report.planned:.3f} s"
    elif name in ("graph", "graph_code"):
        yield from report.graph.code.splitlines()
    elif name == "output_code":
        for g in report.groups:
            yield f"{'fused' if g.fused else 'alone'}: {', '.join(g.calls)}"
