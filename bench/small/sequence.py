"""Statements one after another: an LSTM's step and what stands around it, in which code leaves the caches, beside each in a loop of its own."""

from __future__ import annotations

from collections.abc import Sequence

from bench.small.actions import statement
from bench.small.sides import Found, Library, in_turn, opened, summary

AROUND = """
x = drawn(20, 8, 8); h = drawn(8, 32); c = drawn(8, 32); y = torch.zeros(8, dtype=torch.long)
inward, onward, head = nn.Linear(8, 128), nn.Linear(32, 128), nn.Linear(32, 5)
"""
SEQUENCE = """
now = x[3]
a = inward(now)
b = onward(h)
gates = a + b
i, f, g, o = gates.chunk(4, 1)
forget = torch.sigmoid(f)
take = torch.sigmoid(i)
new = torch.tanh(g)
show = torch.sigmoid(o)
kept = forget * c
taken = take * new
cell = kept + taken
out = torch.tanh(cell)
state = show * out
scores = head(state)
loss = F.cross_entropy(scores, y)
rows, columns = gates.shape
with torch.no_grad(): twice = h.detach() * 2
share = (h > 0).float().mean()
both = torch.cat([h, c], 1)
pile = torch.stack([h, c])
turned = h.view(-1, 8).transpose(0, 1)
square = h ** 2
positive = torch.relu(h)
most = h.max()
chances = F.softmax(h, dim=1)
total = h.sum(0, keepdim=True)
half = h / 2.0
""".strip().splitlines()
ALONE, TOGETHER = f"{len(SEQUENCE)} statements, each in a loop of its own", "the same one after another"


def lines(of: Sequence[Library], rounds: int, seconds: float) -> dict[str, Found]:
    """A loop for each of the statements, summed, and one loop over all of them."""
    asked = {body: {"torch": statement(body, AROUND, *SEQUENCE)} for body in [*SEQUENCE, "\n".join(SEQUENCE)]}
    with opened(of) as sides:
        *alone, together = in_turn(sides, asked, rounds, seconds).values()
    failed = {name: error for found in alone for name, error in found.failed.items()}
    whole = {library.name: [sum(f.seconds[library.name] for f in alone)] for library in of if library.name not in failed}
    return {ALONE: summary(whole, failed), TOGETHER: together}
