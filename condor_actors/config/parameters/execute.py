"""Parameters of the startd and the starter: slots, resources, sandboxes."""

from __future__ import annotations

from condor_actors.config.parameter import (
    boolean,
    choice,
    expression,
    integer,
    path,
    seconds,
    text,
    words,
)

STARTD = "STARTD"
STARTER = "STARTER"

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
        "MAX_SLOT_TYPES", 10, "How many types of slots there may be.", low=1, change="restart", read_by=STARTD
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
    boolean(
        "STARTER_HIDE_GPU_DEVICES",
        True,
        "Whether a job cannot open the device files of units that the inventory names and other jobs may have.",
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
    words("BENCHMARKS_JOBLIST", "mips kflops", "What is measured then.", change="restart", read_by=STARTD),
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
    boolean(
        "STARTER_ALLOW_RUNAS_OWNER",
        True,
        "Whether jobs of the same UID_DOMAIN run as their owner.",
        read_by=STARTER,
    ),
    text(
        "SLOT<N>_USER",
        None,
        "The account that jobs in that slot run under, when not their owner's.",
        read_by=STARTER,
    ),
    text("NOBODY_USER", "nobody", "The account of jobs that have no other.", read_by=STARTER),
    boolean(
        "USE_PID_NAMESPACES",
        True,
        "Whether jobs of a pool without root are shut in by namespaces (JOB_CONFINEMENT, MOUNT_UNDER_SCRATCH,"
        " MOUNT_PRIVATE_DEV_SHM), where the kernel lets users make them: none of them reaches the pool's processes or"
        " files. In there all files of others seem to be nobody's.",
        read_by=STARTER,
    ),
    integer(
        "MIN_USER_UID",
        1000,
        "The lowest uid of people. Where root is dropped, jobs run as their owners from there on only; accounts below"
        " are the system's.",
        low=1,
        change="restart",
    ),
    words(
        "MOUNT_UNDER_SCRATCH",
        "/tmp,/var/tmp",
        "Folders of which each job has its own, below its scratch directory; not one in which"
        " EXECUTE or the job's own files are. Jobs of the standard universe see no folder of the machine.",
        read_by=STARTER,
    ),
    boolean(
        "MOUNT_PRIVATE_DEV_SHM",
        True,
        "Whether each job has a /dev/shm and System V memory, queues and semaphores of its own, which go when it does.",
        read_by=STARTER,
    ),
    boolean(
        "USE_CGROUPS",
        True,
        "Whether jobs get a cgroup where the machine allows it.",
        change="restart",
        read_by=STARTER,
    ),
    text(
        "BASE_CGROUP", "condor", "The cgroup below which jobs get theirs.", change="restart", read_by=STARTER
    ),
    choice(
        "CGROUP_MEMORY_LIMIT_POLICY",
        "hard",
        "What holds a job to its memory: hard kills it beyond, soft leaves it"
        " while there is enough, none does not look.",
        ("hard", "soft", "none", "custom"),
        read_by=STARTER,
    ),
    boolean(
        "CGROUP_IGNORE_CACHE_MEMORY",
        True,
        "Whether the page cache counts as a job's memory.",
        read_by=STARTER,
    ),
    text("SINGULARITY", None, "The path of Singularity or Apptainer.", read_by=STARTER),
    integer(
        "CONTAINER_IMAGE_CACHE",
        20480,
        "How much disk unpacked container images may take that no job uses.",
        low=0,
        unit="MiB",
        read_by=STARTER,
    ),
    integer(
        "CONTAINER_IMAGE_LIMIT",
        20480,
        "How large an unpacked container image may be; the job of a larger one is held.",
        low=1,
        unit="MiB",
        read_by=STARTER,
    ),
    words(
        "CONTAINER_REGISTRIES",
        "*",
        "The registries that container images may be fetched from, as HOST or HOST:PORT; * stands for any letters."
        " Only https is spoken, but for this machine's own registries and those written as http://HOST:PORT.",
    ),
    words(
        "CONTAINER_REGISTRY_MIRRORS",
        None,
        "Whom to ask before a registry, as REGISTRY=HOST[:PORT][/FOLDER]; with http:// before HOST, without TLS.",
        read_by=STARTER,
    ),
    text(
        "CONTAINER_REGISTRY_PROXY",
        None,
        "The proxy by which registries are reached, http://HOST:PORT.",
        read_by=STARTER,
    ),
    seconds(
        "CONTAINER_IMAGE_TIME",
        3600,
        "How long fetching and unpacking an image of a registry may take; then the job is run elsewhere.",
        low=1,
        read_by=STARTER,
    ),
    words(
        "DOCKER_VOLUMES",
        None,
        "Names of folders or files of the machine that can be seen in container images; each has a"
        " DOCKER_VOLUME_DIR_<NAME>.",
        read_by=STARTER,
    ),
    words("DOCKER_MOUNT_VOLUMES", None, "Those of DOCKER_VOLUMES that jobs in images see.", read_by=STARTER),
    text(
        "DOCKER_VOLUME_DIR_<NAME>",
        None,
        "PATH, or PATH:PATH-IN-THE-IMAGE, with :ro behind it for reading only.",
        read_by=STARTER,
    ),
    expression(
        "DOCKER_VOLUME_DIR_<NAME>_MOUNT_IF",
        None,
        "Which jobs (MY) in images see it; without it all do.",
        read_by=STARTER,
    ),
    expression("JOB_RENICE_INCREMENT", "0", "By how much a job is niced, over its ad (MY).", read_by=STARTER),
    integer(
        "JOB_CPU_WEIGHT",
        100,
        "A job's share of a contended processor, per core it asked for; an ordinary group of processes has 100.",
        low=1,
        high=10000,
        read_by=STARTER,
    ),
    integer(
        "JOB_IO_WEIGHT",
        None,
        "A job's share of contended disks; an ordinary group of processes has 100.",
        low=1,
        high=1000,
        read_by=STARTER,
    ),
    choice(
        "JOB_SCHEDULING",
        "normal",
        "idle leaves all jobs only idle processor and disk time.",
        ("normal", "idle"),
        read_by=STARTER,
    ),
    boolean(
        "ENABLE_CHIRP",
        True,
        "Whether jobs may speak to their submit machine while they run (condor_chirp). The other parameters of chirp "
        "count only then.",
        read_by=STARTER,
    ),
    boolean(
        "ENABLE_CHIRP_IO",
        True,
        "Whether jobs that ask for it (want_io_proxy) reach files of their submit machine, and set attributes.",
        read_by=STARTER,
    ),
    boolean(
        "ENABLE_CHIRP_UPDATES",
        True,
        "Whether such jobs read and set attributes of themselves, and write into their event log.",
        read_by=STARTER,
    ),
    boolean("ENABLE_CHIRP_DELAYED", True, "Whether jobs may set attributes that are told later.", read_by=STARTER),
    words("STARTER_JOB_ENVIRONMENT", None, "Environment that every job gets.", read_by=STARTER),
    seconds(
        "STARTER_UPDATE_INTERVAL",
        300,
        "How often a running job's usage is told to its shadow.",
        low=1,
        read_by=STARTER,
    ),
    path(
        "AUTH_SSL_CLIENT_CAFILE",
        None,
        "A file of certificates of authorities: servers of https that these vouch for are believed when a job's input "
        "comes from there, besides those that the machine's own authorities vouch for.",
        change="live",
        read_by=STARTER,
    ),
    seconds(
        "MAX_FILE_TRANSFER_PLUGIN_LIFETIME",
        72000,
        "How long an input file that is named by a URL may take to come.",
        low=1,
        change="live",
        read_by=STARTER,
    ),
    seconds("STARTER_INITIAL_UPDATE_INTERVAL", 8, "How soon the first time.", low=1, read_by=STARTER),
    integer(
        "STARTER_BLOB_CACHE",
        10240,
        "How much disk the cache of executables and input files may take.",
        low=0,
        unit="MiB",
        read_by=STARTER,
    ),
    integer(
        "STARTER_BLOB_CACHE_LEAVES",
        1024,
        "How much of its disk the cache leaves free for others, the schedd of the machine among them; at most a "
        "twentieth of the disk.",
        low=0,
        unit="MiB",
        read_by=STARTER,
    ),
    boolean(
        "STARTD_ENFORCE_DISK_LIMITS",
        False,
        "Whether a job that uses more disk than it asked for is held.",
        read_by=STARTER,
    ),
    integer(
        "MAX_JOB_PROCESSES",
        4096,
        "How many processes and threads a job may have; 0 for any number. Without a control group its account may have"
        " as many more than it has when the job begins.",
        low=0,
        read_by=STARTER,
    ),
    words(
        "JOB_CONFINEMENT",
        "processes, host_name, system_calls, read_only, sandboxes",
        "How ordinary jobs are shut in: processes (they see no others), host_name (one of"
        " their own), system_calls (no mounts, namespaces, modules, keys …), read_only (JOB_READ_ONLY), sandboxes"
        " (other jobs' scratch directories are not there). What the kernel does not allow is told in the log; the slot"
        " ads say in JobConfinement what is in force.",
        read_by=STARTER,
    ),
    words(
        "JOB_READ_ONLY",
        "/bin, /boot, /etc, /lib, /lib32, /lib64, /opt, /root, /sbin, /sys, /usr, /var",
        "Folders that ordinary jobs cannot write to, whatever their modes, but for folders of the job's own in them;"
        " not one in which the files of a job are that runs where it was submitted.",
        read_by=STARTER,
    ),
    path(
        "JOB_LAUNCHER",
        None,
        "The program that becomes a job's process; the built-in one when unset. The job's variables reach it with "
        "_CONDOR_JOB_ENV_ before their names, and every signal is blocked when it begins.",
        read_by=STARTER,
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
