"""Arrays that lie in any way, for loops over elements that lie one after the other: sizes are put together, elements read through a room on the stack."""

from __future__ import annotations

import functools

from tritensor.llvm.objects.heads import Heads

MOST_DIMS = 8
# A reader, in words of 8 bytes: the address of the next element, then of each dimension the size, the stride (0 where the array repeats) and the place.
READER = 1 + 3 * MOST_DIMS
_SIZES, _STRIDES, _PLACES = (8 * (1 + MOST_DIMS * k) for k in range(3))

_HELPERS = """
; how many elements an array has
define internal i64 @elements(ptr %x) {
  %count.at = getelementptr i8, ptr %x, i64 DIMS_COUNT
  %count32 = load i32, ptr %count.at
  %count = sext i32 %count32 to i64
  %dims.at = getelementptr i8, ptr %x, i64 DIMS
  %dims = load ptr, ptr %dims.at
  %n = call i64 @product(i64 %count, ptr %dims)
  ret i64 %n
}
; how many elements so many sizes make
define internal i64 @product(i64 %count, ptr %sizes) {
entry:
  br label %head
head:
  %d = phi i64 [0, %entry], [%next, %body]
  %n = phi i64 [1, %entry], [%more, %body]
  %left = icmp slt i64 %d, %count
  br i1 %left, label %body, label %end
body:
  %at = getelementptr i64, ptr %sizes, i64 %d
  %size = load i64, ptr %at
  %more = mul i64 %n, %size
  %next = add i64 %d, 1
  br label %head
end:
  ret i64 %n
}
; whether two arrays have one shape
define internal i1 @alike(ptr %x, ptr %y) {
entry:
  %countx.at = getelementptr i8, ptr %x, i64 DIMS_COUNT
  %countx = load i32, ptr %countx.at
  %county.at = getelementptr i8, ptr %y, i64 DIMS_COUNT
  %county = load i32, ptr %county.at
  %dimsx.at = getelementptr i8, ptr %x, i64 DIMS
  %dimsx = load ptr, ptr %dimsx.at
  %dimsy.at = getelementptr i8, ptr %y, i64 DIMS
  %dimsy = load ptr, ptr %dimsy.at
  %d0 = sext i32 %countx to i64
  %same = icmp eq i32 %countx, %county
  br i1 %same, label %head, label %no
head:
  %d = phi i64 [%d0, %entry], [%next, %body]
  %left = icmp sgt i64 %d, 0
  br i1 %left, label %body, label %yes
body:
  %next = sub i64 %d, 1
  %atx = getelementptr i64, ptr %dimsx, i64 %next
  %sizex = load i64, ptr %atx
  %aty = getelementptr i64, ptr %dimsy, i64 %next
  %sizey = load i64, ptr %aty
  %equal = icmp eq i64 %sizex, %sizey
  br i1 %equal, label %head, label %no
yes:
  ret i1 true
no:
  ret i1 false
}
"""

