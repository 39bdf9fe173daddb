"""Templates of HTCondor that this system refuses, each with the reason: what they set would have no effect here."""

from __future__ import annotations

from typing import Final

__all__ = ["why_refused"]

_CRON: Final = "what a job uses of a GPU is not measured"
_TRANSFORMS: Final = ("write it as a transform of your own: JOB_TRANSFORM_NAMES, with userMap() and a map from "
                      "use FEATURE : ScheddUserMapFile")
_PELICAN: Final = "no cache of Pelican's is run here; the machines fetch http, https, s3 and gs URLs themselves"
_CHECKPOINT_DESTINATION: Final = "each job names its own: checkpoint_destination = URL"
_CLOUD: Final = "it is for machines rented from a cloud"
_HIGH_AVAILABILITY: Final = "a pool has one central manager here"
_UPGRADE: Final = "there are no older configurations of this system to upgrade"
_REASONS: Final[dict[str, dict[str, str]]] = {
    "ROLE": {},
    "POLICY": {},
    "FEATURE": {
        "Monitor": _CRON,
        "GPUsMonitor": _CRON,
        "AssignAccountingGroup": _TRANSFORMS,
        "AssignProjectName": _TRANSFORMS,
        "SetJobAttrFromUsermap": _TRANSFORMS,
        "PelicanCache": _PELICAN,
        "PelicanRetryPolicy": _PELICAN,
        "OAuth": "tokens of other services are not kept",
        "Krb": "machines prove who they are by certificates, not by Kerberos",
        "Ganglia": "the daemons offer their metrics to Prometheus instead",
        "AdStash": "a job's history stays in its schedd",
        "Librarian": "a job's history stays in its schedd, in a database of its own",
        "ChildCollector": _HIGH_AVAILABILITY,
        "CommonCloudAttributesGoogle": _CLOUD,
        "CommonCloudAttributesAWS": _CLOUD,
        "JobsHaveInstanceIDs": _CLOUD,
        "HPC_Annex": _CLOUD,
        "DefaultCheckpointDestination": _CHECKPOINT_DESTINATION,
    },
    "SECURITY": {
        "Host_Based": "no peer is admitted because of its address; use SECURITY : Strong",
        "get_htcondor_idtokens": "machines join with condor_pool, and get certificates",
        "FIPS": "which ciphers are allowed is OpenSSL's configuration",
    },
    "EXPERIMENTAL": dict.fromkeys(
        ("CollectorNode", "HAD", "HADSharedPort", "HADFixedPort", "HADReplication"), _HIGH_AVAILABILITY
    ),
    "UPGRADE": dict.fromkeys(("Discard", "DiscardX", "DiscardIf", "DiscardIfX", "Discard_VMware"), _UPGRADE),
}


def why_refused(category: str, name: str) -> str | None:
    """Why a template that HTCondor has is refused; None for what HTCondor does not have either."""
    known = {each.upper(): why for each, why in _REASONS.get(category.upper(), {}).items()}
    return known.get(name.upper())
