"""From the configuration to what the startd's cores take: policy, slots, the machine's ad.

A wrong value is a ConfigError that names file, line and name, before anything listens.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from typing import Any

from condor_actors.addresses import split_address
from condor_actors.classads import ClassAd, Expr
from condor_actors.config import Config
from condor_actors.cores.devices.inventory import BadInventory, Inventory, read_inventory
from condor_actors.cores.devices.slot_devices import DEVICE_FILES
from condor_actors.cores.startd.policy_settings import expression, latches_of, policy_of
from condor_actors.cores.startd.slot_resources import (
    Custom,
    Share,
    SlotPlan,
    SlotTypeError,
    parse_machine_resource,
    plan_slots,
)
from condor_actors.cores.startd.slots import SlotSettings
from condor_actors.cores.transfer_plugins import PluginTable
from condor_actors.daemons.admin import package_version
from condor_actors.machine.devices.discovery import may_have_gpus
from condor_actors.machine.native.cpu import level_of_flags
from condor_actors.machine.native.programs import runtime_is_there
from condor_actors.machine.power.network_cards import NetworkCard
from condor_actors.machine.sensors.readings import MachineFacts

__all__ = [
    "container_attributes", "disk_share_kib", "host_name", "inventories", "inventory_commands", "machine_ad",
    "machine_share", "slot_plans", "slot_settings", "startd_name",
]

RESOURCE = "MACHINE_RESOURCE_"
INVENTORY, OFFLINE = f"{RESOURCE}INVENTORY_", f"OFFLINE_{RESOURCE}"


def host_name(config: Config) -> str:
    """The machine's full name."""
    return config.text("NETWORK_HOSTNAME") or config.full_hostname


def startd_name(config: Config) -> str:
    """The name of the startd's own ad, and what follows the @ in its slots' names."""
    name = config.text("STARTD_NAME")
    host = host_name(config)
    return f"{name}@{host}" if name and "@" not in name else name or host


def _type_ids(config: Config) -> range:
    return range(1, config.integer("MAX_SLOT_TYPES") + 1)


def _number(config: Config, name: str) -> int | None:
    text = config.text(name)
    if text is None:
        return None
    if not text.isdecimal():
        raise config.unusable(name, f"{name} = {text} is not possible", "a whole number")
    return int(text)


def slot_settings(config: Config) -> SlotSettings:
    """How slots look and behave."""
    by_type = {number: policy_of(config, f"SLOT_TYPE_{number}_") for number in _type_ids(config)
               if config.text(f"SLOT_TYPE_{number}") or config.text(f"NUM_SLOTS_TYPE_{number}") or number == 1}
    prefixes = {number: text for number in _type_ids(config)
                if (text := config.text(f"SLOT_TYPE_{number}_NAME_PREFIX")) is not None}
    names = dict.fromkeys((*config.list_of("STARTD_ATTRS"), *config.list_of("STARTD_EXPRS")))
    attributes = {name: value for name in names if (value := expression(config, name)) is not None}
    return config.settings(
        SlotSettings, host=startd_name(config), policy=policy_of(config), policy_by_type=by_type, prefixes=prefixes,
        attributes=attributes, latches=latches_of(config), job_attributes=config.list_of("STARTD_JOB_ATTRS"),
        console_slots=config.integer("SLOTS_CONNECTED_TO_CONSOLE"), weight=_weight(config),
        rounding=_rounding(config), worklife=expression(config, "CLAIM_WORKLIFE"),
        offline=offline_units(config), reserved_disk_kib=config.integer("RESERVED_DISK") * 1024,
        hibernate=expression(config, "HIBERNATE"), unhibernate=expression(config, "UNHIBERNATE"),
        hibernate_check_s=config.seconds("HIBERNATE_CHECK_INTERVAL"),
        sleeps_unwakeable=config.boolean("HIBERNATION_OVERRIDE_WOL"), tells_all=config.is_debugged("STARTD"))


def _weight(config: Config) -> str:
    expression(config, "SLOT_WEIGHT")
    return config.needed_text("SLOT_WEIGHT")


