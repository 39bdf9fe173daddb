"""The commands about tokens and credentials."""

from __future__ import annotations

from condor_actors.tools.manual.description import Description, Options
from condor_actors.tools.manual.pages.common import PLACE

ASKED: Options = {
    "authz LEVEL": "this authorization level, and no others than those that are named; may be repeated",
    "lifetime SECONDS": "how long the token counts",
    "token FILE": "write it to FILE in the folder of your tokens, instead of printing it",
}
KEY = "the signing key (POOL)"
SEE = ("condor_token_fetch(1)", "condor_token_list(1)", "condor_token_revoke(1)", "condor_ping(1)")
FOLDER: Options = {"~/.condor/tokens.d": "your tokens, one on each line of its files"}


def _page(name: str, purpose: str, text: str, options: Options, synopsis: str = "[options]") -> Description:
    return Description(name=name, purpose=purpose, text=text, synopsis=(synopsis,), options={"Options": options},
                       source="pool.token_requests:TABLES" if "request" in name else "pool.tokens:TABLES",
                       files=FOLDER, see_also=tuple(page for page in SEE if name not in page))


PAGES = (
    _page("condor_token_create", "sign a token with a key of this machine",
          "Makes a token with a signing key of this machine; root and the account of the daemons can read it.",
          {"identity USER@DOMAIN": "whose token it is", "key KEYID": KEY, **ASKED}, "-identity USER@DOMAIN [options]"),
    _page("condor_token_fetch", "get a token in your own name",
          "Asks a daemon that knows you without a token for one; by default the collector.",
          {**PLACE, "key KEYID": KEY, **ASKED}),
    _page("condor_token_list", "show what your tokens say", "Prints the claims of the tokens that you have here.",
          {"dir FOLDER": "the tokens of that folder"}),
    _page("condor_token_revoke", "have tokens count no longer",
          "Tokens of these ids (jti), or of which an expression over their claims is true, count no longer. "
          "condor_token_list shows the ids of yours.",
          {**PLACE, "expr EXPR": "tokens for whose claims EXPR is true; may be repeated"}, "[options] [TOKEN-ID ...]"),
    _page("condor_token_request", "ask for a token and wait until it is approved",
          "Asks the collector for a token, prints the request's id, and waits until an administrator has approved it.",
          {"identity USER@DOMAIN": "for whom", "pool HOST": "the collector of that pool", **ASKED}),
    _page("condor_token_request_list", "show the requests for tokens", "Shows the requests that you may approve.",
          {**PLACE, "json": "as JSON"}),
    _page("condor_token_request_approve", "approve a request for a token",
          "Shows what a request asks for, and approves it when you say so.",
          {**PLACE, "reqid ID": "the request", "yes": "do not ask"}),
    _page("condor_token_request_auto_approve", "approve the requests of a network's new daemons for a time",
          "For a time, approves requests from a network by which new daemons ask for a token of condor that lets them "
          "advertise.",
          {**PLACE, "netblock NETWORK": "from where, such as 192.0.2.0/24", "lifetime SECONDS": "for how long"},
          "-netblock NETWORK -lifetime SECONDS [options]"),
    Description(
        name="condor_store_cred",
        purpose="entrust a credential to the credential daemon, for your jobs",
        synopsis=("add-oauth -s SERVICE -i FILE [options]", "delete-oauth -s SERVICE [options]",
                  "query [-s SERVICE] [options]",
                  "add-krb [-i CACHE]", "delete-krb", "query-krb"),
        text="""Stores a credential of a service, so that jobs that say use_oauth_services = SERVICE find an access
token of it in the file $_CONDOR_CREDS/SERVICE.use, which is renewed while they run. FILE holds a refresh token, alone
or as refresh_token of a JSON object; the service's server must be in the configuration (SERVICE_TOKEN_URL). With -P,
and in a JSON object without a refresh_token, it is an access token, which goes to jobs as it is. A credential replaces
an earlier one of its service and handle. Nobody can read it back but your own processes on the daemon's machine
(htcondor credential get).
add-krb stores the Kerberos ticket of your own credential cache, which is renewed as long as it can be; jobs that say
send_credential = true find it where KRB5CCNAME says.""",
        source="pool.store_cred:command_parser",
        exit_status="0; 1 when it could not be done, or there is none; 2 when there is one for other scopes or another "
        "audience.",
        see_also=("htcondor(1)", "condor_submit(1)"),
    ),
)
