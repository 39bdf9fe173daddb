"""Parameters that say who may do what, and how daemons prove who they are."""

from __future__ import annotations

from condor_actors.config.parameter import boolean, integer, path, seconds, text, words

ROWS = (
    words(
        "ALLOW_<LEVEL>",
        None,
        "Who has that level: identities such as alice@physics.example or */host.example, with *"
        " for any part, and networks such as 10.1.0.0/16. READ asks, WRITE submits, OWNER is a machine's owner,"
        " ADMINISTRATOR commands, DAEMON belongs to the pool,"
        " NEGOTIATOR makes matches, ADVERTISE_* sends ads, CONFIG changes settings.",
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
        "POOL_PARTNERS",
        "$(ETC)/pool/partners.json",
        "The pools that this one trusts (condor_flock); none when it is not there.",
    ),
    path(
        "HOST_CERTIFICATE",
        "$(ETC)/pool/host.crt",
        "This machine's certificate, signed by the pool's authority.",
    ),
    path("HOST_KEY", "$(ETC)/pool/host.key", "The private key of this machine's certificate."),
    path(
        "USER_CERTIFICATE",
        "~/.condor/user.pem",
        "A user's certificate and its private key, borrowed for some hours from a daemon of this machine, for talking "
        "to daemons of other machines.",
    ),
    path("SEC_PASSWORD_DIRECTORY", "$(ETC)/passwords.d", "The keys that sign tokens, each in the file of its name."),
    path(
        "SEC_TOKEN_POOL_SIGNING_KEY_FILE",
        "$(SEC_PASSWORD_DIRECTORY)/POOL",
        "The pool's own signing key, POOL; the collector of the central manager makes it. Who has it can be anybody.",
    ),
    text("SEC_TOKEN_ISSUER_KEY", "POOL", "The key that signs tokens for which none is named."),
    words(
        "SEC_TOKEN_FETCH_ALLOWED_SIGNING_KEYS",
        "POOL",
        "The keys that condor_token_fetch and condor_token_request may have tokens signed with.",
    ),
    seconds(
        "SEC_ISSUED_TOKEN_EXPIRATION",
        "-1",
        "The longest life of tokens that daemons give; -1: as long as is asked for.",
        low=-1,
    ),
    seconds(
        "TOKEN_REQUEST_AUTO_APPROVE_MAX_LIFETIME",
        3600,
        "The longest that a rule of condor_token_request_auto_approve is in force.",
        low=1,
    ),
    path(
        "SEC_TOKEN_REVOCATIONS",
        "$(ETC)/pool/revoked_tokens",
        "Which tokens are revoked (condor_token_revoke); the collector keeps the list, and machines have copies.",
    ),
    text(
        "SEC_TOKEN_REVOCATION_EXPR",
        None,
        "Tokens of which this is true (of their iss, sub, kid, jti, iat, exp, scope) are refused.",
    ),
    path("SEC_TOKEN_DIRECTORY", "~/.condor/tokens.d", "The caller's tokens, in files that nobody else may read."),
    path("SEC_TOKEN_SYSTEM_DIRECTORY", "$(ETC)/tokens.d", "Tokens of root, which has none of its own."),
    words(
        "SEC_CLIENT_AUTHENTICATION_METHODS",
        "FS SSL IDTOKENS",
        "What commands show to daemons of other machines, in this order: the certificate of the user or the machine"
        " (SSL), a token (IDTOKENS). FS is for this machine's sockets.",
    ),
    path(
        "CERTIFICATE_MAPFILE",
        None,
        "Names here of those who proved others: lines of a method (SSL, IDTOKENS, FS), a proved name, a name here.",
    ),
    boolean(
        "CERTIFICATE_MAPFILE_ASSUME_HASH_KEYS",
        False,
        "Whether only what stands between slashes is a regular expression in CERTIFICATE_MAPFILE.",
    ),
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
        "Users of this machine who may do to any job what their owners may, besides the account of the schedd itself.",
    ),
    words(
        "TRUSTED_USER_HOSTS",
        "",
        "Machines whose word counts about users: alice of one of them is alice of this machine, and may submit jobs "
        "here and act on hers. This machine's own users always may.",
    ),
    boolean("QUEUE_ALL_USERS_TRUSTED", False, "Whether every user may act on every job."),
    integer("SEC_MAX_LINKS", 10000, "How many connections a daemon takes at once.", low=1, change="restart"),
    integer(
        "SEC_MAX_LINKS_PER_SOURCE",
        2000,
        "How many connections a daemon takes from one user of the machine, or one address.",
        low=1,
        change="restart",
    ),
    integer(
        "SEC_MAX_SILENT_LINKS",
        128,
        "How many of them may not have said yet what they are for.",
        low=1,
        change="restart",
    ),
)
