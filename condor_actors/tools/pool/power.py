"""condor_power: wake a machine by its network card.

**Source**: the manual, condor_power.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from condor_actors.addresses import MOST_PORT, BadAddress, split_address
from condor_actors.classads import ClassAdSyntaxError
from condor_actors.classads.forms.any_form import iter_ads
from condor_actors.machine.power.network_cards import network_cards
from condor_actors.machine.power.wake_on_lan import DISCARD_PORT, broadcast_of, hardware_address, send_wake
from condor_actors.tools.lib.command import ToolError, Words, operands_of, run, values_of
from condor_actors.tools.lib.flags import Flag, Given
from condor_actors.written_text import read_written

FLAGS = (
    Flag("help", 1),
    Flag("version", 1),
    Flag("debug", 1),
    Flag("input", 1),
    Flag("mac", 1, 1),
    Flag("subnet", 1, 1),
    Flag("port", 1, 1),
)


def main() -> int:
    """Entry of ``condor_power``."""
    return run(FLAGS, "condor_power", _wake, words=Words.of("condor_power"))


def _wake(given: Sequence[Given]) -> int:
    values, files = values_of(given), operands_of(given)
    names = {item.name for item in given}
    if len(files) > 1 or ("mac" in values and (files or "input" in names)):
        raise ToolError("condor_power: name one machine: -m MAC, or one file with its ad")
    port = _port(values.get("port", str(DISCARD_PORT)))
    targets = _by_mac(values) if "mac" in values else _by_ads(files[0] if files else "-")
    for hardware, broadcast in targets:
        name = hardware.hex(":")
        try:
            sent = send_wake(hardware, broadcast, network_cards(), port)
        except OSError as error:
            raise ToolError(f"condor_power: the packet for {name} could not be sent"
                            f"{f' to {broadcast}' if broadcast else ''}: {error.strerror or error}") from None
        if "debug" in names:
            print(*(f"condor_power: {name}: sent to {place}" for place in sent), sep="\n", file=sys.stderr)
    return 0


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_PORT)) and 0 < int(text) <= MOST_PORT):
        raise ToolError(f"condor_power: -p {text}: a port is a number from 1 to {MOST_PORT}")
    return int(text)


def _by_mac(values: dict[str, str]) -> Iterator[tuple[bytes, str]]:
    """A card, and the broadcast addresses of this machine's networks with the mask; without one: all networks."""
    hardware, mask = _hardware(values["mac"], "-m"), values.get("subnet", "0.0.0.0")
    if mask == "0.0.0.0":
        yield hardware, ""
        return
    found = dict.fromkeys(
        broadcast for card in network_cards() if card.mask == mask and (broadcast := broadcast_of(card.address, mask)))
    if not found:
        raise ToolError(f"condor_power: -s {mask}: no network of this machine has that mask; leave -s out to send into "
                        "all of them")
    for broadcast in found:
        yield hardware, broadcast


def _by_ads(source: str) -> Iterator[tuple[bytes, str]]:
    """The card of each machine in a file, once, and the broadcast address of its network, as far as it is known."""
    shown = "standard input" if source == "-" else source
    try:
        text = sys.stdin.read() if source == "-" else read_written(source)
        ads = list(iter_ads(text))
    except (OSError, ClassAdSyntaxError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ToolError(f"condor_power: {shown}: {why}") from None
    if not ads:
        raise ToolError(f"condor_power: {shown} has no ad; give a machine's (condor_status -long prints it), or -m MAC")
    targets: dict[bytes, str] = {}
    for ad in ads:
        machine, hardware = ad.get_str("Machine") or shown, ad.get_str("HardwareAddress")
        if not hardware:
            raise ToolError(f"condor_power: {machine}: its ad has no HardwareAddress; name it with -m MAC")
        found = _hardware(hardware, f"{machine}: HardwareAddress")
        if found not in targets and not ad.get_bool("IsWakeAble"):
            print(f"condor_power: {machine} does not say that it can be woken (IsWakeAble); the packet is sent",
                  file=sys.stderr)
        targets.setdefault(found, broadcast_of(_host(ad.get_str("MyAddress")), ad.get_str("SubnetMask")))
    yield from targets.items()


def _hardware(text: str, where: str) -> bytes:
    try:
        return hardware_address(text)
    except ValueError as error:
        raise ToolError(f"condor_power: {where}: {error}") from None


def _host(address: str) -> str:
    try:
        return split_address(address)[0]
    except BadAddress:
        return ""


if __name__ == "__main__":
    sys.exit(main())
