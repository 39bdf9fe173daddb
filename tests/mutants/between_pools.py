"""Bugs of what reaches beyond one job, machine or pool: gangs, workflows, chirp, registries, gateways, lending."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

_GANGS = "tests/unit/cores/schedd/test_gangs.py"
_GATEWAY = "tests/unit/cores/gateway/test_gateway_cores.py"
_FLOCKING = "tests/unit/cores/test_flocking.py"
_LENDING = "tests/unit/cores/negotiator/test_lending.py"
_DAG = "tests/unit/dag/test_run.py"
_CHIRP = "tests/unit/daemons/shadow/test_chirp_files.py"
_NAMES = "tests/unit/messages/test_image_reference.py"
_PRIVATE = "tests/unit/machine/containers/test_private_images.py"
_LOGINS = "tests/unit/cores/test_registry_logins.py"
_SHADOW = "tests/unit/cores/shadow/test_shadow_run.py"
_REGISTRY = "tests/unit/machine/containers/test_registry.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "gang-outlives-node-0", "condor_actors/cores/schedd/gangs/gang.py",
        "if not gang.living or (event.node == 0 and not gang.waits_for_all):",
        "if not gang.living:",
        why="machines are kept for a parallel job whose first node has ended",
        killed_by=(f"{_GANGS}::test_the_end_of_node_0_is_the_gangs",)),
    Mutation(
        "gang-never-waits", "condor_actors/cores/schedd/gangs/gang.py",
        "(event.node == 0 and not gang.waits_for_all)",
        "event.node == 0",
        why="WAIT_FOR_ALL has no effect: the other nodes are killed",
        killed_by=(f"{_GANGS}::test_a_gang_that_waits_for_all_ends_with_its_last",)),
    Mutation(
        "rate-of-ways-is-free", "condor_actors/cores/gateway/client_limits.py",
        "        account.saved -= 1.0\n",
        "",
        why="a partner floods the gateway with connections",
        killed_by=(f"{_GATEWAY}::test_a_partner_opens_no_faster_than_its_rate_and_members_do",)),
    Mutation(
        "no-reserve-of-streams", "condor_actors/cores/gateway/client_limits.py",
        "self._room * (1.0 if has < FEW else 1.0 - RESERVED)",
        "self._room",
        why="one partner takes every descriptor, and no other gets through",
        killed_by=(f"{_GATEWAY}::test_the_last_of_the_room_is_for_those_who_have_little",)),
    Mutation(
        "pool-without-terms-gets-machines", "condor_actors/cores/negotiator/lending.py",
        '            return f"the terms for the pool {realm} are not known here (condor_flock list)"\n',
        '            return ""\n',
        why="a pool that was never admitted takes this pool's machines",
        killed_by=(f"{_LENDING}::test_a_pool_whose_terms_nobody_knows_gets_nothing",)),
    Mutation(
        "jobs-go-where-no-list-names", "condor_actors/cores/flocking.py",
        "        return self._names(realm, job) and (judge",
        "        return (judge",
        why="FLOCK_BY_DEFAULT and FLOCK_COLLECTOR_HOSTS have no effect on the jobs of a submitter that has others",
        killed_by=(f"{_FLOCKING}::test_jobs_name_pools_beside_the_defaults",)),
    Mutation(
        "no-penalty-for-taking-more", "condor_actors/cores/negotiator/lending.py",
        "        if now_s < loan.until_s:\n",
        "        if False:\n",
        why="a partner that takes more than it was given gets still more",
        killed_by=(f"{_LENDING}::test_who_has_more_than_it_was_given_loses_it_and_gets_nothing_for_a_while",)),
    Mutation(
        "queued-nodes-are-not-counted", "condor_actors/dag/node_table.py",
        "    run.queued += 1\n    run.idle += 1\n",
        "    run.idle += 1\n",
        why="MAXJOBS has no effect: a workflow submits all its nodes at once",
        killed_by=(f"{_DAG}::test_throttles_and_categories",)),
    Mutation(
        "chirp-leaves-the-folder", "condor_actors/daemons/shadow/chirp_files.py",
        "if not self._above(real) or any(_below(real, place) for place in NOT_FILES):",
        "if any(_below(real, place) for place in NOT_FILES):",
        why="a job reads and writes any file of its owner at home",
        killed_by=(f"{_CHIRP}::test_no_verb_leaves_the_folder",)),
    Mutation(
        "chirp-opens-what-is-no-file", "condor_actors/daemons/shadow/chirp_files.py",
        "                if not stat.S_ISREG(facts.st_mode):\n",
        "                if False:\n",
        why="a job opens a device or a pipe of its owner, and the shadow waits for it",
        killed_by=(f"{_CHIRP}::test_nothing_but_plain_files_below_is_opened",)),
    Mutation(
        "any-digest-will-do", "condor_actors/machine/containers/registry.py",
        "    if found != digest:\n",
        "    if False:\n",
        why="a registry, or an attacker on the network, runs an image of its own",
        killed_by=(f"{_REGISTRY}::test_another_digest_is_never_taken",)),
    Mutation(
        "login-goes-by-http", "condor_actors/machine/containers/registry.py",
        "            registry = attrs.evolve(registry, plain=registry.plain and is_loopback(registry.host))\n",
        "            registry = attrs.evolve(registry)\n",
        why="a user's password for a registry crosses the network as it is",
        killed_by=(f"{_PRIVATE}::test_a_login_goes_to_no_server_that_it_may_not_go_to",)),
    Mutation(
        "login-of-another-image", "condor_actors/cores/registry_logins.py",
        "    for count in range(len(parts), 0, -1):\n",
        "    for count in range(1, len(parts) + 1):\n",
        why="the login for a group of images is shown for one that has a login of its own",
        killed_by=(f"{_LOGINS}::test_the_longest_key_that_fits",)),
    Mutation(
        "any-port-is-a-services", "condor_actors/cores/shadow/shadow_run.py",
        "if name in self._services() and 0 < port",
        "if 0 < port",
        why="a machine writes attributes of its choice into a job's ad",
        killed_by=(f"{_SHADOW}::test_of_ports_only_those_of_the_jobs_services_are_believed_and_only_while_it_runs",)),
    Mutation(
        "token-goes-with-a-redirect", "condor_actors/machine/containers/registry.py",
        "if self._authorization and urllib.parse.urlsplit(url).netloc == own:",
        "if self._authorization:",
        why="another server gets the token of the registry",
        killed_by=(f"{_REGISTRY}::test_a_redirect_to_another_server_is_not_shown_the_token",)),
    Mutation(
        "every-registry-in-plain-text", "condor_actors/messages/references/image_reference.py",
        'plain = is_loopback(name) or (each.startswith("http://") and "*" not in pattern)',
        "plain = True",
        why="images come over http, and an attacker on the network changes them",
        killed_by=(f"{_NAMES}::test_an_administrators_list_says_which_registries",)),
    Mutation(
        "strangers-without-end", "condor_actors/wire/certificates/strangers.py",
        "if said not in self._seen and len(self._seen) >= MOST:",
        "if False:",
        why="who shows another certificate each time fills the gateway's memory and its log",
        killed_by=("tests/unit/wire/test_strangers.py::test_each_is_told_once_a_minute_and_only_so_many_are_kept",)),
)