_READERS = """
; the larger of two numbers of dimensions
define internal i64 @deeper(i64 %most, ptr %x) {
  %count.at = getelementptr i8, ptr %x, i64 DIMS_COUNT
  %count = load i32, ptr %count.at
  %own = sext i32 %count to i64
  %more = icmp sgt i64 %own, %most
  %larger = select i1 %more, i64 %own, i64 %most
  ret i64 %larger
}
; put an array's sizes to those of the result: a size of 1 gives way; whether they fit
define internal i1 @joined(ptr %x, i64 %most, ptr %sizes) {
entry:
  %count.at = getelementptr i8, ptr %x, i64 DIMS_COUNT
  %count = load i32, ptr %count.at
  %own = sext i32 %count to i64
  %dims.at = getelementptr i8, ptr %x, i64 DIMS
  %dims = load ptr, ptr %dims.at
  %lead = sub i64 %most, %own
  br label %head
head:
  %d = phi i64 [0, %entry], [%next, %on]
  %left = icmp slt i64 %d, %own
  br i1 %left, label %body, label %yes
body:
  %at = getelementptr i64, ptr %dims, i64 %d
  %size = load i64, ptr %at
  %to = add i64 %lead, %d
  %place = getelementptr i64, ptr %sizes, i64 %to
  %before = load i64, ptr %place
  %one = icmp eq i64 %size, 1
  %was = icmp eq i64 %before, 1
  %same = icmp eq i64 %size, %before
  %fits = or i1 %one, %was
  %all = or i1 %fits, %same
  %kept = select i1 %one, i64 %before, i64 %size
  br i1 %all, label %on, label %no
on:
  store i64 %kept, ptr %place
  %next = add i64 %d, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}
; make the reader of an array over the result's sizes. 0: its strides say that the result does not lie in C's order; 1: they do not say so; 3: they say
; of all dimensions that it does (ground/strides.py: where a dimension lies inside another by its stride, the result's does, too)
define internal i64 @open(ptr %x, i64 %most, ptr %sizes, ptr %reader) {
entry:
  %data.at = getelementptr i8, ptr %x, i64 DATA
  %data = load ptr, ptr %data.at
  store ptr %data, ptr %reader
  %count.at = getelementptr i8, ptr %x, i64 DIMS_COUNT
  %count = load i32, ptr %count.at
  %own = sext i32 %count to i64
  %dims.at = getelementptr i8, ptr %x, i64 DIMS
  %dims = load ptr, ptr %dims.at
  %strides.at = getelementptr i8, ptr %x, i64 STRIDES
  %strides = load ptr, ptr %strides.at
  %lead = sub i64 %most, %own
  br label %head
head:
  %d = phi i64 [0, %entry], [%next, %body]
  %last = phi i64 [9223372036854775807, %entry], [%step, %body]
  %before = phi i64 [0, %entry], [%beside, %body]
  %full = phi i64 [3, %entry], [%now, %body]
  %left = icmp slt i64 %d, %most
  br i1 %left, label %body, label %done
body:
  %from = getelementptr i64, ptr %sizes, i64 %d
  %size = load i64, ptr %from
  %outer = icmp slt i64 %d, %lead
  %back = sub i64 %d, %lead
  %inside = select i1 %outer, i64 0, i64 %back
  %any = icmp sgt i64 %own, 0
  %look = select i1 %any, ptr %dims, ptr %sizes
  %look2 = select i1 %any, ptr %strides, ptr %sizes
  %size.at = getelementptr i64, ptr %look, i64 %inside
  %size.own = load i64, ptr %size.at
  %stride.at = getelementptr i64, ptr %look2, i64 %inside
  %stride.own = load i64, ptr %stride.at
  %single = icmp eq i64 %size.own, 1
  %wide = icmp ne i64 %size, 1
  %spread = and i1 %single, %wide
  %repeats = or i1 %outer, %spread
  %stride = select i1 %repeats, i64 0, i64 %stride.own
  %size.to = getelementptr i8, ptr %reader, i64 R_SIZES
  %size.place = getelementptr i64, ptr %size.to, i64 %d
  store i64 %size, ptr %size.place
  %stride.to = getelementptr i8, ptr %reader, i64 R_STRIDES
  %stride.place = getelementptr i64, ptr %stride.to, i64 %d
  store i64 %stride, ptr %stride.place
  %place.to = getelementptr i8, ptr %reader, i64 R_PLACES
  %place.place = getelementptr i64, ptr %place.to, i64 %d
  store i64 0, ptr %place.place
  %minus = sub i64 0, %stride
  %down = icmp slt i64 %stride, 0
  %length = select i1 %down, i64 %minus, i64 %stride
  %none = icmp eq i64 %stride, 0
  %less = icmp slt i64 %length, %last
  %level = icmp eq i64 %length, %last
  %smaller = icmp sle i64 %size, %before
  %tied = and i1 %level, %smaller
  %sorted = or i1 %less, %tied
  %silent = or i1 %none, %sorted
  %step = select i1 %none, i64 %last, i64 %length
  %beside = select i1 %none, i64 %before, i64 %size
  %decided = select i1 %less, i64 %full, i64 1
  %fuller = select i1 %none, i64 1, i64 %decided
  %kept = select i1 %silent, i64 %fuller, i64 0
  %lost = icmp eq i64 %full, 0
  %now = select i1 %lost, i64 0, i64 %kept
  %next = add i64 %d, 1
  br label %head
done:
  ret i64 %full
}
"""

