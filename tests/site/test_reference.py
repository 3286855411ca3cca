"""The reference: every public name is told once, has a text, and its examples say what is so."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import tritensor as tt
from docs.site import examples, links
from docs.site.names import NO_PAGE, PAGES, listed
from docs.site.reference import Reference, members, own_doc
from docs.site.signatures import signature


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference()


def test_every_public_name_of_the_front_door_is_listed(reference: Reference) -> None:
    there = {e.full for e in reference.entries()} | {"tritensor.Tensor"}
    for groups in reference.pages.values():
        for group in groups:
            there |= {e.full for e, _ in group.elsewhere} | {e.full for e in group.in_place}
    modules = {n for n in dir(tt) if inspect.ismodule(getattr(tt, n))}
    told = {g.group.module.split(".")[1] for groups in reference.pages.values() for g in groups if "." in g.group.module}
    lost = modules - told - NO_PAGE
    assert not lost, f"modules without a page in docs/site/names.py: {sorted(lost)}"
    public = {
        n
        for n in tt.__all__
        if callable(getattr(tt, n)) and not inspect.ismodule(getattr(tt, n)) and not isinstance(getattr(tt, n), tt.dtype)
    }
    lost = {n for n in public if f"tritensor.{n}" not in there}
    assert not lost, f"public and on no page: {sorted(lost)}"


def test_pages_name_modules_that_are_there() -> None:
    for page in PAGES:
        for group in page.groups:
            assert inspect.ismodule(importlib.import_module(group.module)), group.module


def test_no_name_is_told_twice(reference: Reference) -> None:
    told = [e.full for e in reference.entries()]
    assert len(told) == len(set(told))
    assert len(told) > 1500


def test_every_name_says_something(reference: Reference) -> None:
    silent = [
        e.full
        for e in reference.entries()
        if not ((e.value.__doc__ if inspect.isclass(e.value) else inspect.getdoc(e.value)) or "").strip()
    ]
    assert not silent, f"without a docstring: {silent}"
    parroting = [
        e.full for e in reference.entries() if (inspect.getdoc(e.value) or "").strip(" .").lower() == e.name.replace("_", " ").lower()
    ]
    assert not parroting, f"the docstring says no more than the name: {parroting}"


def test_every_member_of_a_class_says_something(reference: Reference) -> None:
    silent = []
    for told in reference.entries():
        chain = [b for b in told.value.__mro__ if b is not object] if inspect.isclass(told.value) else []
        for base in (b for b in chain if b.__module__.startswith("tritensor")):
            for name, member in vars(base).items():
                here = inspect.isroutine(member) or isinstance(member, property)
                if here and not name.startswith("_") and not any(own_doc(vars(b)[name]) for b in chain if name in vars(b)):
                    silent.append(f"{told.full}.{name}")
    assert not silent, f"without a docstring, and on no page therefore: {silent}"


def test_a_function_stands_under_its_own_name_and_others_point_there(reference: Reference) -> None:
    told = {e.full for e in reference.entries()}
    other = {e.full: where for groups in reference.pages.values() for g in groups for e, where in g.elsewhere}
    assert "tritensor.abs" in told
    assert other["tritensor.absolute"] == "tritensor.abs"
    assert other["tritensor.ger"] == "tritensor.outer"


def test_words_lead_where_they_mean(reference: Reference) -> None:
    assert reference.resolve("add") == "tritensor.add"
    assert reference.resolve("F.relu") == "tritensor.nn.functional.relu"
    assert reference.resolve("nn.Linear") == "tritensor.nn.Linear"
    assert reference.resolve("zero_grad", "tritensor.nn.Module") == "tritensor.nn.Module.zero_grad"
    assert reference.resolve("functional.pad", "tritensor.vision.transforms.Pad") == "tritensor.vision.transforms.functional.pad"
    assert reference.resolve("no_such_name") is None
    assert reference.resolver(tt.gather, "tritensor")("index") is None, "a parameter of the function is no link"
    assert reference.resolver(tt.sum, "tritensor")("float") is None


def test_signatures_are_those_that_callers_use(reference: Reference) -> None:
    assert signature(tt.gather, reference.class_named) == (
        "(input: ~tritensor.Tensor, dim: int, index: ~tritensor.Tensor, *, sparse_grad: bool = False, out: ~tritensor.Tensor | None = None)"
        " -> ~tritensor.Tensor"
    )
    assert signature(tt.nn.Linear, reference.class_named).startswith("(in_features: int, out_features: int, bias: bool = True")
    assert all(not re.search("<|ForwardRef|boundary", signature(e.value, reference.class_named)) for e in reference.entries())


def test_enumerations_and_named_tuples_are_told_as_such(reference: Reference) -> None:
    text = reference.text()
    assert "Members: ``NONE``, ``WARMUP``, ``RECORD``, ``RECORD_AND_SAVE``." in text["profiler.rst"]
    assert "training: ~tritensor.onnx.TrainingMode = TrainingMode.EVAL" in text["onnx.rst"]
    assert signature(tt.debug.Wait, reference.class_named) == "(kind: str, line: str, times: int)"


def test_the_examples_say_what_is_so() -> None:
    assert not examples.failures()


def test_examples_are_many_and_are_found() -> None:
    names = {t.name for t in examples.tests()}
    assert len(names) >= 55
    assert {"tritensor.einsum", "tritensor.nn.Linear", "tritensor.Tensor.backward", "tritensor.autograd.grad"} <= names


def test_examples_of_pages_are_found() -> None:
    assert "docs/coming_from_pytorch.md" in {t.name for t in examples.of_pages()}


@pytest.mark.parametrize("page", sorted(links.DOCS.glob("*.md")), ids=lambda p: p.stem)
def test_the_code_of_a_page_is_code(page: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        if not block.startswith(">>>"):
            compile(block, str(page), "exec")


def test_an_example_that_is_wrong_is_told() -> None:
    import doctest

    test = doctest.DocTestParser().get_doctest(">>> tt.ones(2).sum()\ntensor(3.)\n", {"tt": tt}, "planted", None, 0)
    said = examples.run(test)
    assert "Expected:\n    tensor(3.)\nGot:\n    tensor(2.)" in said


def test_members_are_those_that_say_something() -> None:
    found = dict(members(tt.nn.Module))
    assert {"parameters", "to", "state_dict"} <= found.keys()
    assert not any(name.startswith("_") for name in found)


def test_a_class_names_the_public_class_behind_a_silent_base(reference: Reference) -> None:
    text = reference.text()["training.rst"]
    told = text[text.index(".. py:class:: EarlyStopping") : text.index(".. py:function:: find_batch_size")]
    assert "Bases: :py:class:`tritensor.training.Callback`" in told


def test_each_page_says_how_much_it_holds() -> None:
    for page, groups in listed().items():
        assert page.file == "tensor" or any(g.told or g.elsewhere for g in groups), f"{page.file} is empty"
        assert page.intro
        assert page.title


# ------------------------------------------------------------------------------------------------- links
def test_links_are_turned_for_the_site() -> None:
    on = links.on_the_site
    assert on("[how](../CONTRIBUTING.md#add-an-op)") == "[how](contributing.md#add-an-op)"
    assert on("[d](differences.md)") == "[d](coming_from_pytorch.md)"
    assert on("[api.md](api.md)") == "[](api.md)", "the page's title stands there"
    assert on("[the script](../examples/train_gpt.py)") == "the script (`examples/train_gpt.py`)"
    assert on("`[a](../README.md)`") == "`[a](../README.md)`", "code stays as it is"
    assert on("![p](digits.png) [h](https://x.org)") == "![p](digits.png) [h](https://x.org)"
    assert on("[gone](no_such.md)") == "[gone](no_such.md)", "for the build to name"


def test_sections_of_other_files() -> None:
    text = "# A\n\nzero\n\n## B\n\none\n\n```sh\n# no heading\n```\n\n### C\n\ntwo\n\n## D\n\nthree\n"
    assert links.section(text, "A") == "zero\n"
    assert links.section(text, "B") == "one\n\n```sh\n# no heading\n```\n\n### C\n\ntwo\n"
    assert links.section(text, "C") == "two\n"
    with pytest.raises(ValueError, match="no heading 'E'"):
        links.section(text, "E")
    filled = links.filled("before\n<!-- section of ../README.md: Two commands -->\nas on a code host\n<!-- end -->\nafter")
    assert "make demo" in filled
    assert "(digits.png)" in filled, "a picture of README's is found from docs/"
    assert "as on a code host" not in filled


def test_pages_ask_for_sections_that_are_there() -> None:
    for page in links.DOCS.glob("*.md"):
        links.filled(page.read_text())


def test_contents_name_every_page() -> None:
    index = "# T\n\n## One\n\n- [a](a.md): x\n- [gone](b.md)\n\n## Two\n\n- [n](notebooks/01.ipynb)\n"
    made = links.contents(index, {"index", "a", "notebooks/01", "left"})
    assert ":caption: One\n\na <a>\n" in made
    assert ":caption: Two\n\nn <notebooks/01>\n" in made
    assert ":caption: More\n\nleft\n" in made
