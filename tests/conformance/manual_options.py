"""Every option that HTCondor's manual pages name for the commands that ask and act, each with an example of its use.

The names are the manual's; the values are ours.  Braces stand for something of the pool where the examples are run:

===================================  ===============================================================
``{me}`` ``{domain}``                the user
``{schedd}`` ``{host}``              names; ``{schedd_addr}`` ``{startd_addr}``: addresses
``{central}`` ``{config}``           the central manager; the pool's configuration
``{job}`` ``{done_log}``             a finished job, its event log
``{spare}`` ``{this}`` ``{log}``     a job to act on, another one each time; an expression that is true
                                     of it alone; its event log
``{ads}`` ``{slots}`` ``{users}``    files of ads
``{table}`` ``{edits}`` ``{rules}``  a print format, attributes, a transform
``{new}`` ``{folder}``               a name that is free, a directory
===================================  ===============================================================

A number before an example is the exit status; by default it is 0.
"""

from __future__ import annotations

__all__ = ["EXAMPLES"]

_FORMS = """
-long; -json; -xml; -attributes ClusterId -long; -autoformat Owner; -af:jlh Owner; -format %s Owner;
-print-format {table}; -limit 1; -constraint true
"""

_ACTS = """
-help; -version; -long {spare}; -totals {spare}; -pool {central} -name {schedd} {spare}; -name {schedd} {spare};
-addr {schedd_addr} {spare}; -debug {spare}; -constraint {this}
"""

