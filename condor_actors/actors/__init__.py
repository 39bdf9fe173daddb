"""Actors: a mailbox around a pure core, with timers, supervision, and persist-before-send."""

from __future__ import annotations

from condor_actors.actors.actor import Actor, CoreActor
from condor_actors.actors.context import Context
from condor_actors.actors.post import NoPost, Post, PostReceiver
from condor_actors.actors.status import ActorStatus
from condor_actors.actors.supervision import ChildDown
from condor_actors.actors.system import ActorSystem
from condor_actors.actors.world import Daemon, World

__all__ = [
    "Actor", "ActorStatus", "ActorSystem", "ChildDown", "Context", "CoreActor", "Daemon", "NoPost", "Post",
    "PostReceiver", "World",
]
