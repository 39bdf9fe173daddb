"""Parameters of the web page."""

from __future__ import annotations

from condor_actors.config.parameter import boolean, choice, integer, path, seconds, text, words

WEB = "WEB"

ROWS = (
    integer("WEB_HTTP_PORT", 9680, "The port of the page; 0 takes any free one, and the same again after a restart.",
            low=0, high=65535, change="restart", read_by="WEB TOOL"),
    text("WEB_INTERFACE", "127.0.0.1",
         "The address at which the page is served. On another than loopback it is for the whole network: then "
         "WEB_ACCESS = KEY and WEB_CERTIFICATE are worth a thought.", change="restart", read_by=WEB),
    words("WEB_HOST_NAMES", "",
          "Names by which browsers may call the page, beside localhost, this machine's own names, and addresses. A "
          "request for any other name is refused, since it may come from another site's page.", read_by=WEB),
    choice("WEB_ACCESS", "READ",
           "READ: anyone who reaches the port sees the page. KEY: only those who have opened the link with the secret "
           "key, which is in $(SPOOL)/web_access_key and in the link of $(RUN)/web.url, each for "
           "WEB_SESSION_LIFETIME.", ("READ", "KEY"),
           change="restart", read_by=WEB),
    boolean("WEB_LOGIN", True,
            "Whether users may log in to the page with a token of the pool and act on their jobs: over HTTPS, or where "
            "the page is served on loopback.", read_by=WEB),
    seconds("WEB_SESSION_LIFETIME", 8 * 3600, "How long a log-in to the page lasts at most; it ends earlier when its "
            "token does. As long does what the link with the key has opened (WEB_ACCESS = KEY).", low=1, read_by=WEB),
    integer("WEB_MAX_SESSIONS", 100, "How many users may be logged in to the page at a time; with WEB_ACCESS = KEY as "
            "many browsers may have opened the link, and one more ends the oldest visit.", low=1, high=10000,
            read_by=WEB),
    integer("WEB_MAX_WATCHERS", 50, "How many pages may be kept up to date at a time; others are asked to come later.",
            low=1, high=10000, read_by=WEB),
    integer("WEB_MAX_CONNECTIONS_OF_ADDRESS", 60,
            "How many connections one address may have open to the page, of WEB_MAX_WATCHERS and 100 more for all. "
            "On loopback each user of this machine counts for all of its addresses; an IPv6 network of 64 bits counts "
            "as one; where a proxy stands before the page, that is the address of all. Beyond it, the connection that "
            "has waited longest without a request makes room for a new one.", low=1, high=100000, read_by=WEB),
    path("WEB_CERTIFICATE", None, "The certificate (PEM, with its chain) with which the page is served by HTTPS; "
         "undefined: by HTTP.", read_by=WEB),
    path("WEB_KEY", None, "The private key (PEM) of WEB_CERTIFICATE; undefined: it is in the same file.", read_by=WEB),
    seconds("WEB_UPDATE_INTERVAL", 2, "How often the pool is asked for changes while a page is open.", low=0.1,
            read_by=WEB),
    seconds("WEB_FIGURES_INTERVAL", 60, "How often a point of the figures is taken, page open or not.", low=1,
            read_by=WEB),
)
