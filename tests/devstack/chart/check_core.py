"""Check resources of Kubernetes itself, where an unknown field is an error.

Arguments: releases of Kubernetes. Input: a list in JSON. Output: a line for each resource that does not fit.
"""

import json
import sys

import kubernetes_validate

resources = json.load(sys.stdin)
for version in sys.argv[1:]:
    for resource in resources:
        try:
            kubernetes_validate.validate(resource, version, strict=True)
        except Exception as error:  # noqa: BLE001 - the classes of errors of the package have no common base
            name = f"{resource.get('kind')} {resource.get('metadata', {}).get('name')}"
            sys.stdout.write(f"{version} {name}: {str(error).splitlines()[0]}\n")
