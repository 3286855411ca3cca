"""The README's table of GPU figures, made from the reports in bench/results: `python -m bench table [--write]`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.reports.report import RESULTS, ROOT, cell, is_report, with_ratios

BEGIN, END = "<!-- python -m bench table: begin -->", "<!-- python -m bench table: end -->"
# What a reader compares libraries by, the largest row of each; everything else is in the report.
HEADLINES = (
    ("matmul", "forward", "bfloat16"), ("matmul", "backward", "bfloat16"), ("matmul", "forward", "float32"), ("linear", "forward", "bfloat16"),
    ("conv2d", "forward", "bfloat16"), ("conv2d", "backward", "bfloat16"), ("softmax", "forward", "bfloat16"), ("softmax", "backward", "bfloat16"),
    ("layer_norm", "forward", "bfloat16"), ("layer_norm", "backward", "bfloat16"), ("cross_entropy", "forward", "bfloat16"),
    ("cross_entropy", "backward", "bfloat16"), ("embedding", "forward", "float32"), ("embedding", "backward", "float32"),
    ("dropout", "forward", "bfloat16"), ("sum", "forward", "float32"), ("add", "forward", "float32"), ("gelu", "forward", "float32"),
    ("gelu", "backward", "float32"), ("adam_step", "forward", "float32"),
)  # fmt: skip


def headline(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of HEADLINES that were timed, of each the one that moves most."""
    found = []
    for key in HEADLINES:
        rows = [r for r in content["rows"].values() if (r.get("op"), r.get("corner"), r.get("dtype")) == key and "ms" in r]
        if rows:
            found.append(with_ratios(max(rows, key=lambda r: (r["flops"], r["bytes"]))))
    return found


def markdown(content: dict[str, Any]) -> str:
    """The section for one GPU."""
    roof, v = content["roofline"], content["versions"]
    rates = ", ".join(f"{k} {max(r.values()):.0f} TFLOP/s" for k, r in roof["tflops"].items() if r)
    changed = " with local changes" if content["commit"]["changed"] else ""
    out = [
        f"**{content['gpu']}**, {content['date'][:10]}, commit {content['commit']['hash'][:12] or 'unknown'}{changed}, Triton {v['triton']}, torch {v['torch']}. "
        f"Measured in the same run: copy {max(roof['copy_gbs'].values(), default=0):.0f} GB/s, {rates}. Ratios are our time over torch's: below 1 is faster.",
        "",
        "| op | type | input | ms | share of the roofline | to torch eager | to torch.compile |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in headline(content):
        out.append(
            f"| {r['op']} {r['corner']} | {r['dtype']} | {r['shape']} | {r['ms']:.3f} | {r['roof']:.2f} | {cell(r.get('ratio_torch'), missing='–')} | {cell(r.get('ratio_compile'), missing='–')} |"
        )
    out += ["", "| training step | ms | as a graph | torch | torch as a graph | torch.compile |", "|---|---|---|---|---|---|"]
    for name, r in content["training"].items():
        fields = ("eager_ms", "graph_ms", "torch_eager_ms", "torch_graph_ms", "compile_eager_ms")
        out.append(f"| {name} | {' | '.join(cell(r.get(k), '.3f', '–') for k in fields)} |")
    out += ["", "| host cost of an eager op | us | torch, us |", "|---|---|---|"]
    out += [
        f"| `{name}` | {cell(r.get('host_us'), missing='–')} | {cell(r.get('torch_host_us'), missing='–')} |"
        for name, r in content["host"].items()
    ]
    rows = [with_ratios(r) for r in content["rows"].values() if "ms" in r]
    against = [r for r in rows if "ratio_torch" in r]
    faster = sum(r["ratio_torch"] <= 1 for r in against)
    slow = ", ".join(f"{r['op']} {r['corner']} {r['dtype']}" for r in sorted(against, key=lambda r: -r["lost_ms"])[:5] if r["lost_ms"] > 0)
    out += ["", f"{faster} of {len(against)} rows are at or below torch eager." + (f" Most time is lost in {slow}." if slow else "")]
    if content["failed"] or content["not_timed"]:
        out[-1] += f" {len(content['failed'])} rows failed and {len(content['not_timed'])} were not timed: the report names them."
    return "\n".join(out)


def section(results: Path) -> str:
    """The sections of all reports in a folder. Raises SystemExit where there is none."""
    reports = [r for r in (json.loads(p.read_text()) for p in sorted(results.glob("*.json"))) if is_report(r)]
    if not reports:
        raise SystemExit(f"bench table: no report in {results}; python -m bench gpu writes one on a machine with a GPU")
    return "\n\n".join(map(markdown, reports))


def put(readme: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Write the section between its two marks. Raises SystemExit where they are not."""
    page = readme.read_text()
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise SystemExit(f"bench table: {readme} has no line {begin!r} followed by {end!r}; add both where the table belongs")
    before, rest = page.split(begin)
    readme.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the section, or write it into the README."""
    parser = argparse.ArgumentParser(prog="python -m bench table", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the reports (default: bench/results)")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--write", action="store_true", help="put it into the README, between its marks")
    given = parser.parse_args(argv)
    text = section(given.results)
    if given.write:
        put(given.readme, text)
        print(f"written to {given.readme}")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
