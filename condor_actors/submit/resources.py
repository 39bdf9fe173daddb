"""Sections about what the job asks of a machine and of the accountant: Request…, limits, accounting group."""

from __future__ import annotations

from itertools import pairwise

from condor_actors.classads import ClassAd, Expr
from condor_actors.patterns import late
from condor_actors.submit.build_context import MOST, BuildContext, parsed
from condor_actors.submit.errors import SubmitError

_RUNTIME = late(r"(\d+)(?:\.(\d{1,2}))?")
_BETWEEN = late(r"[,\s]+")
_LIMIT = late(r"[\w.]+")
_COUNT = late(r"\d+(\.\d+)?")
_GROUP = late(r"[\w.@-]+")
_QUANTITY = late(r"\s*(\d+(?:\.\d+)?)\s*+(?:([KMGTP])?I?B?)\s*$", "i")
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_TYPOS = {"cpu": "request_cpus", "gpu": "request_gpus", "gpu_memory": "gpus_minimum_memory",
          "gpus_memory": "gpus_minimum_memory"}  # fmt: skip
_WITH_UNITS = {
    "memory": ("RequestMemory", 1024 * 1024, "megabytes"),
    "disk": ("RequestDisk", 1024, "kilobytes"),
}


def quantity(text: str, scale_bytes: int) -> int | None:
    """An amount such as ``2.5 GB`` in units of ``scale_bytes``, rounded up; None when it is no plain amount.

    Without a unit letter the number is already in those units.
    """
    found = _QUANTITY.match(text)
    if found is None:
        return None
    number, unit = float(found.group(1)), (found.group(2) or "").upper()
    if not unit:
        if text.strip()[-1:].upper() == "B":
            return -int(-number // scale_bytes)
        return -int(-number // 1)
    return -int(-(number * 1024 ** _POWERS[unit]) // scale_bytes)


def requests(context: BuildContext) -> None:
    """RequestCpus, RequestMemory, RequestDisk, RequestGPUs, Request<Tag>."""

    given = {
        name[len("request_") :]: name
        for name in (*context.scope.assigned, *context.scope.live)
        if name.startswith("request_") and len(name) > len("request_") + 1
    }
    for tag, name in given.items():
        if tag in ("cpus", "memory", "disk", "gpus"):
            continue
        if tag in _TYPOS:
            context.warn(f"{name} is not a valid submit keyword, did you mean {_TYPOS[tag]}?")
            continue
        import difflib

        meant = difflib.get_close_matches(tag, ("cpus", "memory", "disk", "gpus"), 1, 0.75)
        if meant:
            raise SubmitError(f"{name} is not a command; did you mean request_{meant[0]}?", command=name)
        value = context.text(name)
        if value is not None and not tag.startswith("_"):
            context.set_expression(f"Request{tag}", value, name)
    _expression(context, "request_cpus", "RequestCpus", "JOB_DEFAULT_REQUESTCPUS")
    for tag in ("memory", "disk"):
        _amount(context, tag)
    _gpus(context)


def _expression(context: BuildContext, command: str, attribute: str, default_setting: str) -> None:
    value = context.text(command, attribute) or context.setting(default_setting)
    if value is not None and value.lower() != "undefined":
        context.set_expression(attribute, value, command)


def _amount(context: BuildContext, tag: str) -> None:
    attribute, scale, unit_name = _WITH_UNITS[tag]
    value = context.text(f"request_{tag}", attribute)
    if value is None:
        value = context.setting(f"JOB_DEFAULT_REQUEST{tag.upper()}")
    elif value.isdecimal():
        _missing_unit(context, f"request_{tag}", value, unit_name)
    if value is None or value.lower() == "undefined":
        return
    first, comma, rest = value.partition(",")
    amount = quantity(first if comma else value, scale)
    if amount is None:
        context.set_expression(attribute, value, f"request_{tag}")
    else:
        context.set(attribute, amount)
    comma = "" if amount is None else comma
    _retries(context, tag, amount, f"request_{tag}" if comma else f"retry_request_{tag}",
             rest if comma else context.text(f"retry_request_{tag}"))


def _missing_unit(context: BuildContext, command: str, value: str, unit_name: str) -> None:
    policy = (context.setting("SUBMIT_REQUEST_MISSING_UNITS") or "").lower()
    sentence = f"{command}={value} defaults to {unit_name}"
    if policy == "error":
        raise SubmitError(f"{sentence}, but must contain a units suffix (i.e K, M, G or T)")
    if policy:
        context.warn(f"{sentence}, but should contain a units suffix (i.e K, M, G or T)")


def _retries(context: BuildContext, tag: str, first: int | None, command: str, amounts_text: str | None) -> None:
    """``request_memory = 1GB, 2GB``: what to ask for after the job has used too much (RetryRequest<Tag>), or by which
    rule (Next…, MaxRequest<Tag>)."""
    attribute, scale, _ = _WITH_UNITS[tag]
    increase, most = context.text(f"retry_request_{tag}_increase"), context.text(f"retry_request_{tag}_max")
    if increase is None and most is not None:
        command, amounts_text, most = f"retry_request_{tag}_max", amounts_text or most, None
    if amounts_text:
        amounts = [quantity(part, scale) for part in amounts_text.split(",")]
        if any(amount is None for amount in amounts):
            raise SubmitError(f"{command} = {amounts_text} is invalid, expected amounts such as 2GB, 8GB",
                              command=command)
        steps = [first or 0, *(amount for amount in amounts if amount is not None)]
        if any(low >= high for low, high in pairwise(steps)):
            said = ", ".join(str(step) for step in steps)
            raise SubmitError(f"{command}: the amounts for another attempt must grow, and are {said}", command=command,
                              remedy="Write numbers without a comma: 4000MB, 4GB.")
        context.set_expression(f"Retry{attribute}", "{ " + ", ".join(str(amount) for amount in steps[1:]) + " }")
    if increase is not None:
        if first is None:
            raise SubmitError(f"retry_request_{tag}_increase needs a request_{tag} that is an amount such as 2GB",
                              command=f"retry_request_{tag}_increase")
        _growing(context, tag, first, increase, most)


def _growing(context: BuildContext, tag: str, first: int, increase: str, most: str | None) -> None:
    """By how much a request grows: an amount, or an expression for the next request; once, unless there is a most."""
    attribute, scale, _ = _WITH_UNITS[tag]
    command = f"retry_request_{tag}_increase"
    step = quantity(increase, scale)
    if step is None and attribute.lower() not in increase.lower():
        raise SubmitError(f"{command} = {increase} is invalid, expected an amount such as 2GB or an expression of "
                          f"{attribute}", command=command)
    if step is not None and step <= 0:
        raise SubmitError(f"{command} = {increase} is invalid, expected more than 0", command=command)
    context.set_expression(f"Next{attribute}", increase if step is None else f"{attribute} + {step}", command)
    limit = quantity(most, scale) if most is not None else None
    if most is not None and (limit is None or limit <= first):
        raise SubmitError(f"retry_request_{tag}_max = {most} is invalid, expected an amount of more than {first}",
                          command=f"retry_request_{tag}_max")
    if limit is not None:
        context.set(f"Max{attribute}", limit)
    elif step is not None:
        context.set(f"Max{attribute}", first + step)
    else:
        once = ClassAd({attribute: first, "Next": parsed(increase)}).evaluate("Next")
        if isinstance(once, bool) or not isinstance(once, (int, float)) or once <= first:
            raise SubmitError(f"{command} = {increase} is invalid: it comes to {once}, expected more than {first}",
                              command=command)
        context.set(f"Max{attribute}", int(once))


def _gpus(context: BuildContext) -> None:
    _expression(context, "request_gpus", "RequestGPUs", "JOB_DEFAULT_REQUESTGPUS")
    if context.get("RequestGPUs") is None:
        return
    for command, attribute in (
        ("require_gpus", "RequireGPUs"), ("gpus_minimum_capability", "GPUsMinCapability"),
        ("gpus_maximum_capability", "GPUsMaxCapability"),
    ):  # fmt: skip
        value = context.text(command, attribute)
        if value is not None:
            context.set_expression(attribute, value, command)
    memory = context.text("gpus_minimum_memory", "GPUsMinMemory")
    if memory is not None:
        amount = quantity(memory, 1024 * 1024)
        if amount is None:
            context.set_expression("GPUsMinMemory", memory, "gpus_minimum_memory")
        else:
            context.set("GPUsMinMemory", amount)
    runtime = context.text("gpus_minimum_runtime", "GPUsMinRuntime")
    if runtime is not None:
        _runtime(context, runtime)


_LEAST = {"RequestCpus": 1, "RequestMemory": 0, "RequestDisk": 0, "RequestGPUs": 0}


def possible_requests(context: BuildContext) -> None:
    """Refuse requests that no machine can meet: no number, too small a one, or a word that means nothing."""
    for attribute, least in _LEAST.items():
        value = context.get(attribute)
        command = f"request_{attribute[len('Request'):].lower()}"
        written = f"{command} = {context.text(command, attribute) or value}"
        unit = " or an amount such as 2GB" if attribute in ("RequestMemory", "RequestDisk") else ""
        if isinstance(value, Expr):
            _check_names(context, value, command, written, unit)
        elif value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))
                                    or not least <= value <= MOST):
            most = f", and of at most {MOST}" if isinstance(value, (int, float)) and value > MOST else ""
            raise SubmitError(f"{written} is invalid, expected a number of at least {least}{most}{unit}.",
                              command=command)


