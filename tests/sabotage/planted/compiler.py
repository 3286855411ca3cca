"""Faults in what notes, plans and runs calls: one line each, that stands in a file once, and the line in its place."""

from __future__ import annotations

LAZY, KNOWN, FUSION = "tritensor/lazy_evaluation/", "tritensor/lazy_evaluation/known/", "tritensor/fusion/"
PATTERNS = FUSION + "patterns/"
ARRAY = "tritensor/ops/lazy_array.py"

# what the fault is: (file, what stands there, what stands there instead)
FAULTS: dict[str, tuple[str, str, str]] = {
    # -- dependencies of calls
    "calls that nobody holds, but that report, are dropped": (FUSION + "graph.py", "if call.op.reports or any(", "if any("),
    "a dependency dropped: windows are not read": (FUSION + "graph.py", "            yield x.value\n", "            continue\n"),
    "steps that report are dropped": (FUSION + "program/dataflow.py", "node.live = node.live or self.calls[node.call].op.reports", "pass"),
    "a way through a third group is not seen": (FUSION + "groups.py", "other = self.way(host, guest) or self.way(guest, host)", "other = None"),
    "groups do not know what leads to their makers": (FUSION + "groups.py", "            before |= self.groups[g].before\n", "            pass\n"),
    "a group that has grown leads to no more": (
        FUSION + "groups.py", "g.before = (g.before | own | before) & ~gone", "g.before = (g.before | own) & ~gone",
    ),
    "a window's value is not of the path": (KNOWN + "same_values.py", 'return x._replace(value=self.of(x.value))', 'return x'),
    # -- writes
    "a write-back lost": (LAZY + "storing.py", "        copy_values(storage.home, array)\n", "        pass\n"),
    "written back although a call failed": (LAZY + "segment.py", '                    _undo(calls, overwritten, failed, held)\n', '                    pass\n'),
    "memory that is written is read by another write": (
        LAZY + "storing.py",
        "homes.append((storage, copied(array, value.strides) if _memory(array) in taken else array))",
        "homes.append((storage, array))",
    ),
    "a result is the memory of a leaf": (LAZY + "storing.py", "        if _memory(array) in taken:\n", "        if False:\n"),
    "two results in one memory": (LAZY + "storing.py", "        taken.add(_memory(array))\n", ""),
    "a write over a window takes the place of all": (FUSION + "program/dataflow.py", "if base is not None and window != (made.shape, made.dtype, made.strides, 0):", "if False:"),
    "a write is announced to no segment": (ARRAY, '        if empty or segment.reads(array):\n', '        if False:\n'),
    "a write is announced to no path": (ARRAY, '        if empty or cursor.reads(array):\n', '        if False:\n'),
    "memory that is left for other memory is read late": (KNOWN + "cursor.py", 'if self.follows and any([leaf.t is t for leaf in trail_of(self.at.prev).leaves]):', 'if False:'),
    "an alias not seen: writes to memory that others hold wait": (
        LAZY + "adoption.py", "            return False\n    return True", "            pass\n    return True",
    ),
    "views of other memory are taken for views": (
        LAZY + "adoption.py", "if any([_owner(t._array) is not owner for t in family]):", "if False:",
    ),
    "a view of memory that waits begins at its start": (LAZY + "adoption.py", "        window.first = first\n", ""),
    "reads before a write are held against it": (
        LAZY + "adoption.py", "            del segment.versions[key]\n", "            pass\n",
    ),
    "what an op writes at once is not announced": (LAZY + "recording.py", "                run_before_write(x._array)\n", "                pass\n"),
    "calls overtake what was passed over": (
        LAZY + "recording.py", "if segment is not None and segment.cursor.follows:", "if False:",
    ),
    # -- memory that others write
    "memory that numpy shares is read late": (LAZY + "segment.py", "if is_shared(array):", "if False:"),
    "a path reads memory that numpy shares": (KNOWN + "binding.py", '    return not is_lent(t)\n', '    return True\n'),
    "what waits does not run before numpy is given memory": (ARRAY, "        run_before_write(array)\n        for cursor", "        for cursor"),
    "a path keeps tensors whose memory numpy was given": (ARRAY, "            cursor.forget_leaf(array)\n", "            pass\n"),
    "an array of numpy's is no shared memory": ("tritensor/tensor/functions/pointwise/operators.py", "        note_shared(other)\n", ""),
    # -- layouts and windows
    "a wrong stride: windows of a value that lies otherwise": (
        FUSION + "program/dataflow.py", "if not lies_so(x.value.shape, base.strides, x.value.strides):", "if False:",
    ),
    "a wrong stride: calls lay what windows are taken of": (
        FUSION + "plan.py", "lies.append(otherwise or value.fixed or slot.seen or any([r.step is not None for r in slot.readers]))", "lies.append(False)",
    ),
    "a window of a window begins at the first's start": (FUSION + "program/dataflow.py", "Lain(base.slot, x.shape, x.dtype, x.strides, base.first + x.first)", "Lain(base.slot, x.shape, x.dtype, x.strides, base.first)"),
    # -- what is joined
    "a part is taken from the start": (FUSION + "program/joining.py", "r._replace(first=r.first + start * r.strides[axis] * r.dtype.itemsize)", "r"),
    "a part is written over the first": (FUSION + "program/joining.py", "made.home, made.first = slot, start * slot.strides[dim] * slot.dtype.itemsize", "made.home, made.first = slot, 0"),
    "arrays that are cut in other places go together": (FUSION + "program/joining.py", "(not arrays[read.source].whole or bounds not in (None, found.bounds))", "not arrays[read.source].whole"),
    "a window of what is joined is taken for all of it": (FUSION + "program/joining.py", "(not arrays[read.source].whole or bounds not in (None, found.bounds))", "bounds not in (None, found.bounds)"),
    "rows are folded part by part": (FUSION + "program/joining.py", "            if step.rows or any([r.dtype == INDEX for r in step.reads]):\n                return None\n            for", "            for"),
    "a maker is cut that others read whole": (FUSION + "program/joining.py", " or len(readers.get(slot, ())) != self.reads[slot]", ""),
    "a maker is cut whose result outlives it": (FUSION + "program/joining.py", "slot.wanted or slot.seen or len", "len"),
    "memory of parts is made anew for each": (FUSION + "plan.py", "            if made is None:  # else another group has written its part\n", "            if True:\n"),
    "the same in a table": (FUSION + "machine_calls.py", "if p not in temporary and p not in there}", "if p not in temporary}"),
    "what is joined is wanted before it is there": (FUSION + "program/dataflow.py", "            self.put_together([where])\n", ""),
    "bytes of a constant are its number": (FUSION + "program/slots.py", "return self.slot.constant and self.dtype == self.slot.dtype", "return self.slot.constant"),
    "memory may lie as it likes though a window was taken": (ARRAY, "        self.storage.fixed = True\n", ""),
    "values may lie as they like though a window is read": (LAZY + "segment.py", "            value.fixed = True\n            return Window", "            return Window"),
    "a window of memory begins at its start": (ARRAY, "return np.ndarray(shape, dtype, memory, start + first, in_bytes)", "return np.ndarray(shape, dtype, memory, start, in_bytes)"),
    "axes that go backwards are taken for axes": (FUSION + "spaces.py", "if stride != other_stride or stride < 0:", "if stride != other_stride:"),
    "an axis in parts has one stride": (FUSION + "spaces.py", "            stride *= n\n        made += reversed(steps)", "        made += reversed(steps)"),
    "what one group makes another reads in another order": (FUSION + "fitting.py", "        if _agree(host, guest, found):\n", "        if True:\n"),
    # -- live memory
    "live memory reused: donors that are read again": (FUSION + "plan.py", "    for item, gone in zip(items, last, strict=True):\n        if type(item) is Fused", "    for item, gone in zip(items, read, strict=True):\n        if type(item) is Fused"),
    "live memory reused: what a call may look at": (FUSION + "plan.py", "free = [k for k in gone if k in memory and k not in lent]", "free = [k for k in gone if k in memory]"),
    "an input is overwritten that is read twice": (FUSION + "plan.py", "    if len(found) != 1:\n", "    if not found:\n"),
    "an input is overwritten that lies in another way": (FUSION + "plan.py", "mine.shape != out.shape or mine.strides != out.strides", "mine.shape != out.shape"),
    # -- plans of other graphs
    "a plan for leaves that lie in another way": (FUSION + "structure.py", "                    add((x.shape, x.dtype, x.strides, x.device))\n                add(n)", "                    add((x.shape, x.dtype, x.device))\n                add(n)"),
    "a plan with other numbers": (FUSION + "structure.py", "add(kind if k in seeds_at else number_part(x) if free else (kind, x, str(x)) if not x else (kind, x))", "add(kind)"),
    "a plan with other attributes": (FUSION + "structure.py", "            add(replay.attributes_part(attrs))\n", ""),
    "a plan of another window": (FUSION + "structure.py", "x.shape, x.dtype, x.strides, x.first)\n    if kind is tuple", "x.shape, x.dtype, x.strides)\n    if kind is tuple"),
    "a plan that gives other results": (FUSION + "structure.py", "            if y in wanted:\n                kept.append(y)\n                add((y.strides, y.fixed, True))", "            if y in wanted:\n                kept.append(y)\n                add(y.fixed)"),
    "a draw's place reused": (KNOWN + "ending.py", '            call.attrs["seed"], call.attrs["offset"] = seed, offset\n', "            pass\n"),
    "a plan draws as the last time": (FUSION + "structure.py", "            found[k] = call.attrs[name]\n", "            pass\n"),
    "a table's numbers are those of its first run": (FUSION + "machine_calls.py", "if frame.numbers is not numbers:", "if frame.numbers is None:"),
    "an array that was asked for is not told what it is": (KNOWN + "finish.py", "not (views or cursor.given)", "not views"),
    # -- the trie
    "gradients recorded or not: the same path": (KNOWN + "cursor.py", "record.enabled is state.enabled and bind", "bind"),
    "the same on the quick way": (KNOWN + "door_code.py", " and r.enabled is state__.enabled", ""),
    "numbers of other types are the same": (KNOWN + "door_code.py", '(type__({v}) is r.{p}.kind and r.{p}.same == {v})', 'r.{p}.t == {v}'),
    "-0.0 is 0.0": (KNOWN + "places.py", 'return value if kind is float and value == 0.0 else None if value is None else _Same(value)', 'return None if value is None else _Same(value)'),
    "a leaf not re-bound: its second use is not asked": (KNOWN + "binding.py", '            return value is place.t\n', '            return True\n'),
    "a leaf of another layout": (KNOWN + "binding.py", '        if layout_of(t._array) is not leaf.layout:\n            return False\n', ''),
    "a parameter of another layout": (KNOWN + "finish.py", '            may_run = False\n', '            pass\n'),
    "a leaf in the graph is taken for a constant": (KNOWN + "binding.py", 'if t._tracked != leaf.tracked or (', 'if ('),
    "a tensor given twice is bound twice": (KNOWN + "binding.py", '        if changed and any([leaf is place and t is not value for leaf, t in changed]):  # it was given twice\n            return False\n', ''),
    "a leaf that the graph goes on from is its end": (KNOWN + "binding.py", ' or (t._node is None) != leaf.ends', ''),
    "a leaf of another class": (KNOWN + "binding.py", 'type(value) is not place.of or not _lies_as', 'not _lies_as'),
    "a path goes on that looking at arguments has left": (KNOWN + "cursor.py", '                if self.at is not at:  # looking at what was given has left the path\n                    return None\n', ''),
    "truths are numbers in tuples": (KNOWN + "places.py", '(type(other) is self.kind and bool(other == self.value))', 'bool(other == self.value)'),
    "a leaf that was written is none": (KNOWN + "recording.py", "if leaf.memory is not leaf.array or id(leaf.value) in self.known_leaves:", "if id(leaf.value) in self.known_leaves:"),
    "a tensor that looks elsewhere is told again": (KNOWN + "recording.py", '            notes.spoil("it lets a tensor look at another array")\n', "            pass\n"),
    "memory of nobody is read again": (KNOWN + "windows.py", '        if leaf is None:\n            return None\n        strides', '        if leaf is None:\n            continue\n        strides'),
    "a window of a leaf begins at its start": (KNOWN + "windows.py", 'Derived(value, leaf, strides, first_address(value.array) - first_address(leaf.array))', 'Derived(value, leaf, strides, 0)'),
    "a branch hangs on calls of its own": (KNOWN + "same_values.py", '        told.inputs = self.of(call.inputs)\n', ''),
    "a branch of the trie skipped": (KNOWN + "cursor.py", "known = [at, *at.prev.others] if at.asked is not None else at.prev.others", "known = [at]"),
    "what was passed over is called with the grad mode of now": (KNOWN + "cursor.py", "                state.enabled = record.enabled\n                writer.repeat", "                writer.repeat"),
    "what was passed over draws anew": (KNOWN + "cursor.py", "drawn, here.places = here.places, places", "drawn, here.places = here.places, here.places"),
    "an array that was asked for is left behind": (KNOWN + "cursor.py", "                    array.stand_for(t._array)\n", "                    pass\n"),
    "settings change and paths stay": (KNOWN + "cursor.py", "        cursor.leave()\n        cursor.roots.clear()\n        cursor.latest = NOWHERE", "        cursor.leave()\n        return"),
    "a version check skipped: writes of a path are not counted": (KNOWN + "finish.py", "        if h in trail.versions:\n", "        if False:\n"),
    "a tensor that was handed out is counted as the next": (KNOWN + "finish.py", "            tensors[k] = h.t\n", "            pass\n"),
    "references are counted on another path's tensors": (KNOWN + "finish.py", "if cursor.counted[0] is not trail:", "if cursor.counted[0] is None:"),
    "a version check skipped: views count for themselves": (KNOWN + "fresh.py", "t._version_counter, t._view_path = version_of(base), (base, *steps)", "t._view_path = (base, *steps)"),
    "views of what no record has made": (KNOWN + "ending.py", " and not h.lost for h in self.hands])", " for h in self.hands])"),
    "results with nodes are made without": (KNOWN + "ending.py", "(not h.tracked or id(h) in trail.freed) and not h.lost", "not h.lost"),
    # -- patterns
    "what somebody holds is replaced": (PATTERNS + "match.py", "self.ask(value not in uses.wanted, all(", "self.ask(all("),
    "what others read is replaced": (PATTERNS + "match.py", "self.ask(value not in uses.wanted, all([r in parts for r in uses.readers.get(value, ())]))", "self.ask(value not in uses.wanted)"),
    "a fill is taken for one of -inf": (FUSION + "structure.py", 'return type(x) if 0 < x < math.inf else (type(x), "-" if -math.inf < x < 0 else str(x))', "return type(x)"),
    "numbers of a rewritten graph are those of the graph in order": (FUSION + "plan.py", "            numbers = [n.value(numbers) for n in self._told]\n", "            pass\n"),
    "a row that sees nothing is 0": (PATTERNS + "attention.py", '    (total,) = m.put("add", total, nothing, on=y.device)\n', ""),
    "a divisor is a factor": (PATTERNS + "attention.py", "float(n) if up else 1 / n", "float(n)"),
    "any triangle is causal": (PATTERNS + "attention.py", ' or call.attrs["diagonal"] != diagonal', ""),
    "a result lies as the op lays it": (PATTERNS + "match.py", "if not same_order(value.shape, window(by).strides, value.strides) and not (", "if False and not ("),
    "the gradient of another call": (PATTERNS + "match.py", "if result is not None and all([x in known", "if result is not None or all([x in known"),
    # -- what goes wrong
    "an interrupt loses the calls": (LAZY + "segment.py", "                    for call in calls:\n                        self.add(call)\n", ""),
    "an interrupt loses the memory": (LAZY + "segment.py", "                    self.storages = [weakref.ref(s) for s in held]\n", ""),
    "another thread's values are this one's": (LAZY + "segment.py", "if storage.value is None or storage.segment is not self:", "if storage.value is None:"),
    # -- roundings
    "a rounding left out: machine code": (
        "kernels/parts/tapes/cpu/text.py", "        scope.stored[v] = y\n        return to_compute_type(y, dtype)",
        '        scope.stored[v] = y\n        return made if made.kind == "f32" and dtype.itemsize == 2 else to_compute_type(y, dtype)',
    ),
    "a rounding left out: float64 to 16 bits by way of float32": (
        "kernels/parts/tapes/cpu/text.py", 'y = _rounded_to_odd(made).to("f16")', 'y = made.to("f32").to("f16")',
    ),
    "a rounding left out: kernels": (
        "kernels/parts/tapes/separate_steps.py", "            y = read(maths.stored(y, STEPS[4][S]))\n", "            y = y\n",
    ),
    "a rounding left out: numpy": ("kernels/parts/tapes/cpu/numpy_steps.py", "out[...] = rounded(oracle.pointwise(step.formula, values, step.wide), step.dtype)", "out[...] = oracle.pointwise(step.formula, values, step.wide)"),
}  # fmt: skip
