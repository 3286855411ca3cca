"""Models of installed packages: entry points of the group "tritensor.models", each the name of a function or class that makes a network.

    [project.entry-points."tritensor.models"]
    tiny_net = "my_package.nets:TinyNet"

They are found by name, and a package is imported when its model is asked for: one that is broken takes no other's models away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.ground.errors import ArgumentError, PluginError

GROUP = "tritensor.models"


def list_entry_points() -> dict[str, list[Any]]:
    """The entry points by name, in order of names. Nothing is imported."""
    from importlib.metadata import entry_points

    found: dict[str, list[Any]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (e.name, e.value)):
        known = found.setdefault(entry.name, [])
        if entry.value not in [e.value for e in known]:  # a package may be seen twice on the path
            known.append(entry)
    return found


def find_installed(name: str) -> Callable[..., Any] | None:
    """The function or class that makes the model of this name; None where no installed package has one.

    Raises PluginError for a package that raises when it is imported, or names what cannot be called, ValueError where two packages have the name.
    """
    found = list_entry_points().get(name, [])
    if not found:
        return None
    if len(found) > 1:
        owners = ", ".join(f"{package_name(e)!r} ({e.value})" for e in found)
        raise ArgumentError(
            f"models: {name!r} is in {len(found)} installed packages: {owners}; import the one that is meant, or pip uninstall the other"
        )
    entry = found[0]
    where = f"the plug-in {package_name(entry)!r} ({GROUP}: {entry.name} = {entry.value})"
    try:
        made = entry.load()
    except Exception as error:  # whatever the package raises
        mend = f"mend it, or pip uninstall {package_name(entry)}"
        raise PluginError(f"models: {where} raises when it is imported: {type(error).__name__}: {error}; {mend}") from error
    if not callable(made):
        raise PluginError(f"models: {where} is a {type(made).__name__}; an entry point names a function or class that makes a network")
    return made  # type: ignore[no-any-return]


def package_name(entry: Any) -> str:
    """The name under which pip knows the package of an entry point."""
    return str(getattr(getattr(entry, "dist", None), "name", None) or entry.value.partition(".")[0])
