"""`python -m tests.mistakes.record`: asks every mistake of both devices and writes messages.json, what users read today."""

from __future__ import annotations

import json
import os

os.environ["TRITON_INTERPRET"] = "1"

from tests.mistakes import asking


def main() -> None:
    """Write the file, one row a line, so that two branches' rows merge."""
    families: dict[str, list[str]] = {}
    for m in asking.mistakes():
        families.setdefault(m.family, []).append(f"{json.dumps(m.code)}: {json.dumps(asking.answers(m), ensure_ascii=False)}")
    parts = [f"{json.dumps(k)}: {{\n" + ",\n".join(lines) + "\n}" for k, lines in families.items()]
    asking.FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    print(f"{sum(map(len, families.values()))} mistakes of {len(families)} families")


if __name__ == "__main__":
    main()
