"""``condor_actors.compat`` against HTCondor's real modules: names, signatures, and the answers of ClassAds."""

from __future__ import annotations

import enum
import inspect
import re
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from condor_actors.compat import classad2 as our_classad2
from condor_actors.compat import htcondor2 as our_htcondor2
from condor_actors.compat.htcondor2 import dags as our_dags
from condor_actors.compat.htcondor2 import htchirp as our_htchirp
from condor_actors.compat.htcondor2 import personal as our_personal

htcondor2: Any = pytest.importorskip("htcondor2")
classad2: Any = pytest.importorskip("classad2")

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python-api.md"
personal: Any = pytest.importorskip("htcondor2.personal")
dags: Any = pytest.importorskip("htcondor2.dags")
htchirp: Any = pytest.importorskip("htcondor2.htchirp")
PAIRS = [(htcondor2, our_htcondor2), (classad2, our_classad2), (personal, our_personal), (dags, our_dags),
         (htchirp, our_htchirp)]
NO_INTERFACE = {"Optional", "absolute_import", "classad2_impl", "htcondor2_impl", "utils"}
"""Names that the real modules show and that are none of their interface."""
METHODS_OF_PYTHON = {"__init__", "__len__", "__getitem__", "__setitem__", "__delitem__", "__iter__", "__str__",
                     "__repr__", "__eq__", "__int__", "__bool__", "__enter__", "__exit__", "__next__"}


def shown(value: Any) -> Any:
    """A default as it can be compared."""
    if isinstance(value, enum.Enum):
        return value.name
    return "a mark of its own" if type(value) is object else value


def signature(function: Any) -> list[tuple[str, Any, Any]] | None:
    """Name, kind and default of each parameter; None: the module does not say."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    return [(each.name, each.kind, shown(each.default)) for each in found.parameters.values()]


def listed() -> set[str]:
    """What the page lists as different."""
    text = PAGE.read_text().partition("## What differs")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE))


def differences(theirs: ModuleType, ours: ModuleType) -> list[str]:
    """Each name whose place in our module is not as in theirs."""
    found = []
    shown_names = getattr(theirs, "__all__", dir(theirs))
    for name in (each for each in shown_names if not each.startswith("_") and each not in NO_INTERFACE):
        one, other = getattr(theirs, name), getattr(ours, name, None)
        if other is None:
            found.append(name)
        elif inspect.isclass(one) and issubclass(one, enum.Enum):
            if {key: each.value for key, each in one.__members__.items()} != {
                    key: each.value for key, each in other.__members__.items()}:
                found.append(name)
        elif inspect.isclass(one):
            found += [f"{name}.{part}" for part in vars(one) if part in METHODS_OF_PYTHON or not part.startswith("_")
                      if different(one, other, part)]
        elif inspect.isroutine(one) and signature(one) not in (None, signature(other)):
            found.append(name)
    return found


def different(one: Any, other: Any, name: str) -> bool:
    theirs, ours = inspect.getattr_static(one, name), inspect.getattr_static(other, name, None)
    if ours is None:
        return not hasattr(other, name)
    if isinstance(theirs, property):
        return not isinstance(ours, property)
    if isinstance(theirs, staticmethod):
        return not isinstance(ours, staticmethod) or signature(theirs.__func__) != signature(ours.__func__)
    return inspect.isfunction(theirs) and name not in METHODS_OF_PYTHON - {"__init__"} and (
        signature(theirs) != signature(ours))


@pytest.mark.parametrize(("theirs", "ours"), PAIRS, ids=["htcondor2", "classad2", "personal", "dags", "htchirp"])
def test_every_public_name_and_signature_is_there_or_listed(theirs: ModuleType, ours: ModuleType) -> None:
    assert set(differences(theirs, ours)) - listed() == set()


def test_nothing_is_listed_that_is_the_same() -> None:
    found = {each for theirs, ours in PAIRS for each in differences(theirs, ours)}
    behaving = set(re.findall(r"^\| `([\w.]+)` \| (?:refused|behaves)", PAGE.read_text(), re.MULTILINE))
    assert listed() - found - behaving == set()


def test_what_is_refused_is_listed() -> None:
    refused = set()
    for name in our_htcondor2.__all__:
        made = getattr(our_htcondor2, name)
        if not inspect.isclass(made):
            if (inspect.getdoc(made) or "").startswith("Refused"):
                refused.add(name)
            continue
        refused |= {f"{name}.{part}" for part, each in vars(made).items()
                    if (inspect.getdoc(each) or "").startswith("Refused")}
    assert refused
    assert {each for each in refused if each not in listed() and each.partition(".")[0] not in listed()} == set()


EXPRESSIONS = [
    "1 + 4", "ifThenElse(4 > 6, 123, 456)", "foo", '5 + "bar"', "ifThenElse(1, 2, 3, 4, 5)", "{1, foo, [a=1]}", "1.5",
    "1e300 * 1e300", "true && undefined", "undefined", "error", '"a\\"b"', 'split("a b c")', "member(1, {1,2})",
    'absTime("2020-01-01T00:00:00Z")', 'relTime("1+02:03:04")', "-3", "(1)", "!true", "{}", "[]", "{1,{2},[z=1]}",
    "[a=1; b=[c={1,2}]]", "a ?: 3", "x[3]", "MY.a + TARGET.b", "a == b ? 1 : 2", '"\\t\\n"', "3 / 0", "7 % 2",
]  # fmt: skip


def both(text: str, then: Any) -> tuple[Any, Any]:
    """What a function makes of an expression with the real module and with ours."""
    results = []
    for module in (classad2, our_classad2):
        try:
            results.append(then(module, module.ExprTree(text)))
        except Exception as error:
            results.append(type(error).__name__)
    return results[0], results[1]


def plain(value: Any) -> Any:
    """A value without the classes of the module that it is from."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value if isinstance(value, (int, str)) else (type(value).__name__, repr(value))


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_are_shown_and_evaluated_as_theirs(text: str) -> None:
    for then in (lambda module, tree: plain(tree.eval()), lambda module, tree: str(tree),
                 lambda module, tree: repr(tree), lambda module, tree: repr(tree.simplify()),
                 lambda module, tree: plain(module.ClassAd({"a": 1}).flatten(tree)),
                 lambda module, tree: sorted(module.ClassAd({"a": 1}).externalRefs(tree)),
                 lambda module, tree: sorted(module.ClassAd({"a": 1}).internalRefs(tree))):
        theirs, ours = both(text, then)
        assert ours == theirs


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_ads_show_what_they_hold_as_theirs(text: str) -> None:
    def ad(module: Any, tree: Any) -> Any:
        made = module.ClassAd()
        made["Key"] = tree
        return [plain(made["key"]), plain(made.eval("KEY")), repr(made.lookup("key")), repr(made), str(made),
                made.printOld(), made.printJson(), list(made), len(made), "kEy" in made]

    theirs, ours = both(text, ad)
    if text.startswith("relTime"):  # in JSON a span is a number here
        del theirs[6], ours[6]
    assert ours == theirs


