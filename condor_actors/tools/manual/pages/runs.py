"""The commands about jobs that run or have run, and about programs that move."""

from __future__ import annotations

from condor_actors.tools.manual.description import Description, Verb
from condor_actors.tools.manual.pages.common import JOBS

WAIT = Description(
    name="condor_wait",
    purpose="wait until jobs have ended",
    synopsis=("[options] LOG [JOB]",),
    text="""Watches the event log LOG and ends when JOB, or all jobs that the log names, have completed or were
removed. It reads nothing but the log, as text or as XML, and the kernel tells it of changes. "-wait 0", and -allevents
alone, read the log as it is.""",
    source="jobs.wait:FLAGS",
    options={"Options": {
        "wait SECONDS": "wait no longer than that",
        "num N": "until N jobs have ended",
        "event-id[:N] ID": "until the event of this number has come N times (once)",
        "allevents": "read the log to its end, whether or not all jobs have ended",
        "status": "print when a job begins and ends",
        "echo[:FORM]": "print the events",
        "log LOG": "the log, instead of the word without a dash",
    }},
    exit_status="0 when they have ended; 1 when the time was up first, or LOG is no event log.",
    see_also=("condor_submit(1)", "condor_q(1)"),
    operands="files",
    reads_configuration=False,
)
USERLOG = Description(
    name="condor_userlog",
    purpose="show how long machines worked for the jobs of event logs",
    synopsis=("[options] LOG ...",),
    text="""Shows each time for which a machine was given to a job of the event logs, with the part of it that counted
towards the job's end (good time: all of it, or what had been saved when it was interrupted) and the processor time of
that; then the sums for each machine and each job. Goodput is good time over wall time, Util. processor time over good
time. Reads nothing but the logs, as text or as XML.""",
    source="jobs.userlog:FLAGS",
    options={"Options": {
        "total": "only the sums",
        "raw": "only the single times, without a heading",
        "evict": "only those that ended with an eviction",
        "j JOB": "only those of a cluster, or of a job",
        "all": "those of all jobs: the default, and the opposite of -j and -evict",
        "hostname": "the names of machines instead of their addresses",
    }},
    exit_status="0; 1 when a LOG cannot be read or is no event log.",
    see_also=("condor_wait(1)", "condor_history(1)", "condor_summary(1)"),
    operands="files",
    reads_configuration=False,
)
TRANSFER_DATA = Description(
    name="condor_transfer_data",
    purpose="fetch the results of spooled jobs",
    synopsis=("[options] JOB | USER ...", "[options] -constraint EXPR | -all"),
    text=f"""Copies the output of jobs that were submitted with "condor_submit -spool" to the folder that they were
submitted from. {JOBS}""",
    source="jobs.transfer_data:FLAGS",
    options={"Which jobs": {"constraint EXPR": "the jobs for which EXPR is true", "all": "all of yours"}},
    see_also=("condor_submit(1)",),
    operands="jobs",
)
TAIL = Description(
    name="condor_tail",
    purpose="show the end of a running job's files",
    synopsis=("[options] JOB [FILE ...]",),
    text="Prints the last bytes of a file in the sandbox of a running job; without FILE, of its standard output.",
    source="jobs.tail:FLAGS",
    options={"Options": {
        "maxbytes N": "how many bytes at most (1024)",
        "follow": "go on printing what is added",
        "no-stdout": "not its standard output",
        "stderr": "its standard error too",
        "auto-retry": "wait for a job that does not run yet",
    }},
    see_also=("condor_ssh_to_job(1)",),
    operands="jobs",
)
SSH_TO_JOB = Description(
    name="condor_ssh_to_job",
    purpose="open a shell beside a running job",
    synopsis=("[options] JOB [COMMAND ...]", "-L [PORT:]JOBPORT [-L ...] JOB"),
    text="""Opens a shell on the machine of a running job, in its sandbox and with its account and limits, or runs
COMMAND there. With -L, programs here reach ports at which the job listens, such as those of a notebook. The bytes
travel over the pool's own connections.""",
    source="jobs.ssh_to_job:FLAGS",
    options={"Options": {
        "L [[ADDRESS:]PORT:localhost:]JOBPORT":
            "what connects to PORT here, of 127.0.0.1 unless ADDRESS says otherwise, talks to port JOBPORT of the job; "
            "with JOBPORT alone, PORT is the same",
        "auto-retry": "wait for a job that does not run yet",
        "remove-on-interrupt": "remove the job when this command is interrupted",
    }},
    exit_status="that of the shell or command; 1 when there was none.",
    see_also=("condor_tail(1)",),
    operands="jobs",
)
TRANSFORM_ADS = Description(
    name="condor_transform_ads",
    purpose="show what transforms make of ads",
    synopsis=("-rules FILE | -jobtransforms NAME,NAME  [options] [NAME=VALUE ...] [FILE ...]",),
    text="""Applies the transforms of FILE, or those that the configuration names, to ads and prints the result.
NAME=VALUE sets a macro for them. "-help rules" lists their statements.""",
    source="jobs.transform_ads:FLAGS",
    options={"Options": {
        "rules FILE": "statements of a transform, as in JOB_TRANSFORM_<NAME>",
        "jobtransforms NAME,NAME": "transforms of the configuration, in this order",
        "in[:FORM] FILE": "the ads (- for standard input): long, xml, json, new, or auto, as it looks",
        "out[:FORM] FILE": "where the result goes",
        "long": "print an attribute on each line",
        "json": "print JSON",
        "xml": "print XML",
        "verbose": "say on standard error which transforms applied to which ad",
    }},
    operands="files",
)
MANIFEST = Description(
    name="condor_manifest",
    purpose="look at the lists of checkpoints that jobs have sent to a URL",
    synopsis=("FUNCTION WORD",),
    text="""A job with checkpoint_destination has a list (MANIFEST) of each checkpoint, in SPOOL and at the destination:
a line with SHA-256 and name for each file, as sha256sum writes it, and the digest of the list itself at its end.
validateManifestFile FILE says whether a list is whole, validateFilesListedIn FILE whether its files, from the present
folder, are what it says, getNumberFromFileName NAME the number of a list, FileFromLine LINE and ChecksumFromLine LINE
what a line says; compute_file_sha256_checksum FILE writes a line, and createManifestFor FOLDER a list.""",
    source="jobs.manifest:FLAGS",
    options={"Options": {}},
    exit_status="0 for true; 1 for false and for a mistake; of getNumberFromFileName the number, 255: there is none.",
    see_also=("condor_submit(1)",),
    operands="files",
    reads_configuration=False,
)
CHECKPOINT = Description(
    name="condor_checkpoint",
    purpose="run, move and continue programs, with or without a pool",
    synopsis=("VERB [options] ...",),
    text="""Runs an unmodified program so that its state can be written to a file and continued from there, here or on
another machine.""",
    source="jobs.checkpoint_options:PARSERS",
    verbs=(Verb(name="job", synopsis="JOB | USER ...", text="have running jobs of the pool take one now",
                same_as="condor_suspend"),),
    exit_status="The program's; 115 when it could not be started, 113 when its files were lost; 1 for a mistake on the "
                "command line.",
    see_also=("condor_submit(1)", "condor_compile(1)"),
    operands="files",
    reads_configuration=False,
)
COMPILE = Description(
    name="condor_compile",
    purpose="link a program and say whether it can move",
    synopsis=("COMMAND [ARGUMENT ...]",),
    text="""Runs a link command unchanged, such as "gcc -o sim sim.c", and says on standard error whether the program
that it made can run in the standard universe, as "condor_checkpoint preflight" does. Programs need no library for
that.""",
    exit_status="That of COMMAND; 127 when it cannot be run.",
    see_also=("condor_checkpoint(1)",),
    operands="commands",
    reads_configuration=False,
)
CHIRP = Description(
    name="condor_chirp",
    purpose="reach files and attributes at home from inside a running job",
    synopsis=("VERB [options] ...",),
    text="""Runs inside a job that has want_io_proxy = true and speaks with the starter beside it. The files are those
that the job may use at home: below its folder, and where +LimitDirectoryAccess says.""",
    verbs=(
        Verb(name="fetch", synopsis="REMOTE LOCAL", text="copy a file from home"),
        Verb(name="put", synopsis="LOCAL REMOTE", text="copy a file to home", options={
            "-mode MODE": "how it is opened there, of the letters wactxa",
            "-perm PERM": "its permissions, in octal"}),
        Verb(name="remove", synopsis="REMOTE", text="remove a file at home"),
        Verb(name="get_job_attr", synopsis="ATTRIBUTE", text="print an attribute of the job"),
        Verb(name="get_job_attr_delayed", synopsis="ATTRIBUTE", text="the same, as it was last set here"),
        Verb(name="set_job_attr", synopsis="ATTRIBUTE VALUE", text="set an attribute of the job"),
        Verb(name="set_job_attr_delayed", synopsis="ATTRIBUTE VALUE", text="the same, at the next report of the job"),
        Verb(name="ulog", synopsis="TEXT", text="write a line into the job's log"),
        Verb(name="read", synopsis="REMOTE LENGTH", text="print part of a file at home", options={
            "-offset OFFSET": "from there on",
            "-stride LENGTH SKIP": "so many bytes of every so many"}),
        Verb(name="write", synopsis="REMOTE LOCAL [BYTES]", text="write part of a file at home", options={
            "-offset OFFSET": "from there on",
            "-stride LENGTH SKIP": "so many bytes of every so many"}),
        Verb(name="rmdir", synopsis="REMOTE", text="remove a folder at home", options={
            "-r": "with all that is in it"}),
        Verb(name="getdir", synopsis="REMOTE", text="list a folder at home", options={
            "-l": "with what stat says of each"}),
        Verb(name="whoami", text="print whom the job is at home"),
        Verb(name="whoareyou", synopsis="HOST", text="print who HOST is"),
        Verb(name="link", synopsis="OLD NEW", text="make a link at home", options={
            "-s": "a symbolic one"}),
        Verb(name="readlink", synopsis="REMOTE [LENGTH]", text="print where a link leads"),
        Verb(name="stat", synopsis="REMOTE", text="print what is known of a file"),
        Verb(name="lstat", synopsis="REMOTE", text="the same, of a link itself"),
        Verb(name="statfs", synopsis="REMOTE", text="print what is known of its file system"),
        Verb(name="access", synopsis="REMOTE MODE", text="whether a file may be used so, of the letters rwxf"),
        Verb(name="chmod", synopsis="REMOTE MODE", text="change permissions, in octal"),
        Verb(name="chown", synopsis="REMOTE UID GID", text="change the owner"),
        Verb(name="lchown", synopsis="REMOTE UID GID", text="the same, of a link itself"),
        Verb(name="truncate", synopsis="REMOTE LENGTH", text="cut a file"),
        Verb(name="utime", synopsis="REMOTE ACCESSED MODIFIED", text="set a file's times, in seconds since 1970"),
    ),
    exit_status="0; 1 when it was not done.",
    see_also=("condor_submit(1)", "condor_ssh_to_job(1)"),
    reads_configuration=False,
)
PAGES = (WAIT, USERLOG, TRANSFER_DATA, TAIL, SSH_TO_JOB, TRANSFORM_ADS, MANIFEST, CHECKPOINT, COMPILE, CHIRP)
