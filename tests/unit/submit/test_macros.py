"""Macros and macro functions."""

from __future__ import annotations

import pytest

from condor_actors.submit import SubmitError
from tests.unit.submit.worlds import World, described, jobs_of

NAMES = """
empty =
p = /a/b.d/file.tar.gz
q = "/a b/c.x"
n = 7
r = 2.5
expr = 3+4
s = hello world
list = a,b,c
d = /a/b/c/
"""


def expanded(text: str) -> str:
    world = World(environ={"FOO": "envfoo"})
    return described(f"{NAMES}executable = /bin/true\nz = x\nqueue\n", world).scope.expand(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$(empty:def) $(nope:def) $(nope:$(n)) $(nope)x", "def def 7 x"),
        ("$(nope:a:b) $(N) $( n )", "a:b 7 $( n )"),
        ("$ENV(FOO) $ENV(NOPE:dflt) $ENV(NOPE)", "envfoo dflt UNDEFINED"),
        ("$F(p) $Fn(p) $Fx(p) $Fp(p) $Fd(p) $Fnx(p)", "/a/b.d/file.tar.gz file.tar .gz /a/b.d/ b.d/ file.tar.gz"),
        ("$Fq(p) $Fqa(p) $Fnq(q) $F(q)", '"/a/b.d/file.tar.gz" \'/a/b.d/file.tar.gz\' "c" /a b/c.x'),
        ("$Fpb(p) $Fdb(p) $Fxb(p) $Fnb(p)", "/a/b.d b.d gz file.tar"),
        ("$Fp(d) $Fn(d) $Fd(d)", "/a/b/c/  c/"),
        ("$Ff(n)", "/home/alice/7"),
        ("$INT(n) $INT(n,%04d) $INT(expr) $INT(expr,%x) $INT(3*5) $INT(r)", "7 0007 7 7 15 2"),
        ("$REAL(n) $REAL(r,%.3f) $REAL(expr)", "7 2.500 7"),
        ("$STRING(s) $STRING(n,%5s) $STRING(expr)", "hello world     7 3+4"),
        ('$EVAL(expr) $EVAL("abc") $EVAL(strcat("a","b"))', "7 abc ab"),
        ("$SUBSTR(s,2) $SUBSTR(s,0,4) $SUBSTR(s,-3) $SUBSTR(s,-5,2)", "llo world hell rld wo"),
        ("$CHOICE(1,a,b,c) $CHOICE(2,list)", "b c"),
        ("$CHOICE(1 > 2,a,b) $CHOICE(true,a,b)", "a b"),
        ("$BASENAME(p) $DIRNAME(p)", "file.tar.gz /a/b.d/"),
        ("$BASENAME(p,.gz) $BASENAME(p, .tar.gz) $BASENAME(p,.x) $BASENAME(/x/y.c,.c)", "file.tar file file.tar.gz y"),
        ("$Fn(/x/y.c) $Fnx(y.c) $F(y)", "y y.c y"),
        ("$Fdd(p) $Fdd(q)", "a/b.d/ a b/"),
        ("$RANDOM_CHOICE(a) $RANDOM_INTEGER(3,3)", "a 3"),
        ("$(DOLLAR)(n) $$(Arch) $$([Memory*$(n)]) $ $( $x", "$(n) $$(Arch) $$([Memory*7]) $ $( $x"),
        ("$(ARCH) $(OPSYS) $(OpSysAndVer)", "X86_64 LINUX Debian12"),
    ],
)
def test_expansion(text: str, value: str) -> None:
    assert expanded(text) == value


def test_a_name_may_be_built_on_its_old_value() -> None:
    assert (
        described("a = bar\na = snap $(a)\na = $(a) pop\nexecutable=/bin/true\nqueue").scope.expand("$(a)")
        == "snap bar pop"
    )


def test_macros_that_contain_one_another_are_refused() -> None:
    with pytest.raises(SubmitError, match="without end"):
        jobs_of("executable = /bin/true\na = $(b)\nb = $(a)\narguments = $(a)\nqueue")


@pytest.mark.parametrize("text", [
    "$CHOICE(9,a,b)", "$CHOICE(0.5,a,b)", "$CHOICE(x,a,b)", "$INT(x y)", "$RANDOM_INTEGER(5,1)", "$RANDOM_INTEGER(1)"])
def test_wrong_arguments_are_refused(text: str) -> None:
    with pytest.raises(SubmitError):
        expanded(text)


def test_each_job_sees_its_own_names() -> None:
    jobs = jobs_of(
        "executable = /bin/true\n"
        "arguments = $(Cluster) $(ClusterId) $(Process) $(ProcId) $(JobId) $(Step) $(Row) $(x)\n"
        "queue 2 x in (a b)"
    )
    assert [job["Args"] for job in jobs] == [
        "5 5 0 0 5.0 0 0 a", "5 5 1 1 5.1 1 0 a", "5 5 2 2 5.2 0 1 b", "5 5 3 3 5.3 1 1 b",
    ]  # fmt: skip


def test_the_item_has_a_name_without_being_given_one() -> None:
    jobs = jobs_of("executable=/bin/true\narguments=$(Item)-$(ItemIndex)\nqueue in (p, q)")
    assert [job["Args"] for job in jobs] == ["p-0", "q-1"]