def _rounding(config: Config) -> dict[str, Expr]:
    """MODIFY_REQUEST_EXPR_…; empty where nobody changed them, since what they are by default is cheaper to reckon."""
    names = {"RequestCpus": "MODIFY_REQUEST_EXPR_REQUESTCPUS", "RequestMemory": "MODIFY_REQUEST_EXPR_REQUESTMEMORY",
             "RequestDisk": "MODIFY_REQUEST_EXPR_REQUESTDISK"}
    if all(config.source(name).file == "<Default>" for name in names.values()):
        return {}
    return {attribute: value for attribute, name in names.items() if (value := expression(config, name)) is not None}


def inventory_commands(config: Config) -> dict[str, str]:
    """The programs that name the units of resources (MACHINE_RESOURCE_INVENTORY_<NAME>), by resource; GPUs by ours,
    where nothing is said of them and STARTD_DETECT_GPUS is not empty."""
    found = {_shown(upper.removeprefix(INVENTORY)): text for name in config.names_like(INVENTORY)
             if (upper := name.rpartition(".")[2]) and (text := config.text(upper))}
    wanted = {name.upper() for name in config.list_of("MACHINE_RESOURCE_NAMES")}
    options = config.text("STARTD_DETECT_GPUS")
    if options and "GPUs" not in found and config.text(f"{RESOURCE}GPUS") is None and may_have_gpus():
        found["GPUs"] = f"condor_gpu_discovery {options}"
    return {name: text for name, text in found.items() if not wanted or name.upper() in wanted}


def inventories(texts: Mapping[str, str]) -> tuple[dict[str, Inventory], list[str]]:
    """What those programs said, read; and what is wrong with it."""
    found, wrong_ones = {}, []
    for name, text in texts.items():
        try:
            found[name] = read_inventory(name, text)
        except BadInventory as error:
            wrong_ones.append(f"{INVENTORY}{name}: {error}")
    return found, wrong_ones


def offline_units(config: Config) -> dict[str, frozenset[str]]:
    """OFFLINE_MACHINE_RESOURCE_<NAME>, by resource."""
    return {_shown(name.rpartition(".")[2].removeprefix(OFFLINE)): frozenset(config.list_of(name.rpartition(".")[2]))
            for name in config.names_like(OFFLINE)}


def _shown(bare: str) -> str:
    return "GPUs" if bare == "GPUS" else bare.capitalize() if bare.isupper() else bare


def _custom(config: Config, found: Mapping[str, Inventory]) -> dict[str, Custom]:
    wanted = {name.upper() for name in config.list_of("MACHINE_RESOURCE_NAMES")}
    custom = {name: Custom(each.amount, each.ids).but(each.offline) for name, each in found.items() if each.amount}
    for name in config.names_like(RESOURCE):
        upper = name.rpartition(".")[2]
        bare = upper.removeprefix(RESOURCE)
        if bare == "NAMES" or bare.startswith("INVENTORY_"):
            continue
        text = config.text(upper)
        if text is None or (wanted and bare not in wanted):
            continue
        try:
            custom[_shown(bare)] = parse_machine_resource(bare, text)
        except SlotTypeError as error:
            raise config.unusable(upper, str(error), "a number or the names of the units") from None
    return custom


def machine_share(config: Config, facts: MachineFacts, disk_free_kib: int,
                  found: Mapping[str, Inventory] | None = None) -> Share:
    """What the machine gives to the pool; ``found``: its inventories."""
    cpus = config.integer("NUM_CPUS")
    if not config.boolean("COUNT_HYPERTHREAD_CPUS") and config.source("NUM_CPUS").file == "<Default>":
        cpus = min(cpus, facts.physical_cpus)
    return Share(
        cpus=cpus, memory_mib=max(1, config.integer("MEMORY") - config.integer("RESERVED_MEMORY")),
        disk_kib=disk_share_kib(config, disk_free_kib),
        swap_mib=max(0, facts.swap_mib - config.integer("RESERVED_SWAP")), custom=_custom(config, found or {}))