VALUES: list[Any] = [
    1, 2.5, "x", True, None, b"x", (1, 2), [1, [2, "y"]], {"x": {"y": [1, {"z": 2}]}}, object(), [], {},
]


@pytest.mark.parametrize("value", VALUES, ids=lambda each: "object" if type(each) is object else repr(each))
def test_values_are_kept_as_theirs(value: Any) -> None:
    def keep(module: Any, _: Any) -> Any:
        made = module.ClassAd()
        made["a"] = value
        return [plain(made["a"]), repr(made), str(made)]

    theirs, ours = both("1", keep)
    assert ours == theirs


@pytest.mark.parametrize("text", ["[a=1][b=2]", "[a=1] junk", "", "a=1", "[a=", "[A=1; a=2]", "[ x = y; y = 2 ]"])
def test_ads_are_read_as_theirs(text: str) -> None:
    theirs, ours = both("1", lambda module, _: repr(module.ClassAd(text)))
    assert ours == theirs


@pytest.mark.parametrize("text", ["a=1\nb=2\n\nc=3\n", "[a=1]\n[b=2]", "", "a = 1"])
def test_several_ads_are_read_as_theirs(text: str) -> None:
    theirs, ours = both("1", lambda module, _: [repr(each) for each in module.parseAds(text)])
    assert ours == theirs
    theirs, ours = both("1", lambda module, _: repr(module.parseOne(text)))
    assert ours == theirs


def test_files_are_read_as_theirs(tmp_path: Path) -> None:
    for text in ("a=1\nb=2\n\nc=3\n", "[a=1]\n[b=2]\n"):
        (tmp_path / "ads").write_text(text)
        found = []
        for module in (classad2, our_classad2):
            with open(tmp_path / "ads") as file:
                found.append([repr(each) for each in module.parseAds(file)])
        assert found[0] == found[1]