def _check_names(context: BuildContext, value: Expr, command: str, written: str, unit: str) -> None:
    """A lone word that is no attribute of the job is no request; others may come to be while the job lives."""
    word = str(value)
    if word.isidentifier() and context.get(word) is None and not word.lower().endswith(("usage", "size", "sizemb")):
        raise SubmitError(f"{written} is invalid: {word} is no number{unit}, and no attribute of the job.",
                          command=command)


def _runtime(context: BuildContext, runtime: str) -> None:
    """A version ``12.2`` is 12020."""
    version = _RUNTIME.fullmatch(runtime)
    if version is None:
        context.set_expression("GPUsMinRuntime", runtime, "gpus_minimum_runtime")
        return
    major, minor = int(version.group(1)), int(version.group(2) or 0)
    context.set("GPUsMinRuntime", major if major > 1000 else major * 1000 + minor * 10)


_PROPERTIES = (
    ("GPUsMinCapability", "Capability", ">="), ("GPUsMaxCapability", "Capability", "<="),
    ("GPUsMinMemory", "GlobalMemoryMb", ">="), ("GPUsMinRuntime", "MaxSupportedVersion", ">="),
)  # fmt: skip


def gpu_properties(context: BuildContext) -> None:
    """RequireGPUs, completed by the least and greatest properties asked for."""
    if context.get("RequestGPUs") is None:
        return
    import re

    required = context.get("RequireGPUs")
    text = "" if required is None else str(required)
    clauses = [
        f"{property_name} {relation} {attribute}"
        for attribute, property_name, relation in _PROPERTIES
        if context.get(attribute) is not None and not re.search(rf"\b{property_name}\b", text, re.IGNORECASE)
    ]
    if not clauses:
        return
    if text:
        clauses.insert(0, f"({text})" if "||" in text or "?" in text else text)
    context.set_expression("RequireGPUs", " && ".join(clauses))


