"""The script that Slurm runs for one machine of an annex: it joins the pool, runs jobs, drains, leaves.

Theory: the script is all that is there, so it keeps the time itself and not by messages: nothing new begins after
``drain_s``, what still runs is vacated, with its checkpoint, at ``leave_s``, and by the end everything is gone, before
Slurm's own limit.  SIGTERM (``condor_annex stop``, a machine that Slurm takes back) makes it leave at once.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import attrs

__all__ = ["AnnexPlan", "script_of"]

DRAIN_PART, DRAIN_MOST_S = 0.2, 1200.0
LEAVE_PART, LEAVE_MOST_S = 0.1, 600.0
LEAVE_LEAST_S = 20.0


@attrs.frozen(kw_only=True)
class AnnexPlan:
    """One annex.

    Attributes:
        name: of it.
        folder: where its script, tokens and logs are, which the machines of Slurm see, too.
        python: the interpreter that runs the daemons there.
        lifetime_s: how long each machine stays.
        lending: lines of its configuration that say whose jobs run there beside the pool's own, and by which gateway.
    """

    name: str
    folder: Path
    python: str
    lifetime_s: float
    lending: str = ""

    @property
    def leave_s(self) -> float:
        """So long before the end jobs are vacated."""
        return max(LEAVE_LEAST_S, min(LEAVE_MOST_S, self.lifetime_s * LEAVE_PART))

    @property
    def drain_s(self) -> float:
        """So long before the end nothing new begins."""
        return self.leave_s + min(DRAIN_MOST_S, self.lifetime_s * DRAIN_PART)


SCRIPT = """#!/bin/sh
# Written by condor_annex: one machine of the annex {name}.
umask 077
unset CONDOR_CONFIG
number=${{SLURM_ARRAY_TASK_ID:-1}}
folder={folder}
python={python}
began=$(date +%s)
place=$(mktemp -d "${{SLURM_TMPDIR:-${{TMPDIR:-/tmp}}}}/condor-annex.XXXXXX") || exit 1
master=
leave() {{ trap : TERM; [ -z "$master" ] || kill -TERM "$master" 2>/dev/null; leaving=yes; }}
trap leave TERM INT
leaving=
trap 'rm -rf "$place"' EXIT

mkdir "$place/config.d" "$place/etc"
cpus=${{SLURM_CPUS_ON_NODE:-1}}
memory=${{SLURM_MEM_PER_NODE:-}}
[ -n "$memory" ] || memory=$((${{SLURM_MEM_PER_CPU:-0}} * cpus))
[ "$memory" -gt 0 ] || memory=$(awk -v cpus="$cpus" -v all="$(nproc --all)" \\
    '/^MemTotal/ {{ print int($2 / 1024 * cpus / all) }}' /proc/meminfo)
cat > "$place/condor_config" <<END
LOCAL_DIR = $place
ETC = $place/etc
LOCAL_CONFIG_DIR = $place/config.d
FULL_HOSTNAME = annex-{name}-${{SLURM_JOB_ID:-0}}.$(hostname)
NUM_CPUS = $cpus
MEMORY = $memory
END
cat > "$place/config.d/50-annex.config" <<END
START = time() < $((began + {begin_s}))
AnnexName = "{name}"
AnnexEnds = $((began + {end_s}))
SlurmJobId = "${{SLURM_JOB_ID:-}}"
STARTD_ATTRS = \\$(STARTD_ATTRS) AnnexName AnnexEnds SlurmJobId
MACHINEMAXVACATETIME = {vacate_s}
SHUTDOWN_GRACEFUL_TIMEOUT = {shutdown_s}
END
cat >> "$place/config.d/50-annex.config" <<'END'
{lending}END
CONDOR_CONFIG=$place/condor_config
export CONDOR_CONFIG

token=$folder/tokens/$number
if [ ! -s "$token" ]; then
    echo "condor_annex: no token is left in $token: this machine has joined before, or the annex was stopped" >&2
    exit 1
fi
"$python" -P -m condor_actors.tools.admin.pool join - --execute < "$token" || exit 1
rm -f "$token"
[ -z "$leaving" ] || exit 0
left=$((began + {stay_s} - $(date +%s)))
timeout --foreground --preserve-status $((left > 0 ? left : 1)) "$python" -P -m condor_actors.services master &
master=$!
[ -z "$leaving" ] || kill -TERM "$master" 2>/dev/null  # told after it began, and before its number was known here
while kill -0 "$master" 2>/dev/null; do wait "$master"; status=$?; done
tail -n 200 "$place/log/MasterLog" "$place/log/StartdLog" "$place/log/StarterHostLog" 2>/dev/null
exit "${{status:-0}}"
"""


def script_of(plan: AnnexPlan) -> str:
    """The text of the script."""
    leave_s = plan.leave_s
    return SCRIPT.format(
        name=plan.name, folder=shlex.quote(str(plan.folder)), python=shlex.quote(plan.python), lending=plan.lending,
        begin_s=round(plan.lifetime_s - plan.drain_s), end_s=round(plan.lifetime_s),
        stay_s=round(plan.lifetime_s - leave_s), vacate_s=round(leave_s * 0.5), shutdown_s=round(leave_s * 0.8))
