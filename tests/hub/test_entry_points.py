"""Models of installed packages: found by name, imported when asked for, one broken package beside the others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import tritensor as tt
from tritensor import hub, models
from tritensor.ground.errors import PluginError

NETS = '''
"""Nets of somebody else."""
from tritensor import nn

class Tiny(nn.Linear):
    """A tiny net."""
    def __init__(self, width: int = 2) -> None:
        super().__init__(width, 1)
    @classmethod
    def from_config(cls, config):
        return cls(config["width"])
word = "no function"
'''
POINTS = {
    "somebody": "[tritensor.models]\ntiny_net = somebody_nets:Tiny\nword = somebody_nets:word\nshared = somebody_nets:Tiny\n",
    "broken": "[tritensor.models]\nbroken_net = broken_nets:Net\nshared = broken_nets:Net\n",
}


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    room = tmp_path / "packages"
    for name, points in POINTS.items():
        info = room / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(points)
    (room / "somebody_nets.py").write_text(NETS)
    (room / "broken_nets.py").write_text("raise ZeroDivisionError('by nought')\n")
    monkeypatch.syspath_prepend(str(room))
    for name in ("somebody_nets", "broken_nets"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return room


def test_they_are_listed_without_being_imported(packages: Path) -> None:
    assert {"tiny_net", "broken_net", "resnet18"} <= set(hub.list())
    assert "somebody_nets" not in sys.modules


def test_one_is_made_by_its_name(packages: Path, tmp_path: Path) -> None:
    assert type(models.tiny_net(3)).__name__ == "Tiny"
    assert hub.help("tiny_net").splitlines()[-1] == "A tiny net."
    made = tmp_path / "net"
    made.mkdir()
    (made / "config.json").write_text('{"width": 5}')
    tt.io.save_file(models.tiny_net(5).state_dict(), made / "model.safetensors")
    assert hub.load(made, "tiny_net").in_features == 5  # by its class's from_config
    assert "broken_nets" not in sys.modules


def test_a_broken_package_is_named_and_takes_nothing_else_away(packages: Path) -> None:
    told = r"the plug-in 'broken' \(tritensor.models: broken_net = broken_nets:Net\) raises when it is imported: ZeroDivisionError: by nought; mend it"
    with pytest.raises(PluginError, match=told):
        hub.load("a/b", "broken_net")
    with pytest.raises(PluginError, match="is a str; an entry point names a function or class"):
        models.word  # noqa: B018
    with pytest.raises(
        ValueError, match=r"'shared' is in 2 installed packages: 'broken' \(broken_nets:Net\), 'somebody' \(somebody_nets:Tiny\)"
    ):
        models.shared  # noqa: B018
    assert models.tiny_net() is not None
    with pytest.raises(AttributeError, match="no attribute 'nobodys', and no installed package has a model of that name"):
        models.nobodys  # noqa: B018
