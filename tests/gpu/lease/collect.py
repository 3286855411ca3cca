"""Results of a run on a GPU, taken home: the report into bench/results, tuned configs into kernels/tuned, the README's table anew."""

from __future__ import annotations

from pathlib import Path

from bench.reports.readme_table import put, section
from bench.reports.report import RESULTS, ROOT, read_report
from tests.gpu.lease.ledger import NAME, LedgerError, read
from tests.gpu.lease.perform import write
from tritensor.ops.tuning import tuned
from tritensor.ops.tuning.tuned import FOLDER, TunedFileError


def collect(folder: Path, results: Path = RESULTS, configs: Path = FOLDER, readme: Path = ROOT / "README.md") -> list[str]:
    """Copy what stands in a run's folder, write the README's table; returns a line for each. Raises LedgerError for what is no run of a real GPU."""
    identity = read(folder / NAME)["identity"]
    gpu = identity.get("gpu") or ""
    if not gpu or gpu.startswith("emulated"):
        raise LedgerError(f"{folder / NAME}: is of {gpu or 'no GPU'}: nothing was measured")
    slug = tuned.slug(gpu)
    said = []
    report, configurations = folder / f"{slug}.json", folder / f"tuned-{slug}.json"
    if report.exists():
        content = read_report(report, "lease --collect")
        if content["ops"] != "all":
            raise LedgerError(f"{report}: is of some ops alone, and the README's table is of all")
        write(results / report.name, report.read_bytes())
        said.append(f"{report} -> {results / report.name}: {len(content['rows'])} rows")
    if configurations.exists():
        try:
            entries = tuned.read(configurations)[1]
        except TunedFileError as error:
            raise LedgerError(str(error)) from None
        write(configs / f"{slug}.json", configurations.read_bytes())
        said.append(f"{configurations} -> {configs / slug}.json: {len(entries)} entries")
    if report.exists():
        put(readme, section(results))
        said.append(f"{readme}: its table is written anew; `make pages` writes docs/performance.md")
    return said or [f"{folder}: has neither {report.name} nor {configurations.name}: nothing to take home"]
