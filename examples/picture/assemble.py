#!/usr/bin/env python3
"""Put strips (binary PPM files, in the order given) together into one PNG.

Usage: assemble.py PICTURE.png STRIP.ppm...
"""

import struct
import sys
import zlib


def read_ppm(path: str) -> tuple[int, int, bytes]:
    """Width, height and RGB bytes of a binary PPM file."""
    with open(path, "rb") as file:
        magic, width, height, depth = file.readline().split()
        if magic != b"P6" or depth != b"255":
            sys.exit(f"{path}: not a binary PPM file of 8 bits a colour")
        return int(width), int(height), file.read()


def chunk(kind: bytes, data: bytes) -> bytes:
    """One PNG chunk: length, kind, data, checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def main() -> None:
    target, *paths = sys.argv[1:]
    strips = [read_ppm(path) for path in paths]
    width = strips[0][0]
    height = sum(strip[1] for strip in strips)
    pixels = b"".join(strip[2] for strip in strips)
    stride = 3 * width
    rows = b"".join(b"\0" + pixels[row * stride:(row + 1) * stride] for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with open(target, "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header))
        out.write(chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))
    print(f"{target}: {width} x {height} from {len(paths)} strips")


if __name__ == "__main__":
    main()
