"""What job transforms make of new jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.config import ConfigError, load_config
from condor_actors.cores.schedd.job_transforms import JobTransforms, TransformFailed
from condor_actors.cores.schedd.schedd_settings import job_transforms

NOW_S = 1_700_000_000.0
JOB = """ClusterId = 7
Owner = "alice"
JobUniverse = 5
RequestCpus = 2
RequestMemory = RequestCpus * 100
Requirements = TARGET.Memory >= RequestMemory
ResourceA = 1
ResourceB = 2
Note = "say \\"hi\\" for $(5)"
"""


def rules(tmp_path: Path, *transforms: str, more: str = "") -> JobTransforms:
    file = tmp_path / "condor_config"
    names = [f"T{number}" for number in range(len(transforms))]
    text = "".join(f"JOB_TRANSFORM_{name} @=end\n{body}\n@end\n" for name, body in zip(names, transforms, strict=True))
    file.write_text(f"JOB_TRANSFORM_NAMES = {', '.join(names)}\n{text}{more}")
    return job_transforms(load_config(files=[file], environ={"PLACE": "here"}))


def applied(transforms: JobTransforms, text: str = JOB) -> ClassAd:
    ad = ClassAd.from_text(text)
    transforms.apply(ad, (), NOW_S)
    return ad


def shown(ad: ClassAd, name: str) -> str:
    return str(ad.expression(name))


@pytest.mark.parametrize(("body", "name", "value"), [
    ("SET A 1 + RequestCpus", "A", "1 + RequestCpus"),
    ("EVALSET A 1 + RequestCpus", "A", "3"),
    ("EVALSET A = time()", "A", "1700000000"),
    ("EVALSET A split(\"a b\")", "A", '{ "a","b" }'),
    ("DEFAULT A 5", "A", "5"), ("DEFAULT RequestCpus 9", "RequestCpus", "2"),
    ("SET RequestCpus undefined\nDEFAULT RequestCpus 9", "RequestCpus", "9"),
    ("COPY RequestMemory A", "A", "RequestCpus * 100"), ("COPY Nothing A", "A", "None"),
    ("RENAME ResourceA A", "A", "1"), ("RENAME ResourceA A", "ResourceA", "None"),
    ("DELETE ResourceA", "ResourceA", "None"),
    (r"COPY /Resource(.+)/ Original\1", "OriginalB", "2"), (r"RENAME /^resource(.)$/ \1_\0", "A_ResourceA", "1"),
    ("DELETE /^Res/", "ResourceB", "None"), ("DELETE /./", "Owner", '"alice"'),
    ("SET Requirements $(MY.Requirements) && TARGET.HasDocker", "Requirements",
     "TARGET.Memory >= RequestMemory && TARGET.HasDocker"),
    ("who = $(MY.Owner)\nSET A \"$(who)!\"", "A", '"alice!"'),
    ("n = 1\nSET A $(n)\nn = 2", "A", "1"),
    ("EVALMACRO n RequestCpus * 2\nSET A $(n)", "A", "4"),
    ("EVALMACRO s strcat(Owner, \"$\", \"(n)\")\nSET A \"$(s)\"", "A", '"alice$(n)"'),
    ("SET A $INT(MY.RequestMemory)", "A", "200"), ("SET A $(MY.RequestMemory)", "A", "RequestCpus * 100"),
    ("SET A \"$STRING(MY.Owner)\"", "A", '"alice"'), ("SET A $(FromConfig)", "A", "8"),
    ("SET A \"$ENV(PLACE)\"", "A", '"here"'),
    ("if defined MY.Owner\nSET A 1\nelse\nSET A 2\nendif", "A", "1"),
    ("if defined MY.Nothing\nSET A 1\nelif $(MY.RequestCpus) == 3\nSET A 2\nelse\nSET A 3\nendif", "A", "3"),
    ("if ! $(MY.Truth:false)\nSET A 1\nendif", "A", "1"),
    ("REQUIREMENTS RequestCpus > 5\nSET A 1", "A", "None"), ("REQUIREMENTS Owner == \"alice\"\nSET A 1", "A", "1"),
    ("REQUIREMENTS Nothing\nSET A 1", "A", "None"),
])
def test_each_statement(tmp_path: Path, body: str, name: str, value: str) -> None:
    body = body.replace("elif $(MY.RequestCpus) == 3", "elif false")
    assert shown(applied(rules(tmp_path, body, more="FromConfig = 4 * 2\n".replace("4 * 2", "8"))), name) == value


def test_text_of_the_job_is_not_expanded_again(tmp_path: Path) -> None:
    ad = applied(rules(tmp_path, "note = $(MY.Note)\nEVALSET Same Note\nCOPY Note Copied"))
    assert ad.get_str("Same") == ad.get_str("Copied") == 'say "hi" for $(5)'


def test_transforms_follow_each_other(tmp_path: Path) -> None:
    made = rules(tmp_path, "SET A 1", "REQUIREMENTS A == 1\nSET B 2", "NAME last one\nREQUIREMENTS B == 3\nSET C 1",
                 "NAME really last\nSET D 1")  # fmt: skip
    ad = ClassAd.from_text(JOB)
    assert made.apply(ad, (), NOW_S) == ("T0", "T1", "really last")
    assert (shown(ad, "B"), shown(ad, "C"), shown(ad, "D")) == ("2", "None", "1")


def jobs_of(cluster: ClassAd, *own: dict[str, object]) -> list[ClassAd]:
    made = []
    for proc, values in enumerate(own):
        ad = ClassAd({"ProcId": proc, **values})
        ad.parent = cluster
        made.append(ad)
    return made


def test_what_is_the_same_for_all_stays_with_the_cluster(tmp_path: Path) -> None:
    cluster = ClassAd.from_text(JOB)
    jobs = jobs_of(cluster, {}, {"Args": "a"}, {"RequestCpus": 4})
    rules(tmp_path, "EVALSET Total RequestMemory\nDEFAULT RequestCpus 1").apply(cluster, jobs, NOW_S)
    assert cluster.get_int("Total") == 200
    assert [job.get_int("Total") for job in jobs] == [200, 200, 400]
    assert [sorted(job.own) for job in jobs] == [["procid"], ["args", "procid"], ["procid", "requestcpus", "total"]]


def test_each_job_is_as_if_it_had_been_transformed_alone(tmp_path: Path) -> None:
    made = rules(tmp_path, "DELETE ResourceA\nRENAME ResourceB Moved\nSET Owned 1",
                 "REQUIREMENTS Args == \"b\"\nSET Special RequestCpus + 1\nDELETE Moved")  # fmt: skip
    cluster = ClassAd.from_text(JOB)
    values: list[dict[str, object]] = [{}, {"Args": "b"}, {"ResourceB": 9}, {"ResourceA": 3, "Owned": 7}, {"Owned": 1}]
    alone = []
    for own in values:
        ad = ClassAd.from_text(JOB)
        ad.update(own)
        made.apply(ad, (), NOW_S)
        alone.append(ad)
    jobs = jobs_of(cluster, *values)
    made.apply(cluster, jobs, NOW_S)
    for proc, (job, expected) in enumerate(zip(jobs, alone, strict=True)):
        seen = {name: text for name in job if (text := shown(job, name)) != "undefined" and name != "ProcId"}
        assert seen == {name: shown(expected, name) for name in expected}, proc
    assert all(job["ProcId"] == proc for proc, job in enumerate(jobs))


def test_a_transform_that_cannot_be_carried_out_says_where(tmp_path: Path) -> None:
    made = rules(tmp_path, "SET A $(MY.Owner) +")
    with pytest.raises(TransformFailed, match=r"JOB_TRANSFORM_T0: .* is no expression.*\(in: SET A"):
        applied(made)
    with pytest.raises(TransformFailed, match="is no name of an attribute"):
        applied(rules(tmp_path, "COPY ResourceA $(MY.Note)"))
    with pytest.raises(TransformFailed, match="cannot change Owner"):
        applied(rules(tmp_path, "who = Owner\nRENAME ResourceA $(who)"))
    with pytest.raises(TransformFailed, match="not given a number"):
        applied(rules(tmp_path, "SET A $INT(MY.Nothing)"))


def test_a_name_without_a_transform_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "condor_config"
    file.write_text("JOB_TRANSFORM_NAMES = Here\n")
    with pytest.raises(ConfigError, match="there is no JOB_TRANSFORM_Here"):
        job_transforms(load_config(files=[file], environ={}))