# Runs along the last dimension: what lies together is copied, what does not is picked up one by one.
_READ = """
; the next %n elements of a reader, of BYTES bytes each, in a row from %to on
define internal void @readBYTES(ptr %reader, ptr %to, i64 %n, i64 %most) {
entry:
  %inner = sub i64 %most, 1
  %sizes = getelementptr i8, ptr %reader, i64 R_SIZES
  %strides = getelementptr i8, ptr %reader, i64 R_STRIDES
  %places = getelementptr i8, ptr %reader, i64 R_PLACES
  %size.at = getelementptr i64, ptr %sizes, i64 %inner
  %size = load i64, ptr %size.at
  %stride.at = getelementptr i64, ptr %strides, i64 %inner
  %stride = load i64, ptr %stride.at
  %place.at = getelementptr i64, ptr %places, i64 %inner
  %close = icmp eq i64 %stride, BYTES
  br label %run
run:
  %left = phi i64 [%n, %entry], [%rest, %turned], [%rest, %kept]
  %out = phi ptr [%to, %entry], [%further, %turned], [%further, %kept]
  %from = load ptr, ptr %reader
  %place = load i64, ptr %place.at
  %ahead = sub i64 %size, %place
  %short = icmp slt i64 %left, %ahead
  %k = select i1 %short, i64 %left, i64 %ahead
  %bytes = mul i64 %k, BYTES
  br i1 %close, label %copy, label %pick
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %out, ptr %from, i64 %bytes, i1 false)
  br label %moved
pick:
  %i = phi i64 [0, %run], [%i.next, %pick]
  %off = mul i64 %i, %stride
  %one.at = getelementptr i8, ptr %from, i64 %off
  %one = load iBITS, ptr %one.at, align BYTES
  %one.to = getelementptr iBITS, ptr %out, i64 %i
  store iBITS %one, ptr %one.to, align BYTES
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %k
  br i1 %i.more, label %pick, label %moved
moved:
  %walked = mul i64 %k, %stride
  %end = getelementptr i8, ptr %from, i64 %walked
  %there = add i64 %place, %k
  %further = getelementptr i8, ptr %out, i64 %bytes
  %rest = sub i64 %left, %k
  %over = icmp eq i64 %there, %size
  br i1 %over, label %turn, label %stay
stay:
  store ptr %end, ptr %reader
  store i64 %there, ptr %place.at
  br label %kept
kept:
  %more = icmp sgt i64 %rest, 0
  br i1 %more, label %run, label %done
turn:
  %d = phi i64 [%inner, %moved], [%d.outer, %carry]
  %at = phi ptr [%end, %moved], [%stepped, %carry]
  %size.d.at = getelementptr i64, ptr %sizes, i64 %d
  %size.d = load i64, ptr %size.d.at
  %stride.d.at = getelementptr i64, ptr %strides, i64 %d
  %stride.d = load i64, ptr %stride.d.at
  %place.d.at = getelementptr i64, ptr %places, i64 %d
  store i64 0, ptr %place.d.at
  %whole = mul i64 %size.d, %stride.d
  %whole.back = sub i64 0, %whole
  %begin = getelementptr i8, ptr %at, i64 %whole.back
  %outermost = icmp eq i64 %d, 0
  br i1 %outermost, label %turned.last, label %carry.try
carry.try:
  %d.outer = sub i64 %d, 1
  %size.o.at = getelementptr i64, ptr %sizes, i64 %d.outer
  %size.o = load i64, ptr %size.o.at
  %stride.o.at = getelementptr i64, ptr %strides, i64 %d.outer
  %stride.o = load i64, ptr %stride.o.at
  %place.o.at = getelementptr i64, ptr %places, i64 %d.outer
  %place.o = load i64, ptr %place.o.at
  %place.next = add i64 %place.o, 1
  store i64 %place.next, ptr %place.o.at
  %stepped = getelementptr i8, ptr %begin, i64 %stride.o
  %full = icmp eq i64 %place.next, %size.o
  br i1 %full, label %carry, label %turned.store
carry:
  br label %turn
turned.store:
  store ptr %stepped, ptr %reader
  br label %turned
turned.last:
  store ptr %begin, ptr %reader
  br label %turned
turned:
  %again = icmp sgt i64 %rest, 0
  br i1 %again, label %run, label %done
done:
  ret void
}
"""


def _filled(text: str, at: Heads, **more: int) -> str:
    words = {"DIMS_COUNT": at.dims_count, "DIMS": at.dims, "STRIDES": at.strides, "DATA": at.data,
             "R_SIZES": _SIZES, "R_STRIDES": _STRIDES, "R_PLACES": _PLACES, **more}  # fmt: skip
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, str(words[word]))
    return text


@functools.cache
def shape_functions(at: Heads) -> str:
    """@elements(x), @product(count, sizes) and @alike(x, y)."""
    return _filled(_HELPERS, at)


@functools.cache
def reading_functions(at: Heads, sizes: frozenset[int]) -> str:
    """@deeper, @joined and @open, and a @read for elements of each of these sizes in bytes."""
    return _filled(_READERS, at) + "".join([_filled(_READ, at, BYTES=size, BITS=8 * size) for size in sorted(sizes)])
