"""The daemons as twistd commands.  Names only: nothing of a daemon is imported before it is started."""

from twisted.application.service import ServiceMaker

condor_master = ServiceMaker(
    "condor-master", "condor_actors.services.master", "Condor: keep this machine's daemons running", "condor-master"
)
condor_collector = ServiceMaker(
    "condor-collector", "condor_actors.services.collector", "Condor: the pool's directory of ads", "condor-collector"
)
condor_negotiator = ServiceMaker(
    "condor-negotiator", "condor_actors.services.negotiator", "Condor: match jobs and machines", "condor-negotiator"
)
condor_schedd = ServiceMaker(
    "condor-schedd", "condor_actors.services.schedd", "Condor: the job queue of a submit machine", "condor-schedd"
)
condor_startd = ServiceMaker(
    "condor-startd", "condor_actors.services.startd", "Condor: lend this machine by its owner's rules", "condor-startd"
)
condor_kbdd = ServiceMaker(
    "condor-kbdd", "condor_actors.services.kbdd", "Condor: tell the startd of keyboard and mouse", "condor-kbdd"
)
condor_ckpt_server = ServiceMaker(
    "condor-ckpt-server", "condor_actors.services.ckpt_server", "Condor: keep checkpoints for submit machines",
    "condor-ckpt-server"
)
condor_credd = ServiceMaker(
    "condor-credd", "condor_actors.services.credd", "Condor: keep users' credentials for their jobs", "condor-credd"
)
condor_defrag = ServiceMaker(
    "condor-defrag", "condor_actors.services.defrag", "Condor: drain machines so that large jobs find whole ones",
    "condor-defrag"
)
condor_gateway = ServiceMaker(
    "condor-gateway", "condor_actors.services.gateway", "Condor: carry what pools say to each other",
    "condor-gateway"
)
condor_rooster = ServiceMaker(
    "condor-rooster", "condor_actors.services.rooster", "Condor: wake machines when there are jobs for them",
    "condor-rooster"
)
condor_web = ServiceMaker(
    "condor-web", "condor_actors.services.web", "Condor: the pool as a web page", "condor-web"
)
condor_shadow_host = ServiceMaker(
    "condor-shadow-host", "condor_actors.services.shadow_host", "Condor: the shadows of one owner's running jobs",
    "condor-shadow-host"
)
condor_starter_host = ServiceMaker(
    "condor-starter-host", "condor_actors.services.starter_host", "Condor: the starters of a machine's running jobs",
    "condor-starter-host"
)
