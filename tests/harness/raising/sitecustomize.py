"""Makes daemons of a real pool raise where a test says so; Python imports this when its folder is in PYTHONPATH.

``$RAISE_ORDERS/<daemon>.order`` is an order to a daemon: ``module:Class.method`` raises once when it is called,
``turn <actor> before`` (or ``after``) has the next turn of an actor whose name begins so raise, ``edge`` the next
function that waits for a commit.  An order that was carried out is removed.
"""

import importlib
import os
import sys

FOLDER = os.environ.get("RAISE_ORDERS", "")


class Injected(Exception):
    """The error that was ordered."""


def _raise_once(path, place):
    module, _, name = place.partition(":")
    owner, _, method = name.partition(".")
    cls = getattr(importlib.import_module(module), owner)
    original = getattr(cls, method)

    def raising(self, *arguments, **keywords):
        setattr(cls, method, original)
        _carried_out(path)
        raise Injected(place)

    setattr(cls, method, raising)


def _carried_out(path):
    if os.path.exists(f"{path}.taken"):
        os.unlink(f"{path}.taken")


def _orders():
    for name in os.listdir(FOLDER):
        if name.partition(".")[0] in sys.argv[1:2] and name.endswith(".order"):  # not one that is being written
            path = os.path.join(FOLDER, name)
            with open(path) as stream:
                text = stream.read().strip()
            if text:
                yield path, text


def _trip(moment, actor, about):
    for path, text in _orders():
        if ":" in text:
            os.rename(path, f"{path}.taken")
            _raise_once(path, text)
            continue
        words = text.split()
        if (words[0] == "edge" and moment == "edge") or (
                words[0] == "turn" and words[2] == moment and actor.startswith(words[1])):
            os.unlink(path)
            raise Injected(text)


if FOLDER and "condor_actors.services" in sys.orig_argv:
    from condor_actors.actors import ActorSystem

    _init = ActorSystem.__init__

    def _tripped(self, **keywords):
        _init(self, **keywords)
        self.trip = _trip

    ActorSystem.__init__ = _tripped
