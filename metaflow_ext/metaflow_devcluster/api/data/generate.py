"""Make schemas.json and messages.json: what the served kinds consist of, in OpenAPI and in protobuf.

Run by hand when the played Kubernetes version changes; needs the Go modules below in the module cache
(`go mod download -json MODULE@VERSION`) and PyYAML. The product only reads the two files.

    python generate.py K8S_IO_KUBERNETES K8S_IO_API K8S_IO_APIMACHINERY SIGS_JOBSET

Descriptions are left out: they are nine tenths of the size and only `kubectl explain` shows them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Node = dict[str, Any]
HERE = Path(__file__).parent
GROUPS = "apiextensions.k8s.io authorization.k8s.io batch coordination.k8s.io policy scheduling.k8s.io"
DOCUMENTS = ("api__v1", *(f"apis__{group}__v1" for group in GROUPS.split()))
CORE = "ConfigMap Event Namespace Node PersistentVolumeClaim Pod ResourceQuota Secret ServiceAccount Service Binding"
ROOTS = [f"io.k8s.api.core.v1.{kind}" for kind in CORE.split()]
ROOTS += ["io.k8s.api.batch.v1.Job", "io.k8s.api.coordination.v1.Lease", "io.k8s.api.scheduling.v1.PriorityClass"]
ROOTS += ["io.k8s.api.authorization.v1.SelfSubjectAccessReview", "io.k8s.api.authorization.v1.SubjectAccessReview"]
ROOTS += ["io.k8s.api.authentication.v1.TokenRequest", "io.k8s.api.policy.v1.Eviction"]
ROOTS += ["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"]
ROOTS += [f"io.k8s.apimachinery.pkg.apis.meta.v1.{kind}" for kind in ("DeleteOptions", "Status")]
JOBSET = "io.x-k8s.jobset.v1alpha2.JobSet"
JOB_TEMPLATE = "io.k8s.api.batch.v1.JobTemplateSpec"
REF = "#/components/schemas/"
DROPPED = ("description", "externalDocs", "title", "example")
PROTOS = (
    "core/v1",
    "batch/v1",
    "coordination/v1",
    "scheduling/v1",
    "authorization/v1",
    "authentication/v1",
    "policy/v1",
)


def without_descriptions(node: Any, *, is_properties: bool = False) -> Any:
    if isinstance(node, list):
        return [without_descriptions(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "allOf" in node and len(node["allOf"]) == 1 and "$ref" in node["allOf"][0]:
        extra = {k: v for k, v in node.items() if k not in ("allOf", "default", *DROPPED)}
        return {**node["allOf"][0], **without_descriptions(extra)}
    kept = node.items() if is_properties else ((k, v) for k, v in node.items() if k not in DROPPED and v != {})
    return {k: without_descriptions(v, is_properties=k == "properties") for k, v in kept if k != "default" or is_properties}


def references(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from references(item)
    elif isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(REF)
        for value in node.values():
            yield from references(value)


def only_own_group(schema: Node, name: str) -> Node:
    """DeleteOptions names some eighty groups; the core one is enough for it."""
    kinds = schema.get("x-kubernetes-group-version-kind")
    if kinds and len(kinds) > 1:
        schema = {
            **schema,
            "x-kubernetes-group-version-kind": [kind for kind in kinds if kind["group"] in ("", "policy")][:1],
        }
    return schema


def built_in(kubernetes: Path) -> Node:
    everything: Node = {}
    for document in DOCUMENTS:
        text = (kubernetes / "api/openapi-spec/v3" / f"{document}_openapi.json").read_text()
        everything.update(json.loads(text)["components"]["schemas"])
    found: Node = {}
    wanted = [*ROOTS, JOB_TEMPLATE]
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = only_own_group(without_descriptions(everything[name]), name)
            wanted.extend(references(found[name]))
    return dict(sorted(found.items()))


def crd_only(node: Any, *, is_properties: bool = False) -> Any:
    if isinstance(node, list):
        return [crd_only(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = node.items() if is_properties else ((k, v) for k, v in node.items() if k not in DROPPED)
    return {k: crd_only(v, is_properties=k == "properties") for k, v in kept}


NAMED = {
    "status.replicatedJobsStatus.[]": "ReplicatedJobStatus",
    "status": "JobSetStatus",
    "spec.replicatedJobs.[].dependsOn.[]": "DependsOn",
    "spec.replicatedJobs.[]": "ReplicatedJob",
    "spec.failurePolicy.rules.[]": "FailurePolicyRule",
    "spec.failurePolicy": "FailurePolicy",
    "spec.successPolicy": "SuccessPolicy",
    "spec.startupPolicy": "StartupPolicy",
    "spec.network": "Network",
    "spec.coordinator": "Coordinator",
    "spec.volumeClaimPolicies.[].retentionPolicy": "VolumeRetentionPolicy",
    "spec.volumeClaimPolicies.[]": "VolumeClaimPolicy",
    "spec": "JobSetSpec",
}


def named(schema: Node) -> Node:
    """The CRD's nested schemas under the names of their Go types, which the webhook's errors mention."""
    found: Node = {}
    for path, name in NAMED.items():
        *before, last = path.split(".")
        parent = schema
        for step in before:
            parent = parent["items"] if step == "[]" else parent["properties"][step]
        place, key = (parent, "items") if last == "[]" else (parent["properties"], last)
        full = JOBSET.removesuffix("JobSet") + name
        found[full] = place[key]
        rules = place[key].pop("x-kubernetes-validations", None) if last != "spec" else None
        place[key] = {"$ref": REF + full, **({"x-kubernetes-validations": rules} if rules else {})}
    return found


def jobset(module: Path) -> Node:
    """The JobSet schema with its Job template, 800 kB of copied text, replaced by a reference."""
    text = (module / "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml").read_text()
    version = yaml.load(text, yaml.CSafeLoader)["spec"]["versions"][0]
    schema: Node = version["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["replicatedJobs"]["items"]["properties"]["template"] = {
        "$ref": REF + JOB_TEMPLATE
    }
    claims = schema["properties"]["spec"]["properties"].get("volumeClaimPolicies")
    if claims:
        template = claims["items"]["properties"]["templates"]["items"]
        template.clear()
        template["$ref"] = REF + "io.k8s.api.core.v1.PersistentVolumeClaim"
    found: Node = crd_only(schema)
    found["properties"]["metadata"] = {"$ref": REF + "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    found["x-kubernetes-group-version-kind"] = [{"group": "jobset.x-k8s.io", "kind": "JobSet", "version": "v1alpha2"}]
    return {JOBSET: found, **named(found)}


POINTER = re.compile(r'^\t\w+\s+\*[\w.]+\s+`json:"(\w+)')
FIELD = re.compile(r"^  (optional|repeated|map<(\w+), ([\w.]+)>)\s*([\w.]+)?\s+(\w+) = (\d+);")


def pointers(file: Path) -> set[tuple[str, str]]:
    """(struct, JSON name) of the fields whose zero value differs from absence."""
    found, struct = set(), ""
    for line in file.read_text().splitlines():
        if line.startswith("type ") and line.endswith("struct {"):
            struct = line.split()[1]
        elif match := POINTER.match(line):
            found.add((struct, match[1]))
    return found


def label_of(label: str, name: str, message: str, optional: set[tuple[str, str]], schemas: Node) -> str:
    schema = schemas.get("io." + message.replace("k8s.io.", "k8s.", 1), {}).get("properties")
    if schema is not None and name not in schema:
        return "inline"
    if label != "optional":
        return "many" if label == "repeated" else "map"
    return "pointer" if (message.rpartition(".")[2], name) in optional else "one"


def messages(api: Path, machinery: Path, schemas: Node) -> Node:
    """Field numbers: {message: {number: [json name, type, "one" | "pointer" | "many" | "map" | "inline"]}}."""
    files = [api / path / "generated.proto" for path in PROTOS]
    files += [
        machinery / path / "generated.proto"
        for path in ("pkg/apis/meta/v1", "pkg/api/resource", "pkg/util/intstr", "pkg/runtime")
    ]
    everything: Node = {}
    for file in files:
        package, message = "", ""
        types = file.with_name("types.go")
        optional = pointers(types) if types.exists() else set()
        for line in file.read_text().splitlines():
            if line.startswith("package "):
                package = line[8:-1]
            elif line.startswith("message "):
                message = f"{package}.{line.split()[1]}"
                everything[message] = {}
            elif match := FIELD.match(line):
                label, _, value, kind, name, number = match.groups()
                if label.startswith("map"):
                    kind = value
                kind = kind.lstrip(".")
                if kind[0].isupper():
                    kind = f"{package}.{kind}"
                name = {"uID": "uid"}.get(name, name)
                everything[message][number] = [name, kind, label_of(label, name, message, optional, schemas)]
    found: Node = {}
    wanted = [name.removeprefix("io.").replace("k8s.", "k8s.io.", 1) for name in ROOTS]
    while wanted:
        name = wanted.pop()
        if name in found or name not in everything:
            continue
        found[name] = everything[name]
        wanted.extend(kind for _, kind, _ in found[name].values() if "." in kind)
    return dict(sorted(found.items()))


def main(kubernetes: str, api: str, machinery: str, jobset_module: str) -> None:
    schemas = built_in(Path(kubernetes))
    schemas.update(jobset(Path(jobset_module)))
    for name, content in (("schemas", schemas), ("messages", messages(Path(api), Path(machinery), schemas))):
        text = json.dumps(content, separators=(",", ":"))
        (HERE / f"{name}.json").write_text(text + "\n")
        sys.stdout.write(f"{name}: {len(content)} entries, {len(text)} bytes\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
