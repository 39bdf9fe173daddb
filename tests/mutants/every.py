"""All standing mutants, in the order in which they are shown."""

from __future__ import annotations

from tests.mutants import actors, between_pools, cores, master_worker, native, store, tools, transfer, wire
from tests.mutants.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    *actors.MUTATIONS, *cores.MUTATIONS, *wire.MUTATIONS, *store.MUTATIONS, *transfer.MUTATIONS,
    *between_pools.MUTATIONS, *master_worker.MUTATIONS, *native.MUTATIONS, *tools.MUTATIONS)
