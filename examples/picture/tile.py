#!/usr/bin/env python3
"""Compute one horizontal strip of the Mandelbrot set as a binary PPM file.

Usage: tile.py STRIP STRIPS WIDTH HEIGHT OUTPUT
"""

import math
import sys


def colour(x: float, y: float, limit: int = 300) -> bytes:
    """The colour of one point: how fast it escapes, smoothed; black when it does not."""
    c = complex(x, y)
    z = 0j
    for step in range(limit):
        z = z * z + c
        if abs(z) > 8:
            smooth = (step + 1 - math.log2(math.log(abs(z)))) / limit
            phase = 2 * math.pi * math.sqrt(max(smooth, 0.0))
            return bytes(int(127.5 * (1 - math.cos(phase * k + shift))) for k, shift in ((3, 0.2), (4, 0.0), (5, 0.9)))
    return b"\0\0\0"


def main() -> None:
    strip, strips, width, height = map(int, sys.argv[1:5])
    first, last = strip * height // strips, (strip + 1) * height // strips
    scale = 3.0 / width
    with open(sys.argv[5], "wb") as out:
        out.write(f"P6 {width} {last - first} 255\n".encode())
        for row in range(first, last):
            y = (height / 2 - row) * scale
            out.write(b"".join(colour(-2.15 + column * scale, y) for column in range(width)))
        print(f"strip {strip}: rows {first} to {last - 1} of {height}")


if __name__ == "__main__":
    main()