def concurrency_limits(context: BuildContext) -> None:
    """ConcurrencyLimits."""
    words = context.text("concurrency_limits", "ConcurrencyLimits")
    expression = context.text("concurrency_limits_expr")
    if words is not None and expression is not None:
        raise SubmitError("concurrency_limits and concurrency_limits_expr can't be used together")
    if expression is not None:
        context.set_expression("ConcurrencyLimits", expression, "concurrency_limits_expr")
    if words is None:
        return
    limits = sorted(word for word in _BETWEEN.split(words.lower()) if word)
    for limit in limits:
        name, colon, count = limit.partition(":")
        if not _LIMIT.fullmatch(name) or (colon and not _COUNT.fullmatch(count)):
            raise SubmitError(f"Invalid concurrency limit '{limit}': expected NAME or NAME:COUNT")
    context.set("ConcurrencyLimits", ",".join(limits))


def _told_if_unknown(context: BuildContext, group: str) -> None:
    """Where this machine knows the groups of the pool, one that is none of them has no quota: say so."""
    known = (context.setting("GROUP_NAMES") or "").replace(",", " ").split()
    words = group.lower().split(".")
    outer = {".".join(words[:count]) for count in range(1, len(words) + 1)}
    if known and not outer & {name.lower() for name in known}:
        context.warn(f"accounting_group = {group} is no group of this pool (GROUP_NAMES = {', '.join(known)}): "
                     "the jobs have no group's quota")


def accounting(context: BuildContext) -> None:
    """AcctGroup, AcctGroupUser, AccountingGroup."""
    group = context.text("accounting_group", "acctgroup", "AcctGroup")
    user = context.text("accounting_group_user", "acctgroupuser", "AcctGroupUser")
    project = context.text("project_name", "ProjectName")
    if project is not None:
        context.set("ProjectName", project)
    if context.boolean("nice_user"):
        if group is not None and group.lower() != "nice-user":
            context.warn("nice_user conflicts with accounting_group; the accounting_group is ignored")
        group = "nice-user"
        if context.text("max_job_retirement_time", "MaxJobRetirementTime") is None:
            context.set("MaxJobRetirementTime", 0)
    if group is None and user is None:
        return
    for word in (group, user):
        if word is not None and not _GROUP.fullmatch(word):
            raise SubmitError(f"Invalid accounting group '{word}': expected letters, digits, '.', '_', '-', '@'")
    user = user or context.world.user
    if group is not None and group != "nice-user":
        _told_if_unknown(context, group)
    if group is not None:
        context.set("AcctGroup", group)
    context.set("AcctGroupUser", user)
    context.set("AccountingGroup", f"{group}.{user}" if group else user)