def disk_share_kib(config: Config, free_kib: int) -> int:
    """What the machine gives to the pool of its disk, of which so much is free."""
    disk = config.text("DISK")
    if disk is not None and not disk.isdecimal():
        raise config.unusable("DISK", f"DISK = {disk} is not possible", "a number of KiB")
    return max(1, (int(disk) if disk else free_kib) - config.integer("RESERVED_DISK") * 1024)


def slot_plans(config: Config, total: Share) -> tuple[SlotPlan, ...]:
    """The slots to be made.

    Raises:
        ConfigError: the slot types cannot be carried out.
    """
    ids = _type_ids(config)
    types = {number: text for number in ids if (text := config.text(f"SLOT_TYPE_{number}")) is not None}
    counts = {number: count for number in ids if (count := _number(config, f"NUM_SLOTS_TYPE_{number}")) is not None}
    given = {number: config.boolean(f"SLOT_TYPE_{number}_PARTITIONABLE") for number in ids
             if config.source(f"SLOT_TYPE_{number}_PARTITIONABLE").file != "<Default>"}
    try:
        return plan_slots(total, types=types, counts=counts, partitionable=given,
                          num_slots=_number(config, "NUM_SLOTS"))
    except SlotTypeError as error:
        name = next((f"SLOT_TYPE_{number}" for number in types if f"SLOT_TYPE_{number}" in str(error)), "NUM_SLOTS")
        raise config.unusable(name, str(error), "slots that fit into the machine") from None


def machine_ad(config: Config, facts: MachineFacts, total: Share, address: str, started_s: float,
               found: Mapping[str, Inventory] | None = None, *, containers: bool = False,
               plugins: PluginTable = PluginTable()) -> ClassAd:  # noqa: B008 - nothing changes it
    """The facts that the ads of all slots share; ``found``: the machine's inventories; ``containers``: they work;
    ``plugins``: those that transfer files."""
    host = host_name(config)
    version = package_version()
    level = level_of_flags(frozenset(facts.cpu_flags))
    values: dict[str, Any] = {
        "MyType": "Machine", "TargetType": "Job", "Machine": host, "MyAddress": address, "StartdIpAddr": address,
        "AddressV1": address, "StartdName": startd_name(config), "DaemonStartTime": int(started_s),
        "CondorVersion": f"$CondorVersion: {version} $", "CondorPlatform": f"$CondorPlatform: {platform.machine()}_"
        f"{config.needed_text('OPSYSANDVER')} $",
        "Arch": config.needed_text("ARCH"), "OpSys": config.needed_text("OPSYS"),
        "OpSysAndVer": config.needed_text("OPSYSANDVER"), "OpSysName": config.needed_text("OPSYS_NAME"),
        "OpSysMajorVer": int(config.needed_text("OPSYS_VER")), "OpSysShortName": config.needed_text("OPSYS_NAME"),
        "OpSysLegacy": "LINUX", "OpSysVer": int(config.needed_text("OPSYS_VER")) * 100,
        "UidDomain": config.needed_text("UID_DOMAIN"), "FileSystemDomain": config.needed_text("FILESYSTEM_DOMAIN"),
        "TotalCpus": total.cpus, "TotalMemory": total.memory_mib, "TotalDisk": total.disk_kib,
        "TotalVirtualMemory": total.swap_mib * 1024, "DetectedCpus": facts.cpus, "DetectedMemory": facts.memory_mib,
        "UtsnameSysname": "Linux", "UtsnameRelease": facts.kernel, "UtsnameMachine": platform.machine(),
        "UtsnameNodename": facts.node or host, "TimeToLive": 2147483647,
        "HasFileTransfer": True, "HasJobDeferral": True, "HasReconnect": True, "HasIOProxy": False,
        "HasTDP": facts.stops_at_exec, "HasMPI": False, "HasVM": False, "HasPerFileEncryption": False,
        "HasSelfCheckpointTransfers": True, "HasTransferInputRemaps": True,
        "HasFileTransferPluginMethods": ",".join(plugins.methods),
        "HasJobTransferPlugins": True,
        "JobConfinement": ",".join(facts.confinement),
        "HasUserNamespaces": False, "HasStandardUniverse": runtime_is_there(), "CpuLevel": level,
        "CheckpointPlatform": f"LINUX {platform.machine().upper()} x86-64-v{level}",
        "CondorLoadAvg": 0.0, "LoadAvg": 0.0,
        "CpuFamily": 0, "CpuModelNumber": 0, "Mips": 0, "KFlops": 0,
        "MaxJobRetirementTime": 0, "StarterAbilityList":
        "HasFileTransfer,HasFileTransferPluginMethods,HasJobDeferral,HasReconnect,HasSelfCheckpointTransfers"
        f"{',HasTDP' if facts.stops_at_exec else ''}",
        "RecentJobStarts": 0, "TotalSlots": 0, "has_avx": "avx" in facts.cpu_flags,
        "has_avx2": "avx2" in facts.cpu_flags, "has_sse4_1": "sse4_1" in facts.cpu_flags,
        "has_sse4_2": "sse4_2" in facts.cpu_flags, "has_ssse3": "ssse3" in facts.cpu_flags,
        "Microarch": _microarchitecture(facts.cpu_flags),
    }
    values |= {name: value for name, value in container_attributes(config, containers).items() if value is not None}
    values |= _of_devices(total, found or {})
    values |= _of_network_card(facts.cards, address, config.text("IP_ADDRESS") or "")
    if facts.cpu_model:
        values["CpuModelName"] = facts.cpu_model
    ad = ClassAd(values)
    if config.list_of("STARTD_ATTRS"):
        ad["StartdAttrs"] = " ".join(config.list_of("STARTD_ATTRS"))
    return ad


