"""Digits of pi by a spigot: minutes of pure computing in one process, and one line of output for every ten digits."""

from __future__ import annotations

import sys


def digits(count: int):
    """Yield the first ``count`` digits (Rabinowitz and Wagon, 1995)."""
    size = count * 10 // 3 + 2
    row = [2] * size
    nines = held = 0
    first = True
    made = 0
    while made < count:
        carry = 0
        for place in range(size - 1, 0, -1):
            value = row[place] * 10 + carry
            carry, row[place] = divmod(value, 2 * place + 1)
            carry *= place
        value = row[0] * 10 + carry
        digit, row[0] = divmod(value, 10)
        if digit == 9:
            nines += 1
            continue
        over = digit == 10
        if not first:
            yield held + over
            made += 1
        for _ in range(nines):
            yield 0 if over else 9
            made += 1
        first, nines, held = False, 0, 0 if over else digit


line = ""
for digit in digits(int(sys.argv[1])):
    line += str(digit)
    if len(line) == 10:
        print(line, flush=True)
        line = ""
print(line, end="")