EXAMPLES: dict[str, str] = {
    "condor_q": _FORMS + """;
        -debug; -batch; -nobatch; -global; -submitter {me}; -name {schedd}; -pool {central} -name {schedd};
        -jobads {ads}; -userlog {log}; -factory; -jobset; -autocluster; -cputime; -currentrun -nobatch;
        -cumulative-time -nobatch; -dag; -expert; -grid; -grid:ec2; -help; -help Universe; -help State; -hold;
        -hold-codes; -io; -idle; -run; -stream-results; -totals; -version; -wide; -aaf Owner; -analyze;
        -better-analyze; -better-analyze:summary; -machine {host} -better-analyze; -mconstraint true -better-analyze;
        -slotads {slots} -better-analyze; -userprios {users} -better-analyze; -nouserprios -better-analyze;
        -reverse-analyze; -verbose -better-analyze; -unmatchable; 1 -unmatchable -batch
        """,
    "condor_status": _FORMS.replace("ClusterId", "Name").replace("Owner", "Name").replace(":jlh", ":lh") + """;
        -debug; -help; -diagnose; -absent; -ads {slots}; -annex cloud; -any; -avail; -claimed; -cod; -collector;
        -defrag; -direct {host}; -grid; -java; -license; -master; -negotiator; -pool {central}; -run; -schedd;
        -server; -startd; -state; -broken; -healthy; -healthy:verbose; -lvm; -snapshot -direct {host};
        -statistics ALL -direct {host}; -storage; -submitters; -subsystem schedd; -vm; -offline; -expert; -sort Name;
        -totals; -compact; -aaf OpSys; -target {ads} -af Name; -merge {slots}
        """,
    "condor_history": _FORMS + """;
        -help; -debug; -name {schedd}; -pool {central} -name {schedd}; -backwards; -forwards; -no-librarian;
        -since {job}; -completedsince 5; -completedsince time()-86400; -scanlimit 5; -match 1; -local; -schedd;
        -startd; -epochs; 1 -epochs:d; -epochs -directory; -transfer; -transfer-history:iO; -daemon; -file {ads};
        -userlog {log}; -search {ads}; -dir -search {ads}; -directory -search {ads}; -jsonl; -wide; -wide:40;
        -extract {new} -constraint true; -stream-results; -type JOB; -type EPOCH; 1 -type XFER; -diagnostic
        """,
    "condor_rm": _ACTS + "; 1 -forcex {spare}; -transfer {spare}; 1 -held {spare}; -all",
    "condor_hold": _ACTS + "; -reason because {spare}; -subcode 7 {spare}; -all",
    "condor_release": _ACTS + "; -reason because {spare}; -all",
    "condor_vacate_job": """
        -help; -version; 1 -long {spare}; 1 -totals {spare}; 1 -fast {spare};
        1 -pool {central} -name {schedd} {spare}; 1 -name {schedd} {spare}; 1 -addr {schedd_addr} {spare};
        1 -constraint {this}; 1 -all
        """,
    "condor_who": _FORMS.replace("ClusterId", "Name").replace("Owner", "Name").replace(":jlh", ":lh") + """;
        -help; -daemons; -quickdaemons; -wait-for-ready:60 IsReady; -wait:5 true; 1 -wait-for-ready false;
        -diagnostic; -verbose; -address {startd_addr}; -allpids; -logdir {folder}; -pid 1; -jobs; -startd -long;
        -snapshot -long; -snapshot:1; -statistics ALL; -wide; -aaf:V Name -snapshot; -banner-format {table}; -ospool
        """,
    "condor_userprio": """
        -debug; -help; -inputfile {users}; -name {host}; -pool {central}; -resetall; -resetusage {me}@{domain};
        -setaccum {me}@{domain} 10; -setbegin {me}@{domain} 10; -setlast {me}@{domain} 20;
        -setfactor {me}@{domain} 100; -setprio {me}@{domain} 1; -setceiling {me}@{domain} 9;
        -setfloor {me}@{domain} 0; -duration 60 -setceiling {me}@{domain} 5; -cancelceilinglease {me}@{domain};
        1 -cancelfloorlease {me}@{domain}; 1 -cancelfactorlease {me}@{domain}; -activefrom 1 1 2020; -all; -allusers;
        -collector; -negotiator; -af Name; -autoformat:lh Name; -constraint true; -flat; -groupid;
        -getreslist {me}@{domain}; -grouporder; -grouprollup; -hierarchical; -legacy -long; -long; -modular -long;
        -order; -priority; -most; -quotas; -sortkey; -surplus; -usage; -delete {me}@{domain}
        """,
    "condor_prio": "-p 3 {spare}; -a +1; -a -1; -n {schedd} -p 2 {spare}; -pool {central} -n {schedd} -p 1 {spare}",
    "condor_qedit": """
        -help; -debug {spare} X 1; -dry-run {spare} X 1; -n {schedd} {spare} X 1;
        -pool {central} -n {schedd} {spare} X 1; -forward {spare} X 1; -constraint {this} X 1; -owner {me} X 1;
        -jobids {spare} X 1; -edits {edits} {spare}; -jobids {spare} -edits:long {edits}
        """,
    "condor_now": "-help; -version; 1 -debug {spare}; 1 -pool {central} -name {schedd} {spare}; "
                  "1 -name {schedd} {spare}",
    "condor_reschedule": "-help; -version; -debug; -pool {central} -name {schedd}; -name {schedd}; "
                         "-addr {schedd_addr}; -constraint true; -all",
    "condor_transform_ads": """
        -help; -help rules; -help convert; -rules {rules} {ads}; -jobtransforms shout {ads}; -jobroute x {ads};
        -in {ads} -rules {rules}; -in:long {ads} -rules {rules}; -in:auto {ads} -rules {rules};
        -out {new} -rules {rules} {ads}; -out:json,nosort {new} -rules {rules} {ads};
        -out:new {new} -rules {rules} {ads}; -out:auto {new} -rules {rules} {ads}; -long -rules {rules} {ads};
        -json -rules {rules} {ads}; -xml -rules {rules} {ads}; -verbose -rules {rules} {ads};
        -terse -rules {rules} {ads}; -debug -rules {rules} {ads}
        """,
    "condor_wait": """
        -help; -version; -debug {done_log}; -status {done_log}; -echo {done_log}; -wait 5 {done_log};
        -num 1 {done_log}; 1 -allevents -wait 1 {done_log}
        """,
    "condor_userlog": """
        -help; -version; -total {done_log}; -raw {done_log}; -debug {done_log}; -evict {done_log}; -j 1 {done_log};
        -all {done_log}; -hostname {done_log}
        """,
    "condor_tail": """
        -help; -version; 1 -pool {central} -name {schedd} {spare}; 1 -name {schedd} {spare}; 1 -debug {spare};
        1 -maxbytes 5 {spare}; 1 -no-stdout -stderr {spare}; 1 -stderr {spare}
        """,
    "condor_config_val": """
        -help; -version; 1 -set NOTE=1; 1 -unset NOTE; 1 -rset NOTE=1; 1 -runset NOTE; -summary; -summary:detected;
        -dump; -default SPOOL; -expand SPOOL; -raw SPOOL; -verbose SPOOL; -trace SPOOL; -debug SPOOL;
        -schedd -evaluate MAX_JOBS_RUNNING; -schedd -used; -schedd -unused; -config; -writeconfig {new};
        -writeconfig:upgrade {new}; -macro $(SPOOL); -macro:path $(SPOOL); -mixedcase -dump; -local-name west SPOOL;
        -subsystem SCHEDD SPOOL; -address {schedd_addr} SPOOL; -pool {central} -name {host} SPOOL; -name {host} SPOOL;
        -master SPOOL; -schedd SPOOL; -startd SPOOL; -collector SPOOL; -negotiator SPOOL; -root-config {config} SPOOL
        """,
}
"""By command: examples, separated by semicolons; each begins with the option that it stands for."""
