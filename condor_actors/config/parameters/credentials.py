"""Parameters of the credential daemon and of the services that it has tokens of."""

from __future__ import annotations

from condor_actors.config.parameter import boolean, choice, integer, path, seconds, text, words

CREDD = "CREDD"

ROWS = (
    text("CREDD_HOST", None, "Where condor_store_cred finds the credential daemon of another machine: <host:port>; "
         "undefined: it is on this one.", read_by="TOOL"),
    path("CREDD_DATABASE", "$(SPOOL)/credentials.db", "Where credentials are kept; their secrets are sealed with the "
         "key of CREDD_KEY_FILE.", read_by=CREDD),
    path("CREDD_KEY_FILE", "$(ETC)/pool/credd.key", "The key that seals them: 32 bytes that only the daemons' account "
         "may read. The credential daemon makes it when it is not there. A copy of it belongs in another place than "
         "copies of the database.", read_by=CREDD),
    integer("CREDD_MAX_CREDENTIALS_PER_USER", 100, "How many credentials one user may have.", low=1, high=10000,
            read_by=CREDD),
    path("CREDD_CA_FILE", None, "Certificates of the authorities that are trusted about the services' servers (PEM); "
         "undefined: those of the system.", change="live", read_by=CREDD),
    path("CREDD_KINIT", "/usr/bin/kinit", "The program that renews Kerberos tickets (kinit -R). Where it is not, none "
         "are kept.", change="live", read_by=CREDD),
    path("CREDD_KRB5_CONFIG", None, "The krb5.conf by which it finds the servers of realms; undefined: the system's.",
         change="live", read_by=CREDD),
    text("<SERVICE>_TOKEN_URL", None, "Where access tokens of an OAuth2 service are had for refresh tokens: an https "
         "URL. It makes the name a service, for use_oauth_services.", read_by=CREDD),
    text("<SERVICE>_CLIENT_ID", None, "The name by which an OAuth2 service knows this pool.", read_by=CREDD),
    path("<SERVICE>_CLIENT_SECRET_FILE", None, "The file with the secret that goes with <SERVICE>_CLIENT_ID; only "
         "root or the daemons' account may be able to read it. Undefined: the client has none.", change="live",
         read_by=CREDD),
    words("LOCAL_CREDMON_PROVIDER_NAMES", "", "Services whose tokens this pool issues itself, for every user: JSON Web "
          "Tokens with the claims of SciTokens, signed with LOCAL_CREDMON_PRIVATE_KEY.", read_by=CREDD),
    path("LOCAL_CREDMON_PRIVATE_KEY", "$(ETC)/scitokens-private.pem", "The key (PEM) that signs these tokens; only "
         "root or the daemons' account may be able to read it.", change="live", read_by=CREDD),
    choice("LOCAL_CREDMON_PRIVATE_KEY_ALGORITHM", "ES256", "How it signs.", ("ES256", "RS256"), read_by=CREDD),
    text("LOCAL_CREDMON_ISSUER", "https://$(FULL_HOSTNAME)", "Who these tokens say has issued them: the URL below "
         "which services find the public key.", read_by=CREDD),
    text("LOCAL_CREDMON_KEY_ID", "local", "The name of the key in these tokens.", read_by=CREDD),
    text("LOCAL_CREDMON_AUTHZ_TEMPLATE", "read:/user/{username} write:/user/{username}", "What these tokens permit; "
         "{username} stands for the user's login name.", read_by=CREDD),
    text("LOCAL_CREDMON_TOKEN_AUDIENCE", None, "For whom these tokens are: words with blanks between.", read_by=CREDD),
    text("LOCAL_CREDMON_TOKEN_VERSION", "scitoken:2.0", "The version that these tokens name.", read_by=CREDD),
    seconds("LOCAL_CREDMON_TOKEN_LIFETIME", 1200, "How long these tokens count; jobs get new ones at half of it.",
            low=2, high=31536000, read_by=CREDD),
    boolean("LOCAL_CREDMON_TOKEN_USE_JSON", True, "Whether a job's file with such a token is a JSON object; else it is "
            "the token alone.", read_by=CREDD),
    text("LOCAL_CREDMON_<SERVICE>_<SETTING>", None, "ISSUER, KEY_ID, PRIVATE_KEY, PRIVATE_KEY_ALGORITHM, "
         "AUTHZ_TEMPLATE, TOKEN_AUDIENCE or TOKEN_VERSION of one of LOCAL_CREDMON_PROVIDER_NAMES, in place of what "
         "holds for all.", read_by=CREDD),
)
