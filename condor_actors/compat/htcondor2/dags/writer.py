"""A DAG as files: the DAG file, a submit description for each layer, and DAGMan's configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from condor_actors.compat.htcondor2.dags.dag import DAG
from condor_actors.compat.htcondor2.dags.edges import JoinFactory, JoinNode
from condor_actors.compat.htcondor2.dags.formatter import NodeNameFormatter, SimpleFormatter
from condor_actors.compat.htcondor2.dags.node import BaseNode, FinalNode, NodeLayer, Script, SubDAG
from condor_actors.compat.htcondor2.dags.walk_order import WalkOrder
from condor_actors.compat.htcondor2.submit import Submit

DEFAULT_DAG_FILE_NAME = "dagfile.dag"
CONFIG_FILE_NAME = "dagman.config"
JOIN = "__JOIN__"
NOOP_SUBMIT_FILE_NAME = f"{JOIN}.sub"


def write_dag(dag: DAG, dag_dir: Path, dag_file_name: str | None = DEFAULT_DAG_FILE_NAME,
              node_name_formatter: NodeNameFormatter | None = None) -> Path:
    """Write the files of a DAG into a folder, which is made if it is not there.

    Args:
        dag: what is written.
        dag_dir: the folder; dag_file_name: the name of the DAG file in it.
        node_name_formatter: how its nodes are named.

    Returns:
        the path of the DAG file.
    """
    return DAGWriter(dag, node_name_formatter=node_name_formatter).write(dag_dir, dag_file_name=dag_file_name)


class DAGWriter:
    """Writes a DAG, once.

    Args:
        dag: what is written.
        node_name_formatter: how its nodes are named.
    """

    def __init__(self, dag: DAG, node_name_formatter: NodeNameFormatter | None = None) -> None:
        self.dag = dag
        self.node_name_formatter = node_name_formatter or SimpleFormatter()
        self.join_factory = JoinFactory()

    def write(self, dag_dir: Path, dag_file_name: str | None = DEFAULT_DAG_FILE_NAME) -> Path:
        """Write all files; the path of the DAG file."""
        folder = Path(dag_dir).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (dag_file_name or DEFAULT_DAG_FILE_NAME)
        path.write_text("".join(f"{line}\n" for line in self.yield_dag_file_lines()))
        for node in (*self.dag.nodes, *(self.dag._final_node or ())):
            if isinstance(node, (NodeLayer, FinalNode)) and isinstance(node.submit_description, Submit):
                (folder / f"{node.name}.sub").write_text(str(node.submit_description))
        if self.join_factory.joins:
            (folder / NOOP_SUBMIT_FILE_NAME).touch(exist_ok=True)
        if self.dag.dagman_config:
            text = "".join(f"{name} = {value}\n" for name, value in self.dag.dagman_config.items())
            (folder / CONFIG_FILE_NAME).write_text(text)
        return path

    def yield_dag_file_lines(self) -> Iterator[str]:
        """The lines of the DAG file."""
        yield "# of the whole"
        yield from self._of_the_whole()
        yield "# nodes and edges"
        for node in self.dag.walk(order=WalkOrder.BREADTH_FIRST):
            yield from self._of_node(node)
            yield from self._of_edges(node)
        for join in self.join_factory.joins:
            yield f"JOB {self._join_name(join)} {NOOP_SUBMIT_FILE_NAME} NOOP"
        final = self.dag._final_node
        if final is not None:
            yield "# at the end"
            yield _words("FINAL", final.name, _file_of(final), *self._marks(final, 0))
            yield from self._options(final, final.name)

    def _of_the_whole(self) -> Iterator[str]:
        dag = self.dag
        if dag.dagman_config:
            yield f"CONFIG {CONFIG_FILE_NAME}"
        if dag.jobstate_log is not None:
            yield f"JOBSTATE_LOG {dag.jobstate_log.as_posix()}"
        if (status := dag.node_status_file) is not None:
            yield _words("NODE_STATUS_FILE", status.path.as_posix(), status.update_time,
                         "ALWAYS-UPDATE" if status.always_update else None)
        if (dot := dag.dot_config) is not None:
            include = ("INCLUDE", dot.include_file.as_posix()) if dot.include_file is not None else ()
            yield _words("DOT", dot.path.as_posix(), "UPDATE" if dot.update else "DONT-UPDATE",
                         "OVERWRITE" if dot.overwrite else "DONT-OVERWRITE", *include)
        for name, value in dag.dagman_job_attrs.items():
            yield f"SET_JOB_ATTR {name} = {value}"
        for category, most in dag.max_jobs_per_category.items():
            yield f"MAXJOBS {category} {most}"

    def _of_node(self, node: BaseNode) -> Iterator[str]:
        if isinstance(node, SubDAG):
            name = self._name(node, 0)
            yield _words("SUBDAG EXTERNAL", name, node.dag_file, *self._marks(node, 0))
            yield from self._options(node, name)
        elif isinstance(node, NodeLayer):
            for number, variables in enumerate(node.vars):
                name = self._name(node, number)
                yield _words("JOB", name, _file_of(node), *self._marks(node, number))
                if variables:
                    yield _words("VARS", name, *(_assigned(node, *pair) for pair in variables.items()))
                yield from self._options(node, name)
        else:
            raise TypeError(f"{node!r} is neither a layer nor a DAG")

    def _of_edges(self, parent: BaseNode) -> Iterator[str]:
        for child in parent.children:
            edge = self.dag.edge_between(parent, child)
            assert edge is not None
            for before, after in edge.get_edges(parent, child, self.join_factory):
                yield _words("PARENT", *self._names(parent, before), "CHILD", *self._names(child, after))

    def _names(self, node: BaseNode, side: tuple[int, ...] | JoinNode) -> list[str]:
        if isinstance(side, JoinNode):
            return [self._join_name(side)]
        return [self._name(node, number) for number in side]

    def _name(self, node: BaseNode, number: int) -> str:
        return self.node_name_formatter.generate(node.name, number)

    def _join_name(self, join: JoinNode) -> str:
        return self.node_name_formatter.generate(JOIN, join.id)

    @staticmethod
    def _marks(node: BaseNode, number: int) -> list[object]:
        """What stands behind the file of a node."""
        marks: list[object] = ["DIR", node.dir] if node.dir is not None else []
        marks += ["NOOP"] if node.noop.get(number, False) else []
        return marks + (["DONE"] if node.done.get(number, False) else [])

    @staticmethod
    def _options(node: BaseNode, name: str) -> Iterator[str]:
        """What is said of a node in lines of their own."""
        if node.retries is not None:
            unless = () if node.retry_unless_exit is None else ("UNLESS-EXIT", node.retry_unless_exit)
            yield _words("RETRY", name, node.retries, *unless)
        for when, script in (("PRE", node.pre), ("POST", node.post)):
            if script is not None:
                yield _script(name, when, script)
        if node.pre_skip_exit_code is not None:
            yield _words("PRE_SKIP", name, node.pre_skip_exit_code)
        if node.priority:
            yield _words("PRIORITY", name, node.priority)
        if node.category is not None:
            yield _words("CATEGORY", name, node.category)
        if node.abort is not None:
            status = node.abort.dag_return_value
            end = () if status is None else ("RETURN", status)
            yield _words("ABORT-DAG-ON", name, node.abort.node_exit_value, *end)


def _script(name: str, when: str, script: Script) -> str:
    again = ("DEFER", script.retry_status, script.retry_delay) if script.retry else ()
    return _words("SCRIPT", *again, when, name, script.executable, *script.arguments)


def _file_of(node: NodeLayer | FinalNode) -> str:
    description = node.submit_description
    return f"{node.name}.sub" if isinstance(description, Submit) else Path(description).absolute().as_posix()


def _assigned(node: BaseNode, name: str, value: object) -> str:
    text = str(value)
    if "\n" in text:
        raise ValueError(f"the variable {name} of {node} has a line end in it, which a DAG file cannot have")
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{text}"'


def _words(*words: object) -> str:
    """A line of those that are not None."""
    return " ".join(str(word) for word in words if word is not None)
