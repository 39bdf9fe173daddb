"""Another site, whose page wants to act as its visitor."""

from __future__ import annotations

import http.server
import json
from typing import Any

__all__ = ["Elsewhere"]


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """Another site, at another port of this machine, which wants to act as its visitor."""

    target = ""
    job = ""
    cookies: list[str] = []  # noqa: RUF012 - one server in one test

    def do_GET(self) -> None:  # noqa: N802 - the base class's name
        """The page of the attacker."""
        self.cookies.append(self.headers.get("Cookie", ""))
        body = json.dumps({"action": "remove", "jobs": [self.job]})
        page = f"""<!doctype html><iframe name="hidden"></iframe>
            <form id="form" method="post" enctype="text/plain" action="{self.target}/api/act" target="hidden">
            <input name='{body[:-1]},"reason":"' value='"}}'></form><script>
            const go = (headers, mode) => fetch("{self.target}/api/act", {{ method: "POST", mode, headers,
              credentials: "include", body: {json.dumps(body)} }}).then((answer) => answer.type, () => "refused");
            document.getElementById("form").submit();
            Promise.all([go({{ "Content-Type": "text/plain" }}, "no-cors"), go({{ "Content-Type": "application/json",
              "X-Condor-Session": "none" }}, "cors")]).then((said) => {{ document.title = said.join(); }});
            </script>""".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: Any) -> None:
        """Nothing."""
