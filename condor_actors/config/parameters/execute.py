"""Parameters of the starter: accounts, sandboxes, limits, images, the jobs themselves."""

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
    boolean(
        "STARTER_HIDE_GPU_DEVICES",
        True,
        "Whether a job cannot open the device files of units that the inventory names and other jobs may have.",
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
    path(
        "USER_JOB_WRAPPER",
        None,
        "A program that starts each job: its arguments are the job's program and arguments, which it executes in its "
        "place. One that cannot writes why into the file $_CONDOR_WRAPPER_ERROR_FILE, and the job is run again. Jobs "
        "in images and of the standard universe do without it.",
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
    ),
    seconds(
        "MAX_FILE_TRANSFER_PLUGIN_LIFETIME",
        72000,
        "How long an input file that is named by a URL may take to come, and how long a transfer plugin may run.",
        low=1,
        change="live",
        read_by=STARTER,
    ),
    words(
        "FILETRANSFER_PLUGINS",
        None,
        "Programs that transfer files by URL (absolute paths), which say with -classad by which schemes. They run as"
        " the job's account, confined like the job. The first that names a scheme has it, http and https too; s3, gs"
        " and file are the submit machine's.",
        change="live",
        read_by=STARTD,
    ),
    seconds(
        "FILETRANSFER_PLUGIN_CLASSAD_TIMEOUT",
        20,
        "How long a transfer plugin may take to answer -classad; one that takes longer is left out.",
        low=1,
        high=3_600,
        change="live",
        read_by=STARTD,
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
    integer(
        "STARTER_LIBRARY_CACHE",
        1024,
        "How much disk the contents of files may take that programs of the standard universe have read on their submit"
        " machines (libraries, interpreters), kept for the next runs of the same owner; 0: none are kept.",
        low=0,
        unit="MiB",
        change="live",
        read_by=STARTER,
    ),
    boolean(
        "STARTD_ENFORCE_DISK_LIMITS",
        False,
        "Whether a job that uses more disk than it asked for (the Disk of its slot) is held; JOB_DISK_LIMIT does not"
        " count then.",
        read_by=STARTER,
    ),
    expression(
        "JOB_DISK_LIMIT",
        "max({Disk, TotalDisk * Cpus / TotalCpus})",
        "How much disk (KiB) a job may use in its scratch directory before it is held, over the ad of its slot: by"
        " default what the slot has, or its processors' share of the machine's disk where that is more. 0: any amount."
        " For claims that begin later.",
        read_by=STARTER,
    ),
    integer(
        "JOB_DISK_LEAVES",
        1024,
        "How much of the disk below EXECUTE jobs leave free for others; at most a twentieth of the disk. When less is"
        " left, the job that has taken most beyond its slot's Disk has to make room: it is held if that is as much as"
        " is to stay free, and tried again later otherwise. For claims that begin later.",
        low=0,
        unit="MiB",
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
)
