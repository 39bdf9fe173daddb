"""Every command of a DAG file: what it makes, and what is said when it is wrong."""

from __future__ import annotations

import pytest

from condor_actors.dag.definitions import Dag, Dot, Kind, StatusFile, Variable
from condor_actors.dag.errors import DagError
from condor_actors.dag.reader import apply_rescue, read_dag, refuse_cycle
from condor_actors.dag.scope import Reading

DIAMOND = "JOB A a.sub\nJOB B b.sub\nJOB C c.sub\nJOB D d.sub\nPARENT A CHILD B C\nPARENT B C CHILD D\n"


def read(text: str, *, joins: bool = True, own_folders: bool = False, **others: str) -> Dag:
    """The DAG of one text; ``others`` are files that it names, ``_`` in their names for ``.``."""
    files = {"x.dag": text, **{name.replace("_", "."): body for name, body in others.items()}}

    def opened(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return files[path]

    dag = read_dag(["x.dag"], Reading(opened, joins=joins, own_folders=own_folders))
    refuse_cycle(dag)
    return dag


def children(dag: Dag, name: str) -> dict[str, bool]:
    """The names of a node's children, with whether the edge is weak."""
    return {dag.nodes[child].name: weak for child, weak in dag.graph.children_of(dag.by_name[name])}


def wrong(text: str, **others: str) -> DagError:
    """The mistake of a text."""
    with pytest.raises(DagError) as raised:
        read(text, **others)
    return raised.value


def test_a_diamond() -> None:
    dag = read(DIAMOND)
    assert [node.name for node in dag.nodes] == ["A", "B", "C", "D"]
    assert children(dag, "A") == {"B": False, "C": False}
    assert dag.parents(dag.by_name["D"]) == ["B", "C"]
    assert dag.graph.shape(len(dag.nodes)) == (3, 2)


def test_words_of_any_case_comments_and_folded_lines() -> None:
    dag = read("# one\n\n  job A a.sub \\\n  dir \\\n  d noop Done\njob B b.sub\nparent A child B\n")
    (a, b) = dag.nodes
    assert (a.directory, a.noop, a.done, a.place) == ("d", True, True, ("x.dag", 3))
    assert (b.directory, b.noop, b.done) == ("", False, False)
    assert children(dag, "A") == {"B": False}


def test_names_of_files_stand_in_quotation_marks_of_either_kind() -> None:
    dag = read("""
JOB A "a b.sub" DIR "some where" NOOP
FINAL F 'it\\'s.sub' DIR jobs/'of F'
SUBDAG EXTERNAL S "s \\"1\\".dag" DIR "d"
SPLICE P "p.dag" DIR "e"
INCLUDE "more.dag"
CONFIG "my config"
DOT "my picture.dot" UPDATE INCLUDE "its header"
NODE_STATUS_FILE "my status" 30
JOBSTATE_LOG "my log"
SAVE_POINT_FILE A "my save"
SCRIPT PRE A check "two words"
VARS A one='x "y"' two=bare/word three="z"
SET_JOB_ATTR Mine = "1 2"
""", more_dag='JOB B "b.sub"\n', **{"e/p.dag": 'JOB Q "q.sub"\n'})
    found = {node.name: (node.description, node.directory) for node in dag.nodes}
    assert found == {"A": ("a b.sub", "some where"), "F": ("it's.sub", "jobs/of F"), "S": ('s "1".dag', "d"),
                     "P+Q": ("q.sub", "e"), "B": ("b.sub", "")}
    a = dag.nodes[dag.by_name["A"]]
    assert (a.noop, a.save_file, dag.config, dag.jobstate_log) == (True, "my save", "my config", "my log")
    assert (dag.dot, dag.status_file) == (Dot("my picture.dot", True, True, "its header"),
                                          StatusFile("my status", 30, False))
    assert a.variables == (Variable("one", 'x "y"', None), Variable("two", "bare/word", None),
                           Variable("three", "z", None))
    assert (dag.attributes, a.pre is not None and a.pre.words) == ({"Mine": '"1 2"'}, ("check", '"two', 'words"'))


@pytest.mark.parametrize("line", [
    'JOB B "b.sub', "JOB B b.sub DIR it's", 'DOT "a" "b', '"', 'JOB B "b.sub\\"', 'JOB B "b.sub\\\\',
])
def test_a_quotation_ends(line: str) -> None:
    assert "x.dag, line 2: a quotation does not end" in str(wrong(f"JOB A a.sub\n{line}\n"))


def test_hyphens_and_underscores_are_the_same_in_the_words_of_the_language() -> None:
    dag = read("JOB A a.sub\nRETRY A 3 UNLESS_EXIT 2\nPRE-SKIP ALL-NODES 4\nABORT_DAG_ON A 5\n"
               "SUBMIT_DESCRIPTION d {\n}\nNODE-STATUS-FILE s ALWAYS_UPDATE\n"
               "DOT p DONT_OVERWRITE\nSET-JOB-ATTR a_b = 1\nSAVE-POINT-FILE A\n")
    (a,) = dag.nodes
    assert (a.retries, a.unless_exit, a.pre_skip, a.abort_on) == (3, 2, 4, (5, None))
    assert (dag.status_file, dag.dot) == (StatusFile("s", 60, True), Dot("p", False, False, ""))
    assert (dag.attributes, a.save_file) == ({"a_b": "1"}, "A-x.dag.save")


def test_comments_of_both_kinds_also_within_a_folded_line() -> None:
    dag = read("// one\nJOB A a.sub \\\n# two\n// three\n\n NOOP\nJOB B b.sub \\\n# to the end\n")
    assert [(node.name, node.noop) for node in dag.nodes] == [("A", True), ("B", False)]


@pytest.mark.parametrize("text", ["\\\n", "\\\n\\\n\n", "\\\nJOB A a.sub\n", "\\\n\\\nJOB A a.sub \\\n\\\n\n"])
def test_lines_that_only_go_on(text: str) -> None:
    dag = read("JOB B b.sub\n" + text)
    assert {name: dag.nodes[number].description for name, number in dag.by_name.items()} == {
        "B": "b.sub", **({"A": "a.sub"} if "JOB" in text else {})}


def test_descriptions_in_the_file() -> None:
    dag = read("JOB A {\n  executable = a\n}\nJOB B @=end\n x = }\n@end\nSUBMIT-DESCRIPTION both {\ny=1\n}\n"
               "JOB C both\nJOB D { \n z=1\n} DIR d\n")
    assert [node.inline for node in dag.nodes] == ["  executable = a\n", " x = }\n", "y=1\n", " z=1\n"]
    assert dag.nodes[3].directory == "d"


def test_many_parents_and_many_children_share_a_join() -> None:
    names = [f"n{number}" for number in range(20)]
    text = "".join(f"JOB {name} x\n" for name in names)
    text += f"PARENT {' '.join(names[:10])} CHILD {' '.join(names[10:])}\n"
    joined, plain = read(text), read(text, joins=False)
    assert (joined.graph.edges, joined.graph.joins) == (20, 1)
    assert (plain.graph.edges, plain.graph.joins) == (100, 0)
    for dag in (joined, plain):
        assert dag.parents(dag.by_name["n15"]) == names[:10]
        assert list(children(dag, "n3")) == names[10:]
        assert dag.graph.shape(20) == (2, 10)


def test_weak_edges() -> None:
    dag = read("JOB A x\nJOB B x\nJOB C x\nWEAK PARENT A CHILD B\nPARENT A CHILD C\n")
    assert children(dag, "A") == {"C": False, "B": True}


def test_scripts() -> None:
    dag = read("JOB A x\nJOB B x\nFINAL F x\nSCRIPT PRE A one $NODE\nSCRIPT DEFER 4 60 DEBUG out ALL POST A two\n"
               "SCRIPT HOLD ALL_NODES three\nSCRIPT POST F four\n")
    a, b, final = dag.nodes
    assert a.pre is not None
    assert a.pre.words == ("one", "$NODE")
    assert a.post is not None
    assert (a.post.words, a.post.defer, a.post.debug_file, a.post.debug_type) == (("two",), (4, 60), "out", "ALL")
    assert b.hold is not None
    assert final.hold is None
    assert final.post is not None


def test_what_is_said_about_nodes() -> None:
    dag = read("RETRY ALL_NODES 3\nRETRY A 10 UNLESS-EXIT -2\nPRE_SKIP A 7\nABORT-DAG-ON B 3 RETURN 0\nPRIORITY B -5\n"
               "CATEGORY A big\nMAXJOBS big 2\nTOLERANCE A 10% WAIT\nTOLERANCE B 2 FAIL-FAST\nSAVE_POINT_FILE A\n"
               "SAVE_POINT_FILE B ./b.save\nDONE B\nJOB A x\nJOB B x\n")
    a, b = dag.nodes
    assert (a.retries, a.unless_exit, b.retries, b.unless_exit) == (10, -2, 3, None)
    assert (a.pre_skip, a.category, a.tolerance, a.fails_fast) == (7, "big", (10, True), False)
    assert (b.abort_on, b.priority, b.tolerance, b.fails_fast, b.done) == ((3, 0), -5, (2, False), True, True)
    assert (a.save_file, b.save_file) == ("A-x.dag.save", "./b.save")
    assert dag.limits == {"big": 2}


def test_variables() -> None:
    dag = read(r'''JOB A x
VARS A one="a b" two="say \"x\" \\n"   three=""
VARS A PREPEND four="$(JOB)"
VARS A APPEND +five="\"5\""
VARS ALL_NODES one="again"
''')
    assert dag.nodes[0].variables == (
        Variable("two", 'say "x" \\n'), Variable("three", ""), Variable("four", "$(JOB)", True),
        Variable("My.five", '"5"', False), Variable("one", "again"))
    assert dag.warnings == ['VAR one is already defined in node A (discovered at file "x.dag", line 5)']


def test_about_the_whole() -> None:
    dag = read("JOB A x\nCONFIG c.cfg\nENV GET B C,D\nENV SET E=1;F=2\nSET_JOB_ATTR N = \"a b\"\nREJECT\n"
               "DOT d.dot UPDATE DONT-OVERWRITE INCLUDE head\nJOBSTATE_LOG j.log\n"
               "NODE_STATUS_FILE n.txt 30 ALWAYS-UPDATE\n")
    assert (dag.config, dag.environment_names, dag.environment) == ("c.cfg", ["B", "C", "D"], ["E=1;F=2"])
    assert dag.attributes == {"N": '"a b"'}
    assert dag.rejected == ("x.dag", 6)
    assert dag.dot == Dot("d.dot", True, False, "head")
    assert (dag.jobstate_log, dag.status_file) == ("j.log", StatusFile("n.txt", 30, True))


def test_special_nodes() -> None:
    dag = read("JOB A x\nFINAL F f.sub DIR d NOOP\nPROVISIONER P p.sub\nSERVICE S s.sub\n"
               "SUBDAG EXTERNAL D in.dag DIR e\n")
    assert [node.kind for node in dag.nodes] == [Kind.JOB, Kind.FINAL, Kind.PROVISIONER, Kind.SERVICE, Kind.SUBDAG]
    assert (dag.final, dag.provisioner, dag.services, dag.ordinary) == (1, 2, [3], 3)
    assert (dag.nodes[1].noop, dag.nodes[4].description, dag.nodes[4].directory) == (True, "in.dag", "e")


def test_a_splice_is_between_its_parents_and_its_children() -> None:
    dag = read("JOB A x\nSPLICE S s.dag\nJOB Z x\nPARENT A CHILD S\nPARENT S CHILD Z\n",
               s_dag="JOB B x\nJOB C x\nJOB D x\nPARENT B CHILD C\nCATEGORY B own\nCATEGORY C +all\n"
                     'VARS ALL_NODES a="1"\n')
    assert [node.name for node in dag.nodes] == ["A", "S+B", "S+C", "S+D", "Z"]
    assert children(dag, "A") == {"S+B": False, "S+D": False}
    assert sorted(dag.parents(4)) == ["S+C", "S+D"]
    assert [node.category for node in dag.nodes] == ["", "S+own", "+all", "", ""]
    assert [len(node.variables) for node in dag.nodes] == [0, 1, 1, 1, 0]


def test_splices_in_splices_with_folders_and_commands_for_their_nodes() -> None:
    files = {"x.dag": "SPLICE S s.dag DIR d\nRETRY S+T+A 2\n", "d/s.dag": "SPLICE T t.dag\n",
             "d/t.dag": "JOB A a.sub DIR e\n"}
    dag = read_dag(["x.dag"], Reading(files.__getitem__))
    assert [(node.name, node.directory, node.retries) for node in dag.nodes] == [("S+T+A", "d/e", 2)]


def test_pins_connect_splices() -> None:
    one = "JOB A1 x\nJOB A2 x\nPIN_OUT A1 1\nPIN_OUT A2 2\n"
    two = "".join(f"JOB B{n} x\nPIN_IN B{n} {(n + 1) // 2}\nPIN_OUT B{n} {n}\n" for n in (1, 2, 3, 4))
    three = "JOB C1 x\n" + "".join(f"PIN_IN C1 {n}\n" for n in (1, 2, 3, 4))
    dag = read("SPLICE A a.dag\nSPLICE B b.dag\nSPLICE C c.dag\nCONNECT A B\nCONNECT B C\n",
               a_dag=one, b_dag=two, c_dag=three)
    assert list(children(dag, "A+A1")) == ["B+B1", "B+B2"]
    assert list(children(dag, "A+A2")) == ["B+B3", "B+B4"]
    assert sorted(dag.parents(dag.by_name["C+C1"])) == ["B+B1", "B+B2", "B+B3", "B+B4"]


@pytest.mark.parametrize(("a", "b", "said"), [
    ("JOB A x\n", "JOB B x\nPIN_IN B 1\n", "has no PIN_OUT"),
    ("JOB A x\nPIN_OUT A 2\n", "JOB B x\nPIN_IN B 1\n", "has no PIN_OUT 1 but 2"),
    ("JOB A x\nPIN_OUT A 1\n", "JOB B x\nPIN_IN B 1\nPIN_IN B 2\n", "1 PIN_OUT and B has 2 PIN_IN"),
    ("JOB A x\nPIN_OUT A 1\n", "JOB B x\nJOB C x\nPIN_IN B 1\n", "B+C begins the splice B and has no PIN_IN"),
])
def test_pins_that_do_not_fit(a: str, b: str, said: str) -> None:
    error = wrong("SPLICE A a.dag\nSPLICE B b.dag\nCONNECT A B\n", a_dag=a, b_dag=b)
    assert said in error.problem
    assert (error.file, error.line) == ("x.dag", 3)


def test_included_files_are_as_if_they_stood_there() -> None:
    dag = read("JOB A x\nINCLUDE more.dag\nPARENT A CHILD B\n", more_dag="JOB B x\n")
    assert children(dag, "A") == {"B": False}
    assert dag.nodes[1].place == ("more.dag", 1)


def test_several_files() -> None:
    files = {"d/a.dag": "JOB A x\nINCLUDE i\n", "d/i": "JOB I x\n", "e/b.dag": "JOB A y\n"}
    dag = read_dag(list(files)[::2], Reading(files.__getitem__, own_folders=True))
    assert [(node.name, node.directory) for node in dag.nodes] == [("0.A", "d"), ("0.I", "d"), ("1.A", "e")]
    files = {"a.dag": "JOB A x\n", "b.dag": "JOB B x\n"}
    assert list(read_dag(list(files), Reading(files.__getitem__), munges=False).by_name) == ["A", "B"]


def test_a_rescue_file() -> None:
    dag = read(DIAMOND + "RETRY B 5\n")
    apply_rescue(dag, "# Rescue DAG\nDONE A\nRETRY B 2\n", "x.dag.rescue001")
    assert [node.done for node in dag.nodes] == [True, False, False, False]
    assert dag.nodes[1].retries == 2
    with pytest.raises(DagError, match=r"x.dag.rescue001, line 1: JOB does not belong"):
        apply_rescue(dag, "JOB E x\n", "x.dag.rescue001")
    with pytest.raises(DagError, match="there is no node E"):
        apply_rescue(dag, "DONE E\n", "x.dag.rescue001")


@pytest.mark.parametrize(("text", "line", "said"), [
    ("JOB\n", 1, "something is missing"),
    ("JOB A\n", 1, "something is missing"),
    ("JOB A x DIRR d\n", 1, "'DIRR' is none of DIR, NOOP, DONE"),
    ("JOB A x DIR\n", 1, "the directory is missing"),
    ("JOB A x\nJOB A y\n", 2, "node A is defined already (x.dag, line 1)"),
    ("JOB PARENT x\n", 1, "PARENT is a word of the language"),
    ("JOB A+B x\n", 1, "has a +"),
    ("JOB A {\nx\n", 1, "does not end"),
    ("JOBB A x\n", 1, "JOBB is no command of a DAG file (did you mean JOB?)"),
    ("JOB A x\nPARENT A B C\n", 2, "PARENT without CHILD"),
    ("JOB A x\nPARENT A CHILD\n", 2, "something is missing"),
    ("JOB A x\nPARENT CHILD A\n", 2, "something is missing"),
    ("JOB a x\nJOB B x\nPARENT A CHILD B\n", 3, "there is no node A (names are case-sensitive: a?)"),
    ("JOB A x\nFINAL F x\nPARENT A CHILD F\n", 3, "F is a FINAL node"),
    ("JOB A x\nWEAK A CHILD B C\n", 2, "WEAK stands before PARENT"),
    ("JOB A x\nFINAL F x\nFINAL G x\n", 3, "there is a second FINAL node"),
    ("PROVISIONER F x\nPROVISIONER G x\n", 2, "there is a second PROVISIONER node"),
    ("FINAL F x\nRETRY F 1\n", 2, "RETRY cannot be said of the FINAL node"),
    ("SUBDAG INTERNAL A x\n", 1, "there is only SUBDAG EXTERNAL"),
    ("JOB A x\nSCRIPT MID A y\n", 2, "a script is PRE, POST or HOLD"),
    ("JOB A x\nSCRIPT DEFER x 1 PRE A y\n", 2, "the status of DEFER is 'x'"),
    ("JOB A x\nSCRIPT DEBUG f STDX PRE A y\n", 2, "'STDX' is no type of output"),
    ("JOB A x\nPRE_SKIP A 0\n", 2, "the status of PRE_SKIP is 0 (the least is 1)"),
    ("JOB A x\nRETRY A -1\n", 2, "the number of retries is -1"),
    ("JOB A x\nRETRY A 1 UNLESS\n", 2, "RETRY: 'UNLESS'"),
    ("JOB A x\nABORT-DAG-ON A 1 RETURN 256\n", 2, "the status of RETURN is 256 (the most is 255)"),
    ("JOB A x\nVARS A b=\n", 2, "'b=' is no macroname=\"string\""),
    ("JOB A x\nVARS A queue2=\"c\"\n", 2, "begins with queue"),
    ("JOB A x\nVARS A\n", 2, "something is missing"),
    ("JOB A x\nPRIORITY A high\n", 2, "the priority is 'high' (write an integer)"),
    ("MAXJOBS a 0\n", 1, "MAXJOBS is 0 (the least is 1)"),
    ("JOB A x\nDONE B\n", 2, "there is no node B"),
    ("FINAL F x\nDONE F\n", 2, "always runs"),
    ("JOB A x\nTOLERANCE A 101%\n", 2, "the failures of TOLERANCE is 101"),
    ("CONFIG a\nCONFIG b\n", 2, "there is a second CONFIG: b beside a"),
    ("ENV PUT x\n", 1, "ENV is GET or SET"),
    ("SET_JOB_ATTR x\n", 1, "is no assignment"),
    ("DOT d.dot SOMETIMES\n", 1, "'SOMETIMES'"),
    ("NODE_STATUS_FILE f soon\n", 1, "is 'soon'"),
    ("SPLICE S\n", 1, "a name, a file"),
    ("SPLICE S x.dag\n", 1, "x.dag comes to itself: x.dag -> x.dag"),
    ("INCLUDE x.dag\n", 1, "x.dag comes to itself"),
    ("JOB S x\nSPLICE S s.dag\n", 2, "S is the name of a node already"),
    ("JOB A x\nCONNECT A B\n", 2, "A is a node and no splice"),
    ("PIN_IN A 0\n", 1, "is 0 (the least is 1)"),
    ("JOB A x\nJOB both x\nSUBMIT-DESCRIPTION both {\n}\n", 2, "the name of a node and of a SUBMIT-DESCRIPTION"),
    ("# nothing\n", 0, "there are no nodes"),
])
def test_mistakes_name_their_place(text: str, line: int, said: str) -> None:
    error = wrong(text, s_dag="JOB A x\n")
    assert (error.file, error.line) == ("x.dag", line)
    assert said in str(error)
    assert str(error).startswith(f"x.dag, line {line}: " if line else "x.dag: ")


def test_a_file_that_is_not_there() -> None:
    assert str(wrong("JOB A x\nINCLUDE no.dag\n")) == "no.dag: it cannot be read: No such file or directory"


def test_what_cannot_be_said_of_a_splice() -> None:
    error = wrong("SPLICE S s.dag\nRETRY S 1\n", s_dag="JOB A x\n")
    assert str(error) == "x.dag, line 2: RETRY cannot be said of a splice (S) (say it of its nodes, as S+NODE)"
    assert "a splice cannot have a FINAL node" in str(wrong("SPLICE S s.dag\n", s_dag="FINAL A x\n"))


def test_a_cycle_is_shown_with_its_edges() -> None:
    error = wrong(DIAMOND + "JOB E x\nPARENT D CHILD E\nPARENT E CHILD B\n")
    assert error.problem in ("there is a cycle: B -> D -> E -> B", "there is a cycle: D -> E -> B -> D",
                             "there is a cycle: E -> B -> D -> E")
    assert "x.dag, line 9" in error.remedy
    assert "x.dag, line 5" not in error.remedy
    assert wrong("JOB A x\nPARENT A CHILD A\n").problem == "there is a cycle: A -> A"


def test_all_mistakes_at_once() -> None:
    mistakes: list[DagError] = []
    text = "JOB A x\nJOB A x\nRETRY B 1\nPARENT A CHILD C\nWHAT\n"
    read_dag(["x.dag"], Reading(lambda _: text, mistakes=mistakes))
    assert [error.line for error in mistakes] == [2, 5, 3, 4]