def container_attributes(config: Config, works: bool) -> dict[str, Any]:
    """What a machine says that has run a program in an image, or could not; None: it does not say that."""
    fetches = bool(config.list_of("CONTAINER_REGISTRIES"))
    return {"HasContainer": works or None, "HasSandboxImage": works or None, "HasSIF": works or None,
            "HasUserNamespaces": works, "HasDockerURL": (works and fetches) or None,
            "HasDocker": (works and fetches) or None}


def _of_devices(total: Share, found: Mapping[str, Inventory]) -> dict[str, Any]:
    """What there is of each resource, all device files, and what the inventories say of the machine."""
    values: dict[str, Any] = {"DetectedGPUs": 0}
    for name, each in found.items():
        values |= each.attributes
        values[f"Detected{name}"] = ", ".join(each.ids) or each.amount
    for name, have in total.custom.items():
        values[f"Total{name}"] = have.amount
        if name not in found:
            values[f"Detected{name}"] = have.amount
    files = dict.fromkeys(path for each in found.values() for path in each.files)
    if files:
        values[DEVICE_FILES] = " ".join(files)
    return values


def _of_network_card(cards: Iterable[NetworkCard], address: str, first_address: str) -> dict[str, Any]:
    """By what the machine is woken (condor_power): the card of its address, or else of ``first_address``."""
    by_address = {card.address: card for card in cards}
    card = by_address.get(split_address(address)[0] if address else "") or by_address.get(first_address)
    if card is None:
        return {"SubnetMask": "", "IsWakeOnLanSupported": False, "IsWakeOnLanEnabled": False, "IsWakeAble": False}
    return {"HardwareAddress": card.hardware, "SubnetMask": card.mask, "IsWakeOnLanSupported": card.can_wake,
            "IsWakeOnLanEnabled": card.wakes, "IsWakeAble": card.can_wake and card.wakes}


def _microarchitecture(flags: Iterable[str]) -> str:
    has = set(flags)
    if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= has:
        return "x86_64-v4"
    if {"avx2", "bmi1", "bmi2", "fma"} <= has:
        return "x86_64-v3"
    if {"sse4_2", "ssse3", "popcnt"} <= has:
        return "x86_64-v2"
    return "x86_64-v1"