def test_what_programs_rely_on() -> None:
    ad = our_classad2.ClassAd({"Requirements": our_classad2.ExprTree("TARGET.b > MY.a"), "a": 1})
    other = our_classad2.ClassAd({"b": 2, "Requirements": our_classad2.ExprTree("true")})
    assert ad.symmetricMatch(other)
    assert other.matches(ad)
    assert not our_classad2.ClassAd().matches(our_classad2.ClassAd())
    assert our_classad2.unquote(our_classad2.quote('a"b\\c')) == 'a"b\\c'
    with pytest.raises(ValueError):
        our_classad2.unquote("abc")
    with pytest.raises(TypeError):
        ad[1] = 2  # type: ignore[index]
    with pytest.raises(KeyError):
        del ad["nope"]
    with pytest.raises(our_classad2.ClassAdException):
        our_classad2.ClassAd("[a =")
    assert our_classad2.lastError()


SUBMITS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (({"executable": "/bin/x", "My.Foo": "1", "+Bar": "2"},), {}),
    (("executable=/bin/x\nfoo=$(bar)\nbar=7\nqueue 3\n",), {}),
    (("executable=x\nqueue in (a,b)\n",), {}), (("executable=x\nqueue x,y from (\n1 2\n# c\n3,4\n)\n",), {}),
    (("executable=x\n",), {}), (("if true\nexecutable=y\nendif\nqueue",), {}), ((), {"foo": "1"}),
    (("queue\nqueue",), {}),
    (({"a": 1, "b": 2.5, "c": True, "d": Path("/x")},), {"queue": "queue 2 x in b c"}), (({"queue": "1"},), {}),
    (({"a": None},), {}), (({1: "a"},), {}), ((5,), {}), (({},), {"queue": 5}), (("=3",), {}),
]  # fmt: skip


@pytest.mark.parametrize(("positional", "named"), SUBMITS)
def test_descriptions_are_as_theirs(positional: Any, named: Any) -> None:
    found = []
    for module in (htcondor2, our_htcondor2):
        try:
            submit = module.Submit(*positional, **named)
        except Exception as error:
            found.append([type(error).__name__])
            continue
        items = submit.itemdata()
        found.append([dict(submit), len(submit), submit.getQArgs().split("\n")[0], str(submit).split("from (")[0],
                      None if items is None else list(items), submit.getSubmitMethod()])
    assert found[1] == found[0]
    assert our_htcondor2.Submit({"a": "$(b)", "b": "7"}).expand("a") == "7"


@pytest.mark.parametrize("seed", range(40))
def test_dag_files_are_as_theirs(seed: int, tmp_path: Path) -> None:
    found = []
    for module, submit in ((dags, htcondor2.Submit), (our_dags, our_htcondor2.Submit)):
        dag = some_dag(module, submit, Random(seed))
        path = module.write_dag(dag, tmp_path / module.__name__)
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        # siblings come in no particular order, and joins are numbered as they come
        lines = sorted(re.sub("__JOIN__:[0-9]+", "__JOIN__", line) for line in lines)
        found.append([lines, sorted(each.name for each in path.parent.iterdir()), len(dag.describe().splitlines())])
    assert found[1] == found[0]


def some_dag(module: Any, submit: Any, random: Random) -> Any:
    """A DAG of chance."""
    dag = module.DAG(dagman_config={"DAGMAN_MAX_JOBS_IDLE": 3} if random.random() < 0.3 else None)
    nodes: list[Any] = []
    for number in range(random.randint(1, 8)):
        said = {"retries": random.choice([None, 2]), "priority": random.choice([0, 7]), "noop": random.random() < 0.2,
                "pre": module.Script("x", ["a", 1], retry=random.random() < 0.5) if random.random() < 0.3 else None}
        if random.random() < 0.2:
            node = dag.subdag(name=f"n{number}", dag_file=Path("x.dag"), **said)
        else:
            size = random.choice([1, 2, 4])
            node = dag.layer(name=f"n{number}", submit_description=submit({"executable": "/bin/true"}),
                             vars=[{"word": f'"{each}\\'} for each in range(size)], **said)
        for parent in nodes:
            if random.random() < 0.4:
                edges = [module.ManyToMany(), module.Slicer(slice(0, 2))]
                edges += [module.OneToOne()] if len(parent) == len(node) else []
                edges += [module.Grouper(2, 2)] if len(parent) == len(node) and len(node) > 1 else []
                node.add_parents(parent, edge=random.choice(edges))
        nodes.append(node)
    return dag
