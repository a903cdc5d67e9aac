"""What checks the Helm chart: Helm itself, and validators with the schemas of all kinds."""

import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.devstack.cache import cached
from tests.devstack.npm import find_node, npm_packages
from tests.devstack.server import StackUnavailableError, run_to_end, say
from tests.devstack.wheels import python_environment

HELM = "v3.22.0"
VALIDATOR = "1.37.0"
# The oldest that the chart allows, and the newest whose schemas the validator has.
KUBERNETES = ("1.27.0", "1.37.0")
_OTHERS = ("keda.sh/", "monitoring.coreos.com/")
_PROJECT = Path(__file__).with_name("chart")


def rendered(chart: Path, values: Path) -> list[dict[str, Any]]:
    """Return the resources that the chart makes of these values.

    Raises:
        ValueError: the chart refuses them.
    """
    done = run_helm("template", "trial", str(chart), "--values", str(values))
    if done.returncode:
        raise ValueError(done.stderr)
    return [resource for resource in yaml.safe_load_all(done.stdout) if resource]


def run_helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Helm to its end. Go builds it from its module once per user, which takes minutes."""
    program = cached(f"helm-{HELM}", "Helm", _build) / "helm"
    # Helm itself takes the release of its client library for that of the cluster, and built as here, for 1.20.
    command = [str(program), *arguments, "--kube-version", KUBERNETES[-1]]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def unfit(resources: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for each resource that does not fit the schema of its kind."""
    kinds: dict[bool, list[Mapping[str, Any]]] = {True: [], False: []}
    for each in resources:
        kinds[each["apiVersion"].startswith(_OTHERS)].append(each)
    return _unfit_core(kinds[False]) + _unfit_others(kinds[True])


def _unfit_core(resources: Sequence[Mapping[str, Any]]) -> list[str]:
    python = python_environment(f"kubernetes-validate=={VALIDATOR}") / "bin/python"
    return _lines([str(python), str(_PROJECT / "check_core.py"), *KUBERNETES], json.dumps(resources))


def _unfit_others(resources: Sequence[Mapping[str, Any]]) -> list[str]:
    program = [find_node(), str(npm_packages(_PROJECT) / "check.mjs")]
    return _lines(program, "\n".join(map(json.dumps, resources)))


def _lines(program: Sequence[str], given: str) -> list[str]:
    done = subprocess.run(program, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StackUnavailableError(f"{program[1]} failed: {done.stderr[-800:]}")
    return done.stdout.splitlines()


def _build(folder: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise StackUnavailableError("the chart cannot be checked: there is no go on PATH")
    say(f"building Helm {HELM} from its Go module, once")
    folder.mkdir()
    run_to_end(
        ["env", f"GOBIN={folder}", "GOFLAGS=-mod=mod", go, "install", f"helm.sh/helm/v3/cmd/helm@{HELM}"],
        purpose="building Helm",
    )
