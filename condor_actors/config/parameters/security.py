"""Parameters that say who may do what, and how daemons prove who they are."""

from __future__ import annotations

from condor_actors.config.parameter import boolean, integer, path, seconds, text, words

ROWS = (
    words(
        "ALLOW_<LEVEL>",
        None,
        "Who has that level: identities such as alice@physics.example or */host.example, with *"
        " for any part. READ asks, WRITE submits, OWNER is a machine's owner, ADMINISTRATOR commands, DAEMON belongs"
        " to the pool, NEGOTIATOR makes matches, ADVERTISE_* sends ads, CONFIG changes settings.",
    ),
    words("DENY_<LEVEL>", None, "Who has not that level, even if ALLOW_ admits them."),
    words("ALLOW_<LEVEL>_<SUBSYS>", None, "As ALLOW_<LEVEL>, for one daemon only."),
    words("DENY_<LEVEL>_<SUBSYS>", None, "As DENY_<LEVEL>, for one daemon only."),
    path(
        "POOL_CA",
        "$(ETC)/pool/ca.crt",
        "The certificate of the pool's own authority; who it signed belongs to the pool.",
    ),
    path(
        "POOL_CA_KEY",
        "$(ETC)/pool/ca.key",
        "The authority's private key; only on the machine that admits others.",
    ),
    path(
        "POOL_CRL",
        "$(ETC)/pool/revoked.crl",
        "The authority's list of revoked certificates; none when it is not there.",
    ),
    path(
        "HOST_CERTIFICATE",
        "$(ETC)/pool/host.crt",
        "This machine's certificate, signed by the pool's authority.",
    ),
    path("HOST_KEY", "$(ETC)/pool/host.key", "The private key of this machine's certificate."),
    path(
        "USER_CERTIFICATE",
        "~/.condor/user.crt",
        "A user's certificate, for talking to daemons of other machines.",
    ),
    path("USER_KEY", "~/.condor/user.key", "The private key of the user's certificate."),
    text("TRUST_DOMAIN", "$(UID_DOMAIN)", "The name of the pool in identities and tokens."),
    path("POOL_TOKENS", "$(SPOOL)/tokens", "Which join tokens have been given out and not used yet."),
    seconds(
        "CERTIFICATE_LIFETIME",
        "365 * $(DAY)",
        "How long a machine's certificate is good; it renews itself after two thirds.",
        low=60,
    ),
    seconds(
        "PROXY_LIFETIME",
        "12 * $(HOUR)",
        "How long the certificate of a shadow host is good; it is renewed in time. At most 36 hours.",
        low=28800,
        high=129600,
    ),
    words(
        "QUEUE_SUPER_USERS",
        "root condor",
        "Users of this machine who may do to any job what their owners may.",
    ),
    words(
        "TRUSTED_USER_HOSTS",
        "",
        "Machines whose word counts about users: alice of one of them is alice of this machine, and may submit jobs "
        "here and act on hers. This machine's own users always may.",
    ),
    boolean("QUEUE_ALL_USERS_TRUSTED", False, "Whether every user may act on every job."),
    integer("SEC_MAX_LINKS", 10000, "How many connections a daemon takes at once.", low=1, change="restart"),
)
