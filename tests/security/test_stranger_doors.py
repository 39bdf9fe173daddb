"""A stranger on the network at every door of a pool: without a certificate, he may show a token or ask for one."""

from __future__ import annotations

import pytest

from tests.harness.namespaces import NEED_NAMESPACES
from tests.security.conftest import AttackedPool
from tests.security.intruder import intrude

pytestmark = NEED_NAMESPACES

TRY = """
import ssl, time
from condor_actors.wire.blocking import connect_tls
from condor_actors.wire.idtokens.bearer import TokenCredentials
Path("ca.crt").write_text(ca)
guest = TokenCredentials(ca="ca.crt", tokens={})

def heard(node, *parts):
    \"\"\"All that a daemon says to these bytes until it hangs up, or for two seconds.\"\"\"
    found = b""
    with connect_tls(tls_node(node), guest, 20.0) as connection:
        connection.settimeout(12.0)
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(0.05)
            while more := connection.recv(65536):
                found += more
        except TimeoutError:
            return found.decode(errors="replace") + " and stays"
        except OSError:
            pass
    return found.decode(errors="replace")

result = {}
for name, node in nodes.items():
    try:
        result[name] = [heard(node, *(part.encode("latin-1") for part in parts)) for parts in said]
    except WireError as error:
        result[name] = [""] * len(said)  # it wants a certificate before anything else
"""

UNHEARD = [
    ["condor actors 1\n"], ["condor bulk 1\n"], ["condor standard 1\n"], ["condor channel 1\n"],
    ["condor checkpoint 1\n"], ["CONDOR TOKEN 1\n"], ["condor token 2\n"], ["condor token 1\r\n"], ["\n"], ["\0" * 33],
    ["GET / HTTP/1.1\r\nHost: x\r\n\r\n"], ["condor actors 1\n" * 3],
    ["condor token 1\ncondor actors 1\n"],  # what follows must wait for the answer
]


def doors(pool: AttackedPool) -> dict[str, str]:
    names = ("collector", "schedd", "startd", "master", "negotiator")
    found = {name: pool.node(pool.manager, name) for name in names}
    return {**found, "schedd elsewhere": pool.node(pool.submit, "schedd")}


def strange(pool: AttackedPool, said: list[list[str]]) -> dict[str, list[str]]:
    heard: dict[str, list[str]] = intrude(pool.evil, TRY, ca=(pool.manager.dir / "etc/pool/ca.crt").read_text(),
                                          nodes=doors(pool), said=said)
    return heard


def test_nobody_answers_a_stranger(attacked: AttackedPool) -> None:
    for name, answers in strange(attacked, UNHEARD).items():
        assert answers == [""] * len(UNHEARD), name


@pytest.mark.parametrize("shown", [
    '{"token": "x.y", "nonce": "", "proof": ""}', "{}", "[]", "null", "7", '"x"', "x" * 9000, "[" * 5000,
    '{"token": 1, "nonce": 2, "proof": 3}',
])
def test_a_token_that_is_none_is_refused_and_the_line_is_cut(attacked: AttackedPool, shown: str) -> None:
    for name, (answer,) in strange(attacked, [["condor token 1\n", shown + "\n"]]).items():
        offer, _, verdict = answer.partition("\n")
        assert '"issuer": "trio"' in offer, name
        assert '"error"' in verdict, (name, verdict)
        assert "stays" not in verdict, name


def test_who_is_refused_gets_no_second_try_on_the_connection(attacked: AttackedPool) -> None:
    said = ["condor token 1\n", "{}\n", "condor token 1\n", "condor actors 1\n"]
    for name, (answer,) in strange(attacked, [said]).items():
        assert answer.count("issuer") == 1, name
        assert answer.count("error") == 1, name


def test_requests_for_tokens_are_taken_by_the_collector_only(attacked: AttackedPool) -> None:
    asked = ["condor token-request 1\n", '{"identity": "*", "levels": [], "lifetime_s": 0}\n']
    for name, (answer,) in strange(attacked, [asked]).items():
        assert ("is no identity" in answer) is (name == "collector"), (name, answer)


def test_requests_of_one_address_are_few(attacked: AttackedPool) -> None:
    answers = intrude(attacked.evil, """
        import json
        from condor_actors.wire.blocking import connect_tls
        from condor_actors.wire.idtokens.bearer import TokenCredentials, _line
        Path("ca.crt").write_text(ca)
        guest = TokenCredentials(ca="ca.crt", tokens={})
        asked = json.dumps({"identity": "root@trio", "levels": [], "lifetime_s": 0}).encode()
        kept, result = [], []
        for _ in range(12):
            kept.append(connect_tls(tls_node(collector), guest, 20.0))
            kept[-1].sendall(b"condor token-request 1\\n" + asked + b"\\n")
            result.append(json.loads(_line(kept[-1], collector)))
        for each in kept:
            each.close()
        """, ca=(attacked.manager.dir / "etc/pool/ca.crt").read_text(), collector=attacked.collector)
    assert ["request_id" in each for each in answers] == [True] * 8 + [False] * 4
    assert "too many" in answers[-1]["error"]
