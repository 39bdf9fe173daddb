"""The sentences of the 1988 report."""

from __future__ import annotations

__all__ = ["DIFFERENCES", "HOW", "METHOD", "PAGE_STYLE", "PAIRS", "SATURATED", "TABLE_ONE"]

PAGE_STYLE = """
body{max-width:68rem;margin:2rem auto;padding:0 1rem;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,sans-serif} h1{font-size:1.6rem} h2{font-size:1.1rem;margin-top:2rem}
.wide{overflow-x:auto} table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--grid);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left} figure{margin:0;flex:3 1 30rem;min-width:0}
.pair{display:flex;gap:1.2rem;flex-wrap:wrap} aside{flex:1 1 12rem;color:var(--soft);font-size:13px;padding-top:1.6rem}
code{font-size:.92em}
"""

METHOD = """
<p>In 1988 twenty-three VAXstations were watched for a month (“Condor – A Hunter of Idle Workstations”, section 3).
Here the decisions of that pool are made by the production's own cores{commit}: schedds, startds with <code>use POLICY
: 1988</code>, the negotiator with each of its priority policies, and first come, first served beside them. Users,
owners, placements and checkpoints are modelled. {seeds}; ± is the 95 % confidence interval over seeds; every policy
sees the same owners and the same jobs.</p>
<p>Made by <code>{command}</code>.</p>
"""

TABLE_ONE = """
<p>The digits of Table 1 cannot be read in the scan that we have. The columns “remembered” are not read from it but as
remembered from the printed paper; they add up to 918 jobs and 4,771 hours, and the text has “nearly 1000” and 4771.
The simulation is given the number of jobs and the mean demand of each user, so those columns agree by construction.</p>
"""

PAIRS = """
<p>Months differ more than policies do. So here are the differences between each policy and {first} in the same month,
that is with the same owners and the same jobs.</p>
"""

SATURATED = """
<p>The same pool for ten days, with three times the heavy user's jobs: more than it can ever do. The demand on the
fair policies is that the light users' mean wait ratio stays under 0.2 all the same; first come, first served shows
what they are protected from.</p>
"""

DIFFERENCES = """
<ul>
<li><b>Published curves.</b> The scan of the paper that we have lost the drawings and the digits of Table 1, so no
published curve is drawn here; of the figures, what the text says is marked or stands beside them. Table 1 is as
remembered (see there).</li>
<li><b>Distributions.</b> The paper gives means, a median and percentages, not distributions. Demands here are
log-normal, stays and absences of owners mixtures of exponentials with the correlation that section 5.1 reports.
Absolute checkpoint rates depend on how the quarter of the time that owners use is cut into visits, which the paper
does not say; leverage follows from them.</li>
<li><b>Fitted, not found.</b> The hours available, the hours consumed, the local use and the demand's mean and median
agree because the models of owners and users were made to have them. The lengths of stays and absences, the sizes of
batches, the heavy user's campaigns and the spread of the light users' demands were chosen on months of the first few
seeds, which are among those of this page, so that queues, leverage and checkpoint rates came near to what the paper
says. What the simulation finds by itself is how the policies differ on the same month, and what depends on the load:
the waits, the moves, the hours in which every station is used.</li>
<li><b>Short jobs wait longer here.</b> A home places one job every two minutes (section 4), an owner's return stops a
job for up to five minutes, and a cycle comes every two minutes. A job of a quarter of an hour that meets one of these
has a wait ratio of a half. That, not the heavy user, is most of what light users wait; it is there under every
policy. The paper says that in most cases they did not wait at all; here a third of their jobs waits for more than ten
minutes, as a batch of ten takes twenty minutes to place.</li>
<li><b>Leverage</b> of jobs of less than two hours comes out about a tenth below the paper's 600, that of all jobs 6 to
9 % above its 1,300. The paper's numbers of system calls and of moves are not known; 150 calls a job are a
guess.</li>
<li><b>The heavy user's jobs of less than an hour</b> wait in their owner's own queue behind the long ones, so the
large mean ratios at the left of Figure 4; the ratio of all waiting to all service is what that user feels.</li>
<li><b>Claims.</b> The production schedd keeps a claim for its next job for CLAIM_WORKLIFE (20 minutes), so the
negotiator is asked less often than the coordinator of 1988 was; with FIFO a station goes back to the pool after each
job, which is the kindest FIFO can be.</li>
<li><b>Months in which light users wait.</b> In some the light users' mean is above 0.2, most often under Up-Down. There
a light user's batch of about ten jobs and a campaign of the heavy user begin in the same hour, on an afternoon whose
owners leave ten stations. Both indices are near 0 then and stay side by side: the user who holds more is overtaken
within a few passes, and stations go back and forth (in seed 9, 266 times from A to B and 147 times from B to A),
while a home places one job every two minutes. For those hours the light user wants as much as the heavy one, and
gets a half.
FAIR_SHARE, which wants a fifth of difference before it preempts, moves the fewest jobs.</li>
<li><b>Up-Down and UPDATE_PRIO</b> are nearly the same: the expression of 1989, <code>Prio + Users - Running</code>,
moves by the same steps with the opposite sign; they part where a user waits without holding anything, and where an
index is forgotten.</li>
<li><b>FAIR_SHARE</b> preempts only for a priority better by a fifth, and cuts the pool in shares, so a light user who
asks for more than a share waits for the rest of it.</li>
</ul>
"""

HOW = """
<p>Not modelled: crashes, network faults, full disks, the coordinator's and schedulers' own processor time (which the
paper puts below 1 %), and the text of programs (images are ½ MB, 5 s per MB to place or save, 10 ms per remote system
call, 150 calls per job on average). The configuration is
<code>condor_actors/simulation/templates/pool-1988.config</code>. See <a href="simulation.html">simulation</a> for the
models and their tests.</p>
"""
