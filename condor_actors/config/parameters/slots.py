"""Parameters of the startd: slots and their resources, claims, owners."""

from __future__ import annotations

from condor_actors.config.parameter import (
    boolean,
    expression,
    integer,
    seconds,
    text,
    words,
)

STARTD = "STARTD"

ROWS = (
    text("STARTD_NAME", None, "The name of the startd's ads, when a machine has several."),
    integer(
        "NUM_CPUS",
        "$(DETECTED_CPUS_LIMIT)",
        "How many cores the startd divides among its slots.",
        low=1,
        change="restart",
        read_by=STARTD,
    ),
    integer(
        "MEMORY",
        "$(DETECTED_MEMORY)",
        "How much memory the startd divides among its slots.",
        low=1,
        unit="MiB",
        change="restart",
        read_by=STARTD,
    ),
    integer(
        "RESERVED_MEMORY",
        0,
        "Memory that is left to the machine itself.",
        low=0,
        unit="MiB",
        change="restart",
        read_by=STARTD,
    ),
    integer(
        "RESERVED_DISK",
        0,
        "Disk space below EXECUTE that is left to the machine itself.",
        low=0,
        unit="MiB",
        change="restart",
        read_by=STARTD,
    ),
    integer(
        "RESERVED_SWAP",
        0,
        "Swap space that is left to the machine itself.",
        low=0,
        unit="MiB",
        read_by=STARTD,
    ),
    text(
        "DISK",
        None,
        "How much disk below EXECUTE the startd divides among its slots, in KiB; found out when unset.",
        change="restart",
        read_by=STARTD,
    ),
    boolean(
        "COUNT_HYPERTHREAD_CPUS",
        True,
        "Whether hyperthreads count as cores.",
        change="restart",
        read_by=STARTD,
    ),
    integer(
        "MAX_SLOT_TYPES", 10, "How many types of slots there may be.", low=1, high=1000, change="restart",
        read_by=STARTD,
    ),
    text(
        "SLOT_TYPE_<N>",
        None,
        "The share of the machine that each slot of that type gets: cpus=2, memory=25%,"
        " disk=auto, gpus=1 and so on, or one fraction for everything.",
        change="restart",
        read_by=STARTD,
    ),
    integer(
        "NUM_SLOTS_TYPE_<N>",
        None,
        "How many slots of that type there are.",
        low=0,
        high=100_000,
        change="restart",
        read_by=STARTD,
    ),
    boolean(
        "SLOT_TYPE_<N>_PARTITIONABLE",
        False,
        "Whether slots of that type are cut to each job's measure.",
        change="restart",
        read_by=STARTD,
    ),
    text(
        "SLOT_TYPE_<N>_NAME_PREFIX",
        None,
        "What the names of slots of that type begin with.",
        change="restart",
        read_by=STARTD,
    ),
    expression("SLOT_TYPE_<N>_START", None, "START for slots of that type.", read_by=STARTD),
    words(
        "SLOT_TYPE_<N>_STARTD_ATTRS", None, "More macros for the ads of slots of that type.", read_by=STARTD
    ),
    text("SLOT_TYPE_<N>_<NAME>", None, "Any policy setting, for slots of that type only.", read_by=STARTD),
    integer(
        "NUM_SLOTS",
        None,
        "How many equal slots the machine is divided into when no types are given.",
        low=0,
        high=100_000,
        change="restart",
        read_by=STARTD,
    ),
    text(
        "MACHINE_RESOURCE_<NAME>",
        None,
        "How many, or the identifiers of, a resource of the machine's own kind.",
        change="restart",
        read_by=STARTD,
    ),
    words(
        "MACHINE_RESOURCE_NAMES",
        None,
        "Which MACHINE_RESOURCE_ settings count; all when unset.",
        change="restart",
        read_by=STARTD,
    ),
    text(
        "MACHINE_RESOURCE_INVENTORY_<NAME>",
        None,
        "A command that writes, as a ClassAd, which units of that resource there are and what they are.",
        change="restart",
        read_by=STARTD,
    ),
    words(
        "OFFLINE_MACHINE_RESOURCE_<NAME>",
        None,
        "Units of that resource that are not given out; jobs that have one keep it.",
        read_by=STARTD,
    ),
    text(
        "STARTD_DETECT_GPUS",
        "-properties $(GPU_DISCOVERY_EXTRA)",
        "Options of condor_gpu_discovery, which is asked where a driver is there and nothing else is said of GPUs;"
        " empty: it is not.",
        change="restart",
        read_by=STARTD,
    ),
    text("GPU_DISCOVERY_EXTRA", "", "More options of condor_gpu_discovery, such as -extra.", change="restart",
         read_by=STARTD),
    text(
        "ENVIRONMENT_FOR_ASSIGNED<NAME>",
        None,
        "The environment variables that tell a job which units it got: NAME, or NAME=/pattern/replacement/.",
        read_by=STARTD,
    ),
    text(
        "ENVIRONMENT_FOR_ASSIGNEDGPUS",
        "GPU_DEVICE_ORDINAL=/(CUDA|OCL)//  CUDA_VISIBLE_DEVICES=/CUDA//",
        "The environment variables that tell a job which GPUs it got.",
        read_by=STARTD,
    ),
    text(
        "ENVIRONMENT_VALUE_FOR_UNASSIGNED<NAME>",
        None,
        "What that variable says when the job got none.",
        read_by=STARTD,
    ),
    expression(
        "MODIFY_REQUEST_EXPR_REQUESTCPUS",
        "quantize(RequestCpus, {1})",
        "What a request for cores is rounded to.",
        read_by=STARTD,
    ),
    expression(
        "MODIFY_REQUEST_EXPR_REQUESTMEMORY",
        "quantize(RequestMemory, {128})",
        "What a request for memory is rounded to.",
        read_by=STARTD,
    ),
    expression(
        "MODIFY_REQUEST_EXPR_REQUESTDISK",
        "quantize(RequestDisk, {1024})",
        "What a request for disk is rounded to.",
        read_by=STARTD,
    ),
    words("STARTD_ATTRS", None, "Macros that are put into the slots' ads as attributes.", read_by=STARTD),
    words(
        "STARTD_SLOT_ATTRS",
        None,
        "Attributes of each slot that show in the ads of the machine's other slots.",
        read_by=STARTD,
    ),
    words(
        "STARTD_JOB_ATTRS", None, "Attributes of the running job that show in the slot's ad.", read_by=STARTD
    ),
    seconds(
        "POLLING_INTERVAL",
        5,
        "How often the policy of a claimed slot is looked at even if no sensor spoke.",
        low=0.1,
        read_by=STARTD,
    ),
    seconds("MATCH_TIMEOUT", 120, "How long a matched slot waits for its claim.", low=1, read_by=STARTD),
    seconds(
        "MAX_CLAIM_ALIVES_MISSED", 6, "How many renewals of a claim may fail to come.", low=1, read_by=STARTD
    ),
    expression(
        "CLAIM_WORKLIFE", "1200", "For how many seconds a claim takes new jobs; -1: no limit.", read_by=STARTD
    ),
    seconds(
        "KILLING_TIMEOUT",
        30,
        "How long a job that was asked to go has before it is killed.",
        low=0,
        read_by=STARTD,
    ),
    seconds(
        "MACHINEMAXVACATETIME", 600, "How long a vacated job has to save its work.", low=0, read_by=STARTD
    ),
    expression(
        "RUNBENCHMARKS",
        "LastBenchmark == 0",
        "When the machine, unclaimed, measures its speed (LastBenchmark is when it last did).",
        read_by=STARTD,
    ),
    words(
        "BENCHMARKS_JOBLIST",
        "mips kflops",
        "What is measured then: mips, kflops, and programs of the site (BENCHMARKS_<JOB>_EXECUTABLE).",
        change="restart",
        read_by=STARTD,
    ),
    words(
        "OWNER_SENSORS",
        "terminals, input, logind, utmp",
        "Which sensors of this machine tell that its owner is there; displays are the kbdd's.",
        change="restart",
        read_by=STARTD,
    ),
    words(
        "DESKTOP_OWNERS",
        None,
        "Users who may pause the machine (condor_owner) even when they do not sit at it.",
        read_by=STARTD,
    ),
    words(
        "CONSOLE_DEVICES",
        "mouse, console",
        "Devices below /dev whose use means that the owner is there.",
        read_by=STARTD,
    ),
    integer(
        "SLOTS_CONNECTED_TO_CONSOLE",
        "$(DETECTED_CPUS)",
        "How many slots mind the console.",
        low=0,
        read_by=STARTD,
    ),
    integer(
        "SLOTS_CONNECTED_TO_KEYBOARD",
        1,
        "How many slots mind every keyboard and terminal.",
        low=0,
        read_by=STARTD,
    ),
    seconds(
        "DISCONNECTED_KEYBOARD_IDLE_BOOST",
        1200,
        "How much longer idle the keyboard looks to slots that do not mind it.",
        read_by=STARTD,
    ),
    boolean(
        "STARTD_HAS_BAD_UTMP",
        False,
        "Whether every terminal is looked at rather than those that utmp lists.",
        read_by=STARTD,
    ),
)
