"""What checks the Helm chart: Helm itself, and validators with the schemas of all kinds."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.devstack.cache import cached
from tests.devstack.npm import find_node
from tests.devstack.server import StackUnavailableError, run_to_end, say

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
    folder = cached(f"kubernetes-validate-{VALIDATOR}", "the schemas of Kubernetes", _install)
    program = [sys.executable, str(_PROJECT / "check_core.py"), *KUBERNETES]
    return _lines(program, json.dumps(resources), {"PYTHONPATH": str(folder)})


def _unfit_others(resources: Sequence[Mapping[str, Any]]) -> list[str]:
    folder = cached("chart-npm", "the schemas of KEDA", _download)
    program = [find_node(), str(folder / "check.mjs")]
    return _lines(program, "\n".join(map(json.dumps, resources)), {})


def _lines(program: Sequence[str], given: str, environment: Mapping[str, str]) -> list[str]:
    done = subprocess.run(
        program, input=given, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    if done.returncode:
        raise StackUnavailableError(f"{program[1]} failed: {done.stderr[-800:]}")
    return done.stdout.splitlines()


def _build(folder: Path) -> None:
    go = _program("go")
    say(f"building Helm {HELM} from its Go module, once")
    folder.mkdir()
    run_to_end(
        ["env", f"GOBIN={folder}", "GOFLAGS=-mod=mod", go, "install", f"helm.sh/helm/v3/cmd/helm@{HELM}"],
        purpose="building Helm",
    )


def _install(folder: Path) -> None:
    say("downloading the schemas of Kubernetes from PyPI, once")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(folder)]
    run_to_end([*pip, f"kubernetes-validate=={VALIDATOR}"], purpose="downloading the schemas of Kubernetes")


def _download(folder: Path) -> None:
    npm = _program("npm")
    say("downloading the schemas of KEDA and of the Prometheus operator from npm, once")
    shutil.copytree(_PROJECT, folder)
    install = [npm, "ci", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund"]
    run_to_end(install, purpose="downloading the schemas of KEDA")


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise StackUnavailableError(f"the chart cannot be checked: there is no {name} on PATH")
    return found
