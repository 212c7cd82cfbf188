"""Write the go.mod that builds k8s.io/kubernetes as a dependency.

k8s.io/kubernetes replaces its staging modules (k8s.io/api, k8s.io/client-go, ...) by local folders.
Folders of a dependency are not visible, so each is replaced by the version published beside it
(v1.37.2 -> v0.37.2), and the requirements are taken over so that the same third-party versions are built.

Usage: kubernetes.py VERSION DIRECTORY     Writes DIRECTORY/go.mod; needs Go.
The result for the default version is committed (tools/kubernetes); `build` derives other versions in its cache.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

MODULE = "k8s.io/kubernetes"


def go_mod(version: str, upstream: str) -> str:
    """Return our go.mod for a Kubernetes version, given the text of Kubernetes' own go.mod."""
    staging = re.sub(r"^v1\.", "v0.", version)
    language = re.search(r"^go .+$", upstream, re.MULTILINE)
    godebug = re.search(r"^godebug .+$", upstream, re.MULTILINE)
    required = re.findall(r"^\t(\S+) (v\S+)(?: // indirect)?$", upstream, re.MULTILINE)
    replaced = re.findall(r"^\t(k8s\.io/\S+) => \./staging", upstream, re.MULTILINE)
    lines = ["module metaflow-kubernetes-ext/tests/cluster/tools/kubernetes", ""]
    lines += [match.group(0) for match in (language, godebug) if match]
    lines += ["", f"require {MODULE} {version}", "", "require ("]
    lines += [f"\t{path} {staging if wanted == 'v0.0.0' else wanted} // indirect" for path, wanted in required]
    lines += [")", "", "replace ("]
    lines += [f"\t{path} => {path} {staging}" for path in replaced]
    lines += [")", ""]
    return "\n".join(lines)


def main() -> None:
    version, directory = sys.argv[1], Path(sys.argv[2])
    found = subprocess.run(
        ["go", "mod", "download", "-json", f"{MODULE}@{version}"], check=True, capture_output=True, text=True
    )
    upstream = Path(json.loads(found.stdout)["GoMod"]).read_text()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "go.mod").write_text(go_mod(version, upstream))


if __name__ == "__main__":
    main()
