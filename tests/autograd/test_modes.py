"""Grad modes: nested, as decorators, around generators with whatever is thrown into them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tritensor as tt

on = tt.is_grad_enabled


def test_modes_nest_and_leave_what_they_found() -> None:
    with tt.no_grad():
        with tt.enable_grad():
            assert on()
            with tt.no_grad():
                assert not on()
            assert on()
        assert not on()
        with tt.set_grad_enabled(True):
            assert on()
        assert not on()
    assert on()


def test_one_mode_entered_twice() -> None:
    mode = tt.no_grad()
    with mode:
        with mode:
            assert not on()
        assert not on()
    assert on()


def test_a_mode_ends_with_an_error() -> None:
    for error in (ValueError, KeyboardInterrupt, SystemExit):
        with pytest.raises(error), tt.no_grad():
            raise error
        assert on()


def test_set_grad_enabled_twice() -> None:
    mode = tt.set_grad_enabled(False)
    assert not on()
    tt.set_grad_enabled(True)
    for _ in range(2):
        with mode:
            assert not on()
        assert on()


def test_set_grad_enabled_decorates() -> None:
    quiet = tt.set_grad_enabled(False)(on)
    assert on()
    assert not quiet()
    assert on()


def test_inference_mode() -> None:
    @tt.inference_mode
    def inside() -> tuple[bool, bool]:
        return tt.is_inference_mode_enabled(), on()

    @tt.inference_mode(False)
    def outside() -> tuple[bool, bool]:
        return tt.is_inference_mode_enabled(), on()

    assert inside() == (True, False)
    with tt.no_grad():
        assert outside() == (False, True)
        assert not on()
    with tt.inference_mode():
        assert tt.is_inference_mode_enabled()
        with tt.inference_mode(False):
            assert not tt.is_inference_mode_enabled()
        assert tt.is_inference_mode_enabled()
    assert not tt.is_inference_mode_enabled()


def test_what_is_thrown_into_a_generator_arrives_in_its_mode() -> None:
    @tt.no_grad()
    def steps() -> Iterator[Any]:
        for n in range(3):
            try:
                yield n, on()
            except (KeyError, KeyboardInterrupt) as error:
                yield type(error).__name__, on()

    running = steps()
    assert next(running) == (0, False)
    assert on()
    assert running.throw(KeyError("x")) == ("KeyError", False)
    assert on()
    assert next(running) == (1, False)
    assert running.throw(KeyboardInterrupt) == ("KeyboardInterrupt", False)
    assert on()


def test_a_generator_is_closed_in_its_mode() -> None:
    seen: list[tuple[str, bool]] = []

    @tt.no_grad()
    def steps() -> Iterator[int]:
        try:
            yield 1
        except GeneratorExit:
            seen.append(("exit", on()))
            raise
        finally:
            seen.append(("end", on()))

    running = steps()
    next(running)
    running.close()
    assert seen == [("exit", False), ("end", False)]
    assert on()


def test_a_generator_takes_and_returns_values() -> None:
    @tt.no_grad()
    def steps() -> Iterator[Any]:
        got = yield on()
        got = yield got, on()
        return got

    running = steps()
    assert next(running) is False
    assert running.send("a") == ("a", False)
    with pytest.raises(StopIteration) as end:
        running.send("b")
    assert end.value.value == "b"
    assert on()


# -- modes and the graph
def test_modes() -> None:
    x = tt.ones(1, requires_grad=True)
    assert on()
    with tt.no_grad():
        assert not on()
        assert not (x * 2).requires_grad
        with tt.enable_grad():
            assert (x * 2).requires_grad
        assert not on()
    with tt.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert on()
    with tt.inference_mode():
        assert not (x * 2).requires_grad

    @tt.no_grad()
    def frozen() -> tt.Tensor:
        return x * 2

    assert not frozen().requires_grad
    assert on()


def test_a_mode_is_restored_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), tt.no_grad():
        _ = 1 / 0
    assert on()
