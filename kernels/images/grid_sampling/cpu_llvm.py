"""grid_sample's reads and sums in machine code: cells that lie anywhere, position by position, plane after plane."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tritensor.llvm.loop_nest import LoopNest

_NUMBERS = {np.dtype(np.float32): ("float", 4), np.dtype(np.float64): ("double", 8)}
_POINTERS = ("planes", "given", "cells", "weights", "made")
_SIZES = ("channels", "count", "plane", "given_c", "made_c", "step")


def _taken(nest: LoopNest, t: int, number: str, item: int) -> None:
    """%cell: the one that tap t takes at position %p."""
    nest.lines.append(f"  %row{t} = mul i64 %step, {t}\n  %place{t} = add i64 %row{t}, %p")
    nest.load_element(f"cell{t}", "i64", "%cells", f"%place{t}", 8)


def _weight(nest: LoopNest, t: int, number: str, item: int) -> None:
    nest.load_element(f"weight{t}", number, "%weights", f"%place{t}", item)


@functools.cache
def function(dtype: np.dtype, taps: int, what: str) -> Any:
    """Over channels c and positions p, of a (taps, step) table of cells and of weights: "read": made[c, p] = sum over t of weights[t, p]
    planes[c, cells[t, p]]; "add": made[c, cells[t, p]] += weights[t, p] given[c, p] in float64, both nothing where a weight is 0; "along": made[t, p] +=
    planes[c, cells[t, p]] given[c, p]. plane, given_c and made_c are bytes from channel to channel. None where there is no machine code."""
    if dtype not in _NUMBERS:
        return None
    number, item = _NUMBERS[dtype]
    nest = LoopNest()
    with nest.loop("c", "%channels"):
        nest.offset_pointer("image", "%planes", ("%c", "%plane"))
        nest.offset_pointer("from", "%given", ("%c", "%given_c"))
        nest.offset_pointer("onto", "%made", ("%c", "%made_c"))
        with nest.loop("p", "%count"):
            if what != "read":
                nest.load_element("g", number, "%from", "%p", item)
            if what == "add":
                nest.lines.append("  %wide = fadd double %g, 0.0" if item == 8 else "  %wide = fpext float %g to double")
            total = "0.0"
            for t in range(taps):
                _taken(nest, t, number, item)
                if what == "read":
                    total = _read(nest, t, total, number, item)
                elif what == "add":
                    _add(nest, t, number, item)
                else:
                    _along(nest, t, number, item)
            if what == "read":
                nest.lines += [f"  %y.at = getelementptr {number}, ptr %onto, i64 %p", f"  store {number} {total}, ptr %y.at, align {item}"]
    return nest.compile((*_POINTERS, *_SIZES), _POINTERS)


def _read(nest: LoopNest, t: int, total: str, number: str, item: int) -> str:
    _weight(nest, t, number, item)
    nest.load_element(f"x{t}", number, "%image", f"%cell{t}", item)
    nest.lines += [
        f"  %none{t} = fcmp oeq {number} %weight{t}, 0.0",
        f"  %kept{t} = select i1 %none{t}, {number} 0.0, {number} %x{t}",
        f"  %share{t} = fmul {number} %kept{t}, %weight{t}",
    ]
    if total == "0.0":
        return f"%share{t}"
    nest.lines.append(f"  %total{t} = fadd {number} {total}, %share{t}")
    return f"%total{t}"


def _add(nest: LoopNest, t: int, number: str, item: int) -> None:
    _weight(nest, t, number, item)
    nest.load_element(f"old{t}", "double", "%onto", f"%cell{t}", 8)
    wide = f"fadd double %weight{t}, 0.0" if item == 8 else f"fpext float %weight{t} to double"
    nest.lines += [
        f"  %by{t} = {wide}",
        f"  %all{t} = fmul double %wide, %by{t}",
        f"  %none{t} = fcmp oeq double %by{t}, 0.0",
        f"  %share{t} = select i1 %none{t}, double 0.0, double %all{t}",
        f"  %new{t} = fadd double %old{t}, %share{t}",
        f"  store double %new{t}, ptr %old{t}.at, align 8",
    ]


def _along(nest: LoopNest, t: int, number: str, item: int) -> None:
    nest.load_element(f"x{t}", number, "%image", f"%cell{t}", item)
    nest.load_element(f"old{t}", number, "%made", f"%place{t}", item)
    nest.lines += [
        f"  %share{t} = fmul {number} %x{t}, %g",
        f"  %new{t} = fadd {number} %old{t}, %share{t}",
        f"  store {number} %new{t}, ptr %old{t}.at, align {item}",
    ]
