"""Options that several commands share."""

from __future__ import annotations

from condor_actors.tools.manual.description import Options

WHICH: Options = {
    "constraint EXPR": "those for which EXPR is true; all of several must be",
    "limit N": "at most N of them",
}
FORMS: Options = {
    "long": "whole ads, an attribute on each line",
    "json": "whole ads as a JSON list",
    "xml": "whole ads as XML",
    "attributes NAME,NAME": "only these attributes, with -long, -json and -xml",
    "af[:LETTERS] ATTR ...": "the values of these attributes or expressions, a line for each ad; the letters "
                             "jlhVrTY,tng add ids, labels and headings, and say how values are written and parted",
    "format FORMAT ATTR": "one attribute, by a format as of printf(3); several together make a line",
    "print-format FILE": "the table that FILE describes",
}
PLACE: Options = {
    "address ADDRESS": "the daemon at ADDRESS (<host:port>)",
    "pool HOST": "the collector of the pool whose central manager is HOST",
    "name NAME": "the daemon of that name",
    "type KIND": "which kind of daemon: schedd, startd, collector, negotiator or master",
}
JOBS = "JOB is CLUSTER.PROC, or CLUSTER for all jobs of a cluster; USER stands for all jobs of a user."
