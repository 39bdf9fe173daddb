"""Two-sided matching, the index of many ads, and explanations."""

from __future__ import annotations

import random

from condor_actors.classads import ClassAd, match_ads, parse_expression, rank, requirements_hold
from condor_actors.classads.language.lint import lint, lint_ad
from condor_actors.classads.matching.explain import explain, explain_many
from condor_actors.classads.matching.index import AdIndex

STARTS = ("KeyboardIdle > 900", "true", "Owner == TARGET.Owner", "KeyboardIdle > TARGET.Patience")
DEMANDS = ("START", "START && TARGET.ImageSize < MY.Memory", "MY.Start is true")


def machine(dice: random.Random, number: int) -> ClassAd:
    """A machine of a mixed pool."""
    ad = ClassAd({"Name": f"slot1@m{number}", "Cpus": dice.choice([1, 2, 4.0])})
    ad["Memory"] = dice.choice([512, 1024, 2048, 4096])
    if dice.random() < 0.9:
        ad["Arch"] = dice.choice(["X86_64", "x86_64", "ARM64", 5])
    if dice.random() < 0.5:
        ad["HasDocker"] = dice.choice([True, False, 1, 0, "yes"])
    if dice.random() < 0.2:
        ad.insert_text("Disk", "Memory * 2")
    else:
        ad["Disk"] = dice.randrange(5000)
    ad["KeyboardIdle"] = dice.randrange(2000)
    ad.insert_text("START", dice.choice(STARTS))
    if dice.random() < 0.95:
        ad.insert_text("Requirements", dice.choice(DEMANDS))
    return ad


CLAUSES = (
    'TARGET.Arch == "X86_64"',
    '"arm64" == Arch',
    "TARGET.Memory >= RequestMemory",
    "RequestMemory < Memory",
    "HasDocker",
    "!HasDocker",
    "HasDocker =?= true",
    "HasDocker =?= undefined",
    "HasDocker =!= undefined",
    "(Cpus == 4 || Memory > 1000)",
    "Cpus == 2.0",
    "TARGET.Disk > 1000",
    'Arch < "B"',
    'Arch =?= "x86_64"',
    "regexp(\"m[0-4]\", Name)",
    "time() > 0",
    "TARGET.Nope > 1",
    "ImageSize > 0",
    "HasDocker == true",
    "(TARGET.Memory - 24 > 1000 || HasDocker)",
)


def job(dice: random.Random) -> ClassAd:
    """A job that asks for this and that."""
    ad = ClassAd({"RequestMemory": dice.choice([100, 1000, 3000]), "ImageSize": dice.choice([1, 1500]), "Owner": "u"})
    ad["Patience"] = dice.randrange(2000)
    ad.insert_text("Requirements", " && ".join(dice.sample(CLAUSES, dice.randrange(1, 5))))
    return ad


def test_the_index_finds_what_asking_each_pair_finds() -> None:
    dice = random.Random(7)
    machines = [machine(dice, number) for number in range(300)]
    index = AdIndex(machines)
    for _ in range(150):
        asked = job(dice)
        expected = [number for number, other in enumerate(machines) if match_ads(asked, other, 5.0)]
        assert sorted(index.matching(asked, 5.0)) == expected
        assert index.any_matches(asked, 5.0) is bool(expected)
    assert index.evaluated < 150 * 300 / 3


def test_the_index_follows_changes() -> None:
    dice = random.Random(8)
    machines = [machine(dice, number) for number in range(200)]
    index = AdIndex(machines)
    for _ in range(200):
        position = dice.randrange(len(machines))
        what = dice.random()
        if what < 0.5:
            machines[position] = machine(dice, position)
            index.replace(position, machines[position])
        elif what < 0.7:
            machines.append(machine(dice, len(machines)))
            assert index.add(machines[-1]) == len(machines) - 1
        elif what < 0.8:
            machines[position] = ClassAd()
            index.remove(position)
        asked = job(dice)
        expected = [number for number, other in enumerate(machines) if match_ads(asked, other, 5.0)]
        assert sorted(index.matching(asked, 5.0)) == expected


def test_limit_and_missing_demands() -> None:
    machines = [ClassAd.from_new("[Requirements=true]") for _ in range(20)]
    index = AdIndex(machines)
    assert len(list(index.matching(ClassAd.from_new("[Requirements=true]"), limit=3))) == 3
    assert list(index.matching(ClassAd())) == []
    assert list(AdIndex([ClassAd()] * 9).matching(ClassAd.from_new("[Requirements=true]"))) == []


def test_match_and_rank() -> None:
    left = ClassAd.from_new('[Requirements = TARGET.Memory > 5; Rank = Memory; Owner = "u"]')
    right = ClassAd.from_new('[Requirements = Owner == "u"; Memory = 7; Rank = "no number"]')
    assert match_ads(left, right)
    assert requirements_hold(right, left)
    assert not requirements_hold(right, right)
    assert not match_ads(left, ClassAd({"Memory": 9}))
    assert rank(left, right) == 7.0
    assert rank(right, left) == 0.0


def test_explain_names_the_failing_clause_and_its_remedy() -> None:
    asked = ClassAd.from_new('[Requirements = (Arch == "ARM64") && TARGET.Memory >= Need && HasGpu; Need = 2048]')
    offered = ClassAd.from_new('[Arch = "arm64"; Memory = 1024]')
    first, second, third = explain(asked, offered)
    assert first.holds
    assert first.remedy == ""
    assert not second.holds
    assert second.facts == (("MY.Need", "2048"), ("TARGET.Memory", "1024"))
    assert second.remedy == "TARGET.Memory >= 2048 (it is 1024) or MY.Need <= 1024"
    assert third.remedy == "TARGET.HasGpu were true (there is no HasGpu)"
    assert explain(ClassAd(), offered)[0].holds is False
    offered["Memory"] = 4096
    offered["HasGpu"] = True
    assert all(clause.holds for clause in explain(asked, offered))


def test_explain_opens_own_attributes_and_counts_over_many() -> None:
    owner = ClassAd.from_new("[Requirements = START && TARGET.Size < 5; START = Idle > 900; Idle = 10]")
    clauses = explain(owner, ClassAd({"Size": 3}))
    assert [clause.text for clause in clauses] == ["Idle > 900", "TARGET.Size < 5"]
    assert clauses[0].remedy == "Idle > 900 (Idle is 10)"
    tallies = explain_many(
        ClassAd.from_new("[Requirements = TARGET.A > 1 && TARGET.B > 1]"),
        [ClassAd({"A": 2, "B": 0}), ClassAd({"A": 2, "B": 2}), ClassAd({"A": 0, "B": 2})],
    )
    assert [(tally.accepted, tally.left, tally.without) for tally in tallies] == [(2, 2, 2), (2, 1, 2)]


def test_lint() -> None:
    def said(text: str) -> list[str]:
        return [remark.message for remark in lint(parse_expression(text))]

    assert said("Memory > 5 && Arch == \"X\"") == []
    assert "did you mean strcat?" in said("strcatt(a)")[0]
    assert "takes 1 arguments, not 2" in said("size(a, b)")[0]
    assert "=?= undefined" in said("a == undefined")[0]
    assert "'&&'" in said("a > 1 & b < 2")[0]
    assert "same attribute" in said("Memory >= Memory")[0]
    assert [remark.place for remark in lint_ad(ClassAd.from_new("[ok=1;bad=foo()]"))] == ["bad", "bad"]
